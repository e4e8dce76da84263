package health

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the board as one would write it down: one list of what was frozen
// when, one of leases, and everything else looked up in them.
type model struct {
	now     time.Time
	freezes []*modelFreeze
	leases  []*modelLease
	streak  map[Key]int64
	frozen  map[Key]int64
	hedged  map[Key]int64
}

type modelFreeze struct {
	key    Key
	seq    int
	until  time.Time
	length time.Duration
	by     By
}

type modelLease struct {
	real   *Lease
	key    Key
	stakes []*modelStake
}

// modelStake is what a lease has to do with one key.
type modelStake struct {
	key   Key
	seq   int // freezes that there were when it began
	trial bool
}

// at is the lease's stake in k, nil without one.
func (l *modelLease) at(k Key) *modelStake {
	for _, s := range l.stakes {
		if s.key == k {
			return s
		}
	}
	return nil
}

// candidates are the keys that stand together: upstream, credential, host.
var candidates = [][]Key{
	{"u:1", "k:1", "h:1"},
	{"u:2", "k:1", "h:1"}, // another model
	{"u:3", "k:2", "h:1"}, // another key
	{"u:4", "k:3", "h:2"},
	{"u:5", "h:2"}, // without a key
}

// worst is how a candidate stands.
func (m *model) worst(keys []Key) (worst Standing, until time.Time) {
	for _, k := range keys {
		if s := m.standing(k); s != Ready {
			if f := m.current(k); until.IsZero() || f.until.After(until) {
				worst, until = s, f.until
			}
		}
	}
	return worst, until
}

// current is the freeze of k that runs or is not lived down.
func (m *model) current(k Key) *modelFreeze {
	for i := len(m.freezes) - 1; i >= 0; i-- {
		if f := m.freezes[i]; f.key == k {
			return f
		}
	}
	return nil
}

func (m *model) standing(k Key) Standing {
	f := m.current(k)
	switch {
	case f == nil:
		return Ready
	case f.until.After(m.now):
		return Frozen
	}
	return Probation
}

func (m *model) lift(k Key) {
	var rest []*modelFreeze
	for _, f := range m.freezes {
		if f.key != k {
			rest = append(rest, f)
		}
	}
	m.freezes = rest
	m.unmark(k)
}

func (m *model) unmark(k Key) {
	for _, l := range m.leases {
		if s := l.at(k); s != nil {
			s.trial = false
		}
	}
}

func (m *model) trials(k Key) (n int) {
	for _, l := range m.leases {
		if s := l.at(k); s != nil && s.trial {
			n++
		}
	}
	return n
}

func (m *model) inFlight(k Key) (n int) {
	for _, l := range m.leases {
		if l.at(k) != nil {
			n++
		}
	}
	return n
}

// success is what a release or a good end of l lifts.
func (m *model) success(l *modelLease) {
	for _, s := range l.stakes {
		f := m.current(s.key)
		if f == nil || f.seq >= s.seq || f.by == Person && m.standing(s.key) == Frozen {
			continue
		}
		m.lift(s.key)
	}
}

func TestBoardAgainstModel(t *testing.T) {
	var keys []Key
	for _, c := range candidates {
		for _, k := range c {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := NewBoard()
		m := &model{now: start, streak: map[Key]int64{}, frozen: map[Key]int64{}, hedged: map[Key]int64{}}
		seq := 0
		anyKey := rapid.SampledFrom(keys)
		anyCandidate := rapid.SampledFrom(candidates)
		begin := func(l *Lease, c []Key) {
			ml, trial := &modelLease{real: l, key: c[0]}, false
			for i, k := range c {
				if i > 0 && m.standing(k) == Ready {
					continue // it can lift nothing there
				}
				s := &modelStake{key: k, seq: seq, trial: m.standing(k) == Probation && m.trials(k) == 0}
				trial = trial || s.trial
				ml.stakes = append(ml.stakes, s)
			}
			if l.Trial() != trial {
				t.Fatalf("%s: trial %v, want %v", c, l.Trial(), trial)
			}
			m.leases = append(m.leases, ml)
		}
		pick := func(t *rapid.T) (i int, some bool) {
			if len(m.leases) == 0 {
				return 0, false
			}
			return rapid.IntRange(0, len(m.leases)-1).Draw(t, "lease"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
			},
			"acquire": func(t *rapid.T) {
				c, last := anyCandidate.Draw(t, "candidate"), rapid.Bool().Draw(t, "last")
				var until time.Time // of what keeps it out longest
				for _, k := range c {
					if m.standing(k) == Frozen || m.standing(k) == Probation && !last && m.trials(k) > 0 {
						if f := m.current(k); f.until.After(until) {
							until = f.until
						}
					}
				}
				l, f, ok := b.Acquire(c[0], m.now, last, c[1:]...)
				if ok != until.IsZero() {
					t.Fatalf("%s: granted %v, want %v", c, ok, until.IsZero())
				}
				if ok {
					begin(l, c)
				} else if !f.Until.Equal(until) {
					t.Fatalf("%s: refused for %+v, want %v", c, f, until)
				}
			},
			"seize": func(t *rapid.T) {
				c := anyCandidate.Draw(t, "candidate")
				begin(b.Seize(c[0], m.now, c[1:]...), c)
			},
			"again": func(t *rapid.T) {
				i, some := pick(t)
				if !some {
					return
				}
				l, k := m.leases[i], anyKey.Draw(t, "key")
				var last time.Duration
				probation := false
				if s := l.at(k); s != nil {
					if f := m.current(k); f != nil {
						probation = m.standing(k) == Probation && f.seq < s.seq
						if f.by != Person {
							last = f.length
						}
					}
				}
				if gotLast, got := l.real.Again(k, m.now); gotLast != last || got != probation {
					t.Fatalf("%s of %s: again %v %v, want %v %v", k, l.key, gotLast, got, last, probation)
				}
			},
			"release": func(t *rapid.T) {
				if i, some := pick(t); some {
					l := m.leases[i]
					l.real.Released(m.now)
					m.success(l)
				}
			},
			"settle": func(t *rapid.T) {
				i, some := pick(t)
				if !some {
					return
				}
				l := m.leases[i]
				o := rapid.SampledFrom([]Outcome{OK, Failed, Abandoned}).Draw(t, "outcome")
				counts := rapid.Bool().Draw(t, "counts")
				l.real.Settle(o, m.now, Strike{Counts: counts})
				l.real.Settle(Failed, m.now, Strike{Counts: true})
				l.real.Released(m.now)
				m.leases = append(m.leases[:i:i], m.leases[i+1:]...)
				switch {
				case o == OK:
					m.streak[l.key] = 0
					m.success(l)
				case o == Failed && counts:
					m.streak[l.key]++
				}
			},
			"freeze": func(t *rapid.T) {
				k := anyKey.Draw(t, "key")
				by := rapid.SampledFrom([]By{Rule, Streak, Person}).Draw(t, "by")
				length := time.Duration(rapid.IntRange(0, 10).Draw(t, "length")) * time.Second
				f := b.Freeze(k, Freeze{Length: length, By: by}, m.now)
				now, old := m.standing(k), m.current(k)
				takes := length > 0
				if now == Frozen && by != Person {
					takes = takes && old.by != Person && m.now.Add(length).After(old.until)
				}
				if takes {
					if now != Frozen {
						m.frozen[k]++
					}
					if by == Streak {
						m.hedged[k]++
					}
					m.unmark(k)
					m.freezes = append(m.freezes, &modelFreeze{key: k, seq: seq, until: m.now.Add(length), length: length, by: by})
					seq++
				}
				if c := m.current(k); c != nil && (!f.Until.Equal(c.until) || f.Length != c.length) {
					t.Fatalf("%s: holds %+v, want %+v", k, f, c)
				}
			},
			"thaw": func(t *rapid.T) {
				k := anyKey.Draw(t, "key")
				want := m.standing(k) == Frozen
				if got := b.Thaw(k, m.now); got != want {
					t.Fatalf("%s: thawed %v, want %v", k, got, want)
				}
				m.lift(k)
			},
			"retain all": func(t *rapid.T) {
				b.Retain(func(Key) bool { return true }, m.now)
			},
			"retain": func(t *rapid.T) {
				gone := anyKey.Draw(t, "key")
				b.Retain(func(k Key) bool { return k != gone }, m.now)
				if m.inFlight(gone) == 0 && m.standing(gone) != Frozen {
					m.lift(gone)
					delete(m.streak, gone)
					delete(m.frozen, gone)
					delete(m.hedged, gone)
				}
			},
			"restart": func(t *rapid.T) {
				if len(m.leases) == 0 {
					s := b.Export(m.now)
					b = NewBoard()
					b.Import(s, m.now)
				}
			},
			"": func(t *rapid.T) { check(t, b, m, keys) },
		})
	})
}

func check(t *rapid.T, b *Board, m *model, keys []Key) {
	running := 0
	for _, k := range keys {
		c := m.current(k)
		s, f := b.Standing(k, m.now)
		if s != m.standing(k) {
			t.Fatalf("%s: %v, want %v", k, s, m.standing(k))
		}
		if c != nil && (!f.Until.Equal(c.until) || f.By != c.by) {
			t.Fatalf("%s: freeze %+v, want %+v", k, f, c)
		}
		if got := b.InFlight(k); got != m.inFlight(k) {
			t.Fatalf("%s: %d in flight, want %d", k, got, m.inFlight(k))
		}
		want := Counters{Streak: m.streak[k], Freezes: m.frozen[k], Hedges: m.hedged[k]}
		if got := b.Counters(k); got != want {
			t.Fatalf("%s: counters %+v, want %+v", k, got, want)
		}
		last, probation := b.Again(k, m.now)
		wantLast := time.Duration(0)
		if c != nil && c.by != Person {
			wantLast = c.length
		}
		if last != wantLast || probation != (s == Probation) {
			t.Fatalf("%s: again %v %v, want %v", k, last, probation, wantLast)
		}
		if s == Frozen {
			running++
		}
	}
	if fs := b.Freezes(m.now); len(fs) != running {
		t.Fatalf("freezes %+v, want %d", fs, running)
	}
	for _, c := range candidates {
		want, until := m.worst(c)
		if got, f := b.Standing(c[0], m.now, c[1:]...); got != want || !f.Until.Equal(until) {
			t.Fatalf("%s: %v until %v, want %v until %v", c, got, f.Until, want, until)
		}
	}
}
