package probe

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The causes with which an attempt is cancelled. They are read back with
// context.Cause, so that who ended an attempt never has to be guessed from a text.
var (
	// ErrClientGone: the client left; nobody's failure.
	ErrClientGone = errors.New("client gone")
	// ErrHedgeLost: another attempt won; nobody's failure.
	ErrHedgeLost = errors.New("another attempt won")
	// ErrChainSpent: the budget over all attempts of the request is used up.
	ErrChainSpent = errors.New("chain budget spent")
	// ErrStalled: the upstream sent not one byte for too long.
	ErrStalled = errors.New("upstream stalled")
	// ErrBudget: the attempt's own budget is used up.
	ErrBudget = errors.New("attempt budget spent")
	// ErrConnectBudget: no connection within the budget for TCP and TLS.
	ErrConnectBudget = errors.New("connect budget spent")
	// ErrContentBudget: no content within the budget for the first content.
	ErrContentBudget = errors.New("content budget spent")
)

// Budget bounds one attempt until release. Zero durations are no bound.
type Budget struct {
	// Connect bounds TCP plus TLS of a new connection.
	Connect time.Duration
	// Stall is the longest silence from the last request byte sent to release.
	Stall time.Duration
	// Total runs from the attempt's start to release (or the last byte).
	Total time.Duration
	// Chain is what is left of the request's budget over all attempts.
	Chain time.Duration
	// Content is the longest wait for the first content.
	Content time.Duration
	// Hold is how many decoded bytes are held before the answer is let go.
	Hold int64
}

// A Clock runs the budgets of one attempt and cancels its context, with the
// cause, when one is spent. Its methods may be called from any goroutine.
type Clock struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	budget Budget

	mu                             sync.Mutex
	connect, stall, total, content *time.Timer
	over                           bool // released or stopped: no clock starts any more
	listening                      bool // the stall clock runs
	// Bytes come all the time, and a timer is dear to move: it stands where it stood, and
	// when it fires too early, since bytes have come meanwhile, it is set anew.
	heard time.Time // when the stall clock started last
	armed bool      // its timer runs, and fires no later than the clock is spent
}

// NewClock starts the attempt's total budget.
func NewClock(parent context.Context, b *Budget) *Clock {
	ctx, cancel := context.WithCancelCause(parent)
	c := &Clock{ctx: ctx, cancel: cancel, budget: *b}
	switch {
	case b.Chain > 0 && (b.Total <= 0 || b.Chain < b.Total):
		c.total = c.after(b.Chain, ErrChainSpent)
	case b.Total > 0:
		c.total = c.after(b.Total, ErrBudget)
	}
	return c
}

// Context is the context the attempt must be sent with.
func (c *Clock) Context() context.Context { return c.ctx }

// Cancel ends the attempt for the given reason.
func (c *Clock) Cancel(cause error) {
	c.stop()
	c.cancel(cause)
}

func (c *Clock) after(d time.Duration, cause error) *time.Timer {
	return time.AfterFunc(d, func() { c.cancel(cause) })
}

// Connecting starts the budget of a new connection.
func (c *Clock) Connecting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budget.Connect <= 0 || c.over {
		return
	}
	if c.connect == nil {
		c.connect = c.after(c.budget.Connect, ErrConnectBudget)
	} else {
		c.connect.Reset(c.budget.Connect)
	}
}

// Connected ends the budget of a new connection.
func (c *Clock) Connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connect != nil {
		c.connect.Stop()
	}
}

// Sent says that the last byte of the request has been written: from here on
// silence is the upstream's. A request that is sent again calls it again.
func (c *Clock) Sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listen()
	if c.budget.Content > 0 && c.content == nil && !c.over {
		c.content = c.after(c.budget.Content, ErrContentBudget)
	}
}

// Heard says that bytes of the answer have come, or that somebody waits for them
// anew.
func (c *Clock) Heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listen()
}

// Stirred says that bytes of the answer have come that nobody can read yet, such as
// part of a compressed block. Unlike Heard it starts no stall clock that rests.
func (c *Clock) Stirred() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listening {
		c.listen()
	}
}

// listen starts the stall clock anew. The lock is held.
func (c *Clock) listen() {
	if c.budget.Stall <= 0 || c.over {
		return
	}
	c.listening, c.heard = true, time.Now()
	if !c.armed {
		c.arm(c.budget.Stall)
	}
}

// arm has silent called after a time. The lock is held.
func (c *Clock) arm(after time.Duration) {
	c.armed = true
	if c.stall == nil {
		c.stall = time.AfterFunc(after, c.silent)
	} else {
		c.stall.Reset(after)
	}
}

// silent ends the attempt if the stall clock is spent, and otherwise looks again when
// it may be.
func (c *Clock) silent() {
	c.mu.Lock()
	c.armed = false
	if c.over || !c.listening {
		c.mu.Unlock()
		return
	}
	left := c.budget.Stall - time.Since(c.heard)
	if left > 0 {
		c.arm(left)
	}
	c.mu.Unlock()
	if left <= 0 {
		c.cancel(ErrStalled)
	}
}

// Said says that the first content has come.
func (c *Clock) Said() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.Content = 0
	if c.content != nil {
		c.content.Stop()
	}
}

// Proved ends the budgets for the whole attempt and for the first content: the
// answer is good and only held for longer. The stall clock goes on.
func (c *Clock) Proved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range []*time.Timer{c.total, c.content} {
		if t != nil {
			t.Stop()
		}
	}
	c.budget.Content = 0
}

// Release ends every clock that runs before release. From now on idle is the longest
// silence, 0 = none, and it counts only from Heard to Rest: while nobody reads, a
// client that takes nothing is not the upstream's silence.
func (c *Clock) Release(idle time.Duration) {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.budget = false, Budget{Stall: idle}
}

// idle is the longest silence, 0 = no bound.
func (c *Clock) idle() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.budget.Stall
}

// Rest stops the stall clock until the next Heard.
func (c *Clock) Rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening = false
}

// stop ends all clocks.
func (c *Clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.listening, c.armed = true, false, false
	for _, t := range []*time.Timer{c.connect, c.stall, c.total, c.content} {
		if t != nil {
			t.Stop()
		}
	}
	c.connect, c.total, c.content = nil, nil, nil
}
