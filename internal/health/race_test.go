package health

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Many requests at once on probation: never two trials, every lease counted
// back.
func TestConcurrentTrials(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 1, Rule)
	var trials, tried atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				now := at(float64(2 + i))
				l, _, ok := b.Acquire(k, now, i%7 == 0)
				if !ok {
					b.Standing(k, now)
					continue
				}
				if l.Trial() {
					tried.Add(1)
					if n := trials.Add(1); n > 1 {
						t.Errorf("%d trials at once", n)
					}
					trials.Add(-1)
				}
				b.Counters(k)
				l.Settle(Outcome(1+(g+i)%2), now, Strike{Counts: true, Error: "x"})
				l.Settle(OK, now, Strike{})
			}
		})
	}
	wg.Wait()
	if n := b.InFlight(k); n != 0 {
		t.Errorf("in flight = %d at the end", n)
	}
	if s, _ := b.Standing(k, at(1e4)); s != Probation || tried.Load() == 0 {
		t.Errorf("standing %v after %d trials", s, tried.Load())
	}
}

// Everything at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	b := NewBoard()
	keys := []Key{"u:1", "u:2", "u:3"}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range 300 {
				key, now := keys[(g+i)%3], at(float64(i))
				switch i % 6 {
				case 0:
					b.Freeze(key, Freeze{Length: time.Duration(i%5) * time.Second, By: By(i % 4)}, now)
				case 1:
					b.Thaw(key, now)
				case 2:
					b.Retain(func(k Key) bool { return k != key }, now)
				case 3:
					b.Import(b.Export(now), now)
				case 4:
					b.Standing(key, now, keys...)
					b.Freezes(now)
					b.Changed()
				}
				l := b.Seize(key, now, keys[(g+i+1)%3])
				l.Released(now)
				l.Again(key, now)
				l.Settle(Outcome(i%3), now, Strike{Counts: true})
				l.Streak()
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		if n := b.InFlight(key); n != 0 {
			t.Errorf("%s: in flight = %d at the end", key, n)
		}
	}
}

// As target mode waits: to the soonest thaw, unless somebody lifts a freeze.
func TestSleepToTheSoonestThaw(t *testing.T) {
	for name, thawed := range map[string]bool{"time": false, "thaw": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBoard()
				begun := time.Now()
				b.Freeze(k, Freeze{Length: time.Minute}, begun)
				b.Freeze("u:2", Freeze{Length: time.Hour}, begun)
				if thawed {
					time.AfterFunc(20*time.Second, func() { b.Thaw("u:2", time.Now()) })
				}
				changed := b.Changed()
				_, soonest := b.Standing(k, time.Now())
				select {
				case <-changed:
				case <-time.After(time.Until(soonest.Until)):
				}
				want := time.Minute
				if thawed {
					want = 20 * time.Second
				}
				if got := time.Since(begun); got != want {
					t.Errorf("slept %v, want %v", got, want)
				}
				if _, _, ok := b.Acquire(k, time.Now(), false); ok == thawed {
					t.Errorf("first one granted: %v", ok)
				}
			})
		})
	}
}
