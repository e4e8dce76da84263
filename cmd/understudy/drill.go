package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"understudy/internal/config"
	"understudy/internal/daemon"
	"understudy/internal/drill"
)

// drillCommand puts a configuration through faults: the real proxy, with fake
// upstreams in place of the file's. It needs no key and no network.
type drillCommand struct {
	configFlag
	Model    []string `placeholder:"NAME" complete:"chains" help:"Drill only this virtual model (* is the pool); may be repeated."`
	Only     []string `placeholder:"ID" complete:"scenarios" help:"Play only this scenario, by its id or name; may be repeated."`
	Delivery string   `enum:",stream,complete,window" default:"" placeholder:"HOW" help:"Deliver stream, complete or window, whatever the file says."`
	Dialect  string   `enum:",chat,responses,messages,gemini,ollama" default:"" placeholder:"API" help:"Ask in this dialect: chat, responses, messages, gemini or ollama. Without it the first candidate's auth_style decides."`
	Fast     bool     `default:"true" negatable:"" help:"Divide all clocks, so that it ends in under two minutes (the default). --no-fast leaves them as the file has them and takes as long as they do."`
	JSON     bool     `name:"json" xor:"form" help:"Print JSON."`
	HTML     bool     `name:"html" xor:"form" help:"Print a web page, to be kept in a file."`
	List     bool     `help:"List the scenarios and play none."`
}

var errNoSuchScenario = errors.New("no such scenario")

// The times of a drill. Fast is bounded as a whole; else a client waits as long as
// the file's own limits could make it.
const (
	fastPatience = 50 * time.Second
	fastTime     = 115 * time.Second
	slowPatience = 30 * time.Minute
	slowTime     = 6 * time.Hour
	atOnce       = 48
)

// Run plays the scenarios and prints the scorecard. Exit code 1 says that something
// failed.
func (c *drillCommand) Run(std streams) error {
	if c.List {
		return c.list(std.out)
	}
	scenarios, err := c.scenarios()
	if err != nil {
		return err
	}
	path, err := c.find()
	if err != nil {
		return err
	}
	snap, _, _, err := daemon.Load(path)
	if err != nil {
		return err
	}
	parts, err := c.parts(snap.Config)
	if err != nil {
		return err
	}
	limit := fastTime
	if !c.Fast {
		limit = slowTime
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, enough := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not over within %s", limit))
	defer enough()
	card := drill.Scorecard{Config: path, Version: version(), Fast: c.Fast}
	show, clear := progress(std.err, len(parts)*len(scenarios))
	err = card.Run(ctx, parts, scenarios, atOnce, show)
	clear()
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	switch {
	case c.JSON:
		err = printJSON(std.out, card)
	case c.HTML:
		err = card.HTML(std.out)
	default:
		err = card.Text(std.out, newPaint(std.out).code)
	}
	if err == nil && card.Failed() {
		return quiet{exitFailed}
	}
	return err
}

// list prints the catalogue.
func (c *drillCommand) list(w io.Writer) error {
	for _, s := range drill.Scenarios() {
		if _, err := fmt.Fprintf(w, "%s  %-20s  the first upstream %s\n", s.ID, s.Name, s.Fault); err != nil {
			return err
		}
	}
	return nil
}

// scenarios are those that were asked for, all without --only.
func (c *drillCommand) scenarios() ([]drill.Scenario, error) {
	if len(c.Only) == 0 {
		return drill.Scenarios(), nil
	}
	var chosen []drill.Scenario
	for _, name := range c.Only {
		i := slices.IndexFunc(drill.Scenarios(), func(s drill.Scenario) bool { return strings.EqualFold(s.ID, name) || s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w %q: `understudy drill --list` shows all", errNoSuchScenario, name)
		}
		chosen = append(chosen, drill.Scenarios()[i])
	}
	return chosen, nil
}

// parts are the chains to drill.
func (c *drillCommand) parts(cfg *config.Config) ([]drill.Part, error) {
	var parts []drill.Part
	var names []string
	all := standIns(cfg)
	for _, s := range all {
		names = append(names, s.name())
	}
	for _, name := range c.Model {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%w %q: name one of %q with --model", errNoSuchModel, name, names)
		}
	}
	for _, s := range all {
		if len(c.Model) > 0 && !slices.Contains(c.Model, s.name()) {
			continue
		}
		if c.Delivery != "" && s.model != nil {
			model := *s.model
			model.Delivery = c.Delivery
			s.model = &model
		}
		parts = append(parts, c.part(s))
	}
	return parts, nil
}

// part is one chain, ready to be drilled.
func (c *drillCommand) part(s *standIn) drill.Part {
	card := drill.Card{Model: s.name(), Delivery: s.delivery(), Factor: 1, Candidates: []string{}}
	if len(s.cast) == 0 {
		card.Skipped = "every candidate is disabled"
		return drill.Part{Card: card}
	}
	chain := drill.Chain{Model: s.name(), Patience: fastPatience}
	for _, member := range s.cast {
		card.Candidates = append(card.Candidates, member.Name)
		chain.Candidates = append(chain.Candidates, drill.Candidate{Name: member.Name, Model: member.Model})
	}
	if s.model == nil {
		chain.Model = "drill-model" // any that is no virtual model
	}
	card.Dialect = drill.Dialect(cmp.Or(c.Dialect, dialectOf(s.cast[0])))
	if c.Fast {
		card.Factor = s.factor()
	} else {
		server := s.cfg.Server
		chain.Patience = min(slowPatience, server.ChainTimeout+server.RelayStallTimeout+time.Minute)
		if server.ChainTimeout == 0 {
			chain.Patience = slowPatience
		}
	}
	chain.Dialect, chain.Factor = card.Dialect, card.Factor
	chain.Open = func(urls []string, factor float64) (*drill.Proxy, error) { return open(s, urls, factor) }
	return drill.Part{Card: card, Chain: chain}
}

// dialectOf guesses what a candidate's clients speak from how it takes its key.
func dialectOf(c config.Candidate) string {
	switch c.AuthStyle {
	case "x-api-key":
		return string(drill.Messages)
	case "x-goog-api-key":
		return string(drill.Gemini)
	}
	return string(drill.Chat)
}

// open raises the real proxy for one scenario.
func open(s *standIn, urls []string, factor float64) (*drill.Proxy, error) {
	cfg, err := s.config(urls, factor)
	if err != nil {
		return nil, err
	}
	stage, err := daemon.Raise(cfg)
	if err != nil {
		return nil, err
	}
	return &drill.Proxy{Addr: stage.Addr(), Booked: func(ctx context.Context) drill.Booking { return booked(ctx, stage) },
		Close: func() { _ = stage.Close() }}, nil // nothing is lost with it
}

// booked is what the proxy's books say of the last request.
func booked(ctx context.Context, stage *daemon.Stage) drill.Booking {
	r, ok := stage.Latest(ctx)
	if !ok {
		return drill.Booking{Input: -1, Output: -1, Steps: []drill.Step{}}
	}
	b := drill.Booking{Ending: r.Ending.String(), Input: r.Usage.Input, Output: r.Usage.Output, Steps: []drill.Step{}}
	if r.Winner >= 0 && r.Winner < len(r.Tries) {
		b.Winner = r.Tries[r.Winner].Name
	}
	for _, t := range r.Tries {
		b.Steps = append(b.Steps, drill.Step{Candidate: t.Name, Status: t.Status, Class: t.Class, Fault: t.Fault, Rule: t.Rule, Action: t.Action,
			Text: t.Text, Seconds: t.End.Seconds(), Waited: t.Wait.Seconds(), Frozen: t.Froze.Seconds()})
	}
	for _, skip := range r.Skips {
		b.Skipped = append(b.Skipped, skip.Name+": "+skip.Reason)
	}
	return b
}

// progress tells on a terminal how far a drill is, one line that is written over;
// elsewhere it says nothing. clear takes the line away.
func progress(w io.Writer, total int) (show func(drill.Card, drill.Result), clear func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	p, done := newPaint(w), 0
	show = func(c drill.Card, r drill.Result) {
		done++
		where := fmt.Sprintf("%3d of %d", done, total)
		if done > total {
			where = "once more"
		}
		fmt.Fprintf(w, "\r\x1b[K%s  %s %s: %s", p.dim(where), r.ID, c.Model, r.Title)
	}
	return show, func() { fmt.Fprint(w, "\r\x1b[K") }
}
