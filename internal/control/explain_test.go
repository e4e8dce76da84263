package control

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/stats"
)

// stories are requests that went in every way there is, by the name of the file that
// tells of them.
func stories() map[string]stats.Record {
	start := time.Date(2026, 11, 29, 23, 4, 11, 0, time.Local)
	usage := stats.Usage{Input: 3210, Output: 812, Cached: 3000, CacheWrite: -1, Reasoning: -1, Total: 4022}
	plan := []stats.Planned{{Name: "Direct API", Model: "gpt-4o", Tier: 1}, {Name: "Claude", Model: "claude-sonnet-4-5", Tier: 2}, {Name: "spare", Model: "spare", Tier: 2}}
	try := func(name, model string, after, took time.Duration) stats.Try {
		return stats.Try{Name: name, Model: model, Start: start.Add(after), Connected: 12 * time.Millisecond, Header: took / 2, End: took, Usage: stats.NoUsage()}
	}
	failed := func(t stats.Try, class, fault, rule, action, text string, wait, froze time.Duration) stats.Try {
		t.Verdict, t.Class, t.Fault, t.Rule, t.Action, t.Text, t.Wait, t.Froze = stats.Failed, class, fault, rule, action, text, wait, froze
		t.Failure = &stats.Failure{Next: map[string]string{"retry": "again", "passthrough": "return"}[action]}
		return t
	}
	request := func(ending stats.Ending, status int, end time.Duration, tries ...stats.Try) stats.Record {
		return stats.Record{ID: "req_0123456789abcdef01234567", Model: "auto-strong", Method: "POST", Path: "/v1/chat/completions", Dialect: "openai", Stream: true,
			Start: start, End: end, Status: status, Ending: ending, Winner: -1, Strategy: "order", Plan: plan, Tries: tries, Usage: stats.NoUsage()}
	}
	rate := failed(try("Direct API", "gpt-4o", 0, 180*time.Millisecond), "429", "rate", "built-in rate", "retry", "429 Too Many Requests (rate) rate_limit_exceeded: Rate limit reached", 2100*time.Millisecond, 0)
	tired := failed(try("Direct API", "gpt-4o", 2300*time.Millisecond, 200*time.Millisecond), "429", "rate", "built-in rate", "next", "429 Too Many Requests (rate) rate_limit_exceeded: Rate limit reached", 0, 10*time.Minute)
	tired.Hedged = true
	tired.Failure.Next = "again"
	quota := failed(try("Direct API", "gpt-4o", 0, 90*time.Millisecond), "402", "quota", "weekly", "freeze", "402 Payment Required (quota): out of credit", 0, time.Hour)
	client := failed(try("Direct API", "gpt-4o", 0, 90*time.Millisecond), "400", "client", "built-in client", "passthrough", "400 Bad Request (client): no such field", 0, 0)
	good := try("Claude", "claude-sonnet-4-5", 2500*time.Millisecond, 3400*time.Millisecond)
	good.Verdict, good.FirstByte, good.FirstContent, good.Released, good.Usage, good.Bytes = stats.OK, 350*time.Millisecond, 720*time.Millisecond, 725*time.Millisecond, usage, 14203

	saved := request(stats.Success, 200, 5900*time.Millisecond, rate, tired, good)
	saved.Client, saved.Winner, saved.Released, saved.Usage, saved.Bytes = "alice", 2, 3225*time.Millisecond, usage, 14203
	saved.Skips = []stats.Skip{{Name: "spare", Reason: "frozen, 240 s left: 529 (capacity): Overloaded", Left: 240 * time.Second}}
	exhausted := request(stats.Exhausted, 502, 90*time.Millisecond, quota)
	exhausted.Strategy, exhausted.Skips = "rendezvous", []stats.Skip{{Name: "Claude", Reason: "env ANTHROPIC_API_KEY is not set"}, {Name: "spare", Reason: "disabled"}}
	dropped := request(stats.Exhausted, 0, 90*time.Second, quota)
	passed := request(stats.PassedThrough, 400, 91*time.Millisecond, client)
	empty := request(stats.EmptyPassed, 200, time.Second, failed(try("Direct API", "gpt-4o", 0, time.Second), "bad_stream", "server", "rest", "next", "bad_stream: stream ended without a word", 0, 0))
	empty.Tries[0].Verdict, empty.Winner = stats.Empty, 0
	broken := request(stats.Broken, 200, 4*time.Second, good)
	broken.Tries[0].Verdict, broken.Tries[0].Text, broken.Winner, broken.Bytes = stats.Failed, "broke off after release: connection reset", 0, 1
	cancelled := request(stats.Cancelled, 0, 65*time.Second, try("Direct API", "gpt-4o", 0, 65*time.Second))
	cancelled.Tries[0].Text = "the client left"
	refused := stats.Record{ID: "req_1", Method: "GET", Path: "/v1/nothing", Dialect: "openai", Start: start, End: time.Microsecond, Status: 404, Winner: -1, Ending: stats.Refused, Usage: stats.NoUsage()}
	pool := request(stats.Success, 200, 2500*time.Millisecond, good)
	pool.Model, pool.Ignored, pool.Strategy, pool.Winner = "*", true, "least load", 0
	long := request(stats.Exhausted, 504, 5*time.Minute, rate, rate, rate, quota)
	long.Omitted = 120
	return map[string]stats.Record{"saved": saved, "exhausted": exhausted, "dropped": dropped, "passed": passed, "empty": empty, "broken": broken,
		"cancelled": cancelled, "refused": refused, "pool": pool, "long": long}
}

// Each story reads as testdata/stories has it.
func TestStories(t *testing.T) {
	snap := newRig(t, "understudy.yaml", full).handler.Snapshot()
	for name, record := range stories() {
		file := filepath.Join("testdata", "stories", name+".txt")
		r := Describe(snap, &record)
		told := r.Story() + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, file); told != want {
			t.Errorf("%s is told as\n%s\nnot as\n%s", name, told, want)
		}
	}
}

func TestExplainTellsTheNewest(t *testing.T) {
	r := newRig(t, "understudy.yaml", full)
	if out := r.run("explain"); out != "error: no such request, or it is no longer kept" {
		t.Error(out)
	}
	for _, record := range stories() {
		r.handler.Ledger().Add(record)
	}
	newest := r.handler.Ledger().Latest(1, nil)[0].Record
	one := Describe(r.handler.Snapshot(), &newest)
	if out := r.run("explain"); out != one.Story() {
		t.Errorf("%s", out)
	}
	if out := r.run("explain a b"); out == "" || r.run("explain nobody") != "error: no such request, or it is no longer kept" {
		t.Error(out)
	}
}

func TestTimesForPeople(t *testing.T) {
	for ms, want := range map[float64]string{0: "less than 1 ms", 0.4: "less than 1 ms", 1: "1 ms", 999.4: "999 ms", 1000: "1.00 s", 59999: "60.00 s", 60_000: "1m0s", 3_723_400: "1h2m3s"} {
		if got := took(ms); got != want {
			t.Errorf("%v ms is %s, want %s", ms, got, want)
		}
	}
	for seconds, want := range map[float64]string{0: "0s", 0.25: "0.25 s", 2.1: "2.1 s", 59: "59 s", 60: "1m0s", 86400: "24h0m0s"} {
		if got := span(seconds); got != want {
			t.Errorf("%v s is %s, want %s", seconds, got, want)
		}
	}
}
