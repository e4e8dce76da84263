package health

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const k = Key("u:0123456789abcdef")

// start is the moment at which the tables begin; at is so many seconds later.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func frozen(t *testing.T, b *Board, seconds float64, want bool) {
	t.Helper()
	s, f := b.Standing(k, at(seconds))
	if got := s == Frozen; got != want {
		t.Fatalf("at %v s: standing %v (%+v), want frozen %v", seconds, s, f, want)
	}
}

func standing(t *testing.T, b *Board, seconds float64, want Standing) {
	t.Helper()
	if s, f := b.Standing(k, at(seconds)); s != want {
		t.Fatalf("at %v s: standing %v (%+v), want %v", seconds, s, f, want)
	}
}

func granted(t *testing.T, b *Board, seconds float64, last, trial bool) *Lease {
	t.Helper()
	l, f, ok := b.Acquire(k, at(seconds), last)
	if !ok {
		t.Fatalf("at %v s: refused for %+v", seconds, f)
	}
	if l.Trial() != trial {
		t.Fatalf("at %v s: trial %v, want %v", seconds, l.Trial(), trial)
	}
	return l
}

func refused(t *testing.T, b *Board, seconds float64, last bool) Freeze {
	t.Helper()
	l, f, ok := b.Acquire(k, at(seconds), last)
	if ok || l != nil {
		t.Fatalf("at %v s: granted", seconds)
	}
	if f.Until.IsZero() || f.Key != k {
		t.Fatalf("at %v s: refused without its freeze: %+v", seconds, f)
	}
	return f
}

func freeze(b *Board, seconds, length float64, by By) Freeze {
	return b.Freeze(k, Freeze{
		Length: time.Duration(length * float64(time.Second)), Reason: "because", By: by,
	}, at(seconds))
}

func TestFreezeRunsToItsMoment(t *testing.T) {
	b := NewBoard()
	standing(t, b, 0, Ready)
	f := freeze(b, 0, 2, Rule)
	if f.Key != k || !f.Since.Equal(at(0)) || !f.Until.Equal(at(2)) || f.Length != 2*time.Second || f.By != Rule || f.Reason != "because" {
		t.Fatalf("freeze = %+v", f)
	}
	frozen(t, b, 1.999999999, true)
	if got := refused(t, b, 1.9, false); got != f {
		t.Fatalf("refused for %+v, want %+v", got, f)
	}
	refused(t, b, 1.9, true) // having no other is no reason to break a freeze
	standing(t, b, 2, Probation)
	granted(t, b, 2, false, true)
}

// Spec section 7: one request tries the upstream while the others go on to the
// next, or try it too where none is left.
func TestProbationHandsOutOneTrial(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 2, Rule)
	trial := granted(t, b, 2, false, true)
	if f := refused(t, b, 2, false); f.Until.After(at(2)) {
		t.Fatalf("refused by a freeze that is over at %v", f.Until)
	}
	other := granted(t, b, 2, true, false)
	if n := b.InFlight(k); n != 2 {
		t.Fatalf("in flight = %d, want 2", n)
	}
	other.Settle(Abandoned, at(3), Strike{})
	refused(t, b, 3, false) // the trial still runs
	trial.Settle(Abandoned, at(3), Strike{})
	granted(t, b, 3, false, true)
}

func TestReleaseEndsProbationBeforeTheEnd(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 2, Rule)
	trial := granted(t, b, 2, false, true)
	trial.Released(at(4))
	standing(t, b, 4, Ready)
	granted(t, b, 4, false, false)
	granted(t, b, 4, false, false)
	// The stream breaks later: a failure, but the probation is over.
	trial.Settle(Failed, at(9), Strike{Counts: true})
	standing(t, b, 9, Ready)
	if s := trial.Streak(); s != 1 {
		t.Fatalf("streak = %d, want 1: a release is not yet a success", s)
	}
}

func TestSuccessEndsProbation(t *testing.T) {
	for name, o := range map[string]Outcome{"ok": OK, "failed": Failed, "abandoned": Abandoned} {
		t.Run(name, func(t *testing.T) {
			b := NewBoard()
			freeze(b, 0, 2, Rule)
			granted(t, b, 2, false, true).Settle(o, at(3), Strike{Counts: true})
			want := Probation
			if o == OK {
				want = Ready
			}
			standing(t, b, 3, want)
			granted(t, b, 3, false, o != OK) // else the next one tries
		})
	}
}

func TestSecondRequestOnProbationMayEndItToo(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 2, Rule)
	trial := granted(t, b, 2, false, true)
	granted(t, b, 2, true, false).Settle(OK, at(3), Strike{})
	standing(t, b, 3, Ready)
	trial.Settle(Failed, at(4), Strike{Counts: true})
	standing(t, b, 4, Ready)
}

func TestFailureOnProbationTellsTheLastLength(t *testing.T) {
	b := NewBoard()
	length := 30.0
	now := 0.0
	freeze(b, now, length, Rule)
	for range 5 {
		if last, probation := b.Again(k, at(now+1)); probation || last != time.Duration(length)*time.Second {
			t.Fatalf("while frozen: %v %v", last, probation)
		}
		now += length
		trial := granted(t, b, now, false, true)
		last, probation := b.Again(k, at(now))
		if !probation || last != time.Duration(length)*time.Second {
			t.Fatalf("on probation after %v s: last %v, probation %v", length, last, probation)
		}
		if l2, p2 := trial.Again(k, at(now)); l2 != last || p2 != probation {
			t.Fatalf("lease says %v %v", l2, p2)
		}
		length *= 2
		freeze(b, now, length, Rule)
		trial.Settle(Failed, at(now), Strike{Counts: true})
		frozen(t, b, now+length-0.001, true)
	}
	now += length
	granted(t, b, now, false, true).Settle(OK, at(now), Strike{})
	if last, probation := b.Again(k, at(now)); last != 0 || probation {
		t.Fatalf("after a success: %v %v, want growth to start anew", last, probation)
	}
}

func TestAgainForStragglersAndStrangers(t *testing.T) {
	b := NewBoard()
	if last, probation := b.Again("u:unknown", at(0)); last != 0 || probation {
		t.Fatalf("unknown key: %v %v", last, probation)
	}
	straggler := granted(t, b, 0, false, false)
	freeze(b, 1, 2, Rule)
	if _, probation := straggler.Again(k, at(5)); probation {
		t.Fatal("an attempt begun before the freeze is no attempt on probation")
	}
	freeze(b, 5, 600, Person)
	if last, probation := b.Again(k, at(700)); last != 0 || !probation {
		t.Fatalf("after a person's freeze: %v %v, want no length to double", last, probation)
	}
}

func TestLateSettleCannotClobberANewerTrial(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 2, Rule)
	old := granted(t, b, 2, false, true)
	freeze(b, 3, 2, Rule) // another attempt failed meanwhile
	newer := granted(t, b, 5, false, true)
	old.Settle(Failed, at(6), Strike{Counts: true})
	refused(t, b, 6, false) // newer still has the trial
	newer.Settle(Abandoned, at(7), Strike{})
	granted(t, b, 7, false, true)
}

func TestSuccessLiftsOnlyOlderAutomaticFreezes(t *testing.T) {
	tests := []struct {
		name  string
		by    By
		begun float64 // before (0) or after (2) the freeze at 1 s for 100 s
		end   func(l *Lease)
		want  Standing
	}{
		{"release of an older attempt", Rule, 0, func(l *Lease) { l.Released(at(3)) }, Frozen},
		{"end of an older attempt", Rule, 0, func(l *Lease) { l.Settle(OK, at(3), Strike{}) }, Frozen},
		{"release of a newer attempt", Rule, 2, func(l *Lease) { l.Released(at(3)) }, Ready},
		{"end of a newer attempt", Rule, 2, func(l *Lease) { l.Settle(OK, at(3), Strike{}) }, Ready},
		{"newer attempt, frozen for a streak", Streak, 2, func(l *Lease) { l.Settle(OK, at(3), Strike{}) }, Ready},
		{"newer attempt, frozen by a person", Person, 2, func(l *Lease) { l.Settle(OK, at(3), Strike{}) }, Frozen},
		{"release, frozen by a person", Person, 2, func(l *Lease) { l.Released(at(3)) }, Frozen},
		{"failure of a newer attempt", Rule, 2, func(l *Lease) { l.Settle(Failed, at(3), Strike{Counts: true}) }, Frozen},
		{"abandoned newer attempt", Rule, 2, func(l *Lease) { l.Settle(Abandoned, at(3), Strike{}) }, Frozen},
		{"release after the end", Rule, 2, func(l *Lease) { l.Settle(Failed, at(3), Strike{}); l.Released(at(3)) }, Frozen},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBoard()
			var l *Lease
			if tt.begun < 1 {
				l = granted(t, b, tt.begun, false, false)
			}
			freeze(b, 1, 100, tt.by)
			if l == nil {
				l = b.Seize(k, at(tt.begun))
			}
			if l.Trial() {
				t.Fatal("a trial before the freeze is over")
			}
			tt.end(l)
			standing(t, b, 3, tt.want)
		})
	}
}

// An older attempt's success is no news about a freeze, not even when the
// freeze's time is over.
func TestOlderSuccessDoesNotEndProbation(t *testing.T) {
	b := NewBoard()
	l := granted(t, b, 0, false, false)
	freeze(b, 1, 2, Rule)
	l.Settle(OK, at(5), Strike{})
	standing(t, b, 5, Probation)
}

func TestWhichFreezeHolds(t *testing.T) {
	tests := []struct {
		name          string
		running       By
		length        float64
		by            By
		newer, at     float64
		until         float64
		freezes       int64
		expectedByNow By
	}{
		{"longer automatic one", Rule, 10, Rule, 20, 1, 21, 1, Rule},
		{"shorter automatic one", Rule, 10, Rule, 2, 1, 10, 1, Rule},
		{"streak over a shorter rule", Rule, 10, Streak, 600, 1, 601, 1, Streak},
		{"streak over a longer rule", Rule, 3600, Streak, 600, 1, 3600, 1, Rule},
		{"rule against a person", Person, 10, Rule, 3600, 1, 10, 1, Person},
		{"streak against a person", Person, 10, Streak, 3600, 1, 10, 1, Person},
		{"person shortens a rule", Rule, 3600, Person, 5, 1, 6, 1, Person},
		{"person extends a rule", Rule, 10, Person, 1e6, 1, 1e6 + 1, 1, Person},
		{"person shortens a person", Person, 3600, Person, 5, 1, 6, 1, Person},
		{"rule after a person's time", Person, 10, Rule, 5, 11, 16, 2, Rule},
		{"rule after a rule's time", Rule, 10, Rule, 5, 10, 15, 2, Rule},
		{"nothing of no length", Rule, 10, Rule, 0, 1, 10, 1, Rule},
		{"nothing of negative length", Rule, 10, Person, -5, 1, 10, 1, Rule},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBoard()
			freeze(b, 0, tt.length, tt.running)
			f := freeze(b, tt.at, tt.newer, tt.by)
			if !f.Until.Equal(at(tt.until)) || f.By != tt.expectedByNow {
				t.Errorf("holds %v by %v, want %v by %v", f.Until.Sub(start), f.By, tt.until, tt.expectedByNow)
			}
			if c := b.Counters(k); c.Freezes != tt.freezes {
				t.Errorf("freezes = %d, want %d", c.Freezes, tt.freezes)
			}
		})
	}
}

func TestFreezeUntilAMoment(t *testing.T) {
	b := NewBoard()
	f := b.Freeze(k, Freeze{Until: at(10)}, at(4))
	if f.Length != 6*time.Second || !f.Until.Equal(at(10)) {
		t.Fatalf("freeze = %+v", f)
	}
	f = b.Freeze(k, Freeze{Until: at(20), Length: time.Minute, Since: at(1)}, at(4))
	if f.Length != time.Minute || !f.Until.Equal(at(20)) || !f.Since.Equal(at(1)) {
		t.Fatalf("freeze = %+v, want what was given", f)
	}
	if f := b.Freeze("u:other", Freeze{Until: at(3)}, at(4)); !f.Until.IsZero() {
		t.Fatalf("a freeze that is over holds: %+v", f)
	}
}

func TestPersonsFreezeEndsInProbation(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 5, Person)
	l := b.Seize(k, at(1))
	l.Settle(OK, at(2), Strike{})
	frozen(t, b, 4.9, true)
	granted(t, b, 5, false, true)
	refused(t, b, 5, false)
}

func TestThaw(t *testing.T) {
	b := NewBoard()
	if b.Thaw(k, at(0)) {
		t.Fatal("thawed what nobody knows")
	}
	freeze(b, 0, 5, Person)
	if !b.Thaw(k, at(1)) {
		t.Fatal("a person's freeze is lifted by a person")
	}
	standing(t, b, 1, Ready)
	freeze(b, 1, 5, Rule)
	if b.Thaw(k, at(6)) {
		t.Fatal("a freeze that is over is none to lift")
	}
	standing(t, b, 6, Ready) // but the probation is ended
	freeze(b, 6, 5, Rule)
	freeze2 := b.Freeze("u:2", Freeze{Length: time.Second}, at(6))
	b.Freeze("u:3", Freeze{Length: time.Hour}, at(6))
	if fs := b.Freezes(at(6.5)); len(fs) != 3 || fs[0] != freeze2 || fs[2].Key != "u:3" {
		t.Fatalf("freezes = %+v", fs)
	}
	if n := b.ThawAll(at(8)); n != 2 {
		t.Fatalf("thawed %d, want the 2 that ran", n)
	}
	if fs := b.Freezes(at(8)); len(fs) != 0 {
		t.Fatalf("freezes = %+v", fs)
	}
}

func TestStreak(t *testing.T) {
	b := NewBoard()
	fail := func(counts bool) int {
		l := granted(t, b, 0, false, false)
		l.Settle(Failed, at(0), Strike{Counts: counts, Error: "boom"})
		l.Settle(Failed, at(0), Strike{Counts: counts}) // no second time
		l.Settle(OK, at(0), Strike{})
		return l.Streak()
	}
	for want := 1; want <= 4; want++ {
		if got := fail(true); got != want {
			t.Fatalf("streak = %d, want %d", got, want)
		}
	}
	if got := fail(false); got != 4 {
		t.Fatalf("streak = %d after a failure that does not count, want 4", got)
	}
	granted(t, b, 0, false, false).Settle(Abandoned, at(0), Strike{Counts: true, Error: "no"})
	l := granted(t, b, 0, false, false)
	l.Released(at(0))
	if got := l.Streak(); got != 4 {
		t.Fatalf("streak = %d, want 4", got)
	}
	c := b.Counters(k)
	if c.LastError != "boom" || !c.LastErrorAt.Equal(at(0)) || c.Streak != 4 {
		t.Fatalf("counters = %+v", c)
	}
	l.Settle(OK, at(0), Strike{})
	if got := l.Streak(); got != 0 {
		t.Fatalf("streak = %d after a success", got)
	}
	if n := b.InFlight(k); n != 0 {
		t.Fatalf("in flight = %d", n)
	}
	if c := b.Counters(k); c.LastError != "boom" {
		t.Fatalf("a success hides the last error: %+v", c)
	}
}

func TestHedgesAreCountedApart(t *testing.T) {
	b := NewBoard()
	freeze(b, 0, 1, Rule)
	freeze(b, 2, 10, Streak)
	freeze(b, 3, 1, Streak) // changes nothing
	if c := b.Counters(k); c.Freezes != 2 || c.Hedges != 1 {
		t.Fatalf("counters = %+v", c)
	}
}

// The wall clock may step; a running freeze goes by the monotonic clock.
func TestFreezeGoesByNowsOwnClock(t *testing.T) {
	b := NewBoard()
	now := time.Now()
	f := b.Freeze(k, Freeze{Until: now.Add(time.Minute).Round(0)}, now)
	if !strings.Contains(f.Until.String(), "m=") {
		t.Fatalf("until = %v, want a monotonic reading", f.Until)
	}
	if d := f.Until.Sub(now.Add(time.Minute)); d.Abs() > time.Microsecond {
		t.Fatalf("off by %v", d)
	}
}

func TestTextsAreBounded(t *testing.T) {
	b := NewBoard()
	long := strings.Repeat("日", 100_000)
	f := b.Freeze(k, Freeze{Length: time.Hour, Reason: long}, at(0))
	b.Seize(k, at(0)).Settle(Failed, at(0), Strike{Error: long})
	for _, s := range []string{f.Reason, b.Counters(k).LastError} {
		if len(s) > maxText || len(s) < maxText-3 || !utf8.ValidString(s) {
			t.Errorf("kept %d bytes, valid %v", len(s), utf8.ValidString(s))
		}
	}
}

func TestChangedWakesOnEveryChange(t *testing.T) {
	b := NewBoard()
	woken := func(what string, want bool, change func()) {
		t.Helper()
		c := b.Changed()
		change()
		select {
		case <-c:
			if !want {
				t.Errorf("%s: woken", what)
			}
		default:
			if want {
				t.Errorf("%s: not woken", what)
			}
		}
	}
	var l *Lease
	woken("freeze", true, func() { freeze(b, 0, 10, Rule) })
	woken("shorter freeze", false, func() { freeze(b, 0, 1, Rule) })
	woken("refusal", false, func() { refused(t, b, 1, false) })
	woken("thaw", true, func() { b.Thaw(k, at(1)) })
	woken("thaw of nothing", false, func() { b.Thaw(k, at(1)); b.ThawAll(at(1)) })
	freeze(b, 1, 1, Rule)
	woken("acquire", false, func() { l = granted(t, b, 2, false, true) })
	woken("release", true, func() { l.Released(at(3)) })
	woken("settle", false, func() { l.Settle(OK, at(3), Strike{}) })
	freeze(b, 3, 1, Rule)
	l = granted(t, b, 4, false, true)
	woken("success", true, func() { l.Settle(OK, at(4), Strike{}) })
	freeze(b, 4, 10, Rule)
	woken("thaw of all", true, func() { b.ThawAll(at(5)) })
	woken("import", true, func() { b.Import(State{}, at(5)) })
}

func TestNamesOfConstants(t *testing.T) {
	for s, want := range map[Standing]string{Ready: "ready", Frozen: "frozen", Probation: "probation"} {
		if s.String() != want {
			t.Errorf("%d = %q, want %q", s, s, want)
		}
	}
	for _, by := range []By{Rule, Streak, Person} {
		text, _ := by.MarshalText()
		var back By
		if err := back.UnmarshalText(text); err != nil || back != by {
			t.Errorf("%v comes back as %v, %v", by, back, err)
		}
	}
	if err := new(By).UnmarshalText([]byte("nobody")); err == nil {
		t.Error("unknown word taken")
	}
	if s := By(9).String(); s != "by(9)" {
		t.Errorf("By(9) = %q", s)
	}
}
