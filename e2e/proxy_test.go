//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
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

// candidate is one entry of a virtual model in the configuration of a proxy under test.
type candidate struct {
	name, baseURL, model, authStyle, key string
}

// setup is the configuration of one proxy under test: virtual models whose candidates are tried in order, short
// clocks, and nothing that freezes, waits or tries again, so that each call shows one pass through its chain.
type setup struct {
	defaultModel string
	settings     map[string]string // further keys of the server section
	delivery     string            // of the virtual models, "" for the default
	models       []virtualModel
}

type virtualModel struct {
	name       string
	candidates []candidate
	delivery   string // "" for the default
}

// yaml spells the configuration as a user would write it.
func (s *setup) yaml(stateDir string) string {
	var b strings.Builder
	b.WriteString("server:\n")
	settings := map[string]string{
		"stall_timeout":        "1",
		"content_timeout":      "1.5",
		"nonstream_timeout":    "2",
		"connect_timeout":      "5",
		"hold_bytes":           "65536",
		"auto_hedge_threshold": "0",
		"reload_poll_interval": "0",
		"state_dir":            strconv.Quote(stateDir),
	}
	if s.defaultModel != "" {
		settings["default_model"] = strconv.Quote(s.defaultModel)
	}
	for key, value := range s.settings {
		settings[key] = value
	}
	for key, value := range settings {
		fmt.Fprintf(&b, "  %s: %s\n", key, value)
	}
	b.WriteString("rules: []\nvirtual_models:\n")
	for _, vm := range s.models {
		fmt.Fprintf(&b, "  %q:\n", vm.name)
		if vm.delivery != "" {
			fmt.Fprintf(&b, "    delivery: %s\n    candidates:\n", vm.delivery)
		}
		for _, c := range vm.candidates {
			fmt.Fprintf(&b, "    - {name: %q, base_url: %q, model: %q, auth_style: %q, api_key: %q}\n",
				c.name, c.baseURL, c.model, c.authStyle, c.key)
		}
	}
	return b.String()
}

// proxy is one running understudy.
type proxy struct {
	url string // of the proxy listener
	log *logBuffer
}

// serve starts the program with the given configuration and waits until it answers. It is stopped with SIGTERM when
// the test ends, and has to exit with 0.
func serve(t *testing.T, s *setup) *proxy {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "understudy.yaml")
	if err := os.WriteFile(file, []byte(s.yaml(filepath.Join(dir, "state"))), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(binary, "serve", "-c", file, "--no-repl", "--host", "127.0.0.1", "--port", "0", "--admin", "off")
	log := &logBuffer{}
	process.Stdout, process.Stderr = log, log
	process.Env = append(withoutProxies(os.Environ()), "HOME="+dir, "XDG_STATE_HOME="+dir)
	if err := process.Start(); err != nil {
		t.Fatalf("start understudy: %v", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- process.Wait() }()
	t.Cleanup(func() { stop(t, process, exited, log) })

	p := &proxy{log: log}
	p.await(t, exited)
	return p
}

// listens is how the program tells where it listens; port 0 takes a free one.
var listens = regexp.MustCompile(`(?m)^\s*proxy\s+(http://127\.0\.0\.1:\d+)$`)

// await waits until the program has told its address and /healthz says ok.
func (p *proxy) await(t *testing.T, exited chan error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(15 * time.Second)
	for {
		if told := listens.FindStringSubmatch(p.log.tail(64 << 10)); told != nil {
			p.url = told[1]
			if err := healthy(p.url); err == nil {
				return
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("understudy ended before it answered: %v", err)
		case <-limit:
			t.Fatal("understudy did not answer /healthz within 15 s")
		case <-tick.C:
		}
	}
}

// stop asks the program to end, and shows its log if the test failed.
func stop(t *testing.T, process *exec.Cmd, exited chan error, log *logBuffer) {
	process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-exited:
		if err != nil {
			t.Errorf("understudy ended with %v after SIGTERM, want exit status 0", err)
		}
	case <-time.After(15 * time.Second):
		t.Error("understudy did not end within 15 s of SIGTERM")
		process.Process.Kill()
		<-exited
	}
	if t.Failed() {
		t.Logf("understudy's log:\n%s", log.tail(16<<10))
	}
}

// healthy asks /healthz.
func healthy(url string) error {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url + "/healthz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var health struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		return err
	}
	if health.Status != "ok" {
		return fmt.Errorf("status %q", health.Status)
	}
	return nil
}

// logBuffer keeps what the program writes, for tests that fail.
type logBuffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(p)
}

// tail is the end of the log, at most max bytes of it.
func (l *logBuffer) tail(max int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bytes.Bytes()
	return string(b[len(b)-min(len(b), max):])
}
