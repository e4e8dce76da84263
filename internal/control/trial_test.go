package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/internal/stats"
)

const tried = `
pool: {cooldown_seconds: 30}
upstream: [{id: p, base_url: "https://p.example.com"}]
virtual_models:
  auto:
    candidates: [{base_url: "https://a.example.com", auth_style: none, model: m}]
    rules: [{name: own, match: {status: 418}, action: passthrough}]
rules:
  - {name: weekly, match: {body_regex: '(\d+) hours left'}, action: freeze, freeze_from_group: 1, freeze_unit: hours}
  - {name: key, match: {fault: quota}, action: freeze, scope: auto}
  - {name: rate, match: {status: [429, timeout], fault: [rate, server]}, action: retry, max_attempts: 2, backoff_base: 3, max_wait: 5}
  - {name: rest, match: {status: [network, bad_stream]}, action: next}
`

func TestTrials(t *testing.T) {
	snap := newRig(t, "understudy.yaml", tried).handler.Snapshot()
	for _, test := range []struct {
		name  string
		q     Suppose
		rule  string
		below int
		says  string // of the decision
		asked string // of the failure
	}{
		{"its own rule first", Suppose{Status: 418}, "own", 4, "the client gets this answer", "status 418"},
		{"a group of the body", Suppose{Status: 429, Body: []byte(`{"error":{"message":"weekly limit, 7 hours left"}}`)}, "weekly", 3, "frozen for 7h0m0s, then the next candidate", "“weekly limit, 7 hours left”"},
		{"a quota, for the whole key", Suppose{Status: 402, Header: map[string][]string{"Retry-After": {"90"}}}, "key", 2, "frozen for 1m30s with its whole key, then the next candidate", "asks for 1m30s"},
		{"a limit", Suppose{Status: 429, Body: []byte(`slow`)}, "rate", 1, "the same candidate again after 3 s", "fault rate"},
		{"its second attempt", Suppose{Status: 429, Attempts: 2}, "rate", 1, "the next candidate", "attempt 2"},
		{"a hint within max_wait", Suppose{Status: 429, Header: map[string][]string{"retry-after": {"4"}}}, "rate", 1, "frozen for 4 s, then the same candidate again after 4 s", ""},
		{"no answer", Suppose{Class: "timeout", Text: "not one byte"}, "rate", 1, "the same candidate again", "timeout, fault server, not one byte"},
		{"an error in a stream", Suppose{Status: 200, Stream: true, Body: []byte("data: {\"error\":{\"message\":\"oops\"}}\n\n")}, "rest", 0, "the next candidate", "bad_stream"},
		{"nothing asked about it", Suppose{Status: 500}, "no rule", 0, "the next candidate", "status 500"},
		{"an answer of another endpoint", Suppose{Status: 200, Path: "/v1/embeddings", Body: []byte(`{"error":{"message":"quota","code":"insufficient_quota"}}`)}, "key", 2, "", "fault quota"},
		{"the pool", Suppose{Model: "*", Status: 503}, "pool table", 0, "frozen for 30 s, then the next candidate", ""},
		{"the pool's other statuses", Suppose{Model: "*", Status: 404}, "pool table", 0, "the client gets this answer", ""},
	} {
		if test.q.Model == "" {
			test.q.Model = "auto"
		}
		if test.q.Path == "" {
			test.q.Path = "/v1/chat/completions"
		}
		got, err := Try(snap, test.q)
		if err != nil || got.Decision.Rule != test.rule || got.Below != test.below || !strings.Contains(got.Decision.String(), test.says) || !strings.Contains(got.Failure, test.asked) || got.Unsure != "" {
			t.Errorf("%s: %v %+v", test.name, err, got)
			continue
		}
		for i, l := range got.Lines {
			if l.Decides != (i == len(got.Lines)-1) || l.Why == "" {
				t.Errorf("%s: %+v", test.name, l)
			}
		}
		if text := got.Text(); strings.Count(text, "  yes  ") != 1 || !strings.Contains(text, "\nso: "+got.Decision.String()) {
			t.Errorf("%s:\n%s", test.name, text)
		}
	}
	for want, q := range map[string]Suppose{
		"healthy answer":   {Model: "auto", Status: 204, Path: "/"},
		"status or a cl":   {Model: "auto"},
		"class is called":  {Model: "auto", Class: "nonsense"},
		"whose rules":      {Status: 500},
		"no virtual model": {Status: 500, Model: "nobody"},
	} {
		if got, err := Try(snap, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v %+v", q, err, got)
		}
	}
}

func TestReplays(t *testing.T) {
	snap := newRig(t, "understudy.yaml", tried).handler.Snapshot()
	base := stats.Failure{Kind: "status", Phase: "header", Account: "429 Too Many Requests", Number: 1, Next: "again", Wait: 3 * time.Second, Scope: "identity"}
	request := func(model, rule string, change func(*stats.Failure)) *Request {
		f := base
		change(&f)
		r := stats.Record{ID: "req", Model: model, Start: time.Now(), Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage(), Tries: []stats.Try{
			{Name: "ok", Verdict: stats.OK, Usage: stats.NoUsage()},
			{Name: "a", Verdict: stats.Failed, Status: 429, Class: "429", Fault: "rate", Rule: rule, Usage: stats.NoUsage(), Failure: &f}}}
		out := Describe(snap, &r)
		return &out
	}
	for _, test := range []struct {
		what   string
		r      *Request
		differ string // "" = not
		other  int
		unsure int
	}{
		{"the same", request("auto", "rate", func(*stats.Failure) {}), "", 0, 0},
		{"the same, with jitter", request("auto", "rate", func(f *stats.Failure) { f.Wait = 3140 * time.Millisecond }), "", 0, 0},
		{"a longer wait", request("auto", "rate", func(f *stats.Failure) { f.Wait = 4 * time.Second }), "after 3 s", 0, 0},
		{"a shorter wait", request("auto", "rate", func(f *stats.Failure) { f.Wait = 2 * time.Second }), "after 3 s", 0, 0},
		{"a rule of another name", request("auto", "patience", func(*stats.Failure) {}), "", 1, 0},
		{"another attempt", request("auto", "rate", func(f *stats.Failure) { f.Number = 2 }), "the next candidate", 0, 0},
		{"a freeze", request("auto", "rate", func(f *stats.Failure) { f.Next, f.Wait, f.Freeze = "following", 0, time.Minute }), "after 3 s", 0, 0},
		{"a hint", request("auto", "rate", func(f *stats.Failure) {
			f.RetryAfter, f.HasRetryAfter, f.Next, f.Wait, f.Freeze = time.Minute, true, "following", 0, time.Minute
		}), "", 0, 0},
		{"another scope", request("auto", "rate", func(f *stats.Failure) {
			f.RetryAfter, f.HasRetryAfter, f.Next, f.Wait, f.Freeze, f.Scope = time.Minute, true, "following", 0, time.Minute, "key"
		}), "frozen for 1m0s, then the next candidate", 0, 0},
		{"a body that is not whole", request("auto", "rate", func(f *stats.Failure) { f.Cut = true }), "", 0, 1},
		{"a body of which enough is there", request("auto", "rate", func(f *stats.Failure) { f.Body, f.Cut = "2 hours left", true }), "frozen for 2h0m0s", 0, 1},
		{"the end of a passage", request("auto", "rate", func(f *stats.Failure) { f.Next, f.Wait = "return", 0 }), "after 3 s", 0, 0},
	} {
		p := NewReplay(snap)
		p.Take(test.r)
		if p.Requests != 1 || p.Failures != 1 || p.OtherRule != test.other || p.Unsure != test.unsure || p.Same+len(p.Differences) != 1 {
			t.Errorf("%s: %+v", test.what, p)
			continue
		}
		if (test.differ != "") != (len(p.Differences) == 1) || test.differ != "" && !strings.Contains(p.Differences[0].Would.String(), test.differ) {
			t.Errorf("%s: %+v", test.what, p.Differences)
		}
		if text := p.Text(); test.differ != "" && (!strings.Contains(text, "  was       ") || !strings.Contains(text, "1 failure of 1 request: 1 would be decided otherwise, 0 as they were")) {
			t.Errorf("%s:\n%s", test.what, text)
		}
	}
	p := NewReplay(snap)
	p.Take(request("gone", "rate", func(*stats.Failure) {}))
	plain := request("auto", "rate", func(*stats.Failure) {})
	plain.Attempts = plain.Attempts[:1]
	p.Take(plain)
	if p.NoChain != 1 || p.Requests != 1 || !strings.HasSuffix(p.Text(), "1 of virtual models that are not in the configuration") {
		t.Errorf("%+v %s", p, p.Text())
	}
}

func TestPreviews(t *testing.T) {
	r := newRig(t, "understudy.yaml", full)
	snap := r.handler.Snapshot()
	plan, err := PreviewOf(snap, "auto-strong", "k")
	if err != nil || plan.Live || strings.Join(plan.Order, " ") != "Direct API Claude" || plan.UpstreamID != "Direct API" || plan.Candidates[0].State != "" ||
		strings.Contains(plan.BaseURL, "hunter2") || strings.Join(plan.Candidates[1].MissingEnv, "") != "UNDERSTUDY_TEST_NOT_SET" {
		t.Errorf("%v %+v", err, plan)
	}
	r.run("freeze add auto-strong 1 90 'a reason'")
	live, err := r.Route("auto-strong", "k")
	if c := live.Candidates[0]; err != nil || !live.Live || live.UpstreamID != "Claude" || c.State != StateFrozen || c.SecondsLeft < 80 || c.Reason != "a reason" || *c.InFlight != 0 || len(live.Order) != 2 {
		t.Errorf("%v %+v", err, live)
	}
	if pool, err := r.Route("", ""); err != nil || pool.Model != "*" || pool.Strategy != "least load" {
		t.Errorf("%v %+v", err, pool)
	}
	small := newRig(t, "understudy.yaml", small)
	if only, err := small.Route("", ""); err != nil || only.Model != "auto" {
		t.Errorf("%v %+v", err, only)
	}
	if _, err := small.Route("nobody", ""); !errors.Is(err, ErrNoModel) {
		t.Error(err)
	}
}
