package health

import "time"

// Limits bound what a key may have at once and in a minute; 0 = no limit.
type Limits struct {
	Parallel int // leases not settled yet
	RPM      int // leases begun
	TPM      int // tokens spent
}

// Limit is the one that keeps a caller out.
type Limit uint8

// The limits.
const (
	Unlimited Limit = iota
	Parallel
	RPM
	TPM
)

// String returns the word that the configuration has for it; "" for Unlimited.
func (l Limit) String() string { return [...]string{"", "max_parallel", "rpm", "tpm"}[l&3] }

// Refusal says why nobody is let in: for a freeze, or else for a limit.
type Refusal struct {
	Freeze Freeze
	Limit  Limit
	// Wait is how long the limit will keep everybody out; 0 = until a lease is settled.
	Wait time.Duration
}

// minute is the span that limits are about.
const minute = time.Minute

// meter counts what began and what was spent within the last minute, as far as a
// limit has asked for it. The board's mutex guards it.
type meter struct {
	began []time.Time // oldest first
	spent []spending  // oldest first
	total int64       // of spent
	shut  shut
}

// shut is what the other instances' leases keep everybody out for, until a time:
// asking again before could only give the same answer.
type shut struct {
	limits Limits // they were asked for
	limit  Limit
	until  time.Time
}

type spending struct {
	at     time.Time
	tokens int64
}

// forget drops what is older than a minute.
func (m *meter) forget(now time.Time) {
	past := now.Add(-minute)
	n := 0
	for n < len(m.began) && !m.began[n].After(past) {
		n++
	}
	m.began = m.began[n:]
	n = 0
	for n < len(m.spent) && !m.spent[n].at.After(past) {
		m.total -= m.spent[n].tokens
		n++
	}
	m.spent = m.spent[n:]
}

// over says which limit is reached at now, with inFlight leases open, and how long
// it stays so.
func (m *meter) over(l Limits, inFlight int, now time.Time) (Limit, time.Duration) {
	if m != nil {
		m.forget(now)
		if n := len(m.began) - l.RPM; l.RPM > 0 && n >= 0 {
			return RPM, m.began[n].Add(minute).Sub(now)
		}
		if left := m.total; l.TPM > 0 && left >= int64(l.TPM) {
			for _, s := range m.spent {
				if left -= s.tokens; left < int64(l.TPM) {
					return TPM, s.at.Add(minute).Sub(now)
				}
			}
		}
	}
	if l.Parallel > 0 && inFlight >= l.Parallel {
		return Parallel, 0
	}
	return Unlimited, 0
}

// over says which limit keeps everybody out of e at now, as far as is known here, and
// for how long.
func (e *entry) over(l Limits, now time.Time) (Limit, time.Duration) {
	if limit, wait := e.meter.over(l, e.inFlight, now); limit != Unlimited {
		return limit, wait
	}
	if m := e.meter; m != nil && m.shut.limits == l && now.Before(m.shut.until) {
		return m.shut.limit, m.shut.wait(now)
	}
	return Unlimited, 0
}

// Enter is Acquire within limits. A freeze keeps out before a limit does, and so does
// who waits for room already (Wait); nothing is counted for who is refused. Where
// instances share a store, the limits are for all of them together, and Enter waits
// for the store, Patience at most.
func (b *Board) Enter(k Key, l Limits, now time.Time, last bool, wider ...Key) (*Lease, Refusal, bool) {
	if b.peers != nil && l != (Limits{}) {
		return b.enterShared(k, l, now, last, wider)
	}
	return b.enter(k, l, now, last, wider)
}

// enter is Enter for this instance alone.
func (b *Board) enter(k Key, l Limits, now time.Time, last bool, wider []Key) (*Lease, Refusal, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(k)
	b.serve(k, e, now) // who waits comes first
	if freeze, refused := b.refusal(e, now, last, wider); refused {
		return nil, Refusal{Freeze: freeze}, false
	}
	if l == (Limits{}) {
		return b.grant(k, e, wider, now), Refusal{}, true
	}
	if limit, wait := e.over(l, now); limit != Unlimited {
		return nil, Refusal{Limit: limit, Wait: wait}, false
	}
	if e.line != nil {
		return nil, Refusal{Limit: l.first()}, false
	}
	return b.admit(k, e, l, wider, now), Refusal{}, true
}

// admit grants a lease that counts for limits. b.mu is held.
func (b *Board) admit(k Key, e *entry, l Limits, wider []Key, now time.Time) *Lease {
	if e.meter == nil && l != (Limits{}) {
		e.meter = new(meter)
	}
	if l.RPM > 0 {
		e.meter.began = append(e.meter.began, now)
	}
	lease := b.grant(k, e, wider, now)
	lease.metered = l.TPM > 0
	return lease
}

// Spend counts tokens against the limit of the minute, where the lease has one. It
// may be called before and after Settle; what is not known, less than 1, counts for
// nothing.
func (l *Lease) Spend(tokens int64, now time.Time) {
	if !l.metered || tokens < 1 {
		return
	}
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	m := l.own.entry.meter
	m.forget(now)
	m.spent = append(m.spent, spending{now, tokens})
	m.total += tokens
	if l.shared {
		l.board.peers.spent(l.own.key, tokens)
	}
}
