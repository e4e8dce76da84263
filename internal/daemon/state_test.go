package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/proxy"
)

// restart ends the daemon as SIGTERM does and opens another one over the same files.
func (r *rig) restart() {
	r.t.Helper()
	r.drain()
	r.quits(10 * time.Second)
	r.open()
	r.serve()
}

// Freezes with their reasons, probations, counters, last errors and statistics are
// there after a restart; what ran is not.
func TestStateSurvivesARestart(t *testing.T) {
	a := upstream(t, drill.Sequence(func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(500, []byte(`{"error":{"message":"oops"}}`)) }, drill.Healthy(drill.Answer{})))
	b := well(t)
	r := newRig(t, "rules: []\n"+vm("", "a "+a.URL()+" m1", "b "+b.URL()+" m2", "c http://127.0.0.1:1 m3")).serve()
	r.answers("vm", "b") // a fails once
	r.answers("vm", "a")
	r.freeze("a", time.Hour, health.Rule)
	r.freeze("b", 2*time.Hour, health.Person)
	r.freeze("c", time.Millisecond, health.Streak) // is on probation soon
	eventually(t, "c is on probation", func() bool { return r.left("c") == 0 })
	state := func() string {
		var text []string
		for _, name := range []string{"a", "b", "c"} {
			k := proxy.Key(r.candidate(name).ID)
			standing, f := r.board.Standing(k, time.Now())
			c := r.board.Counters(k)
			series := r.ledger.Candidate(string(r.candidate(name).ID), time.Now())
			text = append(text, fmt.Sprint(name, " ", standing, " ", f.Until.Round(time.Second).UTC(), " ", f.Reason, " ", f.By, " ", f.Length, " ", c.Freezes, c.Hedges, c.Streak, " ", c.LastError,
				" ", series.Requests, series.Successes, series.Failures))
		}
		totals := r.ledger.Totals()
		return strings.Join(append(text, fmt.Sprint(totals.Requests, totals.Exhausted, totals.InFlight)), "\n")
	}
	before := state()
	for range 2 {
		r.restart()
		if after := state(); after != before {
			t.Fatalf("after a restart\n%s\nbefore\n%s", after, before)
		}
	}
	if !strings.Contains(before, "oops") || !strings.Contains(before, "probation") || !strings.Contains(before, "person") {
		t.Errorf("this proves little:\n%s", before)
	}
	if got := r.ask("vm", false); got.Status != 502 || b.Count() != 1 {
		t.Errorf("with everybody frozen or gone: %d, b was called %d times", got.Status, b.Count())
	}
}

// A freeze is on disk soon after it was made, without anybody stopping anything.
func TestStateIsWrittenBehind(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1")).serve()
	r.freeze("a", time.Hour, health.Person)
	eventually(t, "the freeze is on disk", func() bool {
		text, err := os.ReadFile(r.statePath)
		return err == nil && strings.Contains(string(text), `"by the test"`)
	})
	r.board.ThawAll(time.Now())
	eventually(t, "and then it is not", func() bool {
		text, err := os.ReadFile(r.statePath)
		return err == nil && !strings.Contains(string(text), `"by the test"`)
	})
}

// A damaged state file is set aside with a warning, and is never a reason not to
// start.
func TestDamagedStateIsSetAside(t *testing.T) {
	good := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	good.freeze("a", time.Hour, health.Rule)
	if err := good.Save(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good.statePath)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty":           {},
		"zeros":           make([]byte, 4096),
		"half of it":      whole[:len(whole)/2],
		"another version": []byte(strings.Replace(string(whole), `"version":1`, `"version":99`, 1)),
		"no version":      []byte(`{}`),
		"an array":        []byte(`[1,2,3]`),
		"wrong types":     []byte(`{"version":1,"health":{"entries":"none"}}`),
		"no JSON":         []byte("\x00\x01\xfe\xff garbage"),
		"and more":        append(append([]byte{}, whole...), whole...),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
			r.Close()
			if err := os.MkdirAll(r.state, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(r.statePath, text, 0o600); err != nil {
				t.Fatal(err)
			}
			r.open()
			aside, err := os.ReadFile(r.statePath + ".damaged")
			if err != nil || string(aside) != string(text) {
				t.Errorf("set aside: %q, %v", aside, err)
			}
			if n := r.log.count("level=WARN"); n != 1 || !strings.Contains(r.log.String(), ".damaged") {
				t.Errorf("the log:\n%s", r.log)
			}
			if err := r.Save(); err != nil {
				t.Errorf("save: %v", err)
			}
			r.proxyListener.Close()
			r.open()
			if n := r.log.count("level=WARN"); n != 0 {
				t.Errorf("the next start warns again:\n%s", r.log)
			}
		})
	}
	t.Run("sense in JSON, none in its values", func(t *testing.T) {
		r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
		id := proxy.Key(r.candidate("a").ID)
		r.proxyListener.Close()
		os.MkdirAll(r.state, 0o700)
		text := fmt.Sprintf(`{"version":1,"health":{"entries":[{"key":%q,"freeze":{"key":%q,"since":"2000-01-01T00:00:00Z","until":"9999-01-01T00:00:00Z","by":"rule","length":1000000000},"counters":{"freezes":-7,"streak":-1}},{"key":""}]}}`, id, id)
		if err := os.WriteFile(r.statePath, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.open()
		if left := r.left("a"); left > time.Second {
			t.Errorf("frozen for %v by a clock that was set back", left)
		}
		if c := r.board.Counters(id); c.Freezes != 0 || c.Streak != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

// A state directory that cannot be used is told, once, and serving goes on.
func TestStateThatCannotBeWritten(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r.Close()
	if err := os.RemoveAll(r.state); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.state, []byte("a file where a directory should be"), 0o600); err != nil {
		t.Fatal(err)
	}
	u := well(t)
	r.write(vm("", "a "+u.URL()+" m1"))
	r.open()
	r.serve()
	r.freeze("a", time.Nanosecond, health.Rule)
	eventually(t, "the log says so", func() bool { return r.log.count("level=ERROR msg=state") == 1 })
	for range 3 {
		r.answers("vm", "a")
		r.board.ThawAll(time.Now())
		r.freeze("a", 300*time.Millisecond, health.Rule)
		eventually(t, "the freeze is over", func() bool { return r.left("a") == 0 })
	}
	if n := r.log.count("level=ERROR msg=state"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, r.log)
	}
	r.drain()
	r.quits(10 * time.Second)
}

// Two configurations share a state directory without sharing state.
func TestConfigurationsDoNotShareState(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	other := newRig(t, strings.ReplaceAll(vm("", "a http://127.0.0.1:1 m1"), "STATE", r.state))
	r.freeze("a", time.Hour, health.Rule)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if err := other.Save(); err != nil {
		t.Fatal(err)
	}
	other.proxyListener.Close()
	other.open()
	if left := other.left("a"); left != 0 {
		t.Errorf("the other's is frozen for %v", left)
	}
	r.proxyListener.Close()
	r.open()
	if left := r.left("a"); left == 0 {
		t.Error("its own is not frozen")
	}
}

// victim is what the process that gets killed does: it saves all the time, each time
// more than before, and says when something is surely on disk.
func victim(path string) {
	d, err := Open(Options{ConfigPath: path})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	ctx := context.Background()
	go func() { _ = d.Serve(ctx, ctx) }() // until the process is killed
	for i := 1; ; i++ {
		for k := range 40 {
			d.board.Freeze(health.Key(fmt.Sprintf("u:%04d", k)), health.Freeze{Length: time.Hour + time.Duration(i)*time.Second, By: health.Person, Reason: fmt.Sprint("round ", i)}, time.Now())
		}
		if err := d.Save(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("saved", i)
	}
}

const victimVariable = "UNDERSTUDY_TEST_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimVariable); path != "" {
		victim(path)
	}
	os.Exit(m.Run())
}

// A process that is killed at any moment leaves a whole state file, with everything
// that was surely on disk by then, and nothing else behind for good.
func TestStateSurvivesKill(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(49, 53))
	last := 0
	for round := range 25 {
		cmd := exec.Command(self, "-test.run=^$")
		cmd.Env = append(os.Environ(), victimVariable+"="+r.path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		surely := 0
		kill := time.AfterFunc(time.Hour, func() {})
		for lines.Scan() {
			word, number, _ := strings.Cut(lines.Text(), " ")
			if word != "saved" {
				t.Fatalf("the process says %q", lines.Text())
			}
			surely, _ = strconv.Atoi(number)
			if surely == 1 { // then at any moment
				kill = time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			}
		}
		kill.Stop()
		_ = cmd.Wait() // it was killed
		last = surely

		text, err := os.ReadFile(r.statePath)
		if err != nil {
			t.Fatalf("kill %d: %v", round, err)
		}
		var s state
		if err := json.Unmarshal(text, &s); err != nil || s.Version != stateVersion || len(s.Health.Entries) < 40 {
			t.Fatalf("kill %d left %d bytes, %v", round, len(text), err)
		}
		for _, e := range s.Health.Entries {
			n := 0
			fmt.Sscanf(e.Freeze.Reason, "round %d", &n)
			if n < last {
				t.Fatalf("kill %d lost what was saved: %q, and %d was on disk", round, e.Freeze.Reason, last)
			}
		}
	}
	r.open()
	if n := r.log.count("level=WARN"); n != 0 {
		t.Errorf("the log warns:\n%s", r.log)
	}
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(r.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), ".") {
			t.Errorf("%s is left of a write that was cut short", f.Name())
		}
	}
}
