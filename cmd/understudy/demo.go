package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"understudy/internal/daemon"
	"understudy/internal/drill"
)

// demoCommand shows what understudy does: built-in fake upstreams that fail, the
// real proxy in front, and a client that never notices. It needs no key and no
// network.
type demoCommand struct{}

// demoTime bounds the whole demo, whatever goes wrong.
const demoTime = 60 * time.Second

// Run plays every act and says what comes next. It fails when a client of the
// demo saw anything but a whole answer.
func (c *demoCommand) Run(std streams) error {
	ctx, cancel := context.WithTimeout(context.Background(), demoTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "understudy-demo-*")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	stage, err := raise(dir)
	if err != nil {
		return err
	}
	defer stage.close()
	p := newPaint(std.out)
	fmt.Fprintf(std.out, "%s\n\n", p.bold("understudy: a lead that fails in every way, and the show that goes on"))
	fmt.Fprintf(std.out, "  Each act has two upstreams of its own on this machine: the %s fails, the %s is well.\n", p.red("first"), p.green("second"))
	fmt.Fprintf(std.out, "  The proxy is the real one, at http://%s. The client sends one plain request per act.\n\n", stage.daemon.Addr())
	failed := 0
	for i, act := range stage.acts {
		if !play(ctx, std.out, p, stage, i, act) {
			failed++
		}
	}
	if failed > 0 {
		fmt.Fprintf(std.out, "%s\n", p.red(fmt.Sprintf("%d of %d requests did not get a whole answer.", failed, len(stage.acts))))
		return quiet{exitFailed}
	}
	fmt.Fprintf(std.out, "%s\n\n", p.green(fmt.Sprintf("%d failures, %d whole answers, no error at the client.", len(stage.acts), len(stage.acts))))
	fmt.Fprint(std.out, `Next:
  understudy init        write a commented configuration
  understudy check       after you have put your upstreams and keys into it
  understudy serve       then point your client's base URL at http://127.0.0.1:8787/v1
`)
	return nil
}

// theatre is the demo's proxy and upstreams.
type theatre struct {
	daemon    *daemon.Daemon
	acts      []drill.Act
	second    []*drill.Upstream // by act
	stop      context.CancelFunc
	ended     chan error
	upstreams []*drill.Upstream
}

// raise starts the upstreams and the proxy before them.
func raise(dir string) (*theatre, error) {
	t := &theatre{acts: drill.Story(), ended: make(chan error, 1)}
	var cfg strings.Builder
	fmt.Fprintf(&cfg, "server:\n  port: 0\n  admin: \"off\"\n  state_dir: %q\n  stall_timeout: 1.5\n  reload_poll_interval: 0\nrules:\n", filepath.Join(dir, "state"))
	// Every failure moves on at once: a demo is about what happens, not about patience.
	cfg.WriteString("  - {match: {fault: [rate, quota, credential]}, action: freeze, freeze_seconds: 600}\n  - {match: {fault: [capacity, model, server]}, action: next}\nvirtual_models:\n")
	for i, act := range t.acts {
		first, second := drill.Start(act.Fault.Script(act.Answer)), drill.Start(drill.Healthy(act.Answer))
		t.second = append(t.second, second)
		t.upstreams = append(t.upstreams, first, second)
		delivery := "stream"
		if act.Complete {
			delivery = "complete"
		}
		fmt.Fprintf(&cfg, "  act-%d:\n    delivery: %s\n    candidates:\n", i+1, delivery)
		fmt.Fprintf(&cfg, "      - {name: first, base_url: %q, api_key: demo-key-of-first-%d, model: lead}\n", first.URL(), i+1)
		fmt.Fprintf(&cfg, "      - {name: second, base_url: %q, api_key: demo-key-of-second-%d, model: understudy}\n", second.URL(), i+1)
	}
	path := filepath.Join(dir, "demo.yaml")
	if err := os.WriteFile(path, []byte(cfg.String()), 0o600); err != nil {
		t.close()
		return nil, fmt.Errorf("write the demo's configuration: %w", err)
	}
	d, err := daemon.Open(daemon.Options{ConfigPath: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.close()
		return nil, err
	}
	t.daemon = d
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	go func() { t.ended <- d.Serve(ctx, ctx) }() // ends with stop
	return t, nil
}

// close ends the proxy and every upstream.
func (t *theatre) close() {
	if t.stop != nil {
		t.stop()
		<-t.ended
	}
	for _, u := range t.upstreams {
		u.Close()
	}
}

// play plays one act: true when the client got the second upstream's answer, whole.
func play(ctx context.Context, w io.Writer, p paint, t *theatre, i int, act drill.Act) bool {
	say := func(who, text string) { fmt.Fprintf(w, "   %s  %s\n", who, text) }
	fmt.Fprintf(w, "%s\n", p.bold(fmt.Sprintf("%d. %s", i+1, act.Title)))
	say(p.red("first     "), act.Does)
	say(p.dim("alone     "), p.dim(act.Naive))
	start := time.Now()
	q := act.Query(fmt.Sprintf("act-%d", i+1))
	got := drill.Ask(ctx, t.daemon.Addr(), q)
	took := time.Since(start)
	ok := got.Status == 200 && got.Clean && len(got.Body) > 0 && string(got.Body) == sent(t.second[i], act)
	for _, line := range t.trail() {
		say(p.bold("understudy"), line)
	}
	verdict := p.green("whole")
	if !ok {
		verdict = p.red(fmt.Sprintf("NOT WHOLE (status %d, clean end %v)", got.Status, got.Clean))
	}
	say(p.green("client    "), fmt.Sprintf("%d, %s, after %s, from the %s: %s", got.Status, verdict, took.Round(10*time.Millisecond), got.Get("X-Understudy-Candidate"), p.bold("“"+act.Answer.Text+"”")))
	fmt.Fprintln(w)
	return ok
}

// trail says what the proxy did about every failed attempt of the last request.
func (t *theatre) trail() (lines []string) {
	latest := t.daemon.Handler().Ledger().Latest(1, nil)
	if len(latest) == 0 {
		return nil
	}
	for _, try := range latest[0].Tries {
		switch {
		case try.Text == "":
		case try.Froze > 0:
			lines = append(lines, fmt.Sprintf("saw “%s”: frozen for %s, next", shorten(try.Text), try.Froze.Round(time.Second)))
		default:
			lines = append(lines, fmt.Sprintf("saw “%s”: %s", shorten(try.Text), try.Action))
		}
	}
	return lines
}

// shorten keeps a quotation on its line: its beginning and its end.
func shorten(text string) string {
	r := []rune(text)
	if len(r) <= 90 {
		return text
	}
	return string(r[:50]) + " … " + string(r[len(r)-35:])
}

// sent is what an act's second upstream answered to the request it got.
func sent(u *drill.Upstream, act drill.Act) string {
	requests := u.Requests()
	if len(requests) == 0 {
		return ""
	}
	return string(act.Answer.Body(requests[len(requests)-1]))
}

// paint colours text for a terminal; elsewhere it leaves it alone.
type paint struct{ on bool }

func newPaint(w io.Writer) paint {
	f, ok := w.(*os.File)
	return paint{ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) code(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.code("1", s) }
func (p paint) dim(s string) string   { return p.code("2", s) }
func (p paint) red(s string) string   { return p.code("31", s) }
func (p paint) green(s string) string { return p.code("32", s) }
