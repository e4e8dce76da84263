package control

import (
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
