package health

import (
	"testing"
	"time"
)

// Two candidates of one host, with a key each.
const (
	one, other       = Key("u:1"), Key("u:2")
	oneKey, otherKey = Key("k:1"), Key("k:2")
	host             = Key("h:https://api.example.com:443")
)

// A frozen host lets nobody in, whoever's failure it was, and after its time one
// request tries it out for all.
func TestAHostStandsForAllItsCandidates(t *testing.T) {
	b := NewBoard()
	failing, _, _ := b.Acquire(one, at(0), false, oneKey, host)
	b.Freeze(host, Freeze{Length: 30 * time.Second, Reason: "refused"}, at(1))
	failing.Settle(Failed, at(1), Strike{Counts: true})
	for _, c := range [][]Key{{one, oneKey}, {other, otherKey}} {
		if _, f, ok := b.Acquire(c[0], at(2), true, c[1], host); ok || f.Reason != "refused" || !f.Until.Equal(at(31)) {
			t.Fatalf("%s was let in, or refused for %+v", c[0], f)
		}
		if s, f := b.Standing(c[0], at(2), c[1], host); s != Frozen || f.Key != host {
			t.Fatalf("%s stands %v for %+v", c[0], s, f)
		}
		if s, _ := b.Standing(c[0], at(2)); s != Ready {
			t.Fatalf("%s itself stands %v", c[0], s)
		}
	}
	trial, _, ok := b.Acquire(other, at(31), false, otherKey, host)
	if !ok || !trial.Trial() {
		t.Fatal("no trial when the host's time had come")
	}
	if _, _, ok := b.Acquire(one, at(32), false, oneKey, host); ok {
		t.Fatal("the other candidate was let in beside the trial")
	}
	if l, _, ok := b.Acquire(one, at(32), true, oneKey, host); !ok || l.Trial() {
		t.Fatal("where nobody is left it is let in, but not as the trial")
	}
	trial.Released(at(33))
	if s, _ := b.Standing(one, at(33), oneKey, host); s != Ready {
		t.Fatalf("after the trial's release it stands %v", s)
	}
	if n := b.Counters(host).Streak; n != 0 {
		t.Fatalf("a host has a streak of %d", n)
	}
}

// A trial that somebody else's probation refuses takes no other's place.
func TestARefusalTakesNoTrial(t *testing.T) {
	b := NewBoard()
	b.Freeze(host, Freeze{Length: time.Second}, at(0))
	b.Freeze(one, Freeze{Length: 2 * time.Second}, at(0))
	trial, _, _ := b.Acquire(other, at(3), false, otherKey, host)
	if _, f, ok := b.Acquire(one, at(3), false, oneKey, host); ok || f.Key != host {
		t.Fatalf("let in, or refused for %+v", f)
	}
	trial.Settle(OK, at(4), Strike{})
	l, _, ok := b.Acquire(one, at(4), false, oneKey, host)
	if !ok || !l.Trial() {
		t.Fatal("its own trial was gone")
	}
}

// The freeze that lasts longest is the one to tell.
func TestTheLongestFreezeIsTold(t *testing.T) {
	b := NewBoard()
	b.Freeze(one, Freeze{Length: 5 * time.Second}, at(0))
	b.Freeze(oneKey, Freeze{Length: 60 * time.Second}, at(0))
	b.Freeze(host, Freeze{Length: 20 * time.Second}, at(0))
	if _, f, _ := b.Acquire(one, at(1), false, oneKey, host); f.Key != oneKey {
		t.Fatalf("refused for %+v", f)
	}
	if _, f := b.Standing(one, at(30), oneKey, host); f.Key != oneKey {
		t.Fatalf("stands for %+v", f)
	}
}

// An attempt that was under way when the host was frozen says nothing about it.
func TestAStragglersSuccessLeavesTheHostFrozen(t *testing.T) {
	b := NewBoard()
	straggler, _, _ := b.Acquire(one, at(0), false, oneKey, host)
	b.Freeze(host, Freeze{Length: time.Minute}, at(1))
	straggler.Settle(OK, at(2), Strike{})
	if s, _ := b.Standing(one, at(2), host); s != Frozen {
		t.Fatalf("stands %v", s)
	}
	seized := b.Seize(one, at(3), oneKey, host)
	seized.Settle(OK, at(4), Strike{})
	if s, _ := b.Standing(other, at(4), otherKey, host); s != Ready {
		t.Fatalf("after a success begun since it stands %v", s)
	}
}

// A trial that fails tells how long its host was frozen, and gives its place back.
func TestATrialOfTheHostThatFails(t *testing.T) {
	b := NewBoard()
	b.Freeze(host, Freeze{Length: 10 * time.Second}, at(0))
	trial, _, _ := b.Acquire(one, at(10), false, oneKey, host)
	if last, probation := trial.Again(host, at(11)); last != 10*time.Second || !probation {
		t.Fatalf("again %v %v", last, probation)
	}
	if last, probation := trial.Again(one, at(11)); last != 0 || probation {
		t.Fatalf("for itself: again %v %v", last, probation)
	}
	trial.Settle(Failed, at(11), Strike{Counts: true})
	if next, _, ok := b.Acquire(other, at(12), false, otherKey, host); !ok || !next.Trial() {
		t.Fatal("the trial was not passed on")
	}
}
