//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the longest a call may take from the Go side. It is longer than the driver's own limit, so that a hung
// SDK is reported by its name.
const patience = 45 * time.Second

// command is one line to the driver.
type command struct {
	ID      int    `json:"id"`
	Call    string `json:"call"`
	BaseURL string `json:"baseURL"`
	Model   string `json:"model"`
}

// result is what an SDK made of one call; client.mjs says what the fields mean.
type result struct {
	ID     int              `json:"id"`
	OK     bool             `json:"ok"`
	Text   string           `json:"text"`
	Finish string           `json:"finish"`
	Tool   *tool            `json:"tool"`
	Usage  map[string]int64 `json:"usage"`
	Error  *sdkError        `json:"error"`
	HTTP   []exchange       `json:"http"`
}

type tool struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type sdkError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Status  int    `json:"status"`
	Cause   string `json:"cause"`
}

func (e *sdkError) String() string {
	if e == nil {
		return "no error"
	}
	return fmt.Sprintf("%s: %s (status %d, cause %q)", e.Name, e.Message, e.Status, e.Cause)
}

// exchange is one HTTP request that the SDK made, as its fetch saw it answered.
type exchange struct {
	Status    int    `json:"status"`
	Candidate string `json:"candidate"`
	Attempts  string `json:"attempts"`
}

// driver is the node process that holds the SDKs. Its calls may run side by side.
type driver struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	said    logBuffer // what the SDKs print; some do so on every error

	mu      sync.Mutex
	last    int
	waiting map[int]chan result
}

// startDriver starts node in this folder. The caller closes it.
func startDriver(node string) (*driver, error) {
	// Node refuses answers with more than 16 KiB of header lines; large ones are among what is tried.
	process := exec.Command(node, "--max-http-header-size=262144", "client.mjs")
	d := &driver{process: process, waiting: map[int]chan result{}}
	process.Stderr = &d.said
	process.Env = withoutProxies(os.Environ())
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("driver's stdin: %w", err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("driver's stdout: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	d.stdin = stdin
	go d.read(stdout)
	return d, nil
}

// read hands each result to the call that waits for it, until the driver ends; then it fails those that still wait.
func (d *driver) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: the driver wrote what is no result: %q\n", line)
			continue
		}
		d.mu.Lock()
		waiter := d.waiting[r.ID]
		delete(d.waiting, r.ID)
		d.mu.Unlock()
		if waiter != nil {
			waiter <- r
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, waiter := range d.waiting {
		delete(d.waiting, id)
		close(waiter)
	}
}

// call has an SDK make one call and waits for what it makes of it.
func (d *driver) call(t *testing.T, call, baseURL, model string) result {
	t.Helper()
	waiter := make(chan result, 1)
	d.mu.Lock()
	d.last++
	id := d.last
	d.waiting[id] = waiter
	line, err := json.Marshal(command{ID: id, Call: call, BaseURL: baseURL, Model: model})
	if err == nil {
		_, err = d.stdin.Write(append(line, '\n'))
	}
	d.mu.Unlock()
	if err != nil {
		t.Fatalf("ask the driver for %s: %v", call, err)
	}
	select {
	case r, ok := <-waiter:
		if !ok {
			t.Fatalf("the driver ended during %s", call)
		}
		return r
	case <-time.After(patience):
		t.Fatalf("the driver said nothing about %s within %s", call, patience)
	}
	panic("unreachable")
}

// close ends the driver by closing its stdin, and by force if that does not do.
func (d *driver) close() {
	d.stdin.Close()
	ended := make(chan struct{})
	go func() { d.process.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		d.process.Process.Kill()
		<-ended
	}
}

// withoutProxies drops the variables that would send loopback traffic elsewhere.
func withoutProxies(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			kept = append(kept, entry)
		}
	}
	return kept
}
