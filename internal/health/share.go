package health

import (
	"slices"
	"time"
)

// Patience is how long a request waits for the store at a limit, at most. After that
// the limits are divided among the instances until the store is in time again, so
// that no more than one of a request's limits is waited for in vain.
const Patience = 2 * time.Millisecond

// shutFor is how long the store's word that there is no room holds, if nobody says
// before that there is.
const shutFor = 50 * time.Millisecond

// wait is how long s will keep everybody out; 0 = until a lease is settled.
func (s shut) wait(now time.Time) time.Duration {
	if s.limit == Parallel {
		return 0
	}
	return s.until.Sub(now)
}

// enterShared is enter within limits that all instances have together. The lease is
// taken here first, so that whoever comes while the store is asked is counted too.
func (b *Board) enterShared(k Key, l Limits, now time.Time, last bool, wider []Key) (*Lease, Refusal, bool) {
	if !b.peers.counted() {
		return b.enterShare(k, l, now, last, wider)
	}
	lease, refusal, ok := b.enter(k, l, now, last, wider)
	if !ok {
		return nil, refusal, false
	}
	g, answered := b.peers.ask(k, l)
	if !answered {
		if limit, wait := b.over(lease, b.peers.share(l), now); limit != Unlimited {
			b.withdraw(lease, now)
			return nil, Refusal{Limit: limit, Wait: wait}, false
		}
		b.peers.began(k, l)
		lease.shared = true
		return lease, Refusal{}, true
	}
	if g.Limit == Unlimited {
		lease.shared = true
		return lease, Refusal{}, true
	}
	b.withdraw(lease, now)
	b.mu.Lock()
	lease.own.entry.close(l, g, now)
	b.mu.Unlock()
	return nil, Refusal{Limit: g.Limit, Wait: g.Wait}, false
}

// enterShare is enter within this instance's share of the limits, while the store is
// away.
func (b *Board) enterShare(k Key, l Limits, now time.Time, last bool, wider []Key) (*Lease, Refusal, bool) {
	lease, refusal, ok := b.enter(k, b.peers.share(l), now, last, wider)
	if ok {
		b.peers.began(k, l)
		lease.shared = true
	}
	return lease, refusal, ok
}

// over says whether a lease that was just granted is beyond limits.
func (b *Board) over(lease *Lease, l Limits, now time.Time) (Limit, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Limits are reached before the one that would be beyond them.
	if l.RPM > 0 {
		l.RPM++
	}
	return lease.own.entry.meter.over(l, lease.own.entry.inFlight-1, now)
}

// withdraw takes a lease back that nobody has had: nothing of it stays.
func (b *Board) withdraw(l *Lease, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.settled = true
	l.own.end(l)
	for i := range l.wider {
		l.wider[i].end(l)
	}
	m := l.own.entry.meter
	for i, began := range slices.Backward(m.began) {
		if began.Equal(now) {
			m.began = slices.Delete(m.began, i, i+1)
			break
		}
	}
}

// close remembers why the store refused a lease, for as long as that is sure to hold.
// b.mu is held.
func (e *entry) close(l Limits, g Grant, now time.Time) {
	wait := g.Wait
	if g.Limit == Parallel {
		wait = shutFor
	}
	if e.meter == nil {
		e.meter = new(meter)
	}
	e.meter.shut = shut{limits: l, limit: g.Limit, until: now.Add(wait)}
}

// reserve has a lease of all instances' at hand for who is next in e's line: one that
// the store has granted, or one within this instance's share while it is away. Else
// it asks the store, whose answer serves the line again. b.mu is held.
func (b *Board) reserve(k Key, e *entry, l Limits, now time.Time) bool {
	switch {
	case e.reserved:
		e.reserved = false
		return true
	case e.reserving:
		return false
	case b.peers.counted():
		e.reserving = true
		b.peers.askFor(k, l, func(g Grant, answered bool) { b.answer(k, l, g, answered) })
		return false
	}
	if limit, _ := e.meter.over(b.peers.share(l), e.inFlight, now); limit != Unlimited {
		return false
	}
	b.peers.began(k, l)
	return true
}

// answer takes what the store says to reserve. What nobody in the line wants any more
// goes back.
func (b *Board) answer(k Key, l Limits, g Grant, answered bool) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(k)
	e.reserving = false
	if answered && g.Limit != Unlimited {
		e.close(l, g, now)
		return
	}
	e.reserved = answered
	b.serve(k, e, now)
	if e.reserved {
		e.reserved = false
		b.peers.over(k)
	}
}

// serveAll lets in who waits wherever there may be room now.
func (b *Board) serveAll(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, e := range b.entries {
		if e.line != nil {
			b.serve(k, e, now)
		}
	}
}

// A tally is what this instance has of one limited key, as the store is to know it.
type tally struct {
	open int   // leases not settled
	own  cells // of the last minute
	owed cells // of those, what the store was not told
	told bool  // the store has open right
}

// cells are what began and was spent, by the second in which it did.
type cells map[int64]cell

type cell struct {
	began  int
	tokens int64
}

func (c cells) add(second int64, began int, tokens int64) {
	x := c[second]
	c[second] = cell{x.began + began, x.tokens + tokens}
}

// forget drops what is older than a minute.
func (c cells) forget(second int64) {
	for s := range c {
		if s < second-int64(minute/time.Second) {
			delete(c, s)
		}
	}
}

// had lists cells for the store, the oldest first.
func (c cells) had(second int64) []Had {
	list := make([]Had, 0, len(c))
	for s, x := range c {
		list = append(list, Had{Ago: int(second - s), Began: x.began, Tokens: x.tokens})
	}
	slices.SortFunc(list, func(x, y Had) int { return y.Ago - x.Ago })
	return list
}
