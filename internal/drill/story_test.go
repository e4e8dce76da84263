package drill

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// The first upstream alone never gives the whole answer, the second always does,
// and in little time.
func TestEveryActNeedsItsUnderstudy(t *testing.T) {
	total := time.Duration(0)
	for _, act := range Story() {
		t.Run(act.Title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := act.Query("auto")
				first, _ := act.Fault.try(t, act.Answer, q)
				hung := errors.Is(first.Err, context.DeadlineExceeded)
				said := Spoken(first.Body)
				if first.Status == 200 && first.Clean && said == act.Answer.Text && !act.Complete {
					t.Error("the first upstream is well")
				}
				if hung != (act.Fault.Name == "stall-two-characters") {
					t.Errorf("hung: %v", hung)
				}
				if late := utf8.RuneCountInString(said) >= 10; late != act.Complete || act.Complete != act.Fault.AfterRelease {
					t.Errorf("said %q before it failed; needs delivery complete: %v", said, act.Complete)
				}
				second := stageOn(t, Healthy(act.Answer))
				r := second.ask(t, t.Context(), q)
				if !r.Clean || Spoken(r.Body) != act.Answer.Text || r.Elapsed > 2*time.Second {
					t.Errorf("the understudy took %v: %+v", r.Elapsed, r)
				}
				if got := second.Requests()[0]; got.Model() != "auto" || !got.Stream() {
					t.Errorf("model %q, stream %v", got.Model(), got.Stream())
				}
				total += r.Elapsed
				for _, s := range []string{act.Title, act.Does, act.Naive} {
					if n := utf8.RuneCountInString(s); n == 0 || n > 80 {
						t.Errorf("%d characters: %q", n, s)
					}
				}
			})
		})
	}
	if total > 8*time.Second {
		t.Errorf("the second upstreams speak for %v in all", total)
	}
}
