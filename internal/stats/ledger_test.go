package stats

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOneRequestIsOneRequestHoweverManyAttempts(t *testing.T) {
	l := NewLedger(0)
	second := noon.Add(2 * time.Second)
	book(l, request("auto", bad("a", noon, "overloaded"), bad("a", noon.Add(time.Second), "overloaded"), ok("b", second, 4*time.Second, used(100, 20, 60))))
	now := noon.Add(10 * time.Second)

	wantEqual(t, "totals", l.Totals(), Totals{Requests: 1, Successes: 1})
	m := l.Model("auto", now)
	wantEqual(t, "model requests", m.Requests, 1)
	wantEqual(t, "model successes", m.Successes, 1)
	wantEqual(t, "model failures", m.Failures, 0)
	wantEqual(t, "model rpm", m.RPM, 1)
	wantNumber(t, "model tpm", m.TPM, 120)
	wantNumber(t, "model latency", m.Latency.Avg, 6*time.Second)
	wantNumber(t, "model first content", m.FirstContent.Avg, 3*time.Second)
	wantNumber(t, "cache hit", m.CacheHit, 0.6)
	wantEqual(t, "model last error", m.LastError, "")

	a := l.Candidate("a", now)
	wantEqual(t, "a requests", a.Requests, 2)
	wantEqual(t, "a failures", a.Failures, 2)
	wantNumber(t, "a success rate", a.SuccessRate, 0)
	wantEqual(t, "a last error", a.LastError, "overloaded")
	wantEqual(t, "a last error at", a.LastErrorAt.UTC(), noon.Add(time.Second))
	wantUnknown(t, "a latency", a.Latency.Avg)
	wantUnknown(t, "a input", a.Input)
	wantEqual(t, "a incomplete", a.Incomplete, false)

	b := l.Candidate("b", now)
	wantEqual(t, "b requests", b.Requests, 1)
	wantNumber(t, "b success rate", b.SuccessRate, 1)
	wantNumber(t, "b latency", b.Latency.Avg, 4*time.Second)
	wantNumber(t, "b total", b.Total, 120)
}

func TestEndings(t *testing.T) {
	try := func(v Verdict) Try {
		c := ok("c", noon, time.Second, NoUsage())
		c.Verdict = v
		if v == Failed {
			c.Text = "it broke"
		}
		return c
	}
	type numbers struct{ requests, successes, failures, empty, abandoned, streak int64 }
	tests := []struct {
		ending    Ending
		verdict   Verdict
		totals    Totals
		model     numbers
		candidate numbers
		rate      *float64
		error     string
	}{
		{Success, OK, Totals{Requests: 1, Successes: 1}, numbers{requests: 1, successes: 1}, numbers{requests: 1, successes: 1}, new(1.0), ""},
		{PassedThrough, Failed, Totals{Requests: 1, PassedThrough: 1}, numbers{requests: 1, failures: 1, streak: 1}, numbers{requests: 1, failures: 1}, new(0.0), "it broke"},
		{EmptyPassed, Empty, Totals{Requests: 1, Empty: 1}, numbers{requests: 1, empty: 1}, numbers{requests: 1, empty: 1}, new(0.0), ""},
		{Exhausted, Failed, Totals{Requests: 1, Exhausted: 1}, numbers{requests: 1, failures: 1, streak: 1}, numbers{requests: 1, failures: 1}, new(0.0), "it broke"},
		{Broken, Failed, Totals{Requests: 1, Broken: 1}, numbers{requests: 1, failures: 1, streak: 1}, numbers{requests: 1, failures: 1}, new(0.0), "it broke"},
		{Cancelled, Abandoned, Totals{Requests: 1, ClientCancelled: 1}, numbers{requests: 1, abandoned: 1}, numbers{abandoned: 1}, nil, ""},
		{Refused, Abandoned, Totals{Refused: 1}, numbers{}, numbers{abandoned: 1}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.ending.String(), func(t *testing.T) {
			l := NewLedger(0)
			r := request("m", try(tt.verdict))
			r.Ending = tt.ending
			book(l, r)
			wantEqual(t, "totals", l.Totals(), tt.totals)
			read := func(s Series) numbers {
				return numbers{s.Requests, s.Successes, s.Failures, s.Empty, s.Abandoned, s.Streak}
			}
			m := l.Model("m", noon.Add(time.Minute))
			wantEqual(t, "model", read(m), tt.model)
			wantEqual(t, "candidate", read(l.Candidate("c", noon.Add(time.Minute))), tt.candidate)
			wantEqual(t, "rate", show(m.SuccessRate), show(tt.rate))
			wantEqual(t, "last error", m.LastError, tt.error)
			if tt.ending != Success {
				wantUnknown(t, "latency", m.Latency.Avg)
				wantUnknown(t, "first content", m.FirstContent.P50)
			}
		})
	}
}

func TestTokensThatNobodyReportedAreUnknown(t *testing.T) {
	partly := NoUsage()
	partly.Output = 7
	summed := NoUsage()
	summed.Input, summed.Output = 5, 2
	zero := used(0, 0, 0)
	failedWith := func(u Usage) Try {
		f := bad("c", noon, "gone")
		f.Usage = u
		return f
	}
	cut := bad("c", noon, "cut")
	cut.FirstContent = time.Microsecond
	left := ok("c", noon, time.Second, NoUsage())
	left.Verdict = Abandoned
	lost := Try{Candidate: "c", Start: noon, End: time.Second, Verdict: Abandoned, Usage: NoUsage()}

	tests := []struct {
		name             string
		tries            []Try
		in, out, total   string
		cached, cacheHit string
		incomplete       bool
		cachedIncomplete bool
	}{
		{"nothing at all", []Try{bad("c", noon, "down")}, "unknown", "unknown", "unknown", "unknown", "unknown", false, false},
		{"all of it", []Try{ok("c", noon, 1, used(10, 2, 5))}, "10", "2", "12", "5", "0.5", false, false},
		{"a reported zero is zero", []Try{ok("c", noon, 1, zero)}, "0", "0", "0", "0", "unknown", false, false},
		{"none of it", []Try{ok("c", noon, 1, NoUsage())}, "unknown", "unknown", "unknown", "unknown", "unknown", true, true},
		{"a part of it", []Try{ok("c", noon, 1, partly)}, "unknown", "7", "unknown", "unknown", "unknown", true, true},
		{"the total follows from its parts", []Try{ok("c", noon, 1, summed)}, "5", "2", "7", "unknown", "unknown", false, true},
		{"one of two", []Try{ok("c", noon, 1, used(10, 2, 5)), ok("c", noon, 1, NoUsage())}, "10", "2", "12", "5", "0.5", true, true},
		{"the cache rate is over those that report it", []Try{ok("c", noon, 1, used(10, 2, 5)), ok("c", noon, 1, summed)}, "15", "4", "19", "5", "0.5", false, true},
		{"a failed one may be billed", []Try{failedWith(used(10, 2, 5)), ok("c", noon, 1, used(10, 2, 5))}, "20", "4", "24", "10", "0.5", false, false},
		{"a refusal has none to report", []Try{bad("c", noon, "down"), ok("c", noon, 1, used(10, 2, 5))}, "10", "2", "12", "5", "0.5", false, false},
		{"one that was cut short had", []Try{cut, ok("c", noon, 1, used(10, 2, 5))}, "10", "2", "12", "5", "0.5", true, true},
		{"one that the client left had", []Try{left}, "unknown", "unknown", "unknown", "unknown", "unknown", true, true},
		{"one that lost before it spoke had not", []Try{lost, ok("c", noon, 1, used(1, 1, 0))}, "1", "1", "2", "0", "0", false, false},
		{"more cached than read counts as all", []Try{ok("c", noon, 1, used(10, 2, 50))}, "10", "2", "12", "50", "1", false, false},
		{"nonsense stops at the largest number", []Try{ok("c", noon, 1, used(math.MaxInt64, 0, 0)), ok("c", noon, 1, used(5, 0, 0))}, fmt.Sprint(math.MaxInt64), "0", fmt.Sprint(math.MaxInt64), "0", "0", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLedger(0)
			book(l, request("m", tt.tries...))
			s := l.Candidate("c", noon.Add(time.Second))
			for _, w := range []Window{s.Window, s.Windows[TenMinutes], s.Windows[SixHours]} {
				wantEqual(t, "input", show(w.Input), tt.in)
				wantEqual(t, "output", show(w.Output), tt.out)
				wantEqual(t, "total", show(w.Total), tt.total)
				wantEqual(t, "cached", show(w.Cached), tt.cached)
				wantEqual(t, "cache hit", show(w.CacheHit), tt.cacheHit)
				wantEqual(t, "incomplete", w.Incomplete, tt.incomplete)
				wantEqual(t, "cached incomplete", w.CachedIncomplete, tt.cachedIncomplete)
			}
		})
	}
}

func TestModelBooksTheWinnersTokensOnly(t *testing.T) {
	l := NewLedger(0)
	billed := bad("a", noon, "broke after the start")
	billed.Usage = used(1000, 1, 0)
	book(l, request("m", billed, ok("b", noon, time.Second, used(10, 2, 0))))
	now := noon.Add(time.Second)
	wantNumber(t, "model input", l.Model("m", now).Input, 10)
	wantNumber(t, "a's input", l.Candidate("a", now).Input, 1000)
}

func TestAnswersToAnythingButPOSTHaveNoTokensToReport(t *testing.T) {
	for _, tt := range []struct {
		method     string
		status     int
		incomplete bool
	}{{"GET", 200, false}, {"DELETE", 200, false}, {"POST", 200, true}, {"GET", 101, true}} {
		l := NewLedger(0)
		try := ok("c", noon, time.Second, NoUsage())
		try.Status = tt.status
		r := request("*", try)
		r.Method = tt.method
		book(l, r)
		what := fmt.Sprint(tt.method, " ", tt.status)
		wantEqual(t, what, l.Candidate("c", noon).Incomplete, tt.incomplete)
		wantEqual(t, what, l.Model("*", noon).Incomplete, tt.incomplete)
	}
}

func TestRates(t *testing.T) {
	l := NewLedger(0)
	now := noon.Add(time.Minute)
	s := l.Model("m", now)
	wantEqual(t, "rpm of nothing", s.RPM, 0)
	wantNumber(t, "tpm of nothing", s.TPM, 0)

	book(l, request("m", ok("c", now, 0, NoUsage())))
	s = l.Model("m", now)
	wantEqual(t, "rpm", s.RPM, 1)
	wantUnknown(t, "tpm of answers that report nothing", s.TPM)
	wantEqual(t, "incomplete", s.TPMIncomplete, true)

	onlyOutput := NoUsage()
	onlyOutput.Output = 5
	book(l, request("m", ok("c", now, 0, onlyOutput)), request("m", bad("c", now, "down")))
	s = l.Model("m", now)
	wantEqual(t, "rpm counts successes", s.RPM, 2)
	wantNumber(t, "tpm of a part", s.TPM, 5)
	wantEqual(t, "incomplete", s.TPMIncomplete, true)

	wantEqual(t, "rpm after 59 s", l.Model("m", now.Add(59*time.Second)).RPM, 2)
	s = l.Model("m", now.Add(60*time.Second))
	wantEqual(t, "rpm after 60 s", s.RPM, 0)
	wantNumber(t, "tpm after 60 s", s.TPM, 0)
	wantEqual(t, "incomplete after 60 s", s.TPMIncomplete, false)
}

func TestIgnoredEndpointsCountOnlyInTheirOwnCounter(t *testing.T) {
	l := NewLedger(0)
	r := request("m", bad("c", noon, "404"))
	r.ID, r.Ignored = "i", true
	book(l, r)
	wantEqual(t, "totals", l.Totals(), Totals{Ignored: 1})
	for _, s := range []Series{l.Model("m", noon), l.Candidate("c", noon)} {
		wantEqual(t, "requests", s.Requests, 0)
		wantEqual(t, "last error", s.LastError, "")
		wantEqual(t, "cell", s.History[HistoryCells-1].State, CellIdle)
	}
	if _, found := l.Find("i"); !found {
		t.Error("the journal does not hold it")
	}
}

func TestInFlight(t *testing.T) {
	l := NewLedger(0)
	l.Enter("m")
	l.Enter("m")
	l.Enter("")
	wantEqual(t, "in flight", l.Totals().InFlight, 3)
	wantEqual(t, "model's", l.Model("m", noon).InFlight, 2)
	l.Add(request("m", ok("c", noon, 0, NoUsage())))
	l.Add(Record{Start: noon, Winner: -1, Usage: NoUsage()})
	wantEqual(t, "in flight", l.Totals().InFlight, 1)
	wantEqual(t, "model's", l.Model("m", noon).InFlight, 1)
	l.Retain(func(string) bool { return false }, func(string) bool { return false })
	wantEqual(t, "model's after a reload", l.Model("m", noon).InFlight, 1)
	l.Add(request("m", ok("c", noon, 0, NoUsage())))
	l.Add(request("m", ok("c", noon, 0, NoUsage())))
	wantEqual(t, "never below zero", l.Totals().InFlight, 0)
	wantEqual(t, "never below zero", l.Model("m", noon).InFlight, 0)
}

func TestFreezesAndHedgesAreCounted(t *testing.T) {
	l := NewLedger(0)
	frozen := bad("c", noon, "quota")
	frozen.Froze = time.Hour
	hedged := bad("c", noon, "down")
	hedged.Froze, hedged.Hedged = 10*time.Minute, true
	book(l, request("m", frozen), request("m", hedged, bad("d", noon, "down too")))
	for name, s := range map[string]Series{"model": l.Model("m", noon), "candidate": l.Candidate("c", noon)} {
		wantEqual(t, name+" freezes", s.Freezes, 2)
		wantEqual(t, name+" hedges", s.Hedges, 1)
	}
	wantEqual(t, "model's streak", l.Model("m", noon).Streak, 2)
	wantEqual(t, "model's last error", l.Model("m", noon).LastError, "down too")
	book(l, request("m", ok("d", noon, 0, NoUsage())))
	wantEqual(t, "model's streak after a success", l.Model("m", noon).Streak, 0)
	wantEqual(t, "the last error stays", l.Model("m", noon).LastError, "down too")
}

func TestLastErrorWithoutAnyAttemptIsWhyNobodyWasAsked(t *testing.T) {
	l := NewLedger(0)
	r := Record{Model: "m", Start: noon, Winner: -1, Usage: NoUsage(), Ending: Exhausted, Skips: []Skip{{Candidate: "c", Reason: "frozen: quota"}}}
	book(l, r)
	wantEqual(t, "last error", l.Model("m", noon).LastError, "every candidate was passed over: frozen: quota")
	r.Skips = nil
	book(l, r)
	wantEqual(t, "last error", l.Model("m", noon).LastError, "exhausted")
}

func TestLastErrorIsTheLatestOne(t *testing.T) {
	l := NewLedger(0)
	book(l, request("m", bad("c", noon.Add(time.Minute), "later")))
	// A request whose first attempt failed early, and that ended late.
	book(l, request("m", bad("c", noon, "earlier"), ok("d", noon.Add(time.Minute), time.Minute, NoUsage())))
	s := l.Candidate("c", noon.Add(3*time.Minute))
	wantEqual(t, "last error", s.LastError, "later")
	wantEqual(t, "when", s.LastErrorAt.UTC(), noon.Add(time.Minute))
}

func TestFailureTextsAreCutBetweenRunes(t *testing.T) {
	l := NewLedger(0)
	r := request("m", bad("c", noon, strings.Repeat("é", maxText)))
	r.ID = "x"
	book(l, r)
	for _, text := range []string{l.Candidate("c", noon).LastError, l.Model("m", noon).LastError, must(l.Find("x")).Tries[0].Text} {
		if len(text) > maxText || !strings.HasSuffix(text, "é…") {
			t.Errorf("%d bytes, ending in %q", len(text), text[len(text)-6:])
		}
	}
	wantEqual(t, "the caller's own text", len(r.Tries[0].Text), 2*maxText)
}

func must(r Record, found bool) Record {
	if !found {
		panic("not in the journal")
	}
	return r
}

func TestNamesBeyondTheLimitShareBooks(t *testing.T) {
	l := NewLedger(1)
	for i := range maxCandidates + 100 {
		book(l, request(fmt.Sprint("m", i), ok(fmt.Sprint("c", i), noon, time.Second, used(1, 1, 0))))
	}
	// The limit, and the common books.
	wantEqual(t, "candidates", len(l.candidates.books), maxCandidates+1)
	wantEqual(t, "models", len(l.models.books), maxModels+1)
	wantEqual(t, "other candidates' requests", l.Candidate(Other, noon).Requests, 100)
	wantEqual(t, "other models' requests", l.Model(Other, noon).Requests, maxCandidates+100-maxModels)
	wantEqual(t, "one beyond the limit", l.Candidate(fmt.Sprint("c", maxCandidates), noon).Requests, 0)

	l.MarkFrozen("c-new", noon, noon.Add(time.Hour))
	wantEqual(t, "others' cell", l.Candidate(Other, noon).History[HistoryCells-1].Frozen, false)

	l.Retain(func(name string) bool { return name == "c1" }, func(name string) bool { return name == "m1" })
	book(l, request("new", ok("new", noon, time.Second, used(1, 1, 0))))
	wantEqual(t, "a new one after a reload", l.Candidate("new", noon).Requests, 1)
	wantEqual(t, "a kept one", l.Candidate("c1", noon).Requests, 1)
	wantEqual(t, "a dropped one", l.Candidate("c2", noon).Requests, 0)
	wantEqual(t, "totals", l.Totals().Requests, maxCandidates+101)
}

func TestRecordWithoutATimeIsInNoWindow(t *testing.T) {
	l := NewLedger(0)
	book(l, request("m", ok("c", noon, time.Second, used(1, 1, 0))))
	r := request("m", bad("c", noon, "when?"))
	r.Start = time.Time{}
	book(l, r)
	s := l.Candidate("c", noon.Add(time.Second))
	wantEqual(t, "all", s.Requests, 2)
	wantEqual(t, "10m", s.Windows[TenMinutes].Requests, 1)
	wantEqual(t, "last error", s.LastError, "when?")
	wantEqual(t, "when", s.LastErrorAt.IsZero(), true)
}

func TestConcurrentUseBooksEverythingOnce(t *testing.T) {
	l := NewLedger(50)
	const workers, each = 8, 200
	var wg, readers sync.WaitGroup
	stop := make(chan struct{})
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			l.Model("m", noon)
			l.ModelWindow("m", time.Hour, noon)
			l.Since(0, 10)
			l.Latest(5, nil)
			l.Export(noon)
			l.Retain(func(string) bool { return true }, func(string) bool { return true })
		}
	})
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				at := noon.Add(time.Duration(i) * time.Second)
				l.Enter("m")
				l.MarkFrozen("a", at, at.Add(time.Minute))
				l.Thaw("a", at.Add(time.Second))
				l.Add(request("m", bad("a", at, "down"), ok(fmt.Sprint("c", w), at, time.Second, used(2, 1, 1))))
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	now := noon.Add(each * time.Second)
	wantEqual(t, "totals", l.Totals(), Totals{Requests: workers * each, Successes: workers * each})
	wantEqual(t, "model", l.Model("m", now).Requests, workers*each)
	wantNumber(t, "tokens", l.Model("m", now).Total, workers*each*3)
	wantEqual(t, "shared candidate", l.Candidate("a", now).Failures, workers*each)
	wantEqual(t, "own candidate", l.Candidate("c3", now).Successes, each)
}

// A WebSocket is a success that lasts for as long as somebody wants: no latency.
func TestWebSocketsHaveNoLatency(t *testing.T) {
	l, now := NewLedger(0), time.Now()
	add := func(status int, took time.Duration) {
		l.Enter("vm")
		l.Add(Record{Model: "vm", Method: "GET", Start: now.Add(-took), End: took, Status: status, Ending: Success, Usage: NoUsage(),
			Tries: []Try{{Candidate: "c", Start: now.Add(-took), End: took, Verdict: OK, Status: status, Usage: NoUsage()}}})
	}
	add(101, 3*time.Hour)
	for _, w := range []Window{l.Model("vm", now).Windows[All], l.Candidate("c", now).Windows[All]} {
		if w.Successes != 1 || w.Latency.Avg != nil {
			t.Errorf("alone: %+v", w)
		}
	}
	add(200, time.Second)
	for _, w := range []Window{l.Model("vm", now).Windows[All], l.Candidate("c", now).Windows[All]} {
		if w.Successes != 2 || w.Latency.Avg == nil || *w.Latency.Avg != time.Second {
			t.Errorf("beside another: %+v", w)
		}
	}
}
