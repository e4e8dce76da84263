package health

import (
	"slices"
	"time"
)

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
// entries, not keys: settled late, after a reload or after newer freezes
// and trials, it still lands on the right entries, and touches only what it owns.
// Its methods may be called from any goroutine.
type Lease struct {
	board *Board
	own   stake   // in the upstream itself
	wider []stake // in wider keys that were frozen or on probation when it began

	settled bool // guarded by board.mu
	metered bool // tokens count; fixed when it was granted
	shared  bool // the other instances count it; fixed before anybody has the lease
}

// A stake is what a lease has to do with one key.
type stake struct {
	key   Key
	entry *entry
	epoch uint64 // the entry's when the lease began
	trial bool
}

// begin counts the lease in, notes where the entry stands, and takes the trial if there is one to take.
// The board's mutex is held.
func (s *stake) begin(l *Lease, now time.Time) {
	s.entry.inFlight++
	s.epoch = s.entry.epoch
	if s.entry.trial == nil && s.entry.trying == "" && s.entry.standing(now) == Probation {
		s.trial = true
		s.entry.trial = l
		l.board.post(letter{news: Trying, key: s.key})
	}
}

// Trial tells whether this is the single request that tries the upstream, its
// credential or its host out after a freeze.
func (l *Lease) Trial() bool {
	return l.own.trial || slices.ContainsFunc(l.wider, func(s stake) bool { return s.trial })
}

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
	e := l.own.entry
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
	l.own.end(l)
	for i := range l.wider {
		l.wider[i].end(l)
	}
	if l.shared {
		e.meter.shut = shut{}
		b.peers.over(l.own.key) // before anybody asks for the room
	}
	b.serve(l.own.key, e, now)
	b.mu.Unlock()
	wake(c)
}

// end counts the lease out and gives a trial's place back. The board's mutex is held.
func (s *stake) end(l *Lease) {
	s.entry.inFlight--
	if s.entry.trial == l {
		s.entry.trial = nil
		l.board.post(letter{news: Tried, key: s.key})
	}
}

// vindicate lifts what a success of this lease lifts. The board's mutex is
// held; the result is to be woken after unlocking.
func (l *Lease) vindicate(now time.Time) chan struct{} {
	lifted := l.own.vindicate(l.board, now)
	for i := range l.wider {
		lifted = l.wider[i].vindicate(l.board, now) || lifted
	}
	if !lifted {
		return nil
	}
	return l.board.takeChanged()
}

func (s *stake) vindicate(b *Board, now time.Time) (lifted bool) {
	e := s.entry
	if s.epoch != e.epoch {
		return false // frozen again since: this success is older news
	}
	switch e.standing(now) {
	case Frozen:
		if e.freeze.By == Person {
			return false
		}
	case Ready:
		return false
	}
	b.lift(s.key, e, Rule)
	return true
}

// Streak returns the consecutive failures that count at the lease's upstream,
// now.
func (l *Lease) Streak() int {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	return int(l.own.entry.streak)
}

// Again is Board.Again for the failure of this lease's attempt, at one of its
// keys: one begun before the freeze, and failing only now that the freeze is over,
// was no attempt on probation.
func (l *Lease) Again(k Key, now time.Time) (last time.Duration, probation bool) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	s := &l.own
	if s.key != k {
		i := slices.IndexFunc(l.wider, func(w stake) bool { return w.key == k })
		if i < 0 {
			return 0, false // it was ready when the attempt began
		}
		s = &l.wider[i]
	}
	last, probation = s.entry.again(now)
	return last, probation && s.epoch == s.entry.epoch
}
