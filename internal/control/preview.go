package control

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"understudy/internal/config"
	"understudy/internal/proxy"
	"understudy/internal/route"
)

// Preview is the plan that a session's request would get. Nobody is called for it.
type Preview struct {
	SessionID string `json:"session_id"`
	Model     string `json:"model,omitempty"`
	Strategy  string `json:"strategy"`
	// UpstreamID and BaseURL are the first choice's, "" where nobody is left.
	UpstreamID string `json:"upstream_id"`
	BaseURL    string `json:"base_url"`
	// Order is everybody who is not switched off, frozen ones in their place.
	Order      []string      `json:"order"`
	MissingEnv []string      `json:"missing_env"`
	Candidates []PreviewStep `json:"candidates"`
	// Live says that the health of a running process is in it; ConfigHash and
	// ConfigPath are then what that process serves.
	Live       bool   `json:"live"`
	ConfigHash string `json:"config_hash,omitempty"`
	ConfigPath string `json:"config_path,omitempty"`
}

// PreviewStep is one candidate of a Preview, in its order.
type PreviewStep struct {
	ID         string   `json:"id"`
	BaseURL    string   `json:"base_url"`
	Model      string   `json:"model,omitempty"`
	Tier       int      `json:"tier"`
	Score      *float64 `json:"score,omitempty"`
	MissingEnv []string `json:"missing_env"`
	// The rest is in a live one only: ready, frozen or probation; for how long and
	// why; and the requests under way.
	State       string `json:"state,omitempty"`
	SecondsLeft int64  `json:"seconds_left,omitempty"`
	Reason      string `json:"reason,omitempty"`
	InFlight    *int   `json:"in_flight,omitempty"`
}

// ErrNoModel is wrapped where no chain has the name that was asked for.
var ErrNoModel = errors.New("no such virtual model")

// Route is the plan that a session's request for a model would get now. model "" is
// the pool, or the only virtual model.
func (c *Control) Route(model, session string) (Preview, error) {
	b := c.builder()
	p, err := b.preview(model, session)
	if err != nil {
		return p, err
	}
	status := c.deps.Status()
	p.Live, p.ConfigHash, p.ConfigPath = true, status.Hash, b.name(status.Path)
	return p, nil
}

// PreviewOf is the plan by a configuration alone, as if everybody were well and idle.
func PreviewOf(s *proxy.Snapshot, model, session string) (Preview, error) {
	b := &builder{s: s}
	return b.preview(model, session)
}

// preview makes a plan, with the health of the running process where there is one.
func (b *builder) preview(model, session string) (Preview, error) {
	chain, err := b.previewed(model)
	if err != nil {
		return Preview{}, err
	}
	load := func(id route.ID) int { return 0 }
	if b.c != nil {
		load = func(id route.ID) int { return b.c.deps.Handler.Board().InFlight(proxy.Key(id)) }
	}
	plan := chain.Plan(session, load, nil)
	out := Preview{SessionID: session, Model: b.name(chain.Model), Strategy: plan.Strategy, Order: []string{}, MissingEnv: []string{}, Candidates: []PreviewStep{}}
	for _, step := range plan.Steps { // without those that are switched off
		one := PreviewStep{
			ID: b.name(shownID(&step.Candidate.Candidate)), BaseURL: b.name(config.SafeURL(step.BaseURL)), Model: b.name(step.Candidate.Model), Tier: step.Tier, MissingEnv: []string{},
		}
		for _, env := range step.MissingEnv() {
			one.MissingEnv = append(one.MissingEnv, b.name(env))
		}
		if step.Score > 0 {
			one.Score = new(min(step.Score, math.MaxFloat64)) // JSON knows no infinity
		}
		frozen := false
		if b.c != nil {
			c := b.candidate(chain, step.Candidate)
			one.State, one.SecondsLeft, one.Reason, one.InFlight = c.State, c.SecondsLeft, c.Reason, new(c.InFlight)
			frozen = c.State == StateFrozen
		}
		out.Candidates = append(out.Candidates, one)
		out.Order = append(out.Order, one.ID)
		if out.UpstreamID == "" && !frozen {
			out.UpstreamID, out.BaseURL, out.MissingEnv = one.ID, one.BaseURL, one.MissingEnv
		}
	}
	return out, nil
}

// previewed is the chain that a model is served by.
func (b *builder) previewed(model string) (*route.Chain, error) {
	routes := b.s.Routes
	if model == "" && routes.Pool() == nil && len(routes.Names()) == 1 {
		model = routes.Names()[0]
	}
	if model == "" && routes.Pool() != nil {
		return routes.Pool(), nil
	}
	chain, err := routes.Route(model)
	if err != nil {
		return nil, fmt.Errorf("%w %q: name one of %q", ErrNoModel, b.name(model), routes.Names())
	}
	return chain, nil
}

// shownID names a candidate: an upstream by its id, others by their name.
func shownID(c *config.Candidate) string { return cmp.Or(c.ID, c.Name) }
