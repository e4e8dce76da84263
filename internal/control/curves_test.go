package control

import (
	"testing"
	"time"

	"understudy/internal/stats"
)

func TestCurves(t *testing.T) {
	r := newRig(t, "understudy.yaml", fileText)
	r.handler.Ledger().Enter("auto")
	r.handler.Ledger().Add(stats.Record{
		ID: "a", Model: "auto", Start: time.Now().Add(-2 * time.Second), End: 2 * time.Second, FirstContent: time.Second, Status: 200,
		Winner: -1, Ending: stats.Success, Usage: stats.Usage{Input: 7, Output: 3, Cached: -1, CacheWrite: -1, Reasoning: -1, Total: 10},
	})
	for _, model := range []string{"", "auto"} {
		c, ok := r.Curves(model, time.Hour)
		n := len(c.Successes)
		if !ok || n != 60 || c.StepSeconds != 60 || c.Start.Before(time.Now().Add(-61*time.Minute)) {
			t.Fatalf("%+v %v", c, ok)
		}
		sum := int64(0)
		for i, k := range c.Successes {
			sum += k
			if (c.Latency.P50[i] == nil) != (k == 0) || (c.Input[i] == nil) != (k == 0) || c.Cached[i] != nil {
				t.Errorf("stretch %d: %v %v %v", i, k, c.Latency.P50[i], c.Input[i])
			}
		}
		for _, n2 := range []int{len(c.Failures), len(c.Empty), len(c.Abandoned), len(c.Output), len(c.Latency.P95), len(c.FirstContent.P50), len(c.FirstContent.P95)} {
			if n2 != n {
				t.Errorf("lists of %d and %d", n, n2)
			}
		}
		if sum != 1 {
			t.Errorf("%q: %d successes", model, sum)
		}
	}
	if _, ok := r.Curves("nobody", time.Hour); ok {
		t.Error("curves of a model that is none")
	}
}
