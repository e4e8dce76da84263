//go:build unix

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/health"
)

// An upgrade that fails, at whatever moment, leaves everything as it was: requests are
// served and booked, freezes kept, the lock held, and the reason told.
func TestAFailedUpgradeChangesNothing(t *testing.T) {
	const prepared = `printf '{"kind":"prepared"}\n' >&3; read -r taken <&3; `
	for name, c := range map[string]struct{ script, want string }{
		"no program":        {"", "start "},
		"no program at all": {"\x00\x01 no program", "exec format error"},
		"exits":             {"#!/bin/sh\nexit 3\n", "exit status 3"},
		"is killed":         {"#!/bin/sh\nkill -9 $$\n", "signal: killed"},
		"hangs":             {"#!/bin/sh\nexec sleep 60\n", "was not prepared after"},
		"refuses":           {"#!/bin/sh\nprintf '{\"kind\":\"failed\",\"body\":\"its reason\"}\\n' >&3\n", "its reason"},
		"talks nonsense":    {"#!/bin/sh\nprintf '{\"kind\":\"serving\"}\\n' >&3; exec sleep 60\n", `says "serving"`},
		"exits at the end":  {"#!/bin/sh\n" + prepared + "exit 4\n", "exit status 4"},
		"hangs at the end":  {"#!/bin/sh\n" + prepared + "exec sleep 60\n", "was not serving after"},
		"another program":   {"#!/bin/sh\nexec >&2 3>&-\nexec sleep 0\n", "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := well(t)
			program := filepath.Join(t.TempDir(), "program")
			if c.script != "" {
				if err := os.WriteFile(program, []byte(c.script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			// Who hangs is given up after a while; nobody else may be for being slow.
			patience := 30 * time.Second
			if strings.HasPrefix(c.want, "was not ") {
				patience = 2 * time.Second
			}
			r := newRig(t, vm("", "a "+u.URL()+" m", "b http://127.0.0.1:1 m2"), func(o *Options) { o.Program, o.Patience = program, patience }).serve()
			r.answers("vm", "a")
			for range 2 {
				err := r.Upgrade(t.Context())
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("the upgrade: %v, want %q", err, c.want)
				}
				s := r.UpgradeStatus()
				if s.Running || s.Problem != err.Error() || time.Since(s.FailedAt) > time.Minute || s.Former {
					t.Errorf("the status is %+v", s)
				}
				if r.log.count("upgrade failed, this process goes on") == 0 {
					t.Errorf("the log does not say so:\n%s", r.log)
				}
				r.answers("vm", "a")
			}
			if err := opened(r.path); err == nil {
				t.Error("the lock was lost")
			}
			r.freeze("b", time.Hour, health.Person)
			eventually(t, "the freeze is on disk", func() bool {
				text, err := os.ReadFile(r.statePath)
				return err == nil && strings.Contains(string(text), `"by the test"`)
			})
			eventually(t, "the requests are in the log", func() bool { return r.archive.Status().Entries == 3 })
			r.restart()
			if n := r.ledger.Totals().Requests; n != 3 {
				t.Errorf("after a restart %d requests are counted, not 3", n)
			}
		})
	}
}

// An upgrade is given up when the process is to end.
func TestTheEndGoesBeforeAnUpgrade(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	mark := program + ".runs"
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\n: >%s\nexec sleep 60\n", mark), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, vm("", "a http://127.0.0.1:1 m"), func(o *Options) { o.Program, o.Patience = program, time.Hour }).serve()
	upgraded := make(chan error, 1)
	go func() { upgraded <- r.Upgrade(t.Context()) }()
	eventually(t, "the new process runs", func() bool { _, err := os.Stat(mark); return err == nil })
	r.drain()
	r.quits(10 * time.Second)
	if err := <-upgraded; err == nil {
		t.Error("the upgrade went well")
	}
	if err := r.Upgrade(t.Context()); err == nil {
		t.Error("an upgrade after the end went well")
	}
}
