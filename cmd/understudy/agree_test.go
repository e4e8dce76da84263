package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"understudy/internal/console"
	"understudy/internal/control"
	"understudy/internal/daemon"
	"understudy/internal/web"
)

// After many requests with failures, aborts and failovers, everybody who counts says
// the same, to the unit: the fake upstreams, the clients, the state, the console, the
// metrics, the health page and the request log; and so does the next process.
func TestEverybodyCountsTheSame(t *testing.T) {
	const clients, requests = 50, 10_000
	first, second := actors(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	text := cast(fmt.Sprintf("server: {port: 0, admin: 127.0.0.1:0, state_dir: %q, auto_hedge_threshold: 0}\nrequest_log: {keep: 20000}", dir), first, second)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func() (*daemon.Daemon, func()) {
		log := slog.New(slog.DiscardHandler)
		d, err := daemon.Open(daemon.Options{ConfigPath: path, Log: log, AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control("test"), log) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(ctx, ctx) }()
		return d, func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	d, stop := serve()
	c := &crowd{t: t, proxy: d.Addr()}
	began := time.Now()
	c.play(t.Context(), clients, requests)
	t.Logf("%d requests of %d clients after %v", requests, clients, time.Since(began).Round(time.Millisecond))
	if n := c.strange.Load(); n > 0 {
		t.Fatalf("%d answers were not what the plot foresees", n)
	}
	admin := "http://" + d.AdminAddr()
	// An abort is booked when the proxy has noticed it, and written a moment later.
	var v control.View
	for deadline := time.Now().Add(time.Minute); ; {
		v = state(t, admin)
		if v.Totals.InFlight == 0 && v.Totals.Requests == requests && v.Archive.Entries == requests {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v %+v", v.Totals, v.Archive)
		}
	}

	equal := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	ended := func(p plot) int64 { return c.got[p].Load() }
	answered := ended(well) + ended(saved)
	check := func(v control.View) {
		t.Helper()
		equal("requests", v.Totals.Requests, requests)
		equal("successes", v.Totals.Successes, answered)
		equal("exhausted", v.Totals.Exhausted, ended(deserted))
		equal("broken", v.Totals.Broken, ended(cut))
		equal("cancelled", v.Totals.ClientCancelled, ended(aborted))
		equal("the endings", v.Totals.Successes+v.Totals.Exhausted+v.Totals.Broken+v.Totals.ClientCancelled, requests)
		m := v.Models[0]
		equal("the model's requests", m.Requests, requests)
		equal("the model's successes", m.Successes, answered)
		equal("the model's failures", m.Failures, ended(deserted)+ended(cut))
		equal("the model's aborts", m.Abandoned, ended(aborted))
		equal("the model's input", *m.Tokens.Input, tokensIn*answered)
		equal("the model's output", *m.Tokens.Output, tokensOut*answered)
		a, b := m.Candidates[0], m.Candidates[1]
		equal("the first's attempts", a.Requests+a.Abandoned, int64(first.Count()))
		equal("the second's attempts", b.Requests+b.Abandoned, int64(second.Count()))
		equal("the first's successes", a.Successes, ended(well))
		equal("the first's failures", a.Failures, ended(saved)+ended(deserted)+ended(cut))
		equal("the second's successes", b.Successes, ended(saved))
		equal("the second's failures", b.Failures, ended(deserted))
		equal("the tokens of both", *a.Tokens.Input+*b.Tokens.Input, *m.Tokens.Input)
		equal("the entries", v.Archive.Entries, requests)
		equal("the dropped", v.Archive.Dropped, 0)
		var history int64
		for i := range m.History.Successes {
			history += m.History.Successes[i] + m.History.Failures[i]
		}
		equal("the history", history, requests-ended(aborted))
	}
	check(v)
	equal("what the first was asked", int64(first.Count()), requests)
	equal("what the second was asked", int64(second.Count()), ended(saved)+ended(deserted))

	metrics := fetch(t, admin+"/metrics")
	for ending, want := range map[string]int64{"success": answered, "exhausted": ended(deserted), "broken": ended(cut), "client_cancelled": ended(aborted), "passed_through": 0, "empty": 0} {
		equal("metrics: "+ending, metric(t, metrics, "understudy_requests_total", `ending="`+ending+`"`), want)
	}
	for i, candidate := range v.Models[0].Candidates {
		for verdict, want := range map[string]int64{"ok": candidate.Successes, "failed": candidate.Failures, "abandoned": candidate.Abandoned} {
			equal("metrics: "+verdict, metric(t, metrics, "understudy_candidate_attempts_total", `candidate="`+v.Models[0].Candidates[i].Name+`"`, `verdict="`+verdict+`"`), want)
		}
	}
	equal("metrics: tokens", metric(t, metrics, "understudy_virtual_model_tokens_total", `kind="input"`), tokensIn*answered)

	var health struct {
		Requests  int64 `json:"total_requests"`
		Exhausted int64 `json:"total_exhausted"`
	}
	if err := json.Unmarshal([]byte(fetch(t, "http://"+d.Addr()+"/healthz")), &health); err != nil {
		t.Fatal(err)
	}
	equal("healthz", health.Requests, requests)
	equal("healthz: exhausted", health.Exhausted, ended(deserted))

	remote, err := console.Admin{Address: admin}.Source()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := remote.Run(t.Context(), "stats")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprint(requests), fmt.Sprint(answered), fmt.Sprint(ended(deserted) + ended(cut)), fmt.Sprint(tokensIn * answered)} {
		if !regexp.MustCompile(`\b` + want + `\b`).MatchString(shown.Text) {
			t.Errorf("stats do not show %s:\n%s", want, shown.Text)
		}
	}

	// The request log, read to its end.
	endings, attempts := map[string]int64{}, int64(0)
	for before := ""; ; {
		var page control.Requests
		if err := (console.Admin{Address: admin}).Get(t.Context(), "/api/requests?limit=1000&before="+before, &page); err != nil || page.Problem != "" {
			t.Fatal(err, page.Problem)
		}
		for _, r := range page.Requests {
			endings[r.Ending]++
			attempts += int64(r.AttemptCount)
			before = r.ID
		}
		if len(page.Requests) < 1000 {
			break
		}
	}
	for ending, want := range map[string]int64{"success": answered, "exhausted": ended(deserted), "broken": ended(cut), "cancelled": ended(aborted)} {
		equal("the log: "+ending, endings[ending], want)
	}
	equal("the log: attempts", attempts, int64(first.Count()+second.Count()))

	stop()
	d, stop = serve()
	defer stop()
	check(state(t, "http://"+d.AdminAddr()))
}

// state is what everybody is shown.
func state(t *testing.T, admin string) (v control.View) {
	t.Helper()
	if err := (console.Admin{Address: admin}).Get(t.Context(), "/api/state", &v); err != nil {
		t.Fatal(err)
	}
	return v
}
