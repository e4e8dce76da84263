package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"understudy/internal/console"
	"understudy/internal/control"
)

// consoleCommand is the console of a process that runs elsewhere.
type consoleCommand struct{ adminFlag }

// Run talks to the admin listener until quit: with a prompt on a terminal, line by line
// elsewhere.
func (c *consoleCommand) Run(std streams) error {
	admin, stateDir, err := c.where()
	if err != nil {
		return err
	}
	source, err := admin.Source()
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
		return unlessLost(console.Interactive(ctx, o))
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

// unlessLost is nil for a terminal that has gone away: nobody is left to tell.
func unlessLost(err error) error {
	if errors.Is(err, console.ErrLost) {
		return nil
	}
	return err
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
