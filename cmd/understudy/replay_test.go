package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/console"
	"understudy/internal/control"
	"understudy/internal/daemon"
	"understudy/internal/drill"
	"understudy/internal/web"
)

// The rules of a replay: with conditions of every sort, and waits that a test can
// afford.
const replayed = `
rules:
  - {name: hint, match: {status: 429, body_regex: 'try again in (\d+)'}, action: freeze, freeze_from_group: 1, freeze_unit: s}
  - {name: money, match: {fault: [quota, credential]}, action: freeze, freeze_seconds: 5}
  - {name: patience, match: {fault: [rate, capacity]}, action: retry, max_attempts: 2, backoff_base: 0.05, max_wait: 0.1}
  - {name: page, match: {status: bad_stream, body_regex: '<html|"error"'}, action: next}
  - {name: mistake, match: {fault: [client, affinity]}, action: passthrough}
  - {name: silence, match: {status: [network, timeout, stalled_stream]}, action: next}
`

// Every fault that an upstream can have is logged so that the same rules decide the
// same about it again; and rules that say something else are seen to differ.
func TestReplayingTheSameRulesDiffersNowhere(t *testing.T) {
	played := drill.Answer{Text: "an answer of some length", Wait: 400 * time.Millisecond}
	bad, good := drill.Start(drill.ByModel(played)), drill.Start(drill.Healthy(played))
	t.Cleanup(bad.Close)
	t.Cleanup(good.Close)
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	var text strings.Builder
	fmt.Fprintf(&text, "server: {port: 0, admin: 127.0.0.1:0, state_dir: %q, auto_hedge_threshold: 0, stall_timeout: 0.25, stream_timeout: 1, nonstream_timeout: 1, connect_timeout: 5, relay_stall_timeout: 0.25}\n%svirtual_models:\n", dir, replayed)
	for _, f := range drill.Faults() {
		fmt.Fprintf(&text, "  %q:\n    - {name: bad, base_url: %q, auth_style: none, model: %q}\n    - {name: good, base_url: %q, auth_style: none, model: m}\n", f.Name, bad.URL(), f.Name, good.URL())
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	d, err := daemon.Open(daemon.Options{ConfigPath: path, Log: log, AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control("test"), log) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	todo := make(chan string)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for body := range todo {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				drill.Ask(ctx, d.Addr(), drill.Query{Path: "/v1/chat/completions", Header: []string{"Content-Type", "application/json"}, Body: []byte(body)})
				cancel()
			}
		})
	}
	for _, stream := range []bool{true, false} {
		for _, f := range drill.Faults() {
			todo <- fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"ping"}]}`, f.Name, stream)
		}
	}
	close(todo)
	wg.Wait()
	admin := "http://" + d.AdminAddr()
	for deadline := time.Now().Add(time.Minute); state(t, admin).Totals.InFlight > 0; {
		if time.Now().After(deadline) {
			t.Fatal("requests do not end")
		}
	}

	snap := d.Handler().Snapshot()
	same := control.NewReplay(snap)
	other, _, _, err := daemon.Load(otherwise(t, dir, text.String()))
	if err != nil {
		t.Fatal(err)
	}
	changed := control.NewReplay(other)
	attempts, asked := 0, map[string]int{}
	if err := remotePast(console.Admin{Address: admin}).troubled(t.Context(), func(r *control.Request) {
		same.Take(r)
		changed.Take(r)
		for i := range r.Attempts {
			if r.Attempts[i].Evidence == nil {
				continue
			}
			attempts++
			asked[r.Attempts[i].Rule]++
			trial, err := control.TryAgain(snap, r, i, nil)
			if err != nil || trial.Unsure == "" && trial.Decision.Rule != r.Attempts[i].Rule {
				t.Errorf("%s attempt %d: %v, rule %s decided, and now %+v", r.Model, i+1, err, r.Attempts[i].Rule, trial.Decision)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d failures, by rule %v; %d unsure", attempts, asked, same.Unsure)
	for _, d := range same.Differences {
		if !d.Unsure {
			t.Errorf("%s attempt %d, %s: was %s [%s], would be %s [%s]", d.Model, d.Attempt, d.Failure, d.Was, d.Was.Rule, d.Would, d.Would.Rule)
		}
	}
	if same.Failures != attempts || attempts < len(drill.Faults())/2 {
		t.Errorf("%d failures of %d faults, %d replayed", attempts, len(drill.Faults()), same.Failures)
	}
	for _, rule := range []string{"money", "patience", "page", "mistake", "silence"} {
		if asked[rule] == 0 {
			t.Errorf("rule %s decided nothing", rule)
		}
	}
	// Without "patience" what it decided is decided otherwise: those it let try again.
	again := 0
	for _, d := range changed.Differences {
		if d.Was.Rule == "patience" && d.Was.Next == "again" && d.Would.Next == "following" {
			again++
		}
	}
	if again == 0 || len(changed.Differences) == 0 || changed.Same+len(changed.Differences)+changed.NoChain != changed.Failures {
		t.Errorf("%d of %d would differ, %d of patience", len(changed.Differences), changed.Failures, again)
	}
	var v control.Requests
	if err := (console.Admin{Address: admin}).Get(t.Context(), "/api/requests?troubled=true&limit=1", &v); err != nil || len(v.Requests) != 1 {
		t.Errorf("%v %+v", err, v)
	}
}

// otherwise writes the same configuration without the rule called patience.
func otherwise(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "otherwise.yaml")
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "patience") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
