package health

import (
	"fmt"
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
	real  *Lease
	key   Key
	seq   int // freezes that there were when it began
	trial bool
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
		if l.key == k {
			l.trial = false
		}
	}
}

func (m *model) trials(k Key) (n int) {
	for _, l := range m.leases {
		if l.key == k && l.trial {
			n++
		}
	}
	return n
}

func (m *model) inFlight(k Key) (n int) {
	for _, l := range m.leases {
		if l.key == k {
			n++
		}
	}
	return n
}

// success is what a release or a good end of l lifts.
func (m *model) success(l *modelLease) {
	f := m.current(l.key)
	if f == nil || f.seq >= l.seq || (f.by == Person && m.standing(l.key) == Frozen) {
		return
	}
	m.lift(l.key)
}

func TestBoardAgainstModel(t *testing.T) {
	keys := []Key{"u:1", "u:2", "u:3"}
	rapid.Check(t, func(t *rapid.T) {
		b := NewBoard()
		m := &model{now: start, streak: map[Key]int64{}, frozen: map[Key]int64{}, hedged: map[Key]int64{}}
		seq := 0
		anyKey := rapid.SampledFrom(keys)
		begin := func(l *Lease, k Key) {
			trial := m.standing(k) == Probation && m.trials(k) == 0
			if l.Trial() != trial {
				t.Fatalf("%s: trial %v, want %v", k, l.Trial(), trial)
			}
			m.leases = append(m.leases, &modelLease{real: l, key: k, seq: seq, trial: trial})
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
				k, last := anyKey.Draw(t, "key"), rapid.Bool().Draw(t, "last")
				want := m.standing(k) == Ready || m.standing(k) == Probation && (last || m.trials(k) == 0)
				l, f, ok := b.Acquire(k, m.now, last)
				if ok != want {
					t.Fatalf("%s: granted %v, want %v", k, ok, want)
				}
				if ok {
					begin(l, k)
				} else if c := m.current(k); !f.Until.Equal(c.until) || f.By != c.by {
					t.Fatalf("%s: refused for %+v, want %+v", k, f, c)
				}
			},
			"seize": func(t *rapid.T) {
				k := anyKey.Draw(t, "key")
				begin(b.Seize(k, m.now), k)
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
				by := rapid.SampledFrom([]By{Rule, Streak, Person, Peer}).Draw(t, "by")
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
	var soonest *modelFreeze
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
			if soonest == nil || c.until.Before(soonest.until) {
				soonest = c
			}
		}
	}
	if fs := b.Freezes(m.now); len(fs) != running {
		t.Fatalf("freezes %+v, want %d", fs, running)
	}
	k, until, ok := b.Soonest(keys, m.now)
	if ok != (soonest != nil) || ok && (k != soonest.key || !until.Equal(soonest.until)) {
		t.Fatalf("soonest %v %v %v, want %s", k, until, ok, fmt.Sprint(soonest))
	}
}
