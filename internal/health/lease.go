package health

import "time"

// Outcome is how an attempt ended, seen from its upstream.
type Outcome uint8

const (
	// OK: the answer was healthy to its end.
	OK Outcome = iota
	// Failed: the upstream failed; Strike says whether that counts.
	Failed
	// Abandoned: ended by the client or by us. It says nothing about the
	// upstream.
	Abandoned
)

// Strike says what a failure weighs.
type Strike struct {
	Counts bool   // it counts towards the streak
	Error  string // what people read as the last error; "" leaves the former one
}

// Lease is the right to have one request in flight at an upstream. It holds
// its entry, not its key: settled late, after a reload or after newer freezes
// and trials, it still lands on the right entry, and touches only what it owns.
// Its methods may be called from any goroutine.
type Lease struct {
	board *Board
	entry *entry
	epoch uint64
	trial bool

	settled bool // guarded by board.mu
}

// Trial tells whether this is the single request that tries the upstream out
// after a freeze.
func (l *Lease) Trial() bool { return l.trial }

// Released notes that a healthy answer began to go to the client. That ends a
// probation and lifts an automatic freeze, if they are older than this lease;
// a person's running freeze stays. The streak waits for Settle: a stream can
// still break.
func (l *Lease) Released(now time.Time) {
	b := l.board
	b.mu.Lock()
	var c chan struct{}
	if !l.settled {
		c = l.vindicate(now)
	}
	b.mu.Unlock()
	wake(c)
}

// Settle ends the lease; a second call does nothing. OK does what Released
// does and ends the streak. Failed lengthens the streak if it counts. Whatever
// the outcome, a trial's place is free again: after Abandoned, or a failure
// that nobody froze for, the next request tries. A caller that freezes for a
// failure does so before it settles, so that no other trial slips in between.
func (l *Lease) Settle(o Outcome, now time.Time, s Strike) {
	b := l.board
	b.mu.Lock()
	if l.settled {
		b.mu.Unlock()
		return
	}
	l.settled = true
	e := l.entry
	e.inFlight--
	var c chan struct{}
	switch o {
	case OK:
		e.streak = 0
		c = l.vindicate(now)
	case Failed:
		if s.Counts {
			e.streak++
		}
		if s.Error != "" {
			e.lastError, e.lastErrorAt = clip(s.Error), now
		}
	}
	if e.trial == l {
		e.trial = nil
	}
	b.mu.Unlock()
	wake(c)
}

// vindicate lifts what a success of this lease lifts. The board's mutex is
// held; the result is to be woken after unlocking.
func (l *Lease) vindicate(now time.Time) chan struct{} {
	e := l.entry
	if l.epoch != e.epoch {
		return nil // frozen again since: this success is older news
	}
	switch e.standing(now) {
	case Frozen:
		if e.freeze.By == Person {
			return nil
		}
	case Ready:
		return nil
	}
	e.clear()
	return l.board.takeChanged()
}

// Streak returns the consecutive failures that count at the lease's upstream,
// now.
func (l *Lease) Streak() int {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	return int(l.entry.streak)
}

// Again is Board.Again for the failure of this lease's attempt: one begun
// before the freeze, and failing only now that the freeze is over, was no
// attempt on probation.
func (l *Lease) Again(now time.Time) (last time.Duration, probation bool) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	last, probation = l.entry.again(now)
	return last, probation && l.epoch == l.entry.epoch
}
