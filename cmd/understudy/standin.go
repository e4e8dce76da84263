package main

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"understudy/internal/config"
	"understudy/internal/route"
)

// A standIn is one chain of a configuration, to be served with other upstreams in
// place of the real ones. Everything else stays as the file has it: rules, limits,
// delivery, tiers, weights.
type standIn struct {
	cfg   *config.Config
	model *config.VirtualModel // nil = the pool
	// cast are the candidates that may be called, each identity once.
	cast []config.Candidate
	role map[route.ID]int // their places in cast
}

// standIns are the chains of a configuration, in its order, the pool last.
func standIns(cfg *config.Config) (all []*standIn) {
	for i := range cfg.Models {
		all = append(all, newStandIn(cfg, &cfg.Models[i]))
	}
	if cfg.Pool != nil {
		all = append(all, newStandIn(cfg, nil))
	}
	return all
}

func newStandIn(cfg *config.Config, model *config.VirtualModel) *standIn {
	s := &standIn{cfg: cfg, model: model, role: map[route.ID]int{}}
	for _, tier := range s.tiers() {
		for _, c := range tier {
			if _, known := s.role[route.Identity(c)]; c.Enabled && !known {
				s.role[route.Identity(c)] = len(s.cast)
				s.cast = append(s.cast, c)
			}
		}
	}
	return s
}

func (s *standIn) tiers() [][]config.Candidate {
	if s.model != nil {
		return s.model.Tiers
	}
	return [][]config.Candidate{s.cfg.Upstreams}
}

// name is the virtual model's, or the pool's.
func (s *standIn) name() string {
	if s.model != nil {
		return s.model.Name
	}
	return route.PoolName
}

// delivery is how the chain's answers are released.
func (s *standIn) delivery() string {
	if s.model != nil {
		return s.model.Delivery
	}
	return "stream"
}

// The limits of a drill whose clocks are divided: no clock that decides about an
// answer gets shorter than least, and none that has to run out longer than most.
const (
	maxFactor = 30.0
	least     = 1500 * time.Millisecond
	most      = 20 * time.Second
)

// factor is what the chain's clocks are divided by: as much as leaves the shortest
// one long enough to tell a fault from a busy machine.
func (s *standIn) factor() float64 {
	shortest := time.Duration(math.MaxInt64)
	note := func(d time.Duration) {
		if d > 0 {
			shortest = min(shortest, d)
		}
	}
	for _, c := range s.cast {
		note(c.Stall)
		note(c.Content)
		note(c.Stream)
		note(c.Nonstream)
	}
	note(s.cfg.Server.RelayStallTimeout)
	if s.model != nil && s.model.Hedge != nil {
		note(s.model.Hedge.After)
	}
	return min(max(shortest.Seconds()/least.Seconds(), 1), maxFactor)
}

// pace divides times.
type pace float64

// of divides a time.
func (p pace) of(d time.Duration) time.Duration { return time.Duration(float64(d) / float64(p)) }

// limit divides a time that has to run out before anything happens.
func (p pace) limit(d time.Duration) time.Duration {
	if p > 1 {
		return min(p.of(d), most)
	}
	return d
}

// config is the configuration that serves the chain with its candidates at the given
// base URLs, in the order of the cast, and its clocks divided.
func (s *standIn) config(urls []string, factor float64) (*config.Config, error) {
	p := pace(factor)
	cfg := &config.Config{Server: s.server(p), Rules: s.rules(s.cfg.Rules, p), BuiltInRules: s.cfg.BuiltInRules, Source: s.cfg.Source}
	keys := map[string]string{}
	var tiers [][]config.Candidate
	for _, tier := range s.tiers() {
		var members []config.Candidate
		for _, c := range tier {
			if c.Enabled {
				stand, err := s.replace(c, urls[s.role[route.Identity(c)]], keys, p)
				if err != nil {
					return nil, err
				}
				members = append(members, stand)
			}
		}
		if len(members) > 0 {
			tiers = append(tiers, members)
		}
	}
	if s.model == nil {
		pool := *s.cfg.Pool
		pool.Cooldown, pool.AffinityTTL, pool.Rules = p.of(pool.Cooldown), p.of(pool.AffinityTTL), s.rules(pool.Rules, p)
		cfg.Pool, cfg.Upstreams = &pool, tiers[0]
		return cfg, nil
	}
	model := *s.model
	model.Tiers, model.Rules = tiers, s.rules(model.Rules, p)
	model.Hold, model.AffinityTTL = p.limit(model.Hold), p.of(model.AffinityTTL)
	model.MinCharsPerSecond *= factor
	if model.Hedge != nil {
		hedge := *model.Hedge
		hedge.After = p.of(hedge.After)
		model.Hedge = &hedge
	}
	cfg.Models = []config.VirtualModel{model}
	return cfg, nil
}

// server is the server section with its clocks divided, without what is about who
// may call: a drill calls itself, over loopback.
func (s *standIn) server(p pace) config.Server {
	server := s.cfg.Server
	for _, d := range []*time.Duration{&server.StallTimeout, &server.StreamTimeout, &server.NonstreamTimeout, &server.ConnectTimeout,
		&server.ContentTimeout, &server.RelayStallTimeout, &server.WriteIdleTimeout, &server.ReadIdleTimeout, &server.QueueTimeout} {
		*d = p.limit(*d)
	}
	for _, d := range []*time.Duration{&server.AutoHedge, &server.FreezeMax} {
		*d = p.of(*d)
	}
	if server.ChainTimeout = p.of(server.ChainTimeout); p > 1 {
		server.ChainTimeout = min(server.ChainTimeout, 2*most)
	}
	server.TLSCert, server.TLSKey, server.AdminToken = "", "", config.Secret{}
	server.CORSOrigins, server.AllowedHosts, server.DefaultModel = nil, nil, ""
	return server
}

// replace puts a stand-in in a candidate's place: the base URL's path and the way of
// authentication stay, the host and every secret go. Candidates that share a key
// share their stand-in's, since freezes may be about keys. Limits of our own are
// lifted: a drill asks faster than people do.
func (s *standIn) replace(c config.Candidate, base string, keys map[string]string, p pace) (config.Candidate, error) {
	u, err := url.Parse(base)
	if err != nil {
		return c, err
	}
	u.Path, u.RawPath = c.BaseURL.Path, c.BaseURL.RawPath
	c.BaseURL, c.Proxy = u, "none"
	key := func(source string) string {
		if keys[source] == "" {
			keys[source] = "drill-key-" + strconv.Itoa(len(keys)+1)
		}
		return keys[source]
	}
	if !c.Credential.IsNone() {
		source := c.Credential.Source()
		if secret, err := c.Credential.Resolve(); err == nil {
			digest := secret.Digest()
			source = string(digest[:])
		}
		c.Credential = config.LiteralCredential(key(source))
	}
	c.Headers = slices.Clone(c.Headers)
	for i, h := range c.Headers {
		source := "header " + h.Name + " " + h.Env
		if h.Env == "" {
			digest := h.Value.Digest()
			source += string(digest[:])
		}
		c.Headers[i] = config.HeaderValue{Name: h.Name, Value: config.NewSecret(key(source))}
	}
	for _, d := range []*time.Duration{&c.Connect, &c.Stall, &c.Stream, &c.Nonstream, &c.Content} {
		*d = p.limit(*d)
	}
	c.Overrides = maps.Clone(c.Overrides)
	for name, d := range c.Overrides {
		c.Overrides[name] = p.limit(d)
	}
	c.RPM, c.TPM = 0, 0
	return c, nil
}

// rules are rules with their clocks divided. What a retry waits is a power of
// seconds, which cannot be divided: it waits the mean of its waits each time.
func (s *standIn) rules(rules []config.Rule, p pace) []config.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		r := &rules[i]
		r.Freeze, r.FreezeUnit = p.of(r.Freeze), p.of(r.FreezeUnit)
		if r.Action == "retry" && p > 1 {
			r.MaxWait, r.BackoffBase = p.of(meanWait(*r)), math.MaxFloat64
		}
	}
	return rules
}

// meanWait is the mean of what a rule waits between its attempts.
func meanWait(r config.Rule) time.Duration {
	sum, waits := 0.0, max(r.MaxAttempts-1, 1)
	for n := 1; n <= waits; n++ {
		sum += min(math.Pow(r.BackoffBase, float64(n)), r.MaxWait.Seconds())
	}
	return time.Duration(sum / float64(waits) * float64(time.Second))
}
