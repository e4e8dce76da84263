package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"understudy/internal/console"
	"understudy/internal/control"
	"understudy/internal/drill"
)

// troubles are what the failing upstream of the scripts and of the documentation
// answers, in turn; then it begins anew.
var troubles = []drill.Script{
	answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
	answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
	answer(429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`, "Retry-After", "40"),
}

func answer(status int, body string, header ...string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.JSON(status, []byte(body), header...)
	}
}

// troubled starts an upstream that fails as troubles say, and one that is well.
func troubled() (failing, well *drill.Upstream) {
	failing = drill.Start(func(w *drill.Wire, r drill.Request, n int) { troubles[(n-1)%len(troubles)](w, r, n) })
	return failing, drill.Start(drill.Healthy(drill.Answer{Text: "PONG", Usage: drill.Usage{Input: 12, Output: 3}}))
}

// ask sends a request for a model and gives the id that it was answered with.
func ask(ctx context.Context, proxy, model string) (id string, status int, err error) {
	got := drill.Ask(ctx, strings.TrimPrefix(proxy, "http://"), drill.Query{Path: "/v1/chat/completions",
		Body: fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":"ping"}]}`, model), Header: []string{"Content-Type", "application/json"}})
	return got.Get("X-Understudy-Request-Id"), got.Status, got.Err
}

// The scripts look back at requests: explain, rules test, rules replay, and route
// with live health. FIRST is an upstream that fails, SECOND one that is well.
func TestTrailScripts(t *testing.T) {
	commands := scriptCommands()
	// ask model: sends a request through PROXY and sets ID to what it is called.
	commands["ask"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: ask model")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		id, status, err := ask(ctx, ts.Getenv("PROXY"), args[0])
		ts.Check(err)
		ts.Logf("%d %s", status, id)
		ts.Setenv("ID", id)
	}
	// written n: waits until the archive of the process that is up has n requests.
	commands["written"] = func(ts *testscript.TestScript, neg bool, args []string) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		for n := ""; n != args[0]; {
			var v control.View
			ts.Check(console.Admin{Address: ts.Getenv("ADMIN")}.Get(ctx, "/api/state", &v))
			n = fmt.Sprint(v.Archive.Entries)
		}
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/trail", Cmds: commands, Setup: func(e *testscript.Env) error {
		failing, well := troubled()
		e.Defer(failing.Close)
		e.Defer(well.Close)
		e.Setenv("FIRST", failing.URL())
		e.Setenv("SECOND", well.URL())
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config-home")
		e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state-home")
		e.Setenv("TZ", "UTC")
		return filepath.WalkDir(e.WorkDir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = []byte(strings.NewReplacer("FIRST", failing.URL(), "SECOND", well.URL()).Replace(string(text)))
			return os.WriteFile(path, text, 0o600)
		})
	}})
}
