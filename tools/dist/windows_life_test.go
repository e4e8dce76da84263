//go:build verify

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A wine is a Windows of its own that goes away with the test, and the directory in which
// somebody has unpacked the zip.
type wine struct {
	t   *testing.T
	dir string
}

func newWine(t *testing.T) wine {
	t.Helper()
	w := wine{t, t.TempDir()}
	for name, data := range unpacked(t, made(t).named(t, "windows_amd64.zip")) {
		if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("WINEPREFIX", filepath.Join(w.dir, "wine"))
	t.Setenv("WINEDEBUG", "-all")
	t.Setenv("DISPLAY", "")
	t.Cleanup(func() { _ = exec.Command("wineserver", "-k").Run() })
	command(t, w.dir, "wineboot", "--init")
	if random := filepath.Join(w.dir, "wine/drive_c/windows/system32/bcryptprimitives.dll"); !exists(random) {
		if err := os.WriteFile(random, forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// program is a call of the zip's program.
func (w wine) program(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), "wine", append([]string{"understudy.exe"}, args...)...)
	cmd.Dir = w.dir
	return cmd
}

// says runs the zip's program to a good end, and gives what it prints.
func (w wine) says(args ...string) string {
	w.t.Helper()
	cmd := w.program(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	said, err := cmd.Output()
	if err != nil {
		w.t.Errorf("understudy.exe %s: %v\n%s%s", strings.Join(args, " "), err, said, errs.String())
	}
	return string(said)
}

// TestWindows does under Wine what somebody on Windows does who has unpacked the zip: looks
// at the version, writes a configuration, checks it, serves one, sends requests through it,
// changes the file meanwhile, and presses Ctrl-C.
func TestWindows(t *testing.T) {
	w := newWine(t)
	if said := w.says("version"); !strings.HasPrefix(said, "understudy 1.2.3 ") || !strings.Contains(said, "windows/amd64") {
		t.Errorf("version: %s", said)
	}
	for _, name := range []string{"config.example.yaml", "config.example.toml"} {
		w.says("check", "-c", name)
	}
	w.says("init")
	written, err := os.ReadFile(filepath.Join(w.dir, "understudy.yaml"))
	if example, _ := os.ReadFile(filepath.Join(w.dir, "config.example.yaml")); err != nil || !bytes.Equal(written, example) {
		t.Errorf("init writes another template than the example: %v", err)
	}
	w.says("check") // it is found by its name

	u := newUpstream(t)
	file := filepath.Join(w.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(settings(u.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, w.program("--no-repl", "-c", "config.yaml"))
	ask(t, p.proxy)
	if u.asked.Load() != 2 || u.refused.Load() == 0 {
		t.Errorf("the upstream was asked %d times, and the broken one %d times", u.asked.Load(), u.refused.Load())
	}
	if said := w.says("healthcheck", p.proxy); !strings.HasPrefix(said, "ok: ") {
		t.Errorf("healthcheck: %s", said)
	}
	if err := os.WriteFile(file, []byte(settings(u.URL)+fmt.Sprintf("  later: [{base_url: %q, auth_style: none, model: m}]\n", u.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond) // it looks at the file every two seconds
	defer again.Stop()
	for !lists(ctx, t, p.proxy, "later") {
		<-again.C
	}
	ask(t, p.proxy)

	if err := p.Process.Signal(syscall.SIGINT); err != nil { // Wine makes it Ctrl-C
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for range p.out {
		}
		ended <- p.Wait()
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ends with %v: %s", err, p.errs)
		}
	case <-ctx.Done():
		t.Errorf("Ctrl-C does not end it: %s", p.errs)
	}
	state, err := filepath.Glob(filepath.Join(w.dir, "wine/drive_c/users/*/AppData/Local/understudy/state-*.json"))
	if err != nil || len(state) != 1 {
		t.Errorf("the state: %v %v", state, err)
	}
}

// lists tells whether a proxy has a model.
func lists(ctx context.Context, t *testing.T, proxy, model string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, "GET", proxy+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(body, []byte(`"`+model+`"`))
}

// TestWindowsTests runs under Wine the tests of what differs on Windows: replacing a file
// that somebody has open, the service and its manager. Two are for a real Windows, where CI
// runs them: access lists, of which Wine keeps what the bits of a mode can say, and
// Ctrl-Break, which Wine 8 does not pass on to a program without a window.
func TestWindowsTests(t *testing.T) {
	w := newWine(t)
	for pkg, tests := range map[string]string{
		"./internal/files": "TestReplace",
		"./cmd/understudy": "TestService|TestGrace|TestHealthcheck",
	} {
		program := filepath.Join(w.dir, filepath.Base(pkg)+".test.exe")
		build := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-c", "-o", program, pkg)
		build.Dir, build.Env = checkout, environment(Target{"windows", "amd64"})
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		run := exec.CommandContext(t.Context(), "wine", program, "-test.v", "-test.timeout=5m", "-test.run", "^("+tests+")")
		run.Dir = filepath.Join(checkout, pkg)
		out, err := run.CombinedOutput()
		said := strings.ReplaceAll(string(out), "\r\n", "\n")
		t.Logf("%s", said)
		passed := strings.Count(said, "--- PASS: Test")
		// Wine 8, Debian 12's, has no way yet by which Go empties directories: a test that
		// has a temporary one fails at its end, for that and nothing else.
		for _, failed := range failures.FindAllStringSubmatch(said, -1) {
			if leftover.MatchString(failed[1]) {
				passed++
				continue
			}
			t.Errorf("%s", failed[0])
		}
		if begun := strings.Count(said, "=== RUN   Test"); begun == 0 || passed != begun {
			t.Errorf("%s: %d tests begun, %d passed: %v", pkg, begun, passed, err)
		}
	}
}

var (
	failures = regexp.MustCompile(`(?m)((?:^    .*\n)*)^--- FAIL: .*\n`)
	leftover = regexp.MustCompile(`^    testing\.go:\d+: TempDir RemoveAll cleanup: .*: Invalid function\.\n$`)
)
