//go:build e2e

package agents

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/internal/drill"
)

// chain is a virtual model over two upstreams.
type chain struct {
	model         string
	delivery      string
	auth          string
	first, second *drill.Upstream
}

// chain starts two upstreams for a virtual model.
func newChain(t *testing.T, a agent, model, delivery string, first, second drill.Script) *chain {
	t.Helper()
	c := &chain{model: model, delivery: delivery, auth: a.auth, first: drill.Start(first), second: drill.Start(second)}
	t.Cleanup(c.first.Close)
	t.Cleanup(c.second.Close)
	return c
}

// serve runs the built program over the chains and returns its address. Its clocks are short, and nothing freezes, waits
// or tries again, so that each request goes once along its chain.
func serve(t *testing.T, chains []*chain) (url string, log *buffer) {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "server: {stall_timeout: 1, content_timeout: 1.5, relay_stall_timeout: 1, auto_hedge_threshold: 0, reload_poll_interval: 0, state_dir: %q}\nrules: []\nvirtual_models:\n", filepath.Join(dir, "state"))
	for _, c := range chains {
		fmt.Fprintf(&b, "  %q:\n    delivery: %s\n    candidates:\n", c.model, c.delivery)
		for i, u := range []*drill.Upstream{c.first, c.second} {
			name := [...]string{"first", "second"}[i]
			fmt.Fprintf(&b, "    - {name: %s, base_url: %q, model: model-of-%s, auth_style: %s, api_key: sk-of-the-%s-upstream}\n", name, u.URL(), name, c.auth, name)
		}
	}
	file := filepath.Join(dir, "understudy.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log = &buffer{}
	process := exec.Command(binary, "serve", "-c", file, "--no-repl", "--port", "0", "--admin", "off")
	process.Stdout, process.Stderr = log, log
	process.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- process.Wait() }()
	t.Cleanup(func() {
		process.Process.Signal(syscall.SIGTERM)
		if err := <-exited; err != nil {
			t.Errorf("understudy ended with %v", err)
		}
		if t.Failed() {
			t.Logf("understudy's log ends with\n%s", log.tail(8<<10))
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(15 * time.Second)
	for {
		if told := listens.FindStringSubmatch(log.tail(64 << 10)); told != nil {
			return told[1], log
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("understudy did not start:\n%s", log.tail(8<<10))
		}
	}
}

// listens is how the program tells where it listens.
var listens = regexp.MustCompile(`(?m)^\s*proxy\s+(http://127\.0\.0\.1:\d+)$`)

// run is one agent in a home and a working directory of its own, with one request of a user.
type run struct {
	dir, url, model string
	elsewhere       *elsewhere

	exit           int
	stdout, stderr string
	horn           string // what the tool wrote
	took           time.Duration
}

// patience is the longest a turn may take, on a busy machine too. Agents wait between attempts of their own.
const patience = 4 * time.Minute

// run has the agent take one turn and waits for its end.
func (a agent) run(t *testing.T, url, model string) *run {
	t.Helper()
	r := &run{dir: t.TempDir(), url: url, model: model, elsewhere: newElsewhere(t)}
	for _, dir := range []string{"home", "work"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	args, env := a.prepare(t, r)
	command := a.command()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	process := exec.CommandContext(ctx, command[0], append(command[1:], args...)...)
	process.Dir = filepath.Join(r.dir, "work")
	home := filepath.Join(r.dir, "home")
	// What an agent wants besides its model goes to a proxy that refuses: nothing leaves this machine.
	process.Env = append([]string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8",
		"HTTP_PROXY=" + r.elsewhere.url(), "HTTPS_PROXY=" + r.elsewhere.url(), "http_proxy=" + r.elsewhere.url(), "https_proxy=" + r.elsewhere.url(),
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}, env...)
	var stdout, stderr bytes.Buffer
	process.Stdout, process.Stderr = &stdout, &stderr
	// A program that the agent left behind must not keep the pipes, and with them this test, open.
	process.WaitDelay = 2 * time.Second
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	start := time.Now()
	err := process.Run()
	r.took = time.Since(start)
	r.stdout, r.stderr, r.exit = stdout.String(), stderr.String(), process.ProcessState.ExitCode()
	if ctx.Err() != nil {
		t.Errorf("%s was not done within %s", a.name, patience)
	} else if err != nil && r.exit == 0 {
		t.Errorf("%s: %v", a.name, err)
	}
	if text, err := os.ReadFile(filepath.Join(r.dir, "work", "horn.txt")); err == nil {
		r.horn = string(text)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s took %s, exit status %d\nstdout:\n%.6000s\nstderr:\n%.3000s\nit called elsewhere: %s", a.name, r.took, r.exit, r.stdout, r.stderr, r.elsewhere)
		}
	})
	return r
}

// elsewhere is where agents go for what is not their model: an HTTP server and proxy that knows nothing, refuses
// everything, and remembers who was asked for.
type elsewhere struct {
	up *drill.Upstream
}

func newElsewhere(t *testing.T) *elsewhere {
	e := &elsewhere{up: drill.Start(func(w *drill.Wire, r drill.Request, _ int) {
		w.JSON(403, []byte(`{"error":{"message":"nothing leaves this machine"}}`))
	})}
	t.Cleanup(e.up.Close)
	return e
}

func (e *elsewhere) url() string { return e.up.URL() }

// String lists what was asked for.
func (e *elsewhere) String() string {
	var all []string
	for _, r := range e.up.Requests() {
		all = append(all, r.Method+" "+r.Target)
	}
	return strings.Join(all, ", ")
}

// buffer keeps what a program writes.
type buffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.Write(p)
}

// tail is the end of what was written, at most max bytes of it.
func (b *buffer) tail(max int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.bytes.Bytes()
	return string(all[len(all)-min(len(all), max):])
}
