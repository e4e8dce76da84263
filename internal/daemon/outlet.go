package daemon

import (
	"context"
	"sync"
	"time"

	"understudy/internal/archive"
	"understudy/internal/handover"
	"understudy/internal/health"
	"understudy/internal/owner"
	"understudy/internal/stats"
)

// Bounds on what waits to be told to an heir; beyond them bodies, then records, are
// dropped and counted.
const (
	maxUntold       = 1 << 16
	maxUntoldBodies = 32 << 20
	// tellEvery is how often an heir is told at the least, while something runs here.
	tellEvery = time.Second
	// tellAtOnce is how many records go into one message.
	tellAtOnce = 256
)

// news is what has happened at a process that has handed over, since it last told.
type news struct {
	// Records are a block of the request log's, Bodies theirs, one for each.
	Records []byte              `json:"records,omitempty"`
	Bodies  []*stats.Bodies     `json:"bodies,omitempty"`
	Board   []health.Difference `json:"board,omitempty"`
	Owners  []byte              `json:"owners,omitempty"`
	// InFlight is how many requests run there, and Lost how many records could not
	// wait.
	InFlight int64 `json:"in_flight"`
	Lost     int64 `json:"lost,omitempty"`
}

// told is a record that waits to be told.
type told struct {
	entry  *stats.Sequenced
	bodies *stats.Bodies
}

// An outlet takes what happens at this process from the moment on when its state was
// given away, and tells the heir. Should the heir fail, all of it comes back.
type outlet struct {
	handler interface {
		Owners() *owner.Book
		Ledger() *stats.Ledger
	}
	board *health.Board

	mu    sync.Mutex
	back  func(*stats.Sequenced, *stats.Bodies) // set once it has come back
	queue []told
	held  int64 // bytes of bodies
	lost  int64
	wake  chan struct{}

	// What the heir knows; read and written by whoever tells.
	known  health.State
	owners uint64
}

// offer takes a record; it is the ledger's tap and never waits.
func (o *outlet) offer(entry *stats.Sequenced, bodies *stats.Bodies) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.back != nil {
		o.back(entry, bodies)
		return
	}
	if len(o.queue) >= maxUntold {
		o.lost++
		return
	}
	if n := sizeOf(bodies); o.held+n > maxUntoldBodies {
		bodies = nil
	} else {
		o.held += n
	}
	o.queue = append(o.queue, told{entry, bodies})
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

func sizeOf(b *stats.Bodies) (n int64) {
	if b == nil {
		return 0
	}
	n = int64(len(b.Request.Text))
	for _, answer := range b.Answers {
		n += int64(len(answer.Text))
	}
	return n
}

// giveBack passes on what waits, and from here on everything at once.
func (o *outlet) giveBack(to func(*stats.Sequenced, *stats.Bodies)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.queue {
		to(t.entry, t.bodies)
	}
	o.queue, o.back = nil, to
}

// run tells the heir until ctx is done, and then the rest. What is learned is told at
// once: the next request may need it.
func (o *outlet) run(ctx context.Context, heir *handover.Heir) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	book := o.handler.Owners()
	for ctx.Err() == nil {
		frozen, learned := o.board.Changed(), book.Changed() // before looking
		if err := o.tell(heir); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-o.wake:
		case <-frozen:
		case <-learned:
		case <-tick.C:
		}
	}
	for {
		if err := o.tell(heir); err != nil {
			return err
		}
		if o.waiting() == 0 {
			return heir.Send(handover.Done, nil)
		}
	}
}

func (o *outlet) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// untold is how many records the heir will never hear of.
func (o *outlet) untold() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost + int64(len(o.queue))
}

// tell sends what there is, as much as a message takes.
func (o *outlet) tell(heir *handover.Heir) error {
	var n news
	o.mu.Lock()
	some := o.queue[:min(len(o.queue), tellAtOnce)]
	o.queue = o.queue[len(some):]
	more := len(o.queue) > 0
	n.Lost, o.lost = o.lost, 0
	for _, t := range some {
		o.held -= sizeOf(t.bodies)
	}
	o.mu.Unlock()
	if more {
		select {
		case o.wake <- struct{}{}:
		default: // it is awake
		}
	}
	if len(some) > 0 {
		entries := make([]*stats.Sequenced, 0, len(some))
		for _, t := range some {
			entries = append(entries, t.entry)
			n.Bodies = append(n.Bodies, hidden(t.bodies))
		}
		n.Records = archive.Pack(entries)
	}
	board := o.board.Export(time.Now())
	n.Board = board.Since(o.known)
	if book := o.handler.Owners(); book.Changes() != o.owners {
		n.Owners, o.owners = book.Since(o.owners)
	}
	n.InFlight = o.handler.Ledger().Totals().InFlight
	if err := heir.Send(handover.News, n); err != nil {
		o.mu.Lock()
		o.lost += n.Lost + int64(len(some))
		o.mu.Unlock()
		return err
	}
	o.known = board
	return nil
}

// hidden is bodies without their secrets.
func hidden(b *stats.Bodies) *stats.Bodies {
	if b == nil || b.Hide == nil {
		return b
	}
	c := &stats.Bodies{Request: b.Request}
	c.Request.Text = b.Hide(b.Request.Text)
	for _, answer := range b.Answers {
		answer.Text = b.Hide(answer.Text)
		c.Answers = append(c.Answers, answer)
	}
	return c
}
