package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"understudy/internal/daemon"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// A mishap is a stretch of the past, in hours ago, in which a candidate failed.
type mishap struct {
	candidate   string
	from, until float64
	share       float64 // of its attempts
	status      int
	class       string
	fault, text string
	frozen      bool // for the rest of the stretch, after the first few
}

var mishaps = []mishap{
	{"Anthropic direct", 19.5, 18.2, 0.5, 529, "529", "capacity", "529 overloaded_error: Overloaded", false},
	{"Anthropic direct", 9.1, 6.9, 1, 429, "429", "quota", "429 rate_limit_error: This organization has exceeded its usage limit. It resets in 2h12m.", true},
	{"Anthropic direct", 1.6, 1.1, 0.4, 200, "bad_stream", "server", "stream ended after 2 characters without a terminal event", false},
	{"Bedrock relay", 8.2, 7.9, 0.3, 503, "503", "server", "503 upstream connect error or disconnect/reset before headers", false},
	{"Groq", 15, 14.4, 0.6, 429, "429", "rate", "429 Rate limit reached for model. Please try again in 7m12s.", false},
	{"Groq", 4.2, 3.1, 1, 0, "network", "", "dial tcp 203.0.113.7:443: connect: connection refused", true},
	{"Cerebras", 12.1, 11.7, 0.7, 200, "bad_stream", "server", "HTML where JSON was due", false},
	{"Workstation", 24, 16, 1, 0, "network", "", "dial tcp 203.0.113.20:11434: connect: connection refused", true},
	{"Workstation", 2.4, 0, 1, 0, "network", "", "dial tcp 203.0.113.20:11434: connect: connection refused", true},
	{"primary", 6.1, 5.2, 0.8, 503, "503", "server", "503 no healthy upstream", true},
}

// past books a day of requests that nobody made, oldest first, as the proxy would.
func past(ctx context.Context, d *daemon.Daemon) error {
	ledger := d.Handler().Ledger()
	now := time.Now()
	frozen := map[string]time.Time{}
	for minutes := 24 * 60.0; minutes > 0.2; minutes -= 0.5 {
		at := now.Add(-time.Duration(minutes * float64(time.Minute)))
		for _, chain := range d.Handler().Snapshot().Routes.Chains() {
			// Days have mornings and nights.
			busy := 0.35 + 0.65*math.Pow(math.Sin(math.Pi*(24-minutes/60)/24), 2)
			if chain.Model == "local-draft" {
				busy *= 0.25
			}
			for n := busy * (1 + 2.4*chance()); n > 0.5; n-- {
				r := imagine(chain, at, minutes/60, frozen, ledger)
				ledger.Enter(r.Model)
				ledger.Add(r)
			}
		}
	}
	_, err := d.Control("").Run(ctx, "stage", `freeze add local-draft Workstation 5400 "switched off for the night"`)
	return err
}

// imagine makes one request of the past: attempts along the chain until one is well.
func imagine(chain *route.Chain, at time.Time, hours float64, frozen map[string]time.Time, ledger *stats.Ledger) stats.Record {
	r := stats.Record{
		ID: fmt.Sprintf("%08x%08x", uint32(chance()*math.MaxUint32), uint32(chance()*math.MaxUint32)), Model: chain.Model, Method: "POST", Path: "/v1/chat/completions",
		Dialect: "openai", Stream: chance() < 0.8, Start: at, Winner: -1, Usage: stats.NoUsage(), Ending: stats.Exhausted, Status: 502,
	}
	for _, tier := range chain.Tiers {
		first := int(chance() * float64(len(tier)))
		for i := range tier {
			c := &tier[(first+i)%len(tier)]
			name := c.Name
			if until, is := frozen[name]; is && at.Before(until) {
				r.Skips = append(r.Skips, stats.Skip{Candidate: string(c.ID), Name: name, Reason: "frozen", Left: until.Sub(at)})
				continue
			}
			t := attempt(c, at.Add(r.End), hours, frozen, ledger)
			r.Tries = append(r.Tries, t)
			r.End += t.End + t.Wait
			if t.Verdict == stats.OK {
				r.Winner, r.Usage, r.Ending, r.Status, r.Bytes = len(r.Tries)-1, t.Usage, stats.Success, 200, t.Bytes
				r.FirstContent, r.Released = r.End-t.End+t.FirstContent, r.End-t.End+t.Released
				return r
			}
		}
	}
	return r
}

func attempt(c *route.Candidate, at time.Time, hours float64, frozen map[string]time.Time, ledger *stats.Ledger) stats.Try {
	ms := func(from, spread float64) time.Duration {
		return time.Duration((from + spread*chance()*chance()) * float64(time.Millisecond))
	}
	t := stats.Try{Candidate: string(c.ID), Name: c.Name, Model: c.Model, Start: at, Connected: ms(2, 30), Usage: stats.NoUsage()}
	t.Header = t.Connected + ms(80, 500)
	for _, m := range mishaps {
		if m.candidate != c.Name || hours > m.from || hours < m.until || chance() > m.share {
			continue
		}
		t.Verdict, t.Status, t.Class, t.Fault, t.Text, t.Rule, t.Action, t.End = stats.Failed, m.status, m.class, m.fault, m.text, "built-in "+m.fault, "next", t.Header
		if m.status == 0 {
			t.Connected, t.Header, t.Rule, t.End = 0, 0, "built-in network", ms(3, 40)
		}
		if m.frozen {
			until := at.Add(time.Duration((hours - m.until) * float64(time.Hour)))
			frozen[c.Name] = until
			t.Action, t.Froze = "freeze", until.Sub(at)
			ledger.MarkFrozen(string(c.ID), at, until)
		}
		return t
	}
	t.Verdict, t.Status = stats.OK, 200
	t.FirstByte = t.Header + ms(5, 30)
	t.FirstContent = t.FirstByte + ms(150, 2400)
	t.Released = t.FirstContent + ms(20, 200)
	t.End = t.Released + ms(600, 9000)
	in := int64(800 + 12000*chance())
	t.Usage = stats.Usage{Input: in, Output: int64(80 + 900*chance()), Cached: int64(float64(in) * 0.8 * chance()), CacheWrite: -1, Reasoning: -1}
	if c.Model == "openai/gpt-5.1" || c.Model == "gemma3" {
		t.Usage.Cached = -1
	}
	t.Usage.Total = t.Usage.Input + t.Usage.Output
	t.Bytes = t.Usage.Output * 180
	return t
}
