// Package held bounds the bytes that all requests of the process hold together:
// bodies, answers before their release, events that are being read.
//
// A request enters with what it is known to hold from the beginning, and waits for
// that where there is no room. What it comes to hold later it takes without waiting,
// since it might wait for itself: up to an edge somewhat above the limit, and no
// further. How far the heap grows besides, between two collections, is here too.
package held

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Why a request does not get in.
var (
	// ErrFull: there was no room in time.
	ErrFull = errors.New("no room for what the request holds")
	// ErrNever: it would hold more than there is room for at all.
	ErrNever = errors.New("the request holds more than all may together")
)

// A Gate counts what is held. Its zero value has no limit. Its methods may be called
// from any goroutine.
type Gate struct {
	mu      sync.Mutex
	limit   int64 // bytes; 0 = none
	taken   int64
	line    list.List // of *waiter, in the order in which they came
	since   time.Time // when somebody began to wait; zero = nobody does
	refused int64
}

// waiter is a request that waits to be let in. The gate's mutex guards in.
type waiter struct {
	n  int64
	in chan struct{} // closed when it is
}

// Figures are what a Gate shows.
type Figures struct {
	// Limit and Taken are in bytes; a Limit of 0 is none.
	Limit, Taken int64
	// Waiting is how many requests wait to be let in, Refused how many were not
	// since the process began.
	Waiting int
	Refused int64
}

// Figures are the gate's, now.
func (g *Gate) Figures() Figures {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Figures{g.limit, g.taken, g.line.Len(), g.refused}
}

// Limit sets the limit in bytes, 0 = none. It holds at once: who waits is let in if
// there is room now, and who is in stays.
func (g *Gate) Limit(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = n
	g.serve()
}

// fits says whether n more bytes are within the limit; who holds nothing yet must not
// come in where all is taken. The mutex is held.
func (g *Gate) fits(n int64) bool { return g.limit <= 0 || g.taken+max(n, 1) <= g.limit }

// Enter lets a request in that holds n bytes, at once or within patience, in the
// order in which they came; where others have waited for longer than that already,
// within a tenth of it. The errors are ErrFull, ErrNever, or ctx's cause. A Share
// must be closed.
func (g *Gate) Enter(ctx context.Context, n int64, patience time.Duration) (*Share, error) {
	g.mu.Lock()
	if g.limit > 0 && n > g.limit {
		g.refused++
		g.mu.Unlock()
		return nil, ErrNever
	}
	if g.line.Len() == 0 && g.fits(n) {
		g.taken += n
		g.mu.Unlock()
		return &Share{gate: g, n: n}, nil
	}
	now := time.Now()
	switch {
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) > patience:
		// This is no burst. Who waits for long only makes those behind wait as long,
		// and is the first thing in their way when it is over.
		patience /= shortened
	}
	w := &waiter{n: n, in: make(chan struct{})}
	at := g.line.PushBack(w)
	g.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.in:
	case <-timer.C:
		if !g.leave(at) {
			return nil, ErrFull
		}
	case <-ctx.Done():
		if g.leave(at) {
			(&Share{gate: g, n: n}).Close()
		}
		return nil, context.Cause(ctx)
	}
	return &Share{gate: g, n: n}, nil
}

// leave takes a waiter out of the line, and reports whether it had been let in
// already. Those behind it may fit where it did not.
func (g *Gate) leave(at *list.Element) (in bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := at.Value.(*waiter)
	select {
	case <-w.in:
		return true
	default:
	}
	g.line.Remove(at)
	g.refused++
	g.serve()
	return false
}

// shortened is by how much patience is divided while there has been a line for longer
// than patience.
const shortened = 10

// serve lets in who fits, from the front of the line. The mutex is held.
func (g *Gate) serve() {
	for at := g.line.Front(); at != nil; at = g.line.Front() {
		w := at.Value.(*waiter)
		if !g.fits(w.n) && g.taken > 0 {
			return
		}
		g.taken += w.n
		g.line.Remove(at)
		close(w.in)
	}
	g.since = time.Time{} // nobody waits
}

// edge is up to where requests that are in may grow: a quarter above the limit.
func (g *Gate) edge() int64 { return g.limit + g.limit/4 }

// A Share is what one request holds. A nil Share counts nothing and lets everything
// grow. Its methods may be called from any goroutine.
type Share struct {
	gate *Gate
	n    int64 // guarded by gate.mu; negative once closed
}

// Grow takes n more bytes without waiting, and is false where that would go over the
// edge: then nothing is taken, and the request has to make do with what it holds.
func (s *Share) Grow(n int64) bool {
	if s == nil {
		return true
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.n < 0 {
		return true // it is over; what still ends is nobody's
	}
	if g.limit > 0 && n > 0 && g.taken+n > g.edge() {
		return false
	}
	s.n += n
	g.taken += n
	return true
}

// Give gives n bytes back, at most all.
func (s *Share) Give(n int64) {
	if s == nil || n <= 0 {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if n = min(n, s.n); n > 0 {
		s.n -= n
		g.taken -= n
		g.serve()
	}
}

// Close gives everything back. What is taken or given later counts for nothing.
func (s *Share) Close() {
	if s == nil {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.n >= 0 {
		g.taken -= s.n
		s.n = -1
		g.serve()
	}
}
