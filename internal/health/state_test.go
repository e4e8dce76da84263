package health

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// roundTrip returns a new board with what a restart at now leaves of b.
func roundTrip(t *testing.T, b *Board, now time.Time) *Board {
	t.Helper()
	bytes, err := json.Marshal(b.Export(now))
	if err != nil {
		t.Fatal(err)
	}
	var s State
	if err := json.Unmarshal(bytes, &s); err != nil {
		t.Fatalf("%v in %s", err, bytes)
	}
	restored := NewBoard()
	restored.Import(s, now)
	return restored
}

func TestStateSurvivesRestart(t *testing.T) {
	b := NewBoard()
	b.Freeze("u:rule", Freeze{Length: time.Hour, Reason: "rule 2: 429", By: Rule}, at(0))
	b.Freeze("u:person", Freeze{Length: 90 * 24 * time.Hour, Reason: "holiday", By: Person}, at(0))
	b.Freeze("u:over", Freeze{Length: time.Second, By: Streak}, at(0))
	l, _, _ := b.Acquire("u:failing", at(1), false)
	l.Settle(Failed, at(1), Strike{Counts: true, Error: "503"})
	b.Seize("u:running", at(1))
	b.Seize("u:idle", at(1)).Settle(OK, at(1), Strike{})

	r := roundTrip(t, b, at(60))
	for _, key := range []Key{"u:rule", "u:person", "u:over", "u:failing", "u:running"} {
		for _, now := range []time.Time{at(60), at(3599), at(3600), at(1e6)} {
			was, f := b.Standing(key, now)
			is, g := r.Standing(key, now)
			if was != is || !cmp.Equal(f, g) {
				t.Errorf("%s at %v: %v %+v, was %v %+v", key, now, is, g, was, f)
			}
		}
		if c := r.Counters(key); !cmp.Equal(c, b.Counters(key)) {
			t.Errorf("%s: counters %+v, were %+v", key, c, b.Counters(key))
		}
		if last, probation := r.Again(key, at(60)); key == "u:over" && (last != time.Second || !probation) {
			t.Errorf("probation forgotten: %v %v", last, probation)
		}
	}
	if n := r.InFlight("u:running"); n != 0 {
		t.Errorf("in flight = %d after a restart", n)
	}
	if n := len(r.Export(at(60)).Entries); n != 4 {
		t.Errorf("%d entries saved, want the 4 that say something", n)
	}
}

func TestRestoredFreezeEndsAtItsMoment(t *testing.T) {
	b := NewBoard()
	now := time.Now()
	f := b.Freeze(k, Freeze{Length: 10 * time.Minute}, now)
	r := roundTrip(t, b, now.Add(4*time.Minute))
	_, g := r.Standing(k, now)
	if !g.Until.Round(0).Equal(f.Until.Round(0)) {
		t.Errorf("until = %v, was %v", g.Until, f.Until)
	}
	// Restored while its time passed: on probation.
	r = roundTrip(t, b, now.Add(11*time.Minute))
	if s, _ := r.Standing(k, now.Add(11*time.Minute)); s != Probation {
		t.Errorf("standing = %v", s)
	}
}

func TestImportOfWhatMakesNoSense(t *testing.T) {
	b := NewBoard()
	lease := b.Seize("u:used", at(0))
	b.Freeze("u:used", Freeze{Length: time.Hour}, at(0))
	b.Import(State{Entries: []Saved{
		{Key: "", Counters: Counters{Streak: 3}},
		{Key: "u:zero", Freeze: &Freeze{}},
		{Key: "u:negative", Counters: Counters{Freezes: -1, Hedges: -1, Streak: -1}},
		{Key: "u:used", Counters: Counters{Streak: 2}},
		// The clock was a year ahead when this was saved.
		{Key: "u:ahead", Freeze: &Freeze{Until: at(365 * 24 * 3600), Length: time.Minute}},
		{Key: "u:endless", Freeze: &Freeze{Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Length: -1}},
	}}, at(0))
	for key, want := range map[Key]Standing{"": Ready, "u:zero": Ready, "u:negative": Ready, "u:used": Ready, "u:ahead": Frozen, "u:endless": Frozen} {
		if s, f := b.Standing(key, at(1)); s != want {
			t.Errorf("%q: %v %+v, want %v", key, s, f, want)
		}
	}
	if s, _ := b.Standing("u:ahead", at(60)); s != Probation {
		t.Errorf("frozen longer than it was meant to be: %v", s)
	}
	if c := b.Counters("u:negative"); c != (Counters{}) {
		t.Errorf("counters = %+v", c)
	}
	if n := b.InFlight("u:used"); n != 1 {
		t.Errorf("in flight = %d, want the lease under way to keep its place", n)
	}
	lease.Settle(Failed, at(1), Strike{Counts: true})
	if c := b.Counters("u:used"); c.Streak != 3 || b.InFlight("u:used") != 0 {
		t.Errorf("counters = %+v, in flight %d", c, b.InFlight("u:used"))
	}
}

func TestRetainForgetsOnlyTheIdle(t *testing.T) {
	b := NewBoard()
	fail := func(key Key) {
		b.Seize(key, at(0)).Settle(Failed, at(0), Strike{Counts: true})
	}
	for _, key := range []Key{"u:known", "u:gone", "u:frozen", "u:probation", "u:running"} {
		fail(key)
	}
	b.Freeze("u:frozen", Freeze{Length: time.Minute}, at(0))
	b.Freeze("u:probation", Freeze{Length: time.Second}, at(0))
	running := b.Seize("u:running", at(0))
	known := func(key Key) bool {
		b.Standing(key, at(0)) // the board is not locked
		return key == "u:known"
	}
	keep := func(want ...Key) {
		t.Helper()
		var got []Key
		for _, e := range b.Export(at(0)).Entries {
			got = append(got, e.Key)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("kept (-want +got):\n%s", d)
		}
	}
	b.Retain(known, at(2))
	keep("u:frozen", "u:known", "u:running")

	// A lease settled after the reload lands on its own entry.
	running.Settle(Failed, at(3), Strike{Counts: true})
	if c := b.Counters("u:running"); c.Streak != 2 {
		t.Errorf("streak = %d, want 2", c.Streak)
	}
	b.Retain(known, at(61))
	keep("u:known")
}
