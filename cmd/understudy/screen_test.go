//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built is the program, with the race detector where the tests have it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "understudy-screen-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "understudy")
	args := []string{"build", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// A screen is a terminal, by tmux, in which one program runs.
type screen struct {
	t      *testing.T
	dir    string
	socket string
	server int // tmux's process
}

// patience is how long a screen may take to show what a test waits for.
const patience = 2 * time.Minute

// newScreen runs a command on a terminal of its own. The tests need tmux, and fail
// without it: what they look at can be seen nowhere else.
func newScreen(t *testing.T, columns, rows int, env []string, command ...string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is missing, which these tests run the console in: install it (apt-get install tmux, brew install tmux)")
	}
	// A socket's path must be short.
	dir, err := os.MkdirTemp("/tmp", "us-")
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, dir: dir, socket: filepath.Join(dir, "s")}
	conf := filepath.Join(dir, "tmux.conf")
	settings := "set -g status off\nset -g history-limit 100000\nset -g default-terminal screen-256color\nset -sg escape-time 0\n"
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-S", s.socket, "-f", conf, "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows)}
	// Mistakes that the race detector finds would be lost on the screen.
	env = append([]string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_STATE_HOME=" + dir, "GORACE=log_path=" + dir + "/race", "NO_COLOR="}, env...)
	for _, one := range env {
		args = append(args, "-e", one)
	}
	// The terminal's settings are noted before and after; what notes them keeps the
	// terminal open, so that the last of it can be looked at.
	args = append(args, "sh", "-c", `trap : INT; stty -g >"$0/before"
sh -c 'echo $$ >"$0/pid"; exec "$@"' "$0" "$@"
echo $? >"$0/status"; stty -g >"$0/after"; mv "$0/status" "$0/exit"; exec sleep 600`, dir)
	t.Cleanup(s.close)
	if out, err := exec.Command("tmux", append(args, command...)...).CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	s.server = s.number("#{pid}")
	return s
}

func (s *screen) close() {
	if s.server != 0 {
		_ = syscall.Kill(s.server, syscall.SIGCONT)
	}
	_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run()
	// The terminal's end is a hang-up, which has a program that serves read its file anew.
	if text, err := os.ReadFile(filepath.Join(s.dir, "pid")); err == nil && s.running() {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if races, _ := filepath.Glob(s.dir + "/race.*"); len(races) > 0 {
		text, _ := os.ReadFile(races[0])
		s.t.Errorf("a data race: %s", text)
	}
	_ = os.RemoveAll(s.dir)
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (s *screen) number(format string) int {
	s.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s.tmux("display-message", "-p", format)))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// press presses keys by tmux's names; typ types text.
func (s *screen) press(keys ...string) { s.tmux(append([]string{"send-keys"}, keys...)...) }
func (s *screen) typ(text string)      { s.tmux("send-keys", "-l", "--", text) }

// run types a line.
func (s *screen) run(line string) {
	s.typ(line)
	s.press("Enter")
}

// text is what is seen; scrolled is everything since the start, lines that the terminal
// has broken joined.
func (s *screen) text() string     { return s.tmux("capture-pane", "-p") }
func (s *screen) scrolled() string { return s.tmux("capture-pane", "-p", "-J", "-S", "-") }

// wait waits until the screen is as wanted, and gives what it shows then.
func (s *screen) wait(what string, as func(text string) bool) string {
	s.t.Helper()
	text := ""
	if !until(func() bool { text = s.text(); return as(text) }) {
		s.t.Fatalf("%s: not seen in\n%s", what, text)
	}
	return text
}

// shows waits for a text to be seen.
func (s *screen) shows(text string) string {
	s.t.Helper()
	return s.wait(text, func(seen string) bool { return strings.Contains(seen, text) })
}

// until looks again and again, for as long as a slow machine may need.
func until(as func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		if as() {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
}

// promptIn is what stands in the prompt, the last one that is seen.
func promptIn(text string) string {
	const prompt = "understudy>"
	i := strings.LastIndex(text, prompt)
	if i < 0 {
		return "no prompt"
	}
	line, _, _ := strings.Cut(text[i+len(prompt):], "\n")
	return strings.TrimSpace(line)
}

// typed waits until a line stands in the prompt.
func (s *screen) typed(line string) {
	s.t.Helper()
	s.wait("the prompt with "+line, func(text string) bool { return promptIn(text) == line })
}

// pid is the program's process.
func (s *screen) pid() int {
	s.t.Helper()
	pid := 0
	if !until(func() bool { pid, _ = strconv.Atoi(s.note("pid")); return pid > 0 }) {
		s.t.Fatal("nothing runs")
	}
	return pid
}

// note is what has been noted about the program, "" if nothing is yet.
func (s *screen) note(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return strings.TrimSpace(string(text))
}

// running says whether the program has not come to its end.
func (s *screen) running() bool { return s.note("exit") == "" }

// ended waits for the end of the program, and checks that the terminal is as it was:
// its settings, and its cursor.
func (s *screen) ended(exit int) {
	s.t.Helper()
	if !until(func() bool { return !s.running() }) {
		s.t.Fatalf("it goes on:\n%s", s.text())
	}
	if got := s.note("exit"); got != strconv.Itoa(exit) {
		s.t.Errorf("exit %s, want %d:\n%s", got, exit, s.scrolled())
	}
	if before, after := s.note("before"), s.note("after"); before != after || before == "" {
		s.t.Errorf("the terminal's settings were %s and are %s", before, after)
	}
	if n := s.number("#{cursor_flag}"); n != 1 {
		s.t.Error("the cursor is hidden")
	}
}

// settings are the terminal's as they are now.
func (s *screen) settings() string {
	s.t.Helper()
	tty, err := os.Open(strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_tty}")))
	if err != nil {
		s.t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.Command("stty", "-g")
	cmd.Stdin = tty
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// gone waits for the end of a process that nobody may have been told of yet.
func gone(pid int) bool {
	return until(func() bool {
		state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		state = bytes.TrimSpace(state)
		return len(state) == 0 || state[0] == 'Z'
	})
}

// A stage is a running proxy in a terminal, with an upstream of its own behind it.
type stage struct {
	*screen
	config       string
	proxy, admin string
}

const stageConfig = `server:
  port: 0
  admin: 127.0.0.1:0
  reload_poll_interval: 0.2
virtual_models:
  auto-strong: # the good ones
    - {name: Direct API, base_url: "UPSTREAM", auth_style: none, model: gpt-4o}
    - {name: Claude, base_url: "UPSTREAM", auth_style: none, model: claude-sonnet-4-5}
  便宜的模型:
    - {name: 本地, base_url: "UPSTREAM", auth_style: none, model: qwen}
`

// upstream answers every request at once, but for those that ask to be held.
func upstream(t *testing.T) *httptest.Server {
	release := make(chan struct{})
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hold") != "" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"All the world is a stage."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17}}`))
	}))
	t.Cleanup(u.Close)
	t.Cleanup(func() { close(release) }) // before the server waits for them
	return u
}

// newStage serves on a terminal and waits for the prompt.
func newStage(t *testing.T, columns, rows int, env []string, options ...string) *stage {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	g := &stage{config: filepath.Join(t.TempDir(), "understudy.yaml")}
	text := strings.ReplaceAll(stageConfig, "UPSTREAM", upstream(t).URL)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.screen = newScreen(t, columns, rows, env, append([]string{path, "serve", "-c", g.config}, options...)...)
	g.wait("the addresses", func(string) bool {
		found := addresses.FindStringSubmatch(g.scrolled())
		if found == nil {
			return false
		}
		g.proxy, g.admin = found[1], found[2]
		return true
	})
	return g
}

var addresses = regexp.MustCompile(`proxy  (http://\S+)\s+admin  (http://\S+)`)

// ask sends one request and says how long the answer took.
func (g *stage) ask(hold bool) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, g.proxy+"/v1/chat/completions", strings.NewReader(`{"model":"auto-strong","messages":[{"role":"user","content":"a line"}]}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if hold {
		req.Header.Set("X-Hold", "1")
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d, %v: %s", resp.StatusCode, err, &body)
	}
	return time.Since(start), nil
}
