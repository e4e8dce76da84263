package load

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Ask is one request of a flow, and what is to become of it.
type Ask struct {
	Kind   string // what it is counted under
	Bytes  []byte // the request as it is sent
	Status int    // what it is to be answered with
	// Whole checks the body of an answer that is no stream; nil: whatever it says.
	Whole  func(body []byte) error
	Stream *Stream // the answer is to be this stream
	Leave  int     // deltas after which the client leaves; 0: it stays to the end
	Cut    int     // bytes of the request after which the client stops and leaves; 0: it sends all
	Fresh  bool    // over a connection of its own, which is closed after
}

// A Stream is what a streamed answer must be.
type Stream struct {
	Pattern
	Bytes int // the length of its body
}

const (
	// idleTime is how long a kept connection is used again: less than any server keeps it.
	idleTime = time.Minute
	// keptFailures is how many failures a flow remembers with their reasons.
	keptFailures = 20
)

// A Flow sends requests at a fixed rate, whatever becomes of those before (an open
// loop), over kept connections as far as there are idle ones.
type Flow struct {
	to       Target
	patience time.Duration // how long a request may take, beyond the time that its stream must
	wg       sync.WaitGroup
	under    atomic.Int64
	never    atomic.Bool // stays false: nobody notes delays

	mu       sync.Mutex
	kinds    map[string]*Tally
	times    []time.Duration // of good answers that are no streams, since the last Take
	failures []string
	idle     []kept // the longest idle first
}

type kept struct {
	conn  *conn
	since time.Time
}

// Open begins a flow, which ends with ctx. next is called by one goroutine.
func Open(ctx context.Context, to Target, perSecond float64, next func() Ask) *Flow {
	f := &Flow{to: to, patience: requestTime, kinds: map[string]*Tally{}}
	f.wg.Go(func() {
		began := time.Now()
		for i := 0; ; i++ {
			due := began.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
			if ctx.Err() != nil { // both may have come
				return
			}
			ask := next()
			f.under.Add(1)
			f.wg.Go(func() {
				defer f.under.Add(-1)
				f.do(ask)
			})
		}
	})
	return f
}

// Wait waits until every request has been answered, closes the kept connections, and
// returns what became of the requests by their kinds, and the reasons of some that failed.
func (f *Flow) Wait() (kinds map[string]*Tally, failures []string) {
	f.wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.idle {
		k.conn.drop()
	}
	f.idle = nil
	return f.kinds, f.failures
}

// Seen is what has become of a flow's requests until now.
type Seen struct {
	Tally
	InFlight int
	Times    []time.Duration // of good answers that were no streams, since the last time this was asked
}

// Seen tells how the flow stands.
func (f *Flow) Seen() Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Seen{InFlight: int(f.under.Load()), Times: f.times}
	f.times = nil
	for _, t := range f.kinds {
		s.add(*t)
	}
	return s
}

// do sends one request and counts what became of it.
func (f *Flow) do(ask Ask) {
	c := f.connection(ask.Fresh)
	began := time.Now()
	err := f.ask(c, ask)
	took := time.Since(began)
	if ask.Fresh {
		c.drop()
	}
	f.keep(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.kinds[ask.Kind]
	if t == nil {
		t = &Tally{}
		f.kinds[ask.Kind] = t
	}
	if err == nil {
		if t.Good++; ask.Stream == nil && ask.Cut == 0 {
			f.times = append(f.times, took)
		}
		return
	}
	t.Bad, t.Err = t.Bad+1, err
	if len(f.failures) < keptFailures {
		f.failures = append(f.failures, fmt.Sprintf("%s %s after %v: %v", began.UTC().Format(time.TimeOnly), ask.Kind, took.Round(time.Millisecond), err))
	}
}

// connection is the one that was used last, or a new one. Those that have been idle
// for too long are closed.
func (f *Flow) connection(fresh bool) *conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := 0
	for old < len(f.idle) && time.Since(f.idle[old].since) > idleTime {
		f.idle[old].conn.drop()
		old++
	}
	f.idle = slices.Delete(f.idle, 0, old)
	if n := len(f.idle); n > 0 && !fresh {
		c := f.idle[n-1].conn
		f.idle = f.idle[:n-1]
		return c
	}
	return &conn{to: f.to}
}

// keep takes a connection back, if it is still one.
func (f *Flow) keep(c *conn) {
	if c.c == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, kept{c, time.Now()})
}

// ask sends a request, reads the answer and says what is wrong with it.
func (f *Flow) ask(c *conn, ask Ask) error {
	if ask.Cut > 0 {
		return cut(c, ask)
	}
	by := time.Now().Add(f.patience)
	var body []byte
	piece := func(b []byte) { body = append(body, b...) }
	w, size, left := watcher{timed: &f.never}, 0, false
	if ask.Stream != nil {
		by = by.Add(time.Duration(ask.Stream.Deltas) * ask.Stream.Gap)
		w.each = func() {
			if ask.Leave > 0 && w.deltas >= ask.Leave {
				left = true
			}
		}
		piece = func(b []byte) {
			size += len(b)
			body = append(body, b[:min(len(b), max(0, 200-len(body)))]...) // for who asks why
			if w.piece(b); left {
				_ = c.c.SetDeadline(time.Unix(1, 0)) // so that reading ends, and closes it
			}
		}
	}
	status, err := c.do(ask.Bytes, by, piece)
	switch {
	case left:
		c.drop()
		return nil
	case err != nil:
		return err
	case status != ask.Status:
		return fmt.Errorf("%w: %.200s", StatusError(status), body)
	case ask.Stream == nil && ask.Whole != nil:
		return ask.Whole(body)
	case ask.Stream == nil:
		return nil
	case !w.whole():
		return ErrCut
	case w.deltas != ask.Stream.Deltas || size != ask.Stream.Bytes:
		return fmt.Errorf("%d of %d deltas, %d of %d bytes", w.deltas, ask.Stream.Deltas, size, ask.Stream.Bytes)
	}
	return nil
}

// cut sends the beginning of a request and leaves.
func cut(c *conn, ask Ask) error {
	defer c.drop()
	if err := c.dial(); err != nil {
		return err
	}
	_, err := c.c.Write(ask.Bytes[:ask.Cut])
	return err
}

// Fetch sends a request and returns the body of its answer, which must be a 200.
func Fetch(to Target, request []byte) ([]byte, error) {
	c := conn{to: to}
	defer c.drop()
	var body bytes.Buffer
	status, err := c.do(request, time.Now().Add(requestTime), func(b []byte) { body.Write(b) })
	if err == nil && status != 200 {
		err = StatusError(status)
	}
	return body.Bytes(), err
}
