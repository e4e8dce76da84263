package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"

	"understudy/internal/config"
	"understudy/internal/control"
	"understudy/internal/daemon"
)

// routeCommand previews a plan. It calls nobody and needs no secret.
type routeCommand struct {
	adminFlag
	SessionID string `placeholder:"KEY" help:"Session key; without one the least loaded comes first."`
	Model     string `placeholder:"NAME" complete:"models" help:"Virtual model; without one the pool."`
}

var errNoSuchModel = control.ErrNoModel

// Run prints the order in which a session's upstreams would be tried: as a running
// process that serves this configuration would, else as if everybody were well.
func (c *routeCommand) Run(std streams) error {
	if c.Admin != "" {
		p, err := c.live()
		if err != nil {
			return err
		}
		return show(std, p)
	}
	path, err := c.find()
	if err != nil {
		return err
	}
	snap, src, warnings, err := daemon.Load(path)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(std.err, "warning: %s\n", w)
	}
	if snap.Config.Server.Admin != "" {
		if p, err := c.live(); err == nil {
			if serves(&p, src) {
				return show(std, p)
			}
			if samePath(p.ConfigPath, path) {
				fmt.Fprintln(std.err, "understudy: the running process serves another version of this file: its health is not shown")
			}
		}
	}
	p, err := control.PreviewOf(snap, c.Model, c.SessionID)
	if err != nil {
		return fmt.Errorf("%w with --model", err)
	}
	return show(std, p)
}

// live asks the running process.
func (c *routeCommand) live() (p control.Preview, err error) {
	admin, _, err := c.where()
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	err = admin.Get(ctx, "/api/route?model="+url.QueryEscape(c.Model)+"&session_id="+url.QueryEscape(c.SessionID), &p)
	return p, err
}

// serves says whether a process serves exactly this file's bytes.
func serves(p *control.Preview, src config.Source) bool {
	return p.ConfigHash == hex.EncodeToString(src.Hash[:])
}

func samePath(a, b string) bool {
	x, err := filepath.Abs(a)
	y, other := filepath.Abs(b)
	return err == nil && other == nil && x == y
}

func show(std streams, p control.Preview) error {
	if err := printJSON(std.out, p); err != nil {
		return err
	}
	switch {
	case len(p.Candidates) == 0:
		fmt.Fprintln(std.err, "understudy: nobody could serve this: every candidate is disabled")
		return quiet{exitFailed}
	case p.UpstreamID == "":
		fmt.Fprintln(std.err, "understudy: nobody could serve this now: every candidate is frozen")
		return quiet{exitFailed}
	}
	return nil
}
