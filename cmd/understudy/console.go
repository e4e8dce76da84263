package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"understudy/internal/config"
	"understudy/internal/console"
	"understudy/internal/control"
)

// consoleCommand is the console of a process that runs elsewhere.
type consoleCommand struct {
	configFlag
	Admin string `placeholder:"URL" help:"Admin listener of the running process; without it the one in the configuration file, or http://127.0.0.1:8788."`
	Token string `env:"UNDERSTUDY_ADMIN_TOKEN" help:"Admin token; better given as UNDERSTUDY_ADMIN_TOKEN, which other users of the machine cannot read."`
}

// defaultAdmin is where a process listens whose file does not say otherwise.
const defaultAdmin = "http://127.0.0.1:8788"

// Run talks to the admin listener until quit: with a prompt on a terminal, line by line
// elsewhere.
func (c *consoleCommand) Run(std streams) error {
	address, token, stateDir, err := c.where()
	if err != nil {
		return err
	}
	source, err := console.Remote(address, token)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A mistaken address is better told before anything is typed.
	if _, err := source.View(ctx); err != nil {
		return err
	}
	o := console.Options{Source: source, In: std.in, Out: std.out, Err: std.err}
	switch console.ModeOf(std.in, std.out) {
	case console.Live:
		o.History = historyFile(stateDir)
		return lost(console.Interactive(ctx, o))
	case console.Dumb:
		o.Prompt = prompt
	}
	err = console.Lines(ctx, o)
	if errors.Is(err, console.ErrFailed) {
		return quiet{exitFailed} // each has been told
	}
	return err
}

// prompt is what a terminal that can only print shows before a line.
const prompt = "understudy> "

// historyFile is where the lines typed are kept.
func historyFile(stateDir string) string { return filepath.Join(stateDir, "console-history") }

// lost is nil for a terminal that has gone away: nobody is left to tell.
func lost(err error) error {
	if errors.Is(err, console.ErrLost) {
		return nil
	}
	return err
}

// where finds the admin listener, its token and the directory for the history: what
// the command line does not say, a configuration file may.
func (c *consoleCommand) where() (address, token, stateDir string, err error) {
	address, token, stateDir = c.Admin, c.Token, config.DefaultStateDir()
	path, err := c.find()
	if errors.Is(err, errNoConfig) {
		return cmp.Or(address, defaultAdmin), token, stateDir, nil
	}
	if err != nil {
		return "", "", "", err
	}
	src, err := config.Read(path)
	if err == nil {
		if cfg, _ := config.Parse(src); cfg != nil {
			stateDir = cfg.Server.StateDir
			if address == "" {
				if address, err = adminAddress(cfg, path); err != nil {
					return "", "", "", err
				}
				// The file's token belongs to the file's listener.
				token = cmp.Or(token, cfg.Server.AdminToken.Reveal())
			}
			return address, token, stateDir, nil
		}
		err = fmt.Errorf("%s has mistakes (understudy check lists them): name the admin listener with --admin", path)
	}
	if c.Config == "" || address != "" {
		return cmp.Or(address, defaultAdmin), token, stateDir, nil
	}
	return "", "", "", err
}

// adminAddress is the URL of a configuration's admin listener.
func adminAddress(cfg *config.Config, path string) (string, error) {
	switch {
	case cfg.Server.Admin == "":
		return "", fmt.Errorf("%s turns the admin listener off (server.admin): there is nothing to talk to", path)
	case cfg.Server.TLSCert != "":
		return "https://" + cfg.Server.Admin, nil
	}
	return "http://" + cfg.Server.Admin, nil
}

// local is a console's source in its own process.
func local(ctl *control.Control) console.Source {
	return console.Source{
		Run: func(ctx context.Context, line string) (control.Output, error) {
			return ctl.Run(ctx, "console", line)
		},
		View:    func(context.Context) (control.View, error) { return ctl.View(), nil },
		Changed: ctl.Changed,
	}
}
