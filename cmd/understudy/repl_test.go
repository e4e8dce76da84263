//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// chatter sends a request every 20 ms until the test is over or it is stopped, and
// counts the answers.
func (g *stage) chatter() (stop func() int) {
	ctx, cancel := context.WithCancel(g.t.Context())
	done := make(chan struct{})
	var answers atomic.Int64
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := g.ask(false); err != nil {
					g.t.Errorf("a request: %v", err)
					return
				}
				answers.Add(1)
			}
		}
	}()
	return func() int {
		cancel()
		<-done
		return int(answers.Load())
	}
}

var requestLine = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d INF request\b`)

// While a log line comes every 20 ms, a line is typed character by character, completed
// with Tab, corrected and run: nothing of it is touched, and no log line is lost or
// torn.
func TestTypingGoesOnWhileLogsArrive(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.typed("")
	stop := g.chatter()
	line := ""
	for _, r := range "freeze add 便宜的模型 1 77 the understudy is hoarse" {
		g.typ(string(r))
		line += string(r)
		if r == ' ' {
			g.wait(line, func(text string) bool { return promptIn(text) == strings.TrimRight(line, " ") })
		}
	}
	g.typed(line)
	g.press("BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "BSpace")
	g.typ("ill")
	g.typed("freeze add 便宜的模型 1 77 the understudy is ill")
	g.press("Enter")
	g.shows("便宜的模型/本地 1m")
	for _, step := range []struct{ keys, want string }{
		{"fre\t", "freeze"}, {"r\t", "freeze rm"}, {"便\t", "freeze rm 便宜的模型"}, {"1", "freeze rm 便宜的模型 1"},
	} {
		for i, part := range strings.Split(step.keys, "\t") {
			if i > 0 {
				g.press("Tab")
			}
			if part != "" {
				g.typ(part)
			}
		}
		g.typed(step.want)
	}
	g.press("Enter")
	g.shows("all candidates are available")
	answers := stop()
	g.wait("every request in the log", func(string) bool { return len(requestLine.FindAllString(g.scrolled(), -1)) >= answers })
	all := g.scrolled()
	if n := len(requestLine.FindAllString(all, -1)); n != answers || answers < 20 {
		t.Errorf("%d lines for %d requests", n, answers)
	}
	// Nothing else stands above the prompt than what was printed, line by line.
	first := strings.Index(all, "help lists the commands")
	last := strings.LastIndex(all, "understudy> ")
	known := regexp.MustCompile(`^(\d\d:\d\d:\d\d INF |  \S|help lists|understudy> freeze |便宜的模型 1 本地 \(qwen\): |$)`)
	for n, text := range strings.Split(all[first:last], "\n") {
		if !known.MatchString(text) {
			t.Errorf("line %d is torn: %q", n, text)
		}
	}
	g.run("quit")
	g.ended(0)
}

// The bar counts down by seconds, one after another, while half a line stands in the
// prompt.
func TestTheBarCountsDownBesideTheTyping(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.run("freeze add auto-strong 2 90")
	g.typ("half a li")
	left := regexp.MustCompile(`frozen: auto-strong/Claude (?:(\d+)m)?(\d+)s`)
	var seen []int
	g.wait("five seconds", func(text string) bool {
		if found := left.FindStringSubmatch(text); found != nil {
			minutes, _ := strconv.Atoi(found[1])
			seconds, _ := strconv.Atoi(found[2])
			if n := 60*minutes + seconds; len(seen) == 0 || seen[len(seen)-1] != n {
				seen = append(seen, n)
				if line := promptIn(text); len(seen) > 1 && line != "half a li" {
					t.Errorf("the line is %q", line)
				}
			}
		}
		return len(seen) == 6
	})
	for i := 1; i < len(seen); i++ {
		// A busy machine may skip one; it may never count up.
		if step := seen[i-1] - seen[i]; step < 1 || step > 2 {
			t.Errorf("it counts %v", seen)
		}
	}
	g.press("C-u")
	g.run("freeze rm auto-strong Claude")
	g.shows("all candidates are available")
}

// The figures of the bar are those of the requests.
func TestTheBarShowsTheFigures(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	for range 3 {
		if _, err := g.ask(false); err != nil {
			t.Fatal(err)
		}
	}
	g.wait("three requests", func(text string) bool {
		return regexp.MustCompile(`auto-strong +3 rpm +51 tpm +\d+ms average +- cache hits`).MatchString(text)
	})
	g.run("target on")
	g.shows("target mode is on")
	if err := os.WriteFile(g.config, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.shows("the file is not in force: ")
}

func TestTheMenuOfCompletions(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.typ("freeze add auto-strong ")
	g.press("Tab")
	g.shows("claude-sonnet-4-5  all of this model")
	g.typed("freeze add auto-strong")
	g.press("Tab", "Tab", "Tab", "Tab", "Tab")
	g.typed("freeze add auto-strong 'Direct API'")
	g.shows("> Direct API")
	g.press("BTab")
	g.typed("freeze add auto-strong claude-sonnet-4-5")
	g.press("Escape")
	g.typed("freeze add auto-strong")
	g.wait("no menu", func(text string) bool { return !strings.Contains(text, "all of this model") })
	g.press("C-u")
	g.typ("cand set auto-strong 1 a")
	g.press("Tab")
	g.shows("api_key_env")
	g.typ("u")
	g.press("Tab")
	g.typed("cand set auto-strong 1 auth_style")
	g.press("Tab")
	g.shows("x-goog-api-key")
}

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

// Widths from the usual down to nothing, with wide characters and a line that is longer
// than the terminal: whatever is seen fits, and nothing is torn when there is room again.
func TestTheTerminalChangesItsWidth(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 24, nil)
	g.shows("all candidates are available")
	g.run("freeze add 便宜的模型 本地 600 因为它太慢了")
	g.shows("frozen: 便宜的模型/本地 ")
	g.typ("cand set 便宜的模型 本地 ")
	for _, c := range []struct {
		columns int
		bar     string
	}{
		{40, "auto-strong  0 rpm  0 tpm  -  - cache"}, {20, "auto-st…    0    0"}, {12, "auto-st…"}, {6, "auto-…"}, {3, "au…"}, {2, "a…"}, {1, "…"},
		{2, "a…"}, {7, "auto-s…"}, {30, "auto-st…    0    0     -     -"}, {60, "auto-strong  0 rpm  0 tpm  - average  - cache hits"},
		{100, "auto-strong  0 rpm  0 tpm  - average  - cache hits"}, {80, "auto-strong  0 rpm  0 tpm  - average  - cache hits"},
	} {
		g.tmux("resize-window", "-x", strconv.Itoa(c.columns), "-y", "24")
		g.wait(fmt.Sprintf("%d columns", c.columns), func(text string) bool { return slices.Contains(strings.Split(text, "\n"), c.bar) })
	}
	g.typed("cand set 便宜的模型 本地")
	for _, c := range []struct {
		rows int
		bar  string
	}{
		{10, "auto-strong  0 rpm"}, {4, "frozen:"}, {2, "frozen:"}, {1, "understudy> cand set"}, {3, "frozen:"}, {24, "auto-strong  0 rpm"},
	} {
		g.tmux("resize-window", "-x", "80", "-y", strconv.Itoa(c.rows))
		g.wait(fmt.Sprintf("%d rows", c.rows), func(text string) bool {
			return strings.Contains(text, "understudy> cand set") && strings.Contains(text, c.bar)
		})
	}
	// Dragged: nobody waits for anything between the sizes. The line must survive it.
	for columns := 79; columns > 20; columns -= 7 {
		g.tmux("resize-window", "-x", strconv.Itoa(columns), "-y", "24")
	}
	g.tmux("resize-window", "-x", "80", "-y", "24")
	g.press("C-l") // a clean screen, to count what is on it
	g.wait("a clean screen", func(text string) bool { return strings.HasPrefix(text, "understudy> cand set 便宜的模型 本地") })
	g.typ("weight 2")
	g.press("Enter")
	g.shows("便宜的模型 1 本地 (qwen): weight = 2")
	text := g.shows("frozen: 便宜的模型/本地 ")
	if n := strings.Count(text, "frozen: 便宜的模型/本地"); n != 1 {
		t.Errorf("%d bars:\n%s", n, text)
	}
	g.run("quit")
	g.ended(0)
}

// At 40 columns everything can still be read.
func TestFortyColumns(t *testing.T) {
	t.Parallel()
	g := newStage(t, 40, 30, nil)
	g.shows("all candidates are available")
	g.run("vm")
	g.shows("便宜的模型   1  qwen")
	g.run("stats auto-strong")
	g.wait("six rows of cells", func(string) bool {
		return len(regexp.MustCompile(`(?m)^ +-\d+h \.{24}$`).FindAllString(g.scrolled(), -1)) == 18
	})
	g.typ(`cand add auto-strong {"name": "a long one", "base_url": "http://127.0.0.1:9", "auth_style": "none", "model": "last"}`)
	g.wait("the end of the line", func(text string) bool { return strings.Contains(text, `"last"}`) })
	g.press("Home")
	g.wait("its beginning", func(text string) bool { return strings.Contains(text, "understudy> cand add auto-strong") })
	g.press("Enter")
	g.shows("added a candidate to auto-strong")
}

// More is printed at once than the screen has rows: every line is there, once and in
// order.
func TestLongOutputIsWhole(t *testing.T) {
	t.Parallel()
	g := newStage(t, 80, 10, nil)
	g.shows("all candidates are available")
	g.run("help")
	g.wait("the end of it", func(text string) bool { return strings.Contains(text, "comments stay.") && promptIn(text) == "" })
	all := g.scrolled()
	last := -1
	for _, line := range []string{"command ", "vm add", "cand ls", "rule mv", "freeze clear", "stats ", "reload", "quit ", "A candidate is named"} {
		i := strings.Index(all, "\n"+line)
		if i <= last || strings.Count(all, "\n"+line) != 1 {
			t.Errorf("%q: at %d after %d, %d times", line, i, last, strings.Count(all, "\n"+line))
		}
		last = i
	}
}

// Without colours the same words are there, and no colour is sent.
func TestNoColour(t *testing.T) {
	t.Parallel()
	colours := regexp.MustCompile(`\x1b\[[0-9;]*3[0-7][0-9;]*m`)
	for _, c := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=", true}} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			g := newStage(t, 80, 24, []string{c.env})
			g.shows("all candidates are available")
			g.run("freeze add auto-strong 2 600")
			g.run("nonsense")
			g.run("stats auto-strong")
			g.shows("frozen: auto-strong/Claude ")
			g.wait("the cells", func(string) bool { return strings.Contains(g.scrolled(), "*\n") })
			if got := colours.MatchString(g.tmux("capture-pane", "-p", "-e", "-S", "-")); got != c.want {
				t.Errorf("colours: %v", got)
			}
		})
	}
}

// A key is on the screen at no moment, nor in anything that is kept.
func TestAKeyIsNeverOnTheScreen(t *testing.T) {
	t.Parallel()
	const key = "sk-proj-abcdefghijklmnop1234"
	g := newStage(t, 100, 24, nil)
	g.shows("all candidates are available")
	g.typ("cand set auto-strong 1 api_key ")
	for _, r := range key {
		g.typ(string(r))
		if strings.Contains(g.text(), "sk-proj-a") {
			t.Fatalf("%s", g.text())
		}
	}
	g.typed("cand set auto-strong 1 api_key sk-pro******************1234")
	g.press("C-a", "C-k")
	g.typ(`cand add auto-strong {"name": "k", "base_url": "http://127.0.0.1:9", "model": "m", "api_key": "` + key + `"}`)
	g.press("Enter")
	g.shows("added a candidate")
	if !strings.Contains(contents(t, g.config), key) {
		t.Error("the key is not in the file")
	}
	g.press("Up")
	g.wait("the mask", func(text string) bool { return strings.Contains(text, "sk-pro***1234") })
	g.press("Enter")
	g.shows("type the key again")
	if all := g.scrolled(); strings.Contains(all, "proj-abc") {
		t.Errorf("%s", all)
	}
	g.press("C-d")
	g.ended(0)
	kept, err := filepath.Glob(filepath.Join(g.dir, "*", "console-history"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if text := contents(t, kept[0]); strings.Contains(text, "proj-abc") || !strings.Contains(text, "sk-pro***1234") {
		t.Errorf("%s", text)
	}
	if info, _ := os.Stat(kept[0]); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	// The next console has the lines of this one.
	path, _ := built()
	next := newScreen(t, 100, 24, []string{"XDG_STATE_HOME=" + g.dir}, path, "serve", "-c", g.config)
	next.shows("understudy>")
	next.press("Up")
	next.wait("the line before", func(text string) bool { return strings.HasSuffix(promptIn(text), `"api_key": "sk-pro***1234"}`) })
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
