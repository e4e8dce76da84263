package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	library "log"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"understudy/internal/console"
	"understudy/internal/daemon"
	"understudy/internal/handover"
	"understudy/internal/web"
)

// serveCommand runs the proxy.
type serveCommand struct {
	configFlag
	Host                 *string `help:"Listen on this host instead of the file's."`
	Port                 *int    `help:"Listen on this port instead of the file's; 0 takes a free one."`
	Admin                *string `placeholder:"HOST:PORT" help:"Admin listener instead of the file's; off does without."`
	NoRepl               bool    `help:"Start no console, even on a terminal."`
	AllowUnauthenticated bool    `help:"Serve a network without client keys."`
	LogFormat            string  `enum:"text,json" default:"text" help:"text or json."`
	LogLevel             string  `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// Run serves until a signal comes. The first one lets running requests finish, a
// second one stops at once. SIGUSR2 hands over to the program that stands at this
// one's place by then.
func (c *serveCommand) Run(std streams) error {
	signals := make(chan os.Signal, 4) // from the first moment on: what they do by themselves is worse
	defer notify(signals)()
	heir, err := handover.Inherit()
	if err != nil {
		return err
	}
	err = c.serve(std, signals, heir)
	heir.Fail(err)
	return err
}

func (c *serveCommand) serve(std streams, signals <-chan os.Signal, heir *handover.Inheritance) error {
	path, err := c.find()
	if err != nil {
		return err
	}
	sockets, err := handover.Sockets()
	if err != nil {
		return err
	}
	mode := console.Plain // which is none here
	if !c.NoRepl {
		mode = console.ModeOf(std.in, std.out)
	}
	to, lines := std.err, (*console.Log)(nil)
	if mode == console.Live && isTerminal(std.err) {
		lines = console.NewLog(std.err)
		to = lines
	}
	log, flush := newLog(to, isTerminal(std.err), c.LogFormat, c.LogLevel)
	defer flush()
	d, err := daemon.Open(daemon.Options{ConfigPath: path, Host: c.Host, Port: c.Port, Admin: c.Admin, AllowUnauthenticated: c.AllowUnauthenticated,
		Log: log, Sockets: sockets, Manager: &handover.Manager{}, Heir: heir, Program: handover.Program(),
		AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control(version()), log) }})
	if err != nil {
		return err
	}
	library.SetFlags(0)
	library.SetOutput(d.Libraries())
	fmt.Fprintf(std.out, "understudy %s serves %s\n  proxy  %s://%s\n", version(), path, d.Scheme(), d.Addr())
	if d.AdminAddr() != "" {
		fmt.Fprintf(std.out, "  admin  %s://%s\n", d.Scheme(), d.AdminAddr())
	}
	sayDescriptors(log)
	ctx, drain := context.WithCancel(context.Background())
	now, stop := context.WithCancel(context.Background())
	defer drain()
	defer stop()
	repl := c.console(mode, std, d, lines, ctx.Done(), log)
	defer repl.end()
	done := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if !returned { // a panic ends the process, but not with a terminal that shows no keys
				repl.restore()
			}
		}()
		err := d.Serve(ctx, now)
		returned = true
		done <- err
	}()
	end := func() {
		if ctx.Err() == nil {
			drain()
		} else {
			stop()
		}
	}
	for {
		select {
		case err := <-done:
			return err
		case <-repl.stops:
			end()
		case s := <-signals:
			if s == syscall.SIGHUP {
				go func() { _ = d.Reload(ctx) }() // told to the log and the status
				continue
			}
			if slices.Contains(upgradeSignals, s) {
				if mode != console.Plain {
					log.Error("no upgrade: the console's terminal cannot be shared with a new process: quit and start again, or serve with --no-repl")
					continue
				}
				go func() { _ = d.Upgrade(ctx) }() // told to the log and the status
				continue
			}
			end()
			if grace := graceOf(s); grace > 0 {
				defer time.AfterFunc(grace, stop).Stop()
			}
		}
	}
}

// newLog writes the log: lines for people, in colour on a terminal, or JSON. What
// it returns besides writes out the last lines.
func newLog(w io.Writer, terminal bool, format, level string) (*slog.Logger, func()) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	handler := func(w io.Writer) slog.Handler {
		if format == "json" {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l, ReplaceAttr: inMilliseconds})
		}
		return newLineHandler(w, l, terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
	}
	flush := func() {}
	if !terminal {
		lazy := newLazyWriter(w, func(lines int) []byte {
			var b bytes.Buffer
			slog.New(handler(&b)).Warn("lines left out", slog.String("because", "who reads the log is too slow"), slog.Int("lines", lines))
			return b.Bytes()
		})
		w, flush = lazy, lazy.Flush
	}
	return slog.New(newStormHandler(handler(w))), flush
}

// inMilliseconds writes spans of time for machines: as numbers with the unit in the
// name, as the admin API has them. slog would write nanoseconds, under a bare name.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
