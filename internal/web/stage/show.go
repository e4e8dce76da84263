package main

import (
	"time"

	"understudy/internal/daemon"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// show adds what pictures are to show: freezes by rule, and one request that went a
// long way.
func show(d *daemon.Daemon) {
	now := time.Now()
	cast := map[string]*route.Candidate{}
	for _, chain := range d.Handler().Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				cast[tier[i].Name] = &tier[i]
			}
		}
	}
	for name, f := range map[string]health.Freeze{
		"Anthropic direct": {Length: 26*time.Minute + 12*time.Second, Reason: "429 rate_limit_error: This organization has exceeded its usage limit. It resets in 26m."},
		"Groq":             {Length: 7*time.Minute + 12*time.Second, Reason: "429 rate_limit_exceeded: Rate limit reached for kimi-k2-instruct. Please try again in 7m12s."},
	} {
		f.Since, f.By = now.Add(-f.Length/5), health.Rule
		f = d.Handler().Board().Freeze(proxy.Key(cast[name].ID), f, f.Since)
		d.Handler().Ledger().MarkFrozen(string(cast[name].ID), f.Since, f.Until)
	}
	at := now.Add(-21 * time.Second)
	const ms = time.Millisecond
	try := func(name string, from time.Duration, t stats.Try) stats.Try {
		t.Candidate, t.Name, t.Model, t.Start = string(cast[name].ID), name, cast[name].Model, at.Add(from)
		if t.Usage == (stats.Usage{}) {
			t.Usage = stats.NoUsage()
		}
		return t
	}
	usage := stats.Usage{Input: 18240, Output: 912, Cached: 11008, CacheWrite: -1, Reasoning: -1, Total: 19152}
	r := stats.Record{
		ID: "req_5d1c0e77b2a94f6c8d3e21aa", Model: "auto-strong", Client: "agents", Method: "POST", Path: "/v1/messages", Dialect: "anthropic", Stream: true, Start: at, Status: 200,
		Ending: stats.Success, Winner: 3, Usage: usage, Bytes: 48_310, Released: 9300 * ms, FirstContent: 9210 * ms, End: 13_900 * ms,
		Tries: []stats.Try{
			try("Anthropic direct", 0, stats.Try{Connected: 40 * ms, Header: 520 * ms, End: 560 * ms, Verdict: stats.Failed, Status: 529, Class: "529", Fault: "capacity", Rule: "built-in server", Action: "retry", Text: "529 overloaded_error: Overloaded", Wait: 1500 * ms}),
			try("Anthropic direct", 2060*ms, stats.Try{Connected: 2 * ms, Header: 610 * ms, End: 640 * ms, Verdict: stats.Failed, Status: 529, Class: "529", Fault: "capacity", Rule: "built-in server", Action: "next", Text: "529 overloaded_error: Overloaded"}),
			try("Bedrock relay", 2700*ms, stats.Try{Connected: 60 * ms, Header: 900 * ms, FirstByte: 920 * ms, FirstContent: 2100 * ms, End: 5120 * ms, Verdict: stats.Failed, Status: 200, Class: "stalled_stream", Fault: "server", Rule: "built-in stream", Action: "next", Text: "stalled_stream: not one byte for 3 s after two characters"}),
			try("OpenRouter", 7820*ms, stats.Try{Connected: 55 * ms, Header: 480 * ms, FirstByte: 500 * ms, FirstContent: 1390 * ms, Released: 1480 * ms, End: 6080 * ms, Verdict: stats.OK, Status: 200, Usage: usage, Bytes: 48_310}),
		},
	}
	d.Handler().Ledger().Enter(r.Model)
	d.Handler().Ledger().Add(r)
}
