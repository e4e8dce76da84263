package control

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/held"
	"understudy/internal/proxy"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// How much of a text a View shows, in characters.
const (
	maxName  = 200
	maxProse = 500
)

// View shows everything as it is now.
func (c *Control) View() View { return c.builder().view() }

// A builder makes one View: everything in it is of one moment and one snapshot.
type builder struct {
	c   *Control
	s   *proxy.Snapshot
	now time.Time
	// figures are the books by identity, which several chains may share.
	figures map[route.ID]stats.Series
}

func (c *Control) builder() *builder {
	return &builder{c: c, s: c.deps.Handler.Snapshot(), now: time.Now(), figures: map[route.ID]stats.Series{}}
}

// name and prose are texts as people may see them: no secret, no control
// character, not too long.
func (b *builder) name(text string) string  { return b.s.Redact.Quote(text, maxName) }
func (b *builder) prose(text string) string { return b.s.Redact.Quote(text, maxProse) }

func (b *builder) view() View {
	h := b.c.deps.Handler
	server := &b.s.Config.Server
	v := View{
		Version: b.c.deps.Version, Time: b.now.UTC(), UptimeSeconds: int64(b.now.Sub(b.c.deps.Started) / time.Second),
		Proxy: b.c.deps.Proxy, Sequence: h.Ledger().Seq(), Config: b.config(), TargetMode: h.Target().On(), Totals: totals(h.Ledger().Totals()),
		WindowSeconds: server.MetricsWindow.Seconds(), Models: []Model{}, Freezes: b.freezes(), Archive: b.archive(), Store: b.store(),
		Held:  shownHeld(h.Held()),
		Rules: b.rules(b.s.Config.Rules), BuiltInRules: b.s.Config.BuiltInRules,
	}
	if b.c.deps.Rush != nil {
		v.Rush = b.c.deps.Rush()
	}
	v.Upgrade = b.c.upgrade()
	v.Upgrade.Problem = b.s.Redact.Quote(v.Upgrade.Problem, 4*maxProse)
	for _, chain := range b.s.Routes.Chains() {
		v.Models = append(v.Models, b.model(chain))
	}
	return v
}

func (b *builder) config() Config {
	s := b.c.deps.Status()
	out := Config{Path: b.name(s.Path), LoadedAt: s.LoadedAt.UTC(), Hash: s.Hash, Error: b.s.Redact.Quote(s.Error, 4*maxProse), NeedsRestart: []string{}, Warnings: []string{}}
	for _, key := range s.NeedsRestart {
		out.NeedsRestart = append(out.NeedsRestart, b.name(key))
	}
	for _, w := range s.Warnings {
		out.Warnings = append(out.Warnings, b.prose(w))
	}
	return out
}

func shownHeld(f held.Figures) Held {
	return Held{Bytes: f.Taken, Limit: f.Limit, Waiting: f.Waiting, Refused: f.Refused}
}

func totals(t stats.Totals) Totals {
	return Totals{
		Requests: t.Requests, Successes: t.Successes, PassedThrough: t.PassedThrough, Empty: t.Empty, Exhausted: t.Exhausted,
		Broken: t.Broken, ClientCancelled: t.ClientCancelled, Ignored: t.Ignored, Refused: t.Refused, InFlight: t.InFlight,
	}
}

func (b *builder) model(chain *route.Chain) Model {
	ledger := b.c.deps.Handler.Ledger()
	s := ledger.Model(chain.Model, b.now)
	recent := ledger.ModelWindow(chain.Model, b.s.Config.Server.MetricsWindow, b.now)
	m := Model{
		Name: b.name(chain.Model), Pool: chain.Pool, Delivery: chain.Delivery,
		RPM: s.RPM, TPM: s.TPM, TPMIncomplete: s.TPMIncomplete, InFlight: s.InFlight,
		Counts: counts(&s.Window), ConsecutiveFailures: s.Streak,
		LastError: b.prose(s.LastError), LastErrorAt: moment(s.LastErrorAt), Tokens: tokens(&s.Tokens),
		AvgLatency: milliseconds(recent.Latency.Avg), CacheHit: recent.CacheHit,
		Windows: windows(&s), History: history(&s), Candidates: []Candidate{}, Rules: b.rules(b.ownRules(chain)),
		Latencies: distribution(&s.Latencies), FirstContents: distribution(&s.FirstContents),
	}
	for _, tier := range chain.Tiers {
		for i := range tier {
			m.Candidates = append(m.Candidates, b.candidate(chain, &tier[i]))
		}
	}
	return m
}

// ownRules are the rules that stand before the common ones, or before the pool's
// table.
func (b *builder) ownRules(chain *route.Chain) []config.Rule {
	if chain.Pool {
		return b.s.Config.Pool.Rules
	}
	for i := range b.s.Config.Models {
		if m := &b.s.Config.Models[i]; m.Name == chain.Model {
			return m.Rules
		}
	}
	return nil
}

func (b *builder) candidate(chain *route.Chain, rc *route.Candidate) Candidate {
	board := b.c.deps.Handler.Board()
	s, ok := b.figures[rc.ID]
	if !ok {
		s = b.c.deps.Handler.Ledger().Candidate(string(rc.ID), b.now)
		b.figures[rc.ID] = s
	}
	key, wider := proxy.Keys(rc)
	count := board.Counters(key)
	c := Candidate{
		Index: rc.Index, Tier: rc.Tier, Name: b.name(shownName(chain.Pool, &rc.Candidate)), Model: b.name(rc.Model),
		BaseURL: b.name(config.SafeURL(rc.BaseURL)), Identity: string(rc.ID), State: StateReady, InFlight: board.InFlight(key),
		Counts: counts(&s.Window), FailureClasses: classes(s.Failed), Freezes: count.Freezes, Hedged: count.Hedges, ConsecutiveFailures: count.Streak,
		LastError: b.prose(count.LastError), LastErrorAt: moment(count.LastErrorAt), Tokens: tokens(&s.Tokens),
		RPM: s.RPM, TPM: s.TPM, Windows: windows(&s), History: history(&s), Settings: b.settings(&rc.Candidate),
	}
	limit, _, waiting := board.Crowd(key, proxy.Limits(rc), b.now)
	c.AtLimit, c.Waiting = limit.String(), waiting
	if s.LastErrorAt.After(count.LastErrorAt) {
		c.LastError, c.LastErrorAt = b.prose(s.LastError), moment(s.LastErrorAt)
	}
	switch standing, f := board.Standing(key, b.now, wider...); standing {
	case health.Frozen:
		c.State, c.SecondsLeft, c.Reason = StateFrozen, secondsLeft(f.Until, b.now), b.prose(f.Reason)
	case health.Probation:
		c.State, c.Reason = StateProbation, b.prose(f.Reason)
	}
	if !rc.Enabled {
		c.State = StateDisabled
	}
	return c
}

// shownName is what a candidate is called in its chain: in the pool that is the
// upstream's id.
func shownName(pool bool, c *config.Candidate) string {
	if pool && c.ID != "" {
		return c.ID
	}
	return c.Name
}

func (b *builder) settings(c *config.Candidate) Settings {
	s := Settings{
		Key: c.Credential.Source(), MissingEnv: []string{}, AuthStyle: c.AuthStyle, Headers: []string{}, Weight: c.Weight, Enabled: c.Enabled,
		MaxParallel: c.MaxParallel, RPMLimit: c.RPM, TPMLimit: c.TPM,
		Timeouts: Timeouts{
			Connect: c.Connect.Seconds(), Stall: c.Stall.Seconds(), Stream: c.Stream.Seconds(),
			Nonstream: c.Nonstream.Seconds(), Content: c.Content.Seconds(),
		},
		Overrides: slices.Sorted(maps.Keys(c.Overrides)),
	}
	if c.Credential.IsLiteral() {
		// A literal is in memory; it cannot be missing.
		secret, _ := c.Credential.Resolve()
		s.Key = secret.Mask()
	}
	if s.Overrides == nil {
		s.Overrides = []string{}
	}
	for _, env := range c.MissingEnv() {
		s.MissingEnv = append(s.MissingEnv, b.name(env))
	}
	for _, h := range c.Headers {
		s.Headers = append(s.Headers, b.name(h.Name))
	}
	s.Key = b.name(s.Key)
	return s
}

// freezes lists the frozen candidates, one entry per chain that holds the identity,
// in the order of the chains. What no chain holds any more is nobody's concern.
func (b *builder) freezes() []Freeze {
	board := b.c.deps.Handler.Board()
	list := []Freeze{}
	for _, chain := range b.s.Routes.Chains() {
		seen := map[route.ID]bool{}
		for _, tier := range chain.Tiers {
			for i := range tier {
				c := &tier[i]
				own, wider := proxy.Keys(c)
				standing, f := board.Standing(own, b.now, wider...)
				if standing != health.Frozen || seen[c.ID] {
					continue
				}
				seen[c.ID] = true
				list = append(list, Freeze{
					Model: b.name(chain.Model), Index: c.Index, Candidate: b.name(shownName(chain.Pool, &c.Candidate)),
					RealModel: b.name(c.Model), Identity: string(c.ID), Reason: b.prose(f.Reason), By: f.By.String(), From: b.name(f.From),
					Since: f.Since.UTC(), Until: f.Until.UTC(), SecondsLeft: secondsLeft(f.Until, b.now),
				})
			}
		}
	}
	return list
}

func (b *builder) rules(rules []config.Rule) []Rule {
	list := []Rule{}
	for i := range rules {
		r := &rules[i]
		out := Rule{Index: i + 1, Name: b.name(r.Name), Status: []string{}, Body: b.prose(r.BodySource), Fault: slices.Clone(r.Faults), Action: r.Action}
		for _, status := range r.Statuses {
			out.Status = append(out.Status, strconv.Itoa(status))
		}
		out.Status = append(out.Status, r.Classes...)
		if out.Fault == nil {
			out.Fault = []string{}
		}
		switch r.Action {
		case "retry":
			out.MaxAttempts, out.BackoffBase, out.MaxWaitSeconds = r.MaxAttempts, r.BackoffBase, r.MaxWait.Seconds()
		case "freeze":
			out.FreezeSeconds, out.Scope = r.Freeze.Seconds(), r.Scope
			if r.FreezeGroup > 0 {
				out.FreezeGroup, out.FreezeUnitSeconds = r.FreezeGroup, r.FreezeUnit.Seconds()
			}
		}
		list = append(list, out)
	}
	return list
}

// secondsLeft rounds up: what still lasts is never shown as over.
func secondsLeft(until, now time.Time) int64 {
	return int64(math.Ceil(max(until.Sub(now), 0).Seconds()))
}

// moment is nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// safeURL is a URL as it was typed, with passwords and keys taken out.
func (b *builder) safeURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "***"
	}
	return b.name(config.SafeURL(u))
}
