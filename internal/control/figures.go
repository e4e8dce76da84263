package control

import (
	"cmp"
	"slices"
	"time"

	"understudy/internal/stats"
)

func counts(w *stats.Window) Counts {
	return Counts{Requests: w.Requests, Successes: w.Successes, Failures: w.Failures, Empty: w.Empty, Abandoned: w.Abandoned}
}

func tokens(t *stats.Tokens) Tokens {
	return Tokens{Input: t.Input, Output: t.Output, Cached: t.Cached, Total: t.Total, Incomplete: t.Incomplete, CachedIncomplete: t.CachedIncomplete}
}

func windows(s *stats.Series) []Window {
	list := make([]Window, 0, stats.Spans)
	for span := range stats.Spans {
		w := &s.Windows[span]
		list = append(list, Window{
			Span: span.String(), Counts: counts(w), SuccessRate: w.SuccessRate, Tokens: tokens(&w.Tokens),
			Latency: times(w.Latency), FirstContent: times(w.FirstContent), CacheHit: w.CacheHit,
		})
	}
	return list
}

func times(t stats.Times) Times {
	return Times{Avg: milliseconds(t.Avg), P50: milliseconds(t.P50), P95: milliseconds(t.P95), P99: milliseconds(t.P99)}
}

func distribution(d *stats.Distribution) Distribution {
	out := Distribution{Count: uint64(d.Count), Sum: d.Sum.Seconds(), Under: make([]Bound, len(stats.Bounds))}
	for i, bound := range stats.Bounds {
		out.Under[i] = Bound{bound.Seconds(), uint64(d.Under[i])}
	}
	return out
}

// classes lists failures by class, the most frequent first.
func classes(failed map[string]int64) []ClassCount {
	list := make([]ClassCount, 0, len(failed))
	for class, n := range failed {
		list = append(list, ClassCount{class, n})
	}
	slices.SortFunc(list, func(a, b ClassCount) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(a.Class, b.Class))
	})
	return list
}

func milliseconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(float64(d.Microseconds()) / 1000)
}

func history(s *stats.Series) History {
	h := History{
		Start: s.History[0].Start, CellSeconds: int(24 * time.Hour / stats.HistoryCells / time.Second),
		States: make([]string, stats.HistoryCells), Successes: make([]int64, stats.HistoryCells), Failures: make([]int64, stats.HistoryCells),
	}
	for i := range s.History {
		c := &s.History[i]
		h.States[i], h.Successes[i], h.Failures[i] = c.State.String(), c.Successes, c.Failures+c.Empty
	}
	return h
}
