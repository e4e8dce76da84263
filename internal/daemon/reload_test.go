package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/config"
	"understudy/internal/drill"
	"understudy/internal/health"
)

// owned runs the goroutine that owns the reload, alone, in a bubble: what it does when
// is then exact.
func owned(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.own(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func names(r *rig) string { return strings.Join(r.Handler().Snapshot().Routes.Names(), " ") }

// Spec section 13: the file is polled. A change is served at the next poll, and an
// unchanged file is no news.
func TestTheFileIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, vm(", reload_poll_interval: 3", "a http://127.0.0.1:1 m"))
		owned(t, r)
		start := time.Now()
		<-time.After(2 * time.Second)
		r.write(strings.Replace(vm(", reload_poll_interval: 3", "a http://127.0.0.1:1 m"), "vm:", "other:", 1))
		<-time.After(999 * time.Millisecond)
		if names(r) != "vm" {
			t.Errorf("served %v after it was changed", time.Since(start))
		}
		<-time.After(2 * time.Millisecond)
		if names(r) != "other" {
			t.Errorf("serves %q at the poll\n%s", names(r), r.log)
		}
		<-time.After(time.Hour)
		if n := r.log.count("configuration loaded"); n != 1 {
			t.Errorf("loaded %d times:\n%s", n, r.log)
		}
		now := time.Now()
		if err := os.Chtimes(r.path, now, now); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if n := r.log.count("configuration"); n != 1 {
			t.Errorf("a touched file is news:\n%s", r.log)
		}
	})
}

// What cannot be read or used leaves the former configuration in place; the log says
// so once, and the status until it is cured.
func TestABrokenFileChangesNothing(t *testing.T) {
	good := vm(", reload_poll_interval: 1", "a http://127.0.0.1:1 m")
	for name, spoil := range map[string]func(r *rig){
		"no YAML":        func(r *rig) { r.write("server: {port: 0\n") },
		"an unknown key": func(r *rig) { r.write(strings.Replace(good, "admin", "adimn", 1)) },
		"nothing":        func(r *rig) { r.write("") },
		"half of it":     func(r *rig) { r.write(good[:len(good)/2]) },
		"no file":        func(r *rig) { os.Remove(r.path) },
		"a directory":    func(r *rig) { os.Remove(r.path); os.Mkdir(r.path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, good)
				owned(t, r)
				spoil(r)
				<-time.After(time.Minute)
				if names(r) != "vm" {
					t.Errorf("serves %q", names(r))
				}
				if r.Status().Error == "" {
					t.Error("the status has no error")
				}
				if n := r.log.count("level=ERROR"); n < 1 || n > 3 || r.log.count("configuration loaded") != 0 {
					t.Errorf("the log says so %d times:\n%s", n, r.log)
				}
				before := r.log.count("")
				<-time.After(time.Hour)
				if n := r.log.count(""); n != before {
					t.Errorf("and says so again:\n%s", r.log)
				}
				os.Remove(r.path)
				r.write(good)
				<-time.After(2 * time.Second)
				if e := r.Status().Error; e != "" {
					t.Errorf("cured, and the status says %q", e)
				}
			})
		})
	}
}

// SIGHUP and `reload` read the file at once, changed or not: what variables and key
// files hold may have changed. They tell what is wrong, every time they are asked.
func TestReloadOnDemand(t *testing.T) {
	t.Setenv("UNDERSTUDY_TEST_RELOAD", "sk-first-value")
	good := strings.Replace(vm(", reload_poll_interval: 0", "a http://127.0.0.1:1 m"), "api_key: sk-m-secret-key", "api_key_env: UNDERSTUDY_TEST_RELOAD", 1)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, good)
		owned(t, r)
		before := r.candidate("a").ID
		os.Setenv("UNDERSTUDY_TEST_RELOAD", "sk-other-value")
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.candidate("a").ID == before {
			t.Error("another key is the same identity")
		}
		r.write("server: {ports: 1}")
		for range 2 {
			err := r.Reload(t.Context())
			problems, ok := errors.AsType[Problems](err)
			if !ok || len(problems) == 0 || !strings.Contains(err.Error(), "ports") {
				t.Errorf("error %v", err)
			}
		}
		if names(r) != "vm" {
			t.Errorf("serves %q", names(r))
		}
	})
}

// Polling can be turned off and on again while it runs.
func TestPollingOffAndOn(t *testing.T) {
	with := func(poll, name string) string {
		return strings.Replace(vm(", reload_poll_interval: "+poll, "a http://127.0.0.1:1 m"), "vm:", name+":", 1)
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, with("1", "one"))
		owned(t, r)
		r.write(with("0", "two"))
		<-time.After(1100 * time.Millisecond)
		if names(r) != "two" {
			t.Fatalf("serves %q", names(r))
		}
		r.write(with("0", "three"))
		<-time.After(24 * time.Hour)
		if names(r) != "two" {
			t.Errorf("polling is off, and it serves %q", names(r))
		}
		if _, err := r.Edit(t.Context(), "test", func(s config.Source) (config.Source, error) {
			return s.Set([]any{"server", "reload_poll_interval"}, 5.0)
		}); err != nil {
			t.Fatal(err)
		}
		if names(r) != "three" {
			t.Errorf("serves %q after an edit", names(r))
		}
		r.write(with("5", "four"))
		<-time.After(5100 * time.Millisecond)
		if names(r) != "four" {
			t.Errorf("polling is on again, and it serves %q", names(r))
		}
	})
}

// A freeze, counters and statistics belong to the identity: renaming, reordering and
// reweighting keep them, another key or model starts clean.
func TestHealthSurvivesAReload(t *testing.T) {
	a, b := well(t), well(t)
	r := newRig(t, vm(", reload_poll_interval: 0", "a "+a.URL()+" m1", "b "+b.URL()+" m2")).serve()
	r.answers("vm", "a")
	r.freeze("a", time.Hour, health.Rule)
	id := string(r.candidate("a").ID)
	before := r.ledger.Candidate(id, time.Now()).Requests
	r.write(strings.ReplaceAll(vm(", reload_poll_interval: 0, auto_hedge_threshold: 9", "beta "+b.URL()+" m2", "alpha "+a.URL()+" m1"), "model: m1}", "model: m1, weight: 5}"))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := r.left("alpha"); left < 59*time.Minute {
		t.Errorf("frozen for %v after a rename", left)
	}
	r.answers("vm", "beta")
	if n := r.ledger.Candidate(id, time.Now()).Requests; n != before || before != 1 {
		t.Errorf("%d requests are booked, before %d", n, before)
	}
	r.write(vm(", reload_poll_interval: 0", "alpha "+a.URL()+" m9", "beta "+b.URL()+" m2"))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := r.left("alpha"); left != 0 {
		t.Errorf("another model is frozen for %v", left)
	}
	r.answers("vm", "alpha")
	// The old identity comes back as it was.
	r.write(vm(", reload_poll_interval: 0", "a "+a.URL()+" m1", "b "+b.URL()+" m2"))
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := r.left("a"); left < 59*time.Minute {
		t.Errorf("frozen for %v when it comes back", left)
	}
}

// A running request finishes on the snapshot it began with: its candidates, its rules,
// its limits.
func TestRequestsFinishOnTheirSnapshot(t *testing.T) {
	go1 := make(chan struct{})
	a := upstream(t, func(w *drill.Wire, r drill.Request, n int) {
		if w.Wait(go1) {
			w.JSON(500, []byte(`{}`))
		}
	})
	b := well(t)
	r := newRig(t, vm(", reload_poll_interval: 0", "a "+a.URL()+" m1", "b "+b.URL()+" m2")+"rules: [{match: {status: 500}, action: next}]\n").serve()
	answer := make(chan drill.Reply)
	go func() { answer <- r.ask("vm", false) }()
	a.Await(t.Context(), func() bool { return a.Count() == 1 })
	other := well(t)
	r.write(strings.Replace(vm(", reload_poll_interval: 0", "c "+other.URL()+" m3"), "vm:", "new:", 1) + "rules: [{match: {status: 500}, action: passthrough}]\n")
	if err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.ask("vm", false); got.Status != 404 {
		t.Errorf("a model that is gone: %d", got.Status)
	}
	r.answers("new", "c")
	close(go1)
	if got := <-answer; got.Status != 200 || got.Get("X-Understudy-Candidate") != "b" {
		t.Errorf("the running request got %d by %q", got.Status, got.Get("X-Understudy-Candidate"))
	}
}

// What takes a restart is named, by reload and by edit, and again when it is as it was.
func TestWhatNeedsARestart(t *testing.T) {
	good := vm(", reload_poll_interval: 0", "a http://127.0.0.1:1 m")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, good)
		owned(t, r)
		for _, c := range []struct{ from, to, want string }{
			{"port: 0", "port: 4", "port"},
			{"port: 0", "port: 0, host: 127.0.0.2", "host"},
			{"admin: off", "admin: 127.0.0.1:1", "admin"},
			{`port: 0, admin: off, state_dir: "STATE"`, `port: 4, admin: off, state_dir: "STATE2"`, "port state_dir"},
			{"port: 0", "port: 0, tls_cert: /a, tls_key: /b", "tls_cert tls_key"},
			{"port: 0", "port: 0, stall_timeout: 4", ""},
		} {
			r.write(strings.Replace(good, c.from, c.to, 1))
			if err := r.Reload(t.Context()); err != nil {
				t.Fatalf("%s: %v", c.to, err)
			}
			if got := strings.Join(r.Status().NeedsRestart, " "); got != c.want {
				t.Errorf("%s needs a restart for %q, want %q", c.to, got, c.want)
			}
		}
		needs, err := r.Edit(t.Context(), "test", func(s config.Source) (config.Source, error) {
			return s.Set([]any{"server", "port"}, int64(7))
		})
		if err != nil || strings.Join(needs, " ") != "port" {
			t.Errorf("an edit needs %v, %v", needs, err)
		}
	})
}

// A flag of the command line stands over the file: a change there changes nothing.
func TestFlagsStandOverTheFile(t *testing.T) {
	port := 0
	good := vm(", reload_poll_interval: 0", "a http://127.0.0.1:1 m")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, good, func(o *Options) { o.Port = &port })
		owned(t, r)
		r.write(strings.Replace(good, "port: 0", "port: 4", 1))
		if err := r.Reload(t.Context()); err != nil || len(r.Status().NeedsRestart) != 0 {
			t.Errorf("%v, needs %v", err, r.Status().NeedsRestart)
		}
	})
}

// An edit that gives nothing usable changes nothing, not on disk either; one that
// meets another editor's change overwrites nothing.
func TestEdit(t *testing.T) {
	good := vm(", reload_poll_interval: 0", "a http://127.0.0.1:1 m")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, good)
		owned(t, r)
		before, _ := os.ReadFile(r.path)
		for what, edit := range map[string]func(config.Source) (config.Source, error){
			"out of range":        func(s config.Source) (config.Source, error) { return s.Set([]any{"server", "port"}, int64(70000)) },
			"an error of its own": func(s config.Source) (config.Source, error) { return s, errors.New("no") },
			"the last candidate":  func(s config.Source) (config.Source, error) { return s.Remove([]any{"virtual_models", "vm", 0}) },
		} {
			if _, err := r.Edit(t.Context(), "test", edit); err == nil {
				t.Errorf("%s: no error", what)
			}
			if after, _ := os.ReadFile(r.path); string(after) != string(before) {
				t.Errorf("%s changed the file:\n%s", what, after)
			}
		}
		theirs := strings.Replace(good, "port: 0", "port: 0, stall_timeout: 9", 1)
		_, err := r.Edit(t.Context(), "test", func(s config.Source) (config.Source, error) {
			r.write(theirs) // somebody saves meanwhile
			return s.Set([]any{"server", "chain_timeout"}, int64(5))
		})
		if err == nil {
			t.Error("an edit overwrote another")
		}
		if after, _ := os.ReadFile(r.path); string(after) != strings.ReplaceAll(theirs, "STATE", r.state) {
			t.Errorf("the file is\n%s", after)
		}
		info, _ := os.Stat(r.path)
		if _, err := r.Edit(t.Context(), "test", func(s config.Source) (config.Source, error) {
			return s.Set([]any{"server", "chain_timeout"}, int64(5))
		}); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.Stat(r.path); now.Mode() != info.Mode() {
			t.Errorf("mode %v, before %v", now.Mode(), info.Mode())
		}
		if s := r.Handler().Snapshot().Config.Server; s.ChainTimeout != 5*time.Second || s.StallTimeout != 9*time.Second {
			t.Errorf("serves %v and %v", s.ChainTimeout, s.StallTimeout)
		}
	})
}

// Reloads, edits and requests from everywhere at once: none is lost, and every answer
// is of one snapshot or another.
func TestManyReloadsAtOnce(t *testing.T) {
	u := well(t)
	r := newRig(t, vm(", reload_poll_interval: 0.01", "a "+u.URL()+" m")).serve()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 10 {
				if _, err := r.Edit(t.Context(), "test", func(s config.Source) (config.Source, error) {
					return s.Set([]any{"server", "auto_hedge_threshold"}, int64(1+i*10+k))
				}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				if err := r.Reload(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				r.answers("vm", "a")
			}
		})
	}
	wg.Wait()
	last := fmt.Sprint("auto_hedge_threshold: ", r.Handler().Snapshot().Config.Server.AutoHedgeThreshold)
	if text, _ := os.ReadFile(r.path); !strings.Contains(string(text), last) {
		t.Errorf("serves %s, the file is\n%s", last, text)
	}
}
