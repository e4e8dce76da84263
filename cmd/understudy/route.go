package main

import (
	"errors"
	"fmt"
	"math"

	"understudy/internal/config"
	"understudy/internal/daemon"
	"understudy/internal/route"
)

// routeCommand previews a plan. It calls nobody and needs no secret.
type routeCommand struct {
	configFlag
	SessionID string `placeholder:"KEY" help:"Session key; without one the least loaded comes first."`
	Model     string `placeholder:"NAME" help:"Virtual model; without one the pool."`
}

var errNoSuchModel = errors.New("no such virtual model")

// preview is what route prints.
type preview struct {
	SessionID  string        `json:"session_id"`
	Model      string        `json:"model,omitempty"`
	Strategy   string        `json:"strategy"`
	UpstreamID string        `json:"upstream_id"`
	BaseURL    string        `json:"base_url"`
	Order      []string      `json:"order"`
	MissingEnv []string      `json:"missing_env"`
	Candidates []previewStep `json:"candidates"`
}

type previewStep struct {
	ID         string   `json:"id"`
	BaseURL    string   `json:"base_url"`
	Model      string   `json:"model,omitempty"`
	Tier       int      `json:"tier"`
	Score      *float64 `json:"score,omitempty"`
	MissingEnv []string `json:"missing_env"`
}

// Run prints the order in which a session's upstreams would be tried.
func (c *routeCommand) Run(std streams) error {
	path, err := c.find()
	if err != nil {
		return err
	}
	snap, _, warnings, err := daemon.Load(path)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(std.err, "warning: %s\n", w)
	}
	chain := snap.Routes.Pool()
	if c.Model != "" || chain == nil {
		name := c.Model
		if name == "" && len(snap.Config.Models) == 1 {
			name = snap.Config.Models[0].Name
		}
		if chain, err = snap.Routes.Route(name); err != nil {
			return fmt.Errorf("%w %q: name one of %q with --model", errNoSuchModel, name, snap.Routes.Names())
		}
	}
	plan := chain.Plan(c.SessionID, func(route.ID) int { return 0 }, func(route.ID) (string, bool) { return "", false })
	out := preview{SessionID: c.SessionID, Model: chain.Model, Strategy: plan.Strategy, Order: []string{}, MissingEnv: []string{}, Candidates: []previewStep{}}
	for _, step := range plan.Steps {
		one := previewStep{ID: shownID(step.Candidate.Candidate), BaseURL: safeURL(step.Candidate.BaseURL), Model: step.Candidate.Model, Tier: step.Tier, MissingEnv: missingEnv(step.Candidate.Candidate)}
		if step.Score > 0 {
			score := min(step.Score, math.MaxFloat64) // JSON knows no infinity
			one.Score = &score
		}
		out.Candidates = append(out.Candidates, one)
		out.Order = append(out.Order, one.ID)
	}
	if len(out.Candidates) > 0 {
		first := out.Candidates[0]
		out.UpstreamID, out.BaseURL, out.MissingEnv = first.ID, first.BaseURL, first.MissingEnv
	}
	if err := printJSON(std.out, out); err != nil {
		return err
	}
	if len(out.Candidates) == 0 {
		fmt.Fprintln(std.err, "understudy: nobody could serve this: every candidate is disabled")
		return quiet{exitFailed}
	}
	return nil
}

// shownID names a candidate: an upstream by its id, others by their name.
func shownID(c config.Candidate) string {
	if c.ID != "" {
		return c.ID
	}
	return c.Name
}
