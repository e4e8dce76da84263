package stats

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// requestsAt books one successful request that ends at each of the times.
func requestsAt(l *Ledger, times ...time.Time) {
	for _, at := range times {
		book(l, request("m", ok("c", at.Add(-time.Second), time.Second, used(10, 2, 5))))
	}
}

func TestWindowsReachBackNoFurtherThanTheySay(t *testing.T) {
	for span, edges := range map[Span]struct{ inside, outside time.Duration }{
		TenMinutes: {9*time.Minute + 50*time.Second, 10 * time.Minute},
		HalfHour:   {29 * time.Minute, 30 * time.Minute},
		Hour:       {59 * time.Minute, time.Hour},
		SixHours:   {5*time.Hour + 50*time.Minute, 6 * time.Hour},
	} {
		for _, shift := range []time.Duration{0, 7 * time.Second, 599 * time.Second} {
			now := noon.Add(shift)
			l := NewLedger(0)
			requestsAt(l, now.Add(-edges.outside-time.Second), now.Add(-edges.inside), now)
			what := fmt.Sprintf("%v at %v", span, shift)
			wantEqual(t, what, l.Candidate("c", now).Windows[span].Requests, 2)
			wantEqual(t, what, l.Model("m", now).Windows[span].Requests, 2)
			wantEqual(t, what, l.ModelWindow("m", span.Length(), now).Requests, 2)
			wantEqual(t, "all", l.Model("m", now).Windows[All].Requests, 3)
		}
	}
}

func TestWindowsOfAnyLength(t *testing.T) {
	now := noon.Add(9 * time.Second)
	l := NewLedger(0)
	// Oldest first, as they end.
	ages := []time.Duration{23 * time.Hour, 7 * time.Hour, 50 * time.Minute, 14 * time.Minute, 4 * time.Minute, 5 * time.Second, 0}
	for _, age := range ages {
		requestsAt(l, now.Add(-age))
	}
	for length, want := range map[time.Duration]int64{
		-time.Minute:     2, // never less than one bucket
		time.Second:      2,
		5 * time.Minute:  3,
		15 * time.Minute: 4,
		time.Hour:        5,
		8 * time.Hour:    6,
		24 * time.Hour:   7,
		99 * time.Hour:   7,
		1<<63 - 1:        7,
	} {
		wantEqual(t, length.String(), l.CandidateWindow("c", length, now).Requests, want)
	}
	wantEqual(t, "of nobody", l.CandidateWindow("nobody", time.Hour, now), Window{})
}

func TestWindowHoldsEverythingOfItsRequests(t *testing.T) {
	l := NewLedger(0)
	latencies := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 10 * time.Second}
	for _, d := range latencies {
		book(l, request("m", ok("c", noon, d, used(10, 2, 5))))
	}
	slow := bad("c", noon, "stalled")
	slow.End = 5 * time.Minute
	book(l, request("m", slow))
	w := l.Candidate("c", noon.Add(5*time.Minute)).Windows[TenMinutes]
	wantEqual(t, "requests", w.Requests, 5)
	wantNumber(t, "rate", w.SuccessRate, 0.8)
	wantNumber(t, "average of the successes", w.Latency.Avg, 4*time.Second)
	wantNumber(t, "first content", w.FirstContent.Avg, time.Second)
	for what, pair := range map[string][2]time.Duration{
		"p50": {*w.Latency.P50, 2 * time.Second}, "p95": {*w.Latency.P95, 10 * time.Second}, "p99": {*w.Latency.P99, 10 * time.Second},
		"first p50": {*w.FirstContent.P50, 500 * time.Millisecond},
	} {
		if off := (pair[0] - pair[1]).Abs(); off > pair[1]/32 {
			t.Errorf("%s = %v, want %v", what, pair[0], pair[1])
		}
	}
	wantNumber(t, "input", w.Input, 40)
	wantNumber(t, "cached", w.Cached, 20)
	wantEqual(t, "incomplete", w.Incomplete, false)
}

func TestAttemptIsBookedForTheMomentItEnded(t *testing.T) {
	l := NewLedger(0)
	// It failed at noon, and the one that took over talked for an hour.
	book(l, request("m", bad("a", noon, "down"), ok("b", noon.Add(time.Second), time.Hour, NoUsage())))
	now := noon.Add(time.Hour + time.Second)
	wantEqual(t, "a in 10m", l.Candidate("a", now).Windows[TenMinutes].Requests, 0)
	wantEqual(t, "a in 6h", l.Candidate("a", now).Windows[SixHours].Requests, 1)
	wantEqual(t, "b in 10m", l.Candidate("b", now).Windows[TenMinutes].Requests, 1)
	wantEqual(t, "b's rpm", l.Candidate("b", now).RPM, 1)
	wantEqual(t, "a's failing cell", l.Candidate("a", now).History[HistoryCells-7].State, CellFailing)
}

func TestAttemptThatSeemsToEndAfterItsRequestIsBookedForTheRequest(t *testing.T) {
	l := NewLedger(0)
	r := request("m", ok("c", noon, time.Second, NoUsage()))
	r.Tries[0].Start = noon.Add(10 * time.Hour)
	book(l, r)
	wantEqual(t, "10m", l.Candidate("c", noon.Add(time.Second)).Windows[TenMinutes].Requests, 1)
}

func TestHistory(t *testing.T) {
	l := NewLedger(0)
	now := noon.Add(5 * time.Minute)
	cell := func(back int) time.Time { return noon.Add(time.Duration(-back) * 10 * time.Minute) }
	failure := func(at time.Time) { book(l, request("m", bad("c", at, "down"))) }
	// Oldest first.
	requestsAt(l, cell(144), cell(143))
	hollow := ok("c", cell(6), 0, NoUsage())
	hollow.Verdict = Empty
	book(l, request("m", hollow))
	gone := ok("c", cell(5), 0, NoUsage())
	gone.Verdict = Abandoned
	book(l, request("m", gone))
	failure(cell(3))
	requestsAt(l, cell(2))
	failure(cell(2))
	l.MarkFrozen("c", cell(3).Add(5*time.Minute), cell(2).Add(time.Minute))
	l.MarkFrozen("c", cell(1), noon)
	l.MarkFrozen("c", cell(200), cell(142).Add(time.Nanosecond))
	requestsAt(l, now)

	h := l.Candidate("c", now).History
	wantEqual(t, "first start", h[0].Start, cell(143))
	wantEqual(t, "last start", h[143].Start, noon)
	for back, want := range map[int]Cell{
		143: {State: CellOK, Successes: 1, Frozen: true},
		142: {State: CellFrozen, Frozen: true},
		141: {},
		6:   {State: CellFailing, Empty: 1},
		5:   {},
		4:   {},
		3:   {State: CellFailing, Failures: 1, Frozen: true},
		2:   {State: CellMixed, Successes: 1, Failures: 1, Frozen: true},
		1:   {State: CellFrozen, Frozen: true},
		0:   {State: CellOK, Successes: 1},
	} {
		want.Start = cell(back)
		wantEqual(t, fmt.Sprintf("%d cells ago", back), h[143-back], want)
	}
}

func TestFreezeReachesAheadUntilItIsLifted(t *testing.T) {
	l := NewLedger(0)
	l.MarkFrozen("c", noon, noon.Add(48*time.Hour))
	frozenCells := func(now time.Time) (n int) {
		for _, c := range l.Candidate("c", now).History {
			if c.Frozen {
				n++
			}
		}
		return n
	}
	wantEqual(t, "at once", frozenCells(noon), 1)
	wantEqual(t, "an hour later", frozenCells(noon.Add(time.Hour)), 7)
	wantEqual(t, "a day later", frozenCells(noon.Add(24*time.Hour)), 144)
	l.Thaw("c", noon.Add(25*time.Minute))
	l.Thaw("nobody", noon)
	wantEqual(t, "lifted", frozenCells(noon.Add(20*time.Hour)), 3)
	l.MarkFrozen("c", noon.Add(time.Hour), noon.Add(time.Hour))
	l.MarkFrozen("c", noon.Add(time.Hour), noon)
	wantEqual(t, "after marks of no length", frozenCells(noon.Add(20*time.Hour)), 3)
}

func TestManyFreezesAreBounded(t *testing.T) {
	var f frozen
	for i := range 1000 {
		at := noon.Add(time.Duration(i) * 20 * time.Minute)
		f.mark(at, at.Add(time.Second))
	}
	wantEqual(t, "ranges", len(f), maxRanges)
	wantEqual(t, "the latest is kept", f.holds(cellAt(noon.Add(999*20*time.Minute))), true)
	f.mark(noon, noon.Add(1000*time.Hour))
	wantEqual(t, "ranges that were joined", len(f), 1)
}

func TestClockThatIsSetBackForgetsTheFuture(t *testing.T) {
	l := NewLedger(0)
	requestsAt(l, noon.Add(-2*time.Minute))
	// The clock is three hours ahead for a while …
	requestsAt(l, noon.Add(3*time.Hour), noon.Add(3*time.Hour+time.Minute))
	book(l, request("m", bad("c", noon.Add(3*time.Hour), "down")))
	// … and is set right.
	requestsAt(l, noon)
	now := noon.Add(time.Second)
	s := l.Candidate("c", now)
	wantEqual(t, "10m", s.Windows[TenMinutes].Requests, 2)
	wantEqual(t, "6h", s.Windows[SixHours].Requests, 2)
	wantEqual(t, "all", s.Requests, 5)
	wantEqual(t, "rpm", s.RPM, 1)
	if s.LastErrorAt.After(now) {
		t.Errorf("the last error is of %v, ahead of now", s.LastErrorAt)
	}
	// When the true time gets to where the clock had been, nothing comes up.
	later := noon.Add(3*time.Hour + 2*time.Minute)
	s = l.Candidate("c", later)
	wantEqual(t, "10m later", s.Windows[TenMinutes].Requests, 0)
	wantEqual(t, "1h later", s.Windows[Hour].Requests, 0)
	wantEqual(t, "6h later", s.Windows[SixHours].Requests, 2)
	book(l, request("m", bad("c", noon.Add(time.Minute), "newer")))
	wantEqual(t, "last error", l.Candidate("c", later).LastError, "newer")
}

func TestClockFarAheadForAMomentCostsNoMoreThanItTouched(t *testing.T) {
	l := NewLedger(0)
	for i := range 60 {
		requestsAt(l, noon.Add(time.Duration(i)*time.Minute))
	}
	requestsAt(l, noon.AddDate(73, 0, 0))
	now := noon.Add(time.Hour)
	requestsAt(l, now)
	s := l.Candidate("c", now)
	wantEqual(t, "all", s.Requests, 62)
	for span, lost := range map[Span]int64{TenMinutes: 1, HalfHour: 1, Hour: 1, SixHours: 10} {
		// One bucket at most was overwritten, and the running hour is whole but
		// for its first minute.
		full := map[Span]int64{TenMinutes: 10, HalfHour: 30, Hour: 60, SixHours: 61}[span]
		if got := s.Windows[span].Requests; got < full-lost || got > full {
			t.Errorf("%v holds %d, want %d to %d", span, got, full-lost, full)
		}
	}
	requestsAt(l, now.Add(time.Second))
	wantEqual(t, "one more", l.Candidate("c", now.Add(time.Second)).Windows[TenMinutes].Requests, s.Windows[TenMinutes].Requests+1)
}

func TestRecordsALittleOutOfOrderAreNoClockSetBack(t *testing.T) {
	l := NewLedger(0)
	requestsAt(l, noon.Add(9*time.Second), noon)
	s := l.Candidate("c", noon.Add(9*time.Second))
	wantEqual(t, "rpm", s.RPM, 2)
	wantEqual(t, "10m", s.Windows[TenMinutes].Requests, 2)
}

func TestTimesBefore1970HaveBucketsToo(t *testing.T) {
	l := NewLedger(0)
	now := time.Unix(-1000, 0)
	requestsAt(l, now.Add(-30*time.Second), now)
	s := l.Candidate("c", now)
	wantEqual(t, "10m", s.Windows[TenMinutes].Requests, 2)
	wantEqual(t, "all cells but the last are idle", s.History[142].State, CellIdle)
	wantEqual(t, "last cell", s.History[143].State, CellOK)
}

func TestWindowsRunEmptyWithoutTimersOrGoroutines(t *testing.T) {
	// The bubble ends only when every goroutine has, so one that the ledger
	// started would be found.
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(0)
		l.Enter("m")
		start := time.Now()
		time.Sleep(90 * time.Second)
		l.Add(Record{
			Model: "m", Method: "POST", Start: start, End: time.Since(start), Ending: Success, Usage: used(10, 1, 0),
			Tries: []Try{{Candidate: "c", Start: start, End: time.Since(start), Verdict: OK, Usage: used(10, 1, 0)}},
		})
		windows := func() (list [Spans]int64) {
			s := l.Candidate("c", time.Now())
			for i, w := range s.Windows {
				list[i] = w.Requests
			}
			return list
		}
		wantEqual(t, "rpm", l.Candidate("c", time.Now()).RPM, 1)
		wantNumber(t, "tpm", l.Candidate("c", time.Now()).TPM, 11)
		time.Sleep(time.Minute)
		wantEqual(t, "rpm a minute later", l.Candidate("c", time.Now()).RPM, 0)
		for _, step := range []struct {
			sleep time.Duration
			want  [Spans]int64
		}{
			{0, [Spans]int64{1, 1, 1, 1, 1}},
			{10 * time.Minute, [Spans]int64{1, 1, 1, 1, 0}},
			{20 * time.Minute, [Spans]int64{1, 1, 1, 0, 0}},
			{30 * time.Minute, [Spans]int64{1, 1, 0, 0, 0}},
			{5 * time.Hour, [Spans]int64{1, 0, 0, 0, 0}},
		} {
			time.Sleep(step.sleep)
			wantEqual(t, "windows", windows(), step.want)
		}
	})
}

// What is seldom asked has hardly more buckets than its windows have requests in, however
// long it goes on: there are as many models as clients think of.
func TestSeldomRequestsTakeFewBuckets(t *testing.T) {
	l := NewLedger(0)
	at := noon
	for range 400 {
		requestsAt(l, at)
		at = at.Add(17*time.Minute + 13*time.Second)
	}
	last := at.Add(-17*time.Minute - 13*time.Second)
	for _, s := range []*series{l.find(&l.models, "m"), l.find(&l.candidates, "c")} {
		for _, r := range s.rings() {
			buckets := 0
			for _, b := range r.slots {
				if b != nil {
					buckets++
				}
			}
			if most := int(r.width*int64(len(r.slots)))/(17*60+13) + 1 + fewBuckets; buckets > most {
				t.Errorf("%d buckets of %d s, want at most %d", buckets, r.width, most)
			}
		}
	}
	for span, want := range map[Span]int64{TenMinutes: 1, Hour: 4, SixHours: 21} {
		wantEqual(t, fmt.Sprint(span), l.Model("m", last).Windows[span].Requests, want)
	}
}
