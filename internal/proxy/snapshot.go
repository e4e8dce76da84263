package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/held"
	"understudy/internal/route"
	"understudy/internal/rule"
	"understudy/internal/stats"
)

// A Snapshot is one configuration, compiled for serving. Nothing reachable from
// it is ever written again: a request takes it once and finishes on it.
type Snapshot struct {
	// Config is what it was made of.
	Config *config.Config
	// Routes says which chain serves a model.
	Routes *route.Table
	// Redact knows every secret of the configuration.
	Redact *Redactor

	rules   map[*route.Chain]*rule.Set
	planned map[*route.Chain][]stats.Planned
	keys    map[route.ID]*keyset      // on the board
	sharing map[health.Key][]route.ID // whom a freeze of a key stops
	models  map[string]*config.VirtualModel
	ignored map[config.IgnoredEndpoint]bool
	origins map[string]bool
	hosts   map[string]bool
	clients []client
	// websocket says that some candidate may be asked for one.
	websocket bool
}

// Compile makes a snapshot. It has no side effects; an error leaves nothing behind.
func Compile(cfg *config.Config) (*Snapshot, error) {
	if cfg == nil {
		return nil, errors.New("compile: no configuration")
	}
	s := &Snapshot{Config: cfg, Routes: route.NewTable(cfg), Redact: newRedactor(cfg),
		rules: map[*route.Chain]*rule.Set{}, models: map[string]*config.VirtualModel{},
		ignored: map[config.IgnoredEndpoint]bool{}, origins: map[string]bool{}, hosts: map[string]bool{}}
	for i := range cfg.Models {
		s.models[cfg.Models[i].Name] = &cfg.Models[i]
	}
	for _, chain := range s.Routes.Chains() {
		if chain.Pool {
			s.rules[chain] = rule.NewPool(cfg.Pool)
		} else {
			s.rules[chain] = rule.New(s.models[chain.Model].Rules, cfg.Rules)
		}
	}
	s.stand()
	for _, chain := range s.Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				s.websocket = s.websocket || s.mayUpgrade(&tier[i])
			}
		}
	}
	s.plans()
	for _, e := range cfg.Server.IgnoredErrorEndpoints {
		s.ignored[e] = true
	}
	for _, o := range cfg.Server.CORSOrigins {
		s.origins[strings.ToLower(strings.TrimRight(o, "/"))] = true
	}
	for _, h := range cfg.Server.AllowedHosts {
		s.hosts[strings.ToLower(h)] = true
	}
	for _, c := range cfg.Clients {
		known, err := newClient(c)
		if err != nil {
			return nil, fmt.Errorf("compile client %q: %w", c.Name, err)
		}
		s.clients = append(s.clients, known)
	}
	return s, nil
}

// Rules are the rules that a chain's failures are decided by.
func (s *Snapshot) Rules(chain *route.Chain) *rule.Set { return s.rules[chain] }

// heldLimit is max_held_bytes, or what follows from the memory there is.
func (s *Snapshot) heldLimit() int64 {
	if n := s.Config.Server.MaxHeldBytes; n >= 0 {
		return n
	}
	return held.Default()
}

// stickyKeys are the places a chain's session key is looked for.
func (s *Snapshot) stickyKeys(chain *route.Chain) []config.StickyKey {
	if chain.Pool && len(s.Config.Pool.StickyKeys) > 0 {
		return s.Config.Pool.StickyKeys
	}
	return s.Config.Server.StickyKeys
}

// opaque says whether bodies may pass unread: only the pool can serve, and it
// replaces no model.
func (s *Snapshot) opaque() bool {
	return s.Routes.Pool() != nil && len(s.models) == 0 && !s.replaces(s.Routes.Pool())
}

// replaces says whether some candidate of a chain asks for a model of its own.
func (s *Snapshot) replaces(chain *route.Chain) bool {
	return !chain.Pool || slices.ContainsFunc(s.Config.Upstreams, func(c config.Candidate) bool { return c.Model != "" })
}
