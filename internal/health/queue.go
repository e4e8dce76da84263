package health

import (
	"container/list"
	"time"
)

// A Want is one key that a waiting caller would enter, within the limits that keep
// it out, and the wider keys that it is frozen with.
type Want struct {
	Key    Key
	Limits Limits
	Wider  []Key
}

// A Place is where a caller waits for room at any of several keys. At each key
// clients take turns, and one client's callers go in the order in which they came:
// who sends much waits for itself, not others for it. Its methods may be called from
// any goroutine.
type Place struct {
	board  *Board
	client string
	wants  []want
	ready  chan struct{} // closed when there is a lease

	lease *Lease // guarded by board.mu
	at    int    // of wants, where the lease is
	over  bool   // it has left, or has its lease
}

// want is a Want with its place in the key's line.
type want struct {
	Want
	entry *entry
	turn  *list.Element // of the client, in entry.line.turns
	place *list.Element // in the turn's places
}

// A line is who waits for room at one key.
type line struct {
	turns   list.List // of *turn, the next one first
	clients map[string]*list.Element
	length  int
}

// A turn is one client's in a line.
type turn struct {
	client string
	places list.List // of waiter, the oldest first
}

// waiter is a Place and which of its wants stands in this line.
type waiter struct {
	*Place
	want int
}

// Wait takes a place in the lines of all wanted keys, and the lease at once where
// there is room. Who got a place must leave it.
func (b *Board) Wait(client string, now time.Time, wants ...Want) *Place {
	p := &Place{board: b, client: client, ready: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.wants = make([]want, len(wants))
	for i, w := range wants {
		e := b.entry(w.Key)
		if e.line == nil {
			e.line = &line{clients: map[string]*list.Element{}}
		}
		at := e.line.clients[client]
		if at == nil {
			at = e.line.turns.PushBack(&turn{client: client})
			e.line.clients[client] = at
		}
		e.line.length++
		p.wants[i] = want{Want: w, entry: e, turn: at, place: at.Value.(*turn).places.PushBack(waiter{p, i})}
	}
	for i := range p.wants {
		b.serve(p.wants[i].Key, p.wants[i].entry, now)
	}
	return p
}

// Ready is closed when there is a lease to be had from Leave.
func (p *Place) Ready() <-chan struct{} { return p.ready }

// Leave gives the place up. Where a lease had been granted it is the caller's, for
// the want of that index; else it is nil.
func (p *Place) Leave() (l *Lease, want int) {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.leave()
	l, p.lease = p.lease, nil
	return l, p.at
}

// leave takes the place out of all lines. The board's mutex is held.
func (p *Place) leave() {
	if p.over {
		return
	}
	p.over = true
	for i := range p.wants {
		w := &p.wants[i]
		t, l := w.turn.Value.(*turn), w.entry.line
		t.places.Remove(w.place)
		if t.places.Len() == 0 {
			l.turns.Remove(w.turn)
			delete(l.clients, t.client)
		}
		if l.length--; l.length == 0 {
			w.entry.line = nil
		}
	}
}

// Look lets in whoever can be let in by now, and says of each want what still keeps
// everybody out of it. Who waits for a limit of the minute looks again when that
// ends, since nothing runs here by itself.
func (p *Place) Look(now time.Time) []Refusal {
	b := p.board
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Refusal, len(p.wants))
	for i := range p.wants {
		w := &p.wants[i]
		if b.serve(w.Key, w.entry, now); p.over {
			return out
		}
		if freeze, refused := b.refusal(w.entry, now, true, w.Wider); refused {
			out[i].Freeze = freeze
		} else if out[i].Limit, out[i].Wait = w.entry.over(w.Limits, now); out[i].Limit == Unlimited {
			out[i].Limit = w.Limits.first() // others are before it
		}
	}
	return out
}

// first is the limit that is named where it is not known which one it is.
func (l Limits) first() Limit {
	switch {
	case l.Parallel > 0:
		return Parallel
	case l.RPM > 0:
		return RPM
	}
	return TPM
}

// serve gives leases to those who wait at a key, in turn, as long as there is room.
// Who is waiting has no other upstream left, so that a trial that is taken keeps
// nobody out. b.mu is held.
func (b *Board) serve(k Key, e *entry, now time.Time) {
	for e.line != nil && b.serveOne(k, e, now) {
	}
}

func (b *Board) serveOne(k Key, e *entry, now time.Time) bool {
	for at := e.line.turns.Front(); at != nil; at = at.Next() {
		next := at.Value.(*turn).places.Front().Value.(waiter)
		p, w := next.Place, &next.wants[next.want]
		if _, refused := b.refusal(e, now, true, w.Wider); refused {
			return false
		}
		// Limits differ only where a candidate stands in several chains with
		// different ones.
		if limit, _ := e.over(w.Limits, now); limit != Unlimited {
			continue
		}
		if b.peers != nil && !b.reserve(k, e, w.Limits, now) {
			return false
		}
		e.line.turns.MoveToBack(at) // if the client has more that wait
		p.lease, p.at = b.admit(k, e, w.Limits, w.Wider, now), next.want
		p.lease.shared = b.peers != nil
		p.leave()
		close(p.ready)
		return true
	}
	return false
}

// Relimit puts other limits in the place of those that callers wait for, and lets in
// whom they let in. limits says what holds for a key now, false where nothing does.
func (b *Board) Relimit(limits func(Key) (Limits, bool), now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, e := range b.entries {
		if e.line == nil {
			continue
		}
		l, known := limits(k)
		if !known {
			continue
		}
		for at := e.line.turns.Front(); at != nil; at = at.Next() {
			for p := at.Value.(*turn).places.Front(); p != nil; p = p.Next() {
				w := p.Value.(waiter)
				w.wants[w.want].Limits = l
			}
		}
		b.serve(k, e, now)
	}
}

// Crowd says which limit keeps callers out of a key now, for how long (0 = until a
// lease is settled), and how many wait there.
func (b *Board) Crowd(k Key, l Limits, now time.Time) (limit Limit, wait time.Duration, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[k]
	if e == nil {
		return Unlimited, 0, 0
	}
	if e.line != nil {
		waiting = e.line.length
	}
	limit, wait = e.over(l, now)
	return limit, wait, waiting
}
