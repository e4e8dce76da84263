package stats

import (
	"fmt"
	"testing"
	"time"
)

// noon is a whole ten minutes, so that tests can count buckets.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// used is a usage that reports everything.
func used(input, output, cached int64) Usage {
	return Usage{Input: input, Output: output, Cached: cached, CacheWrite: 0, Reasoning: 0, Total: input + output}
}

// ok is an attempt that began at start and was whole after latency.
func ok(candidate string, start time.Time, latency time.Duration, u Usage) Try {
	return Try{
		Candidate: candidate, Start: start, FirstContent: latency / 4, Released: latency / 2, End: latency,
		Verdict: OK, Status: 200, Usage: u,
	}
}

// bad is an attempt that was refused at once.
func bad(candidate string, start time.Time, text string) Try {
	return Try{Candidate: candidate, Start: start, End: time.Millisecond, Verdict: Failed, Status: 503, Class: "503", Fault: "server", Text: text, Usage: NoUsage()}
}

// request is what the proxy would report of these attempts, the last of which
// decides; its start is the first one's.
func request(model string, tries ...Try) Record {
	r := Record{Model: model, Method: "POST", Path: "/v1/chat/completions", Dialect: "openai", Winner: -1, Usage: NoUsage(), Tries: tries, Ending: Exhausted, Status: 502}
	r.Start = tries[0].Start
	last := tries[len(tries)-1]
	r.End = last.Start.Add(last.End).Sub(r.Start)
	switch last.Verdict {
	case OK:
		r.Ending, r.Status = Success, 200
	case Empty:
		r.Ending, r.Status = EmptyPassed, 200
	case Abandoned:
		r.Ending, r.Status = Cancelled, 0
	default:
		return r
	}
	r.Winner, r.Usage = len(tries)-1, last.Usage
	if last.FirstContent > 0 {
		r.FirstContent = last.Start.Add(last.FirstContent).Sub(r.Start)
	}
	return r
}

// book enters and adds each record.
func book(l *Ledger, records ...Record) {
	for _, r := range records {
		l.Enter(r.Model)
		l.Add(r)
	}
}

func wantNumber[T comparable](t *testing.T, what string, got *T, want T) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s = %s, want %v", what, show(got), want)
	}
}

func wantUnknown[T any](t *testing.T, what string, got *T) {
	t.Helper()
	if got != nil {
		t.Errorf("%s = %v, want unknown", what, *got)
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func show[T any](p *T) string {
	if p == nil {
		return "unknown"
	}
	return fmt.Sprint(*p)
}
