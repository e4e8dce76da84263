package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fact is one thing that happened, as the naive ledger remembers it: all of it,
// for ever.
type fact struct {
	at       int64
	class    class
	usage    Usage
	answered bool
	latency  time.Duration
	first    time.Duration
}

// naive is the ledger that keeps everything and counts when asked.
type naive struct{ candidates, models map[string][]fact }

func (n *naive) add(r Record) {
	end := r.Start.Add(r.End)
	for _, t := range r.Tries {
		f := fact{at: min(t.Start.Add(t.End).Unix(), end.Unix()), usage: t.Usage, latency: t.End, first: t.FirstContent}
		f.class = map[Verdict]class{OK: succeeded, Empty: empty, Failed: failed, Abandoned: abandoned}[t.Verdict]
		f.answered = t.Verdict == OK || t.Verdict == Empty || t.FirstContent > 0
		n.candidates[t.Candidate] = append(n.candidates[t.Candidate], f)
	}
	if r.Ending == Refused {
		return
	}
	f := fact{at: end.Unix(), usage: r.Usage, latency: r.End, first: r.FirstContent, answered: r.Winner >= 0}
	f.class = map[Ending]class{Success: succeeded, EmptyPassed: empty, Cancelled: abandoned, Exhausted: failed, Broken: failed, PassedThrough: failed}[r.Ending]
	n.models[r.Model] = append(n.models[r.Model], f)
}

// within gives the facts of the n latest buckets of a width.
func within(facts []fact, now, width, n int64) (in []fact) {
	bucket := func(second int64) int64 { return int64(math.Floor(float64(second) / float64(width))) }
	for _, f := range facts {
		if b := bucket(f.at); b <= bucket(now) && b > bucket(now)-n {
			in = append(in, f)
		}
	}
	return in
}

// window counts facts the way the specification words it.
func (n *naive) window(facts []fact, model bool) Window {
	var w Window
	var latencies, firsts []time.Duration
	var hits, read float64
	sum := func(into **int64, reported int64) bool {
		if reported < 0 {
			return false
		}
		if *into == nil {
			*into = new(int64(0))
		}
		**into += reported
		return true
	}
	for _, f := range facts {
		switch f.class {
		case succeeded:
			w.Successes++
			latencies = append(latencies, f.latency)
			if f.first > 0 {
				firsts = append(firsts, f.first)
			}
		case failed:
			w.Failures++
		case empty:
			w.Empty++
		default:
			w.Abandoned++
		}
		u := f.usage
		if u.Total < 0 && u.Input >= 0 && u.Output >= 0 {
			u.Total = u.Input + u.Output
		}
		// Evaluated one by one: all of them have to be summed.
		in, out, total := sum(&w.Input, u.Input), sum(&w.Output, u.Output), sum(&w.Total, u.Total)
		cached := sum(&w.Cached, u.Cached)
		expected := f.answered || u != NoUsage()
		sum(&w.CacheWrite, u.CacheWrite)
		sum(&w.Reasoning, u.Reasoning)
		w.Incomplete = w.Incomplete || expected && !(in && out && total)
		w.CachedIncomplete = w.CachedIncomplete || expected && !cached
		if in && cached {
			hits += float64(min(u.Cached, u.Input))
			read += float64(u.Input)
		}
	}
	w.Requests = w.Successes + w.Failures + w.Empty
	if w.Requests > 0 {
		w.SuccessRate = new(float64(w.Successes) / float64(w.Requests))
	}
	if model {
		w.Requests += w.Abandoned
	}
	if read > 0 {
		w.CacheHit = new(hits / read)
	}
	w.Latency, w.FirstContent = naiveTimes(latencies), naiveTimes(firsts)
	return w
}

func naiveTimes(list []time.Duration) Times {
	if len(list) == 0 {
		return Times{}
	}
	slices.Sort(list)
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	rank := func(percent int) *time.Duration {
		return new(list[(len(list)*percent+99)/100-1])
	}
	return Times{Avg: new(sum / time.Duration(len(list))), P50: rank(50), P95: rank(95), P99: rank(99)}
}

// differ says how two windows differ, "" if only by the histogram's error.
func differ(got, want Window) string {
	near := func(a, b *time.Duration) bool {
		if a == nil || b == nil {
			return a == b
		}
		return (*a - *b).Abs() <= *b/32+time.Microsecond
	}
	for what, pair := range map[string][2]Times{"latency": {got.Latency, want.Latency}, "first content": {got.FirstContent, want.FirstContent}} {
		a, b := pair[0], pair[1]
		if !near(a.P50, b.P50) || !near(a.P95, b.P95) || !near(a.P99, b.P99) {
			return fmt.Sprintf("%s percentiles: got %s %s %s, want %s %s %s", what, show(a.P50), show(a.P95), show(a.P99), show(b.P50), show(b.P95), show(b.P99))
		}
		if (a.Avg == nil) != (b.Avg == nil) || a.Avg != nil && (*a.Avg-*b.Avg).Abs() > time.Microsecond {
			return fmt.Sprintf("%s average: got %s, want %s", what, show(a.Avg), show(b.Avg))
		}
	}
	line := func(w Window) string {
		return fmt.Sprint(w.Requests, w.Successes, w.Failures, w.Empty, w.Abandoned, " rate ", show(w.SuccessRate),
			" tokens ", show(w.Input), show(w.Output), show(w.Cached), show(w.CacheWrite), show(w.Reasoning), show(w.Total),
			w.Incomplete, w.CachedIncomplete, " hit ", show(w.CacheHit))
	}
	if line(got) != line(want) {
		return fmt.Sprintf("got  %s\nwant %s", line(got), line(want))
	}
	return ""
}

func drawUsage(t *rapid.T) Usage {
	number := rapid.OneOf(rapid.Just(int64(-1)), rapid.Int64Range(0, 100_000))
	u := NoUsage()
	if rapid.IntRange(0, 3).Draw(t, "reports") > 0 {
		u = Usage{number.Draw(t, "input"), number.Draw(t, "output"), number.Draw(t, "cached"), number.Draw(t, "written"), number.Draw(t, "reasoning"), number.Draw(t, "total")}
	}
	return u
}

// drawRequest draws a request that ends at a time.
func drawRequest(t *rapid.T, end time.Time) Record {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	micros := func(what string, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(1, most.Microseconds()).Draw(t, what)) * time.Microsecond
	}
	r := Record{Model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"), Method: "POST", Winner: -1, Usage: NoUsage(), End: micros("length", 3*time.Hour)}
	r.Start = end.Add(-r.End)
	for range rapid.IntRange(0, 3).Draw(t, "tries") {
		from := micros("begins after", r.End+time.Microsecond) - time.Microsecond
		try := Try{
			Candidate: names.Draw(t, "candidate"), Start: r.Start.Add(from), End: micros("try length", r.End),
			Verdict: rapid.SampledFrom([]Verdict{OK, Failed, Empty, Abandoned}).Draw(t, "verdict"), Usage: drawUsage(t),
		}
		if rapid.Bool().Draw(t, "content") {
			try.FirstContent = micros("first content", try.End)
		}
		r.Tries = append(r.Tries, try)
	}
	r.Ending = rapid.SampledFrom([]Ending{Refused, Success, PassedThrough, EmptyPassed, Exhausted, Broken, Cancelled}).Draw(t, "ending")
	if n := len(r.Tries); n > 0 && (r.Ending == Success || r.Ending == EmptyPassed) {
		r.Winner = n - 1
		r.Tries[r.Winner].Verdict = map[Ending]Verdict{Success: OK, EmptyPassed: Empty}[r.Ending]
		r.Usage, r.FirstContent = r.Tries[r.Winner].Usage, r.Tries[r.Winner].FirstContent
	} else if n == 0 && r.Ending == Success {
		r.Ending = Exhausted
	}
	return r
}

var kept = map[Span][2]int64{TenMinutes: {10, 60}, HalfHour: {60, 30}, Hour: {60, 60}, SixHours: {600, 36}}

func TestLedgerAgreesWithOneThatForgetsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(10)
		n := &naive{map[string][]fact{}, map[string][]fact{}}
		now := noon.Add(time.Duration(rapid.Int64Range(0, 600_000_000).Draw(t, "begin")) * time.Microsecond)
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				r := drawRequest(t, now)
				book(l, r)
				n.add(r)
			},
			"wait": func(t *rapid.T) {
				unit := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
				now = now.Add(time.Duration(rapid.Int64Range(1, 90).Draw(t, "how long")) * unit)
			},
			"restart": func(t *rapid.T) {
				fresh := NewLedger(10)
				if err := fresh.Import(l.Export(now), now); err != nil {
					t.Fatal(err)
				}
				// The rates of the last minute do not survive, so they are over
				// before the check looks at them.
				l, now = fresh, now.Add(time.Minute)
			},
			"": func(t *rapid.T) {
				for _, name := range []string{"a", "b", "c"} {
					compare(t, n, "candidate "+name, l.Candidate(name, now), n.candidates[name], now, false)
				}
				for _, name := range []string{"m", "n"} {
					compare(t, n, "model "+name, l.Model(name, now), n.models[name], now, true)
				}
			},
		})
	})
}

func compare(t *rapid.T, n *naive, what string, got Series, facts []fact, now time.Time, model bool) {
	if d := differ(got.Window, n.window(facts, model)); d != "" {
		t.Fatalf("%s, all:\n%s", what, d)
	}
	for span, k := range kept {
		if d := differ(got.Windows[span], n.window(within(facts, now.Unix(), k[0], k[1]), model)); d != "" {
			t.Fatalf("%s, %v:\n%s", what, span, d)
		}
	}
	var rpm, tpm int64
	var answered, reported int
	for _, f := range within(facts, now.Unix(), 1, 60) {
		if f.class == succeeded {
			rpm++
		}
		u := f.usage
		if f.answered || u != NoUsage() {
			answered++
		}
		switch {
		case u.Total >= 0:
			tpm += u.Total
		case u.Input >= 0 || u.Output >= 0:
			tpm += max(u.Input, 0) + max(u.Output, 0)
		default:
			continue
		}
		reported++
	}
	want := fmt.Sprintf("%d, %d, %v", rpm, tpm, reported < answered)
	if reported == 0 && answered > 0 {
		want = fmt.Sprintf("%d, unknown, true", rpm)
	}
	if rates := fmt.Sprintf("%d, %s, %v", got.RPM, show(got.TPM), got.TPMIncomplete); rates != want {
		t.Fatalf("%s, rates: got %s, want %s", what, rates, want)
	}
	for i, c := range got.History {
		var good, bad int64
		for _, f := range within(facts, now.Add(time.Duration(i-143)*10*time.Minute).Unix(), 600, 1) {
			switch f.class {
			case succeeded:
				good++
			case failed, empty:
				bad++
			}
		}
		if c.Successes != good || c.Failures+c.Empty != bad {
			t.Fatalf("%s, cell %d: got %+v, want %d good, %d bad", what, i, c, good, bad)
		}
	}
}

func TestClockJumpsCorruptNoWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(10)
		now := noon
		var all, sinceSetBack []fact
		var booked int64
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				f := fact{at: now.Unix()}
				all, sinceSetBack = append(all, f), append(sinceSetBack, f)
				booked++
				requestsAt(l, now)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
			},
			"far ahead": func(t *rapid.T) {
				now = now.AddDate(rapid.IntRange(1, 80).Draw(t, "years"), 0, 0)
			},
			"set back": func(t *rapid.T) {
				now = now.Add(-time.Duration(rapid.IntRange(clockSlack+1, 1e9).Draw(t, "seconds")) * time.Second)
				// The next request is what tells the ledger.
				f := fact{at: now.Unix()}
				all, sinceSetBack = append(all, f), []fact{f}
				booked++
				requestsAt(l, now)
			},
			"": func(t *rapid.T) {
				s := l.Candidate("c", now)
				if s.Requests != booked {
					t.Fatalf("all holds %d of %d", s.Requests, booked)
				}
				for span, k := range kept {
					got := s.Windows[span].Requests
					most := int64(len(within(all, now.Unix(), k[0], k[1])))
					least := int64(len(within(sinceSetBack, now.Unix(), k[0], k[1])))
					if got < least || got > most {
						t.Fatalf("%v holds %d, want %d to %d", span, got, least, most)
					}
				}
				most := int64(len(within(all, now.Unix(), 1, 60)))
				least := int64(len(within(sinceSetBack, now.Unix(), 1, 60)))
				if s.RPM < least || s.RPM > most {
					t.Fatalf("rpm is %d, want %d to %d", s.RPM, least, most)
				}
			},
		})
	})
}
