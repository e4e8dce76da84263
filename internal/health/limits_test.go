package health

import (
	"sync"
	"testing"
	"time"
)

// enter asks for a lease within limits, and says what kept it out and for how long.
func enter(t *testing.T, b *Board, seconds float64, l Limits, want Limit, wait float64) *Lease {
	t.Helper()
	lease, r, ok := b.Enter(k, l, at(seconds), false)
	if r.Limit != want || ok != (want == Unlimited) || r.Wait != time.Duration(wait*float64(time.Second)) || r.Freeze != (Freeze{}) {
		t.Fatalf("at %v s: %+v, %v; want %q for %v s", seconds, r, ok, want, wait)
	}
	return lease
}

func settle(l *Lease, seconds float64) { l.Settle(OK, at(seconds), Strike{}) }

func TestLimitOfRequestsAMinute(t *testing.T) {
	b, l := NewBoard(), Limits{RPM: 2}
	settle(enter(t, b, 0, l, Unlimited, 0), 1)
	settle(enter(t, b, 10, l, Unlimited, 0), 11)
	enter(t, b, 20, l, RPM, 40)
	enter(t, b, 59.5, l, RPM, 0.5)
	settle(enter(t, b, 60, l, Unlimited, 0), 61)
	enter(t, b, 60, l, RPM, 10)
	// A limit that was lowered meanwhile counts what there was.
	enter(t, b, 69, Limits{RPM: 1}, RPM, 51)
	enter(t, b, 200, l, Unlimited, 0)
}

func TestLimitOfTokensAMinute(t *testing.T) {
	b, l := NewBoard(), Limits{TPM: 100}
	first := enter(t, b, 0, l, Unlimited, 0)
	second := enter(t, b, 0, l, Unlimited, 0)
	first.Spend(60, at(5))
	settle(first, 6)
	third := enter(t, b, 7, l, Unlimited, 0)
	third.Spend(-1, at(8)) // not known
	settle(third, 8)
	settle(second, 9)
	second.Spend(50, at(10)) // behind Settle, as a stream's usage comes
	enter(t, b, 11, l, TPM, 54)
	enter(t, b, 65, l, Unlimited, 0) // 50 are left
	// Without a limit nothing is counted.
	free := enter(t, b, 66, Limits{}, Unlimited, 0)
	free.Spend(1000, at(66))
	enter(t, b, 67, l, Unlimited, 0)
}

func TestLimitOfRequestsAtOnce(t *testing.T) {
	b, l := NewBoard(), Limits{Parallel: 2}
	first, second := enter(t, b, 0, l, Unlimited, 0), enter(t, b, 0, l, Unlimited, 0)
	enter(t, b, 1, l, Parallel, 0)
	second.Settle(Abandoned, at(2), Strike{})
	enter(t, b, 2, l, Unlimited, 0)
	enter(t, b, 2, l, Parallel, 0)
	first.Settle(Failed, at(3), Strike{})
	first.Settle(Failed, at(3), Strike{}) // leaves once
	enter(t, b, 3, l, Unlimited, 0)
	enter(t, b, 3, l, Parallel, 0)
}

// A freeze keeps out before a limit does, and who is refused for whatever reason is
// not counted.
func TestLimitsAndFreezes(t *testing.T) {
	b, l := NewBoard(), Limits{RPM: 1, Parallel: 1}
	b.Freeze(k, Freeze{Length: 10 * time.Second}, at(0))
	if _, r, ok := b.Enter(k, l, at(5), false); ok || r.Limit != Unlimited || !r.Freeze.Until.Equal(at(10)) {
		t.Fatalf("%+v, %v", r, ok)
	}
	trial := enter(t, b, 10, l, Unlimited, 0)
	if !trial.Trial() {
		t.Error("no trial")
	}
	if _, r, ok := b.Enter(k, l, at(11), false); ok || r.Limit != Unlimited || r.Freeze == (Freeze{}) {
		t.Errorf("beside the trial: %+v, %v", r, ok)
	}
	if _, r, ok := b.Enter(k, l, at(11), true); ok || r.Limit != RPM {
		t.Errorf("beside the trial, and nobody else is left: %+v, %v", r, ok)
	}
	trial.Settle(OK, at(12), Strike{})
	enter(t, b, 13, l, RPM, 57)
}

// However many ask at once, no more get in than may.
func TestLimitsHoldInARace(t *testing.T) {
	b := NewBoard()
	var wg sync.WaitGroup
	got := make(chan *Lease, 100)
	for range 100 {
		wg.Go(func() {
			if l, _, ok := b.Enter(k, Limits{Parallel: 7, RPM: 1000}, at(0), false); ok {
				got <- l
			}
		})
	}
	wg.Wait()
	if len(got) != 7 {
		t.Errorf("%d of 7 places are taken", len(got))
	}
}
