package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"unicode/utf16"
	"unicode/utf8"

	"understudy/internal/config"
	"understudy/internal/daemon"
)

// checkCommand checks a configuration.
type checkCommand struct{ configFlag }

// Run prints the summary on stdout and warnings on stderr. Mistakes end it with
// exit code 2, each on a line of its own.
func (c *checkCommand) Run(std streams) error {
	path, err := c.find()
	if err != nil {
		return err
	}
	snap, _, warnings, err := daemon.Load(path)
	for _, w := range warnings {
		fmt.Fprintf(std.err, "warning: %s\n", w)
	}
	if err != nil {
		return err
	}
	return printJSON(std.out, summarise(snap.Config))
}

// summary is what check prints: everything that decides, and no secret.
type summary struct {
	Pool      *poolSummary       `json:"pool"`
	Upstreams []candidateSummary `json:"upstreams"`
	Models    []modelSummary     `json:"virtual_models"`
	Rules     []ruleSummary      `json:"rules"`
	BuiltIn   bool               `json:"built_in_rules"`
}

type poolSummary struct {
	RetryStatuses   []int   `json:"retry_statuses"`
	MaxAttempts     int     `json:"max_attempts"`
	CooldownSeconds float64 `json:"cooldown_seconds"`
}

type candidateSummary struct {
	ID               string            `json:"id,omitempty"`
	Name             string            `json:"name,omitempty"`
	Index            int               `json:"index,omitempty"`
	Tier             int               `json:"tier,omitempty"`
	BaseURL          string            `json:"base_url"`
	Model            string            `json:"model,omitempty"`
	AuthStyle        string            `json:"auth_style,omitempty"`
	Credential       string            `json:"credential,omitempty"`
	Weight           float64           `json:"weight"`
	TimeoutSeconds   float64           `json:"timeout_seconds,omitempty"`
	StaticHeaderKeys []string          `json:"static_header_keys"`
	HeaderEnv        map[string]string `json:"header_env"`
	MissingEnv       []string          `json:"missing_env"`
	Disabled         bool              `json:"disabled,omitempty"`
}

type modelSummary struct {
	Name       string             `json:"name"`
	Delivery   string             `json:"delivery"`
	Candidates []candidateSummary `json:"candidates"`
}

type ruleSummary struct {
	Name   string         `json:"name"`
	Match  map[string]any `json:"match"`
	Action string         `json:"action"`
	With   map[string]any `json:"with,omitempty"`
}

func summarise(cfg *config.Config) summary {
	s := summary{Upstreams: []candidateSummary{}, Models: []modelSummary{}, Rules: []ruleSummary{}, BuiltIn: cfg.BuiltInRules}
	if cfg.Pool != nil {
		s.Pool = &poolSummary{cfg.Pool.RetryStatuses, cfg.Pool.MaxAttempts, cfg.Pool.Cooldown.Seconds()}
	}
	for _, u := range cfg.Upstreams {
		one := summariseCandidate(u)
		one.TimeoutSeconds = u.Stall.Seconds()
		one.Index, one.Tier, one.Name = 0, 0, ""
		s.Upstreams = append(s.Upstreams, one)
	}
	for _, m := range cfg.Models {
		model := modelSummary{Name: m.Name, Delivery: m.Delivery, Candidates: []candidateSummary{}}
		for _, tier := range m.Tiers {
			for _, c := range tier {
				model.Candidates = append(model.Candidates, summariseCandidate(c))
			}
		}
		s.Models = append(s.Models, model)
	}
	for _, r := range cfg.Rules {
		s.Rules = append(s.Rules, summariseRule(r))
	}
	return s
}

func summariseCandidate(c config.Candidate) candidateSummary {
	s := candidateSummary{ID: c.ID, Name: c.Name, Index: c.Index, Tier: c.Tier, BaseURL: safeURL(c.BaseURL), Model: c.Model, AuthStyle: c.AuthStyle,
		Weight: c.Weight, StaticHeaderKeys: []string{}, HeaderEnv: map[string]string{}, MissingEnv: missingEnv(c), Disabled: !c.Enabled}
	if !c.Credential.IsNone() {
		if secret, err := c.Credential.Resolve(); err == nil {
			s.Credential = secret.Mask()
		} else {
			s.Credential = c.Credential.Source() + " (missing)"
		}
	}
	for _, h := range c.Headers {
		if h.Env != "" {
			s.HeaderEnv[h.Name] = h.Env
		}
		if !h.Value.IsZero() {
			s.StaticHeaderKeys = append(s.StaticHeaderKeys, h.Name)
		}
	}
	return s
}

// missingEnv names the variables a candidate needs that are not set now.
func missingEnv(c config.Candidate) []string {
	missing := []string{}
	if c.Credential.Missing() != "" && c.Credential.Env() != "" {
		missing = append(missing, c.Credential.Env())
	}
	for _, h := range c.Headers {
		if h.Missing() != "" {
			missing = append(missing, h.Env)
		}
	}
	return missing
}

// safeURL is a base URL without what may be secret in it.
func safeURL(u *url.URL) string {
	safe := *u
	if safe.User != nil {
		safe.User = url.User("***")
	}
	if safe.RawQuery != "" {
		query := safe.Query()
		for name := range query {
			if name != "api-version" {
				query.Set(name, "***")
			}
		}
		safe.RawQuery = query.Encode()
	}
	return safe.String()
}

func summariseRule(r config.Rule) ruleSummary {
	s := ruleSummary{Name: r.Name, Action: r.Action, Match: map[string]any{}, With: map[string]any{}}
	statuses := []any{}
	for _, status := range r.Statuses {
		statuses = append(statuses, status)
	}
	for _, class := range r.Classes {
		statuses = append(statuses, class)
	}
	if len(statuses) > 0 {
		s.Match["status"] = statuses
	}
	if r.BodySource != "" {
		s.Match["body_regex"] = r.BodySource
	}
	if len(r.Faults) > 0 {
		s.Match["fault"] = r.Faults
	}
	switch r.Action {
	case "retry":
		s.With["max_attempts"], s.With["backoff_base"], s.With["max_wait"] = r.MaxAttempts, r.BackoffBase, r.MaxWait.Seconds()
	case "freeze":
		s.With["freeze_seconds"] = r.Freeze.Seconds()
		if r.FreezeGroup > 0 {
			s.With["freeze_from_group"], s.With["freeze_unit_seconds"] = r.FreezeGroup, r.FreezeUnit.Seconds()
		}
		s.With["scope"] = r.Scope
	}
	return s
}

// printJSON writes a value for people and programs alike: what a terminal would obey is
// escaped, which JSON asks for below U+0020 alone.
func printJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeUnseen(text.Bytes()))
	return err
}

// escapeUnseen writes the characters of a JSON text that nobody sees as \u escapes. All
// but the spaces between its tokens stand in strings.
func escapeUnseen(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && unseen(r) }
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, "\\u%04x\\u%04x", high, low)
		default:
			b = fmt.Appendf(b, "\\u%04x", r)
		}
	}
	return b
}
