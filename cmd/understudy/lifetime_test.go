//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C drains first and says so, and stops at once the second time; the terminal is
// as it was each time.
func TestCtrlCDrainsThenStops(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	held := make(chan error, 1)
	go func() {
		_, err := g.ask(true)
		held <- err
	}()
	g.wait("a request in flight", func(string) bool { return g.inFlight() == 1 })
	g.typ("half a line")
	g.press("C-c")
	g.shows("stopping: no new requests are taken")
	g.shows("stopping: 1 running requests may finish, Ctrl-C stops at once")
	g.typed("half a line")
	if !g.running() {
		t.Fatal("it did not wait")
	}
	g.press("C-c")
	g.ended(0)
	if err := <-held; err == nil {
		t.Error("the request was answered")
	}
}

func (g *stage) inFlight() int {
	resp, err := http.Get(g.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	buf := make([]byte, 1<<20)
	n := 0
	for {
		m, err := resp.Body.Read(buf[n:])
		if n += m; err != nil || n == len(buf) {
			break
		}
	}
	found := regexp.MustCompile(`(?m)^understudy_\w*in_flight\w*\{[^}]*auto-strong[^}]*\} (\d+)`).FindSubmatch(buf[:n])
	if found == nil {
		return -1
	}
	count, _ := strconv.Atoi(string(found[1]))
	return count
}

func TestEveryWayOutRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(g *stage){
		"quit":    func(g *stage) { g.run("quit") },
		"q":       func(g *stage) { g.run("q") },
		"Ctrl-D":  func(g *stage) { g.press("C-d") },
		"Ctrl-C":  func(g *stage) { g.press("C-c") },
		"SIGTERM": func(g *stage) { _ = syscall.Kill(g.pid(), syscall.SIGTERM) },
		"SIGINT":  func(g *stage) { _ = syscall.Kill(g.pid(), syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newStage(t, 80, 24, nil)
			g.shows("all candidates are available")
			if g.settings() == g.note("before") {
				t.Error("the console did not change the terminal: nothing to restore")
			}
			leave(g)
			g.ended(0)
			if text := g.text(); strings.Contains(text, "all candidates") {
				t.Errorf("the bar is left over:\n%s", text)
			}
		})
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A console that panics gives the terminal back, and takes nobody with it.
func TestAPanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), panics) // the test's binary, under the name of one of its commands
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"command", "view", "outside"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 80, 24, nil, link, where)
			s.shows("understudy>")
			s.run("go")
			exit := exitFailed
			if where == "outside" {
				exit = 2 // a panic's
			}
			s.ended(exit)
			if all := s.scrolled(); !strings.Contains(all, "a mistake of ours") {
				t.Errorf("nobody told:\n%s", all)
			}
		})
	}
}

// A terminal that takes nothing holds nothing up: not the requests, and not the end.
func TestAStuckTerminalHoldsNothingUp(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	before := g.slowest(t, 300)
	pid := g.pid()
	if err := syscall.Kill(g.server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stuck := g.slowest(t, 1500) // far more than a terminal's buffer holds
	if stuck > 3*before+100*time.Millisecond {
		t.Errorf("p99 %v, before %v", stuck, before)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("it does not end")
	}
	if err := syscall.Kill(g.server, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.ended(0)
}

// slowest is the 99th percentile of so many requests, four at a time.
func (g *stage) slowest(t *testing.T, n int) time.Duration {
	t.Helper()
	times := make(chan time.Duration, n)
	for range 4 {
		go func() {
			for range n / 4 {
				took, err := g.ask(false)
				if err != nil {
					t.Errorf("a request: %v", err)
				}
				times <- took
			}
		}()
	}
	var all []time.Duration
	for range n / 4 * 4 {
		all = append(all, <-times)
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// The log goes on where it would without a console: into a file, where stderr is one.
func TestALogInAFileStaysThere(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, 80, 24, nil)
	s := newScreen(t, 80, 24, nil, "sh", "-c", `exec "$0" serve -c "$1" 2>"$2"`, path, g.config, filepath.Join(g.dir, "log"))
	s.shows("understudy>")
	s.run("target on")
	s.shows("target mode is on: ")
	s.run("quit")
	s.ended(0)
	if strings.Contains(s.scrolled(), "INF") {
		t.Errorf("%s", s.scrolled())
	}
	if !strings.Contains(contents(t, filepath.Join(g.dir, "log")), "target mode on") {
		t.Error("the log is empty")
	}
}

// No console where there is none to be: told so, in the background, and with output
// that is no terminal.
func TestServeWithoutAConsole(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("--no-repl", func(t *testing.T) {
		t.Parallel()
		g := newStage(t, 80, 24, nil, "--no-repl")
		if _, err := g.ask(false); err != nil {
			t.Fatal(err)
		}
		g.shows("INF request")
		if strings.Contains(g.text(), "understudy>") {
			t.Errorf("%s", g.text())
		}
		g.press("C-c")
		g.ended(0)
	})
	t.Run("background", func(t *testing.T) {
		t.Parallel()
		g := newStage(t, 80, 24, nil)
		s := newScreen(t, 80, 24, nil, "bash", "--norc", "-i")
		s.run(fmt.Sprintf("PS1='shell$ '; %s serve -c %s &", path, g.config))
		s.shows("admin  http")
		s.run("echo still $((40+2))")
		s.shows("still 42")
		if text := s.text(); strings.Contains(text, "understudy>") || strings.Contains(text, "Stopped") {
			t.Errorf("%s", text)
		}
		s.run("kill %1; wait; echo over $((40+3))")
		s.shows("over 43")
	})
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		g := newStage(t, 80, 24, nil)
		s := newScreen(t, 80, 24, nil, "sh", "-c", `"$0" serve -c "$1" | cat`, path, g.config)
		s.shows("admin  http")
		s.press("C-c")
		s.wait("the end", func(string) bool { return !s.running() })
		if strings.Contains(s.scrolled(), "understudy>") {
			t.Errorf("%s", s.scrolled())
		}
	})
}

// A terminal that can only print has a prompt and nothing else.
func TestADumbTerminal(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, 80, 24, nil)
	s := newScreen(t, 80, 24, nil, "env", "TERM=dumb", path, "serve", "-c", g.config)
	s.shows("understudy>")
	s.run("target on")
	s.shows("target mode is on: ")
	s.run("frezee")
	s.shows("error: no command 'frezee'; did you mean freeze?")
	if text := s.tmux("capture-pane", "-p", "-e", "-S", "-"); strings.Contains(text, "rpm") || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	s.run("quit")
	s.ended(0)
	s = newScreen(t, 80, 24, nil, "env", "TERM=dumb", path, "console", "--admin", g.admin)
	s.shows("understudy>")
	s.run("target")
	s.shows("target mode is off")
	s.press("C-d")
	s.ended(0)
}

// The console of another process: the same bar and commands; it ends alone, and says
// when nobody answers any more.
func TestTheConsoleOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	s := newScreen(t, 80, 24, nil, path, "console", "--admin", g.admin)
	s.shows("all candidates are available")
	s.run("freeze add auto-strong 2 600")
	s.shows("frozen: auto-strong/Claude ")
	g.shows("frozen: auto-strong/Claude ") // of its own accord
	s.typ("something")
	s.press("C-c")
	s.typed("")
	s.press("C-c")
	s.ended(0)
	if _, err := g.ask(false); err != nil {
		t.Error(err)
	}
	s = newScreen(t, 80, 24, nil, path, "console", "--admin", g.admin)
	s.shows("frozen: auto-strong/Claude ")
	g.run("quit")
	g.ended(0)
	s.shows("no answer: nobody answers at http://")
	s.run("vm")
	s.shows("error: nobody answers at http://")
	s.run("quit")
	s.ended(0)
}

// A console that is stopped (SIGSTOP) moves nothing in the proxy.
func TestAPausedConsoleMovesNothing(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, 80, 24, nil)
	s := newScreen(t, 80, 24, nil, path, "console", "--admin", g.admin)
	s.shows("all candidates are available")
	before := g.slowest(t, 400)
	if err := syscall.Kill(s.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	paused := g.slowest(t, 400)
	if paused > 3*before+100*time.Millisecond {
		t.Errorf("p99 %v, before %v", paused, before)
	}
	if err := syscall.Kill(s.pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.run("target")
	s.shows("target mode is off")
	s.run("quit")
	s.ended(0)
}

// Ctrl-Z suspends a console and fg brings it back; in serve it does nothing.
func TestSuspending(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.press("C-z")
	g.shows("it would hold up the proxy too")
	s := newScreen(t, 80, 24, nil, "bash", "--norc", "-i")
	s.run(fmt.Sprintf("PS1='shell$ '; %s console --admin %s", path, g.admin))
	s.shows("all candidates are available")
	s.typ("half a line")
	s.typed("half a line")
	s.press("C-z")
	s.shows("Stopped")
	s.run("echo still $((40+2))")
	s.shows("still 42")
	s.run("fg")
	s.typed("half a line")
	s.shows("all candidates are available")
	s.press("C-u")
	s.run("quit")
	// Keys typed before the end would be the console's.
	s.wait("the shell's prompt", func(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), "quit\nshell$") })
	s.run("echo over $((40+3))")
	s.shows("over 43")
}

// The terminal goes away under serve: the proxy goes on.
func TestTheProxyOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	pid := g.pid()
	g.tmux("kill-server")
	g.server = 0
	for range 50 {
		if _, err := g.ask(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("it does not end")
	}
}

// Two processes cannot share a terminal: with a console there is no upgrade, which is
// said, and nothing else happens.
func TestNoUpgradeUnderAConsole(t *testing.T) {
	t.Parallel()
	g := newStage(t, 120, 24, nil)
	g.shows("all candidates are available")
	if err := syscall.Kill(g.pid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	g.shows("no upgrade: the console's terminal cannot be shared")
	if _, err := g.ask(false); err != nil {
		t.Error(err)
	}
	g.run("quit")
	g.ended(0)
}
