package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"understudy/internal/control"
	"understudy/internal/daemon"
	"understudy/internal/proxy"
)

// rulesCommand tries rules.
type rulesCommand struct {
	Test   rulesTestCommand   `cmd:"" help:"Say which rule a failure matches, and why the ones above it do not."`
	Replay rulesReplayCommand `cmd:"" help:"Put the failures of the request log to changed rules, and show every decision that would differ."`
}

// withFlag names the configuration whose rules are asked.
type withFlag struct {
	With string `placeholder:"FILE" complete:"configurations" help:"Ask the rules of this configuration instead."`
}

// load compiles the configuration whose rules are asked. What keys it misses does
// not matter here, so that its warnings are not shown.
func (w *withFlag) load(f *adminFlag) (*proxy.Snapshot, error) {
	path := w.With
	if path == "" {
		var err error
		if path, err = f.find(); err != nil {
			return nil, err
		}
	}
	snap, _, _, err := daemon.Load(path)
	return snap, err
}

// rulesTestCommand puts one failure to the rules.
type rulesTestCommand struct {
	adminFlag
	withFlag
	Request  string   `placeholder:"ID" complete:"requests" help:"The failures of this request, from the request log."`
	Attempt  int      `placeholder:"N" help:"With --request: only this attempt of it, counted from 1."`
	Status   int      `placeholder:"N" help:"An answer with this status; 200 with a body that turns out bad is judged as the proxy would."`
	Class    string   `placeholder:"NAME" complete:"classes" help:"No answer: network, timeout, stalled_stream or bad_stream."`
	Body     string   `placeholder:"TEXT" help:"The answer's body; @file reads it from a file, @- from standard input."`
	Header   []string `placeholder:"NAME: VALUE" sep:"none" help:"A header of the answer, such as 'Retry-After: 30'; may be repeated."`
	Text     string   `placeholder:"TEXT" help:"With --class: our own account of the failure, which body_regex searches too."`
	Model    string   `placeholder:"NAME" complete:"chains" help:"The virtual model whose rules are asked, * for the pool."`
	Path     string   `default:"/v1/chat/completions" help:"The endpoint that was asked."`
	Stream   bool     `help:"A stream was asked for."`
	Attempts int      `default:"1" help:"How many attempts the request has made at the candidate by now."`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// Run prints what every rule says, down to the one that decides.
func (c *rulesTestCommand) Run(std streams) error {
	given := 0
	for _, is := range []bool{c.Request != "", c.Status != 0, c.Class != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		fmt.Fprintln(std.err, "understudy: which failure? give one of --request, --status or --class")
		return quiet{exitUsage}
	}
	snap, err := c.load(&c.adminFlag)
	if err != nil {
		return err
	}
	if c.Request != "" {
		return c.again(std, snap)
	}
	body, err := c.body(std)
	if err != nil {
		return err
	}
	header := map[string][]string{}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			fmt.Fprintf(std.err, "understudy: a header is 'Name: value', not '%s'\n", plain(line))
			return quiet{exitUsage}
		}
		header[strings.TrimSpace(name)] = append(header[strings.TrimSpace(name)], strings.TrimSpace(value))
	}
	t, err := control.Try(snap, control.Suppose{Model: c.Model, Status: c.Status, Class: c.Class, Header: header, Body: body, Text: c.Text,
		Path: c.Path, Stream: c.Stream, Attempts: c.Attempts})
	if err != nil {
		return err
	}
	return c.print(std, []control.Trial{t})
}

func (c *rulesTestCommand) body(std streams) ([]byte, error) {
	name, file := strings.CutPrefix(c.Body, "@")
	switch {
	case !file:
		return []byte(c.Body), nil
	case name == "-":
		return io.ReadAll(std.in)
	}
	return os.ReadFile(name)
}

// again asks the rules about the failures of a request that is over.
func (c *rulesTestCommand) again(std streams, snap *proxy.Snapshot) error {
	ctx := context.Background()
	p, err := c.past(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	r, err := p.find(ctx, c.Request)
	if err != nil {
		return fmt.Errorf("%s: %w", plain(c.Request), err)
	}
	kept := map[int][]byte{}
	bodies, err := p.bodies(ctx, c.Request)
	if err != nil && !errors.Is(err, errNoRequest) {
		return err
	}
	for i := range bodies {
		kept[bodies[i].Attempt] = bodies[i].content()
	}
	if c.Model != "" {
		r.Model = c.Model
	}
	var trials []control.Trial
	for i := range r.Attempts {
		if r.Attempts[i].Evidence == nil || c.Attempt > 0 && c.Attempt != i+1 {
			continue
		}
		t, err := control.TryAgain(snap, &r, i, kept[i+1])
		if err != nil {
			return err
		}
		trials = append(trials, t)
	}
	if len(trials) == 0 {
		return fmt.Errorf("%s: no such attempt of it failed, so no rule was asked", plain(c.Request))
	}
	return c.print(std, trials)
}

func (c *rulesTestCommand) print(std streams, trials []control.Trial) error {
	if c.JSON {
		return printJSON(std.out, trials)
	}
	for i := range trials {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if _, err := fmt.Fprintln(std.out, trials[i].Text()); err != nil {
			return err
		}
	}
	return nil
}

// rulesReplayCommand puts the logged failures to changed rules.
type rulesReplayCommand struct {
	adminFlag
	File  string `arg:"" optional:"" complete:"configurations" help:"The changed configuration; without it the configuration as it stands now."`
	Model string `placeholder:"NAME" complete:"chains" help:"Only the failures of this virtual model, * for the pool."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run prints every decision that would differ, and a summary.
func (c *rulesReplayCommand) Run(std streams) error {
	snap, err := (&withFlag{With: c.File}).load(&c.adminFlag)
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := c.past(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	replay := control.NewReplay(snap)
	err = p.troubled(ctx, func(r *control.Request) {
		if c.Model == "" || r.Model == c.Model {
			replay.Take(r)
		}
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.out, replay)
	}
	_, err = fmt.Fprintln(std.out, replay.Text())
	return err
}
