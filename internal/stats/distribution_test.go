package stats

import (
	"fmt"
	"testing"
	"time"
)

func TestDurationsAreSpreadOverTheBounds(t *testing.T) {
	l := NewLedger(10)
	start := time.Unix(1_700_000_000, 0)
	for _, took := range []time.Duration{10 * time.Millisecond, 80 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second, 15 * time.Minute} {
		l.Enter("m")
		l.Add(Record{Model: "m", Start: start, End: took, FirstContent: took / 2, Ending: Success, Winner: -1, Usage: NoUsage()})
	}
	s := l.Model("m", start.Add(time.Hour))
	if s.Latencies.Count != 5 || s.Latencies.Sum != 900*time.Second+4990*time.Millisecond {
		t.Errorf("%+v", s.Latencies)
	}
	want := map[time.Duration]int64{50 * time.Millisecond: 1, 100 * time.Millisecond: 2, time.Second: 3, 5 * time.Second: 4, 10 * time.Minute: 4}
	for i, bound := range Bounds {
		if n, asked := want[bound]; asked && s.Latencies.Under[i] != n {
			t.Errorf("%d within %v, want %d", s.Latencies.Under[i], bound, n)
		}
		if i > 0 && s.Latencies.Under[i] < s.Latencies.Under[i-1] {
			t.Errorf("fewer within %v than before", bound)
		}
	}
	if s.FirstContents.Count != 5 || s.FirstContents.Under[0] != 2 {
		t.Errorf("%+v", s.FirstContents)
	}
}

func TestFailuresAreCountedByClass(t *testing.T) {
	l := NewLedger(10)
	add := func(class string, verdict Verdict) {
		l.Enter("m")
		l.Add(Record{Model: "m", Start: time.Unix(1_700_000_000, 0), Ending: Exhausted, Winner: -1, Usage: NoUsage(),
			Tries: []Try{{Candidate: "c", Start: time.Unix(1_700_000_000, 0), Verdict: verdict, Class: class, Usage: NoUsage()}}})
	}
	add("429", Failed)
	add("429", Failed)
	add("network", Failed)
	add("bad_stream", Empty)
	add("", OK)
	for i := range 100 {
		add(fmt.Sprint(500+i), Failed)
	}
	s := l.Candidate("c", time.Unix(1_700_000_100, 0))
	total := int64(0)
	for _, n := range s.Failed {
		total += n
	}
	if s.Failed["429"] != 2 || s.Failed["network"] != 1 || s.Failed["bad_stream"] != 0 || total != s.Failures || len(s.Failed) > maxClasses+1 || s.Failed[Other] == 0 {
		t.Errorf("%v of %d failures", s.Failed, s.Failures)
	}
	s.Failed["429"] = 99
	if again := l.Candidate("c", time.Unix(1_700_000_100, 0)); again.Failed["429"] != 2 {
		t.Error("what is read is shared with the ledger")
	}
}
