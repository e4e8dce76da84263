package stats

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// steady is a ledger whose rings are warm, and the request it is fed: one failed
// attempt, then a success.
func steady() (*Ledger, Record) {
	l := NewLedger(0)
	r := request("m", bad("a", noon, "overloaded"), ok("b", noon, 3*time.Second, used(1000, 200, 600)))
	for range 2000 {
		book(l, r)
	}
	return l, r
}

func BenchmarkAdd(b *testing.B) {
	l, r := steady()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		// Requests end at 1,000 a second, and latencies vary.
		i++
		r.End = time.Duration(i%4000) * time.Millisecond
		r.Start = noon.Add(time.Duration(i)*time.Millisecond - r.End)
		r.Tries[0].Start, r.Tries[1].Start = r.Start, r.Start
		r.Tries[1].End = r.End
		l.Enter("m")
		l.Add(r)
	}
}

func BenchmarkAddParallel(b *testing.B) {
	l, r := steady()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Enter("m")
			l.Add(r)
		}
	})
}

// full is a ledger after a day of a request per second.
func full() (*Ledger, time.Time) {
	l := NewLedger(0)
	for i := range 24 * 60 * 60 {
		latency := time.Duration(200+i*7919%20000) * time.Millisecond
		begin := noon.Add(time.Duration(i)*time.Second - latency)
		book(l, request("m", ok("c", begin, latency, used(1000, 200, 600))))
	}
	return l, noon.Add(24 * time.Hour)
}

func BenchmarkSnapshot(b *testing.B) {
	l, now := full()
	b.ReportAllocs()
	for b.Loop() {
		l.Model("m", now)
	}
}

func BenchmarkExport(b *testing.B) {
	l, now := full()
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		text, err := json.Marshal(l.Export(now))
		if err != nil {
			b.Fatal(err)
		}
		size = len(text)
	}
	b.ReportMetric(float64(size)/2, "bytes/series")
}

func BenchmarkSince(b *testing.B) {
	l, _ := steady()
	b.ReportAllocs()
	for b.Loop() {
		l.Since(l.Seq()-20, 100)
	}
}

func TestAddAllocatesOnlyTheRecord(t *testing.T) {
	l, r := steady()
	if n := testing.AllocsPerRun(1000, func() {
		l.Enter("m")
		l.Add(r)
	}); n > 1 {
		t.Errorf("%v allocations per request", n)
	}
}

func TestMemoryDoesNotGrowWithTheNumberOfRequests(t *testing.T) {
	l := NewLedger(0)
	for i := range 50_000 {
		latency := time.Duration(i*7919%60000) * time.Millisecond
		begin := noon.Add(time.Duration(i)*3*time.Second - latency)
		r := request("m", ok("c", begin, latency, used(1000, 200, 600)))
		r.ID = fmt.Sprint(i)
		book(l, r)
	}
	buckets, pairs := 0, 0
	for _, s := range []*series{l.candidates.books["c"], l.models.books["m"]} {
		for _, ring := range s.rings() {
			for _, b := range ring.slots {
				buckets++
				pairs += cap(b.latencyCells) + cap(b.firstCells)
			}
		}
	}
	wantEqual(t, "buckets", buckets, 2*(60+60+144))
	if pairs > buckets*2*cells {
		t.Errorf("%d histogram cells in %d buckets", pairs, buckets)
	}
	wantEqual(t, "records", len(l.journal.ring), DefaultJournal)
	t.Logf("%d bytes of histogram cells per series", pairs*8/2)
}
