// Package health keeps what happened at every upstream and what runs there
// now: freezes, probations, streaks of failures, requests in flight.
//
// It knows keys, times and counts. It never knows names, configuration, HTTP,
// what a failure was, or how long a freeze ought to be; its callers decide
// that and it holds them to the rules of who may freeze, try and thaw.
//
// Nothing here runs by itself. A freeze ends because somebody asks after its
// time and the comparison says so: no goroutine and no timer per freeze, so
// that every freeze can be listed, saved and restored.
package health

import (
	"sync"
	"time"
)

// Key names what is judged. The scope is its prefix: "u:" with a route.ID is
// one upstream and model, and what leases and streaks are counted by. Freezes may
// be wider: "k:" is a credential, with whatever model, "h:" a host, with whatever
// credential. A candidate is frozen while one of its keys is.
type Key string

// Standing is what a key's freeze means at a moment.
type Standing uint8

const (
	// Ready: not frozen, and not on probation.
	Ready Standing = iota
	// Frozen: skipped by everybody until the freeze's time.
	Frozen
	// Probation: the freeze's time has come, and nobody has succeeded since.
	Probation
)

// String returns the word that people see.
func (s Standing) String() string {
	switch s {
	case Frozen:
		return "frozen"
	case Probation:
		return "probation"
	default:
		return "ready"
	}
}

// Board is the health of all upstreams of one process. It outlives every
// configuration: entries are found by key, never by name or position. All
// methods may be called from any goroutine; none blocks on anything but one
// mutex, held for a few field writes.
type Board struct {
	mu      sync.Mutex
	entries map[Key]*entry
	peers   *Peers        // the other instances; nil without a store
	changed chan struct{} // nil while nobody listens
}

// entry is everything about one key. Fields are guarded by the board's mutex.
type entry struct {
	inFlight int
	streak   int64

	// freeze is running, or over and not yet lived down (probation), or the
	// zero Freeze.
	freeze Freeze
	// epoch counts the freezes that took hold. A lease remembers the epoch
	// it began in, which tells "begun after the freeze" without comparing
	// clocks.
	epoch uint64
	// trial is the one lease that tries the upstream out on probation.
	trial *Lease
	// trying is the instance that tries it instead; tried is when that began, or,
	// where nobody does, when it was over.
	trying string
	tried  time.Time
	// meter counts for limits; nil while none was asked for.
	meter *meter
	// reserving says that the store has been asked for a lease on behalf of the line,
	// reserved that it has granted one which nobody has taken yet.
	reserving, reserved bool
	// line is who waits for room; nil while nobody does.
	line *line

	freezes, hedges int64
	lastError       string
	lastErrorAt     time.Time
}

// NewBoard returns an empty board, on which every key is Ready.
func NewBoard() *Board {
	return &Board{entries: make(map[Key]*entry)}
}

// entry returns k's entry, made if need be. b.mu is held.
func (b *Board) entry(k Key) *entry {
	e := b.entries[k]
	if e == nil {
		e = &entry{}
		b.entries[k] = e
	}
	return e
}

func (e *entry) standing(now time.Time) Standing {
	switch {
	case e.freeze.Until.IsZero():
		return Ready
	case now.Before(e.freeze.Until):
		return Frozen
	default:
		return Probation
	}
}

// clear ends freeze, probation and trials.
func (e *entry) clear() {
	e.freeze = Freeze{}
	e.trial = nil
	e.trying, e.tried = "", time.Time{}
}

// Standing tells how k stands at now, with its freeze unless it is Ready; on
// Probation the freeze's Until is in the past. With wider keys it is the worst of
// all, and of several freezes the one that is over last. It is advice for
// planning: only Acquire decides.
func (b *Board) Standing(k Key, now time.Time, wider ...Key) (Standing, Freeze) {
	b.mu.Lock()
	defer b.mu.Unlock()
	worst, freeze := b.standing(k, now)
	for _, k := range wider {
		s, f := b.standing(k, now)
		if s == Ready {
			continue
		}
		// A running freeze is over after any that is over already.
		if worst == Ready || f.Until.After(freeze.Until) {
			worst, freeze = s, f
		}
	}
	return worst, freeze
}

// standing is Standing for one key. b.mu is held.
func (b *Board) standing(k Key, now time.Time) (Standing, Freeze) {
	e := b.entries[k]
	if e == nil {
		return Ready, Freeze{}
	}
	return e.standing(now), e.freeze
}

// InFlight returns how many leases of k are not settled yet; of a wider key only
// those that began while it was frozen or on probation.
func (b *Board) InFlight(k Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[k]; e != nil {
		return e.inFlight
	}
	return 0
}

// Acquire is the gate before every attempt: k, and the wider keys that k is
// frozen with, stand together. A frozen one is refused, with its freeze. On
// probation the first caller gets the lease that is the trial; until that one is
// settled, others are refused, with the freeze that is over, unless the caller has
// no other upstream left and says so with last. While another instance has the
// trial, or is before this one in line for it, everybody here is one of the others.
// A granted lease must be settled.
func (b *Board) Acquire(k Key, now time.Time, last bool, wider ...Key) (*Lease, Freeze, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(k)
	if freeze, refused := b.refusal(e, now, last, wider); refused {
		return nil, freeze, false
	}
	return b.grant(k, e, wider, now), Freeze{}, true
}

// refusal is the freeze, of e's or of the wider keys', that keeps a caller out; of
// several the one that is over last. b.mu is held.
func (b *Board) refusal(e *entry, now time.Time, last bool, wider []Key) (Freeze, bool) {
	freeze, refused := b.refusalAt(e, now, last)
	for _, k := range wider {
		if w := b.entries[k]; w != nil {
			if f, no := b.refusalAt(w, now, last); no && (!refused || f.Until.After(freeze.Until)) {
				freeze, refused = f, true
			}
		}
	}
	return freeze, refused
}

// refusalAt is the freeze for which e lets nobody in now, if it lets nobody in. b.mu
// is held.
func (b *Board) refusalAt(e *entry, now time.Time, last bool) (Freeze, bool) {
	switch e.standing(now) {
	case Frozen:
		return e.freeze, true
	case Probation:
		return e.freeze, !last && (e.trial != nil || b.elsewhere(e, now))
	}
	return Freeze{}, false
}

// Seize grants a lease whatever the standing: for the one attempt at the
// upstream nearest its thaw when all are frozen. It must be settled.
func (b *Board) Seize(k Key, now time.Time, wider ...Key) *Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grant(k, b.entry(k), wider, now)
}

// grant makes a lease of k, whose entry is e, and the trial of what is on probation
// and has none. Of the wider keys it holds those that are not ready: only they have
// a freeze that it could lift. b.mu is held.
func (b *Board) grant(k Key, e *entry, wider []Key, now time.Time) *Lease {
	l := &Lease{board: b, own: stake{key: k, entry: e}}
	l.own.begin(l, now)
	for _, k := range wider {
		if w := b.entries[k]; w != nil && w.standing(now) != Ready {
			s := stake{key: k, entry: w}
			s.begin(l, now)
			l.wider = append(l.wider, s)
		}
	}
	return l
}

// Changed returns a channel that is closed when a freeze is next added,
// moved or lifted. A sleeper asks for the channel first and looks at the board
// after, so that no change falls in between. The passing of a freeze's time
// closes nothing.
func (b *Board) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// takeChanged hands over the channel to close, nil if nobody listens. b.mu is
// held; the caller closes it after unlocking (see wake).
func (b *Board) takeChanged() chan struct{} {
	c := b.changed
	b.changed = nil
	return c
}

func wake(c chan struct{}) {
	if c != nil {
		close(c)
	}
}
