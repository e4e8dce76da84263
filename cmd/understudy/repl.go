package main

import (
	"context"
	"errors"
	"log/slog"

	"understudy/internal/console"
	"understudy/internal/daemon"
)

// A repl is the console of serve.
type repl struct {
	// stops gets a sign whenever the console asks for the end of the process.
	stops chan struct{}
	// restore puts the terminal back where the console cannot do it.
	restore func()
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the console is gone
}

// console starts serve's console, if there is to be one. lines is the log that it
// prints; nil where the log goes elsewhere. stopping is closed when the process begins
// to end.
func (c *serveCommand) console(mode console.Mode, std streams, d *daemon.Daemon, lines *console.Log, stopping <-chan struct{}, log *slog.Logger) *repl {
	r := &repl{stops: make(chan struct{}, 2), restore: func() {}, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	o := console.Options{Source: local(d.Control(version())), In: std.in, Out: std.out, Err: std.err, Log: lines, Stopping: stopping,
		Stop: func() {
			select {
			case r.stops <- struct{}{}:
			default: // two are waiting: that is all there is to ask for
			}
		}}
	run := console.Lines
	switch mode {
	case console.Plain:
		close(r.ended)
		return r
	case console.Dumb:
		o.Prompt = prompt
	case console.Live:
		o.History = historyFile(d.Handler().Snapshot().Config.Server.StateDir)
		r.restore = console.Guard(std.in, std.out)
		run = console.Interactive
	}
	go func() { // ends with r.end, or by itself where the terminal goes away
		defer close(r.ended)
		err := run(ctx, o)
		if err != nil && !errors.Is(err, console.ErrFailed) && ctx.Err() == nil {
			log.Warn("the console has ended, the proxy goes on", slog.String("problem", err.Error()))
		}
	}()
	return r
}

// end ends the console and waits until the terminal is as it was.
func (r *repl) end() {
	r.cancel()
	<-r.ended
}
