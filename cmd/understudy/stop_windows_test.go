package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// A stopped upstream begins a stream, and ends it when it is told to.
type stopped struct {
	*httptest.Server
	finish func()
}

const (
	heldBegins = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"what takes long, \"}}]}\n\n"
	heldEnds   = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"to its end\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
)

func newStopped(t *testing.T) stopped {
	t.Helper()
	over := make(chan struct{})
	h := stopped{finish: sync.OnceFunc(func() { close(over) })}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, heldBegins)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-over:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, heldEnds)
	}))
	t.Cleanup(h.Close)
	t.Cleanup(h.finish)
	return h
}

// serves writes a configuration for this upstream.
func (h stopped) serves(t *testing.T, port int) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "understudy.yaml")
	text := fmt.Sprintf("server: {port: %d, admin: \"off\", state_dir: %q}\nvirtual_models: {auto: [{base_url: %q, auth_style: none, model: m}]}\n", port, filepath.Join(dir, "state"), h.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// underway begins a stream at a proxy; rest is what comes after its beginning.
func underway(ctx context.Context, t *testing.T, proxy string) (rest func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+proxy+"/v1/chat/completions", strings.NewReader(`{"model":"auto","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	begun := make([]byte, len(heldBegins))
	if _, err := io.ReadFull(answer.Body, begun); err != nil || string(begun) != heldBegins {
		t.Fatalf("the stream begins with %q: %v", begun, err)
	}
	return func() string {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// refuses waits until nobody listens at an address any more.
func refuses(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	becomes(ctx, t, address+" is not listened at", func() bool { return !listens(ctx, address) })
}

func listens(ctx context.Context, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// becomes waits for a condition.
func becomes(ctx context.Context, t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never was so: %s", what)
		}
	}
}

// TestCtrlBreak: it lets a running stream finish, takes no more, and the program ends well.
func TestCtrlBreak(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	h := newStopped(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: []string{"understudy", "serve", "--no-repl", "-c", h.serves(t, 0)}, Stderr: &errs,
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	proxy, lines := "", bufio.NewScanner(out)
	for proxy == "" {
		if !lines.Scan() {
			_ = cmd.Wait()
			t.Fatalf("it ended early: %s", errs.String())
		}
		if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "proxy  http://"); ok {
			proxy = url
		}
	}
	rest := underway(ctx, t, proxy)
	if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	refuses(ctx, t, proxy)
	h.finish()
	if text := rest(); text != heldEnds {
		t.Errorf("the stream ends with %q", text)
	}
	for lines.Scan() { // to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, errs.String())
	}
}

// TestServiceUnderItsManager: the service manager starts it, and when it stops it a running
// stream finishes. It needs an administrator.
func TestServiceUnderItsManager(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	h := newStopped(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := free.Addr().String()
	file := h.serves(t, free.Addr().(*net.TCPAddr).Port)
	free.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), asManaged+".exe")
	if err := os.WriteFile(program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Disconnect()
	service, err := manager.CreateService(fmt.Sprintf("understudy-test-%d", time.Now().UnixNano()), program, mgr.Config{}, "serve", "-c", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(service.Delete(), service.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	becomes(ctx, t, "the service serves", func() bool { return listens(ctx, proxy) })
	rest := underway(ctx, t, proxy)
	if _, err := service.Control(svc.Stop); err != nil {
		t.Fatal(err)
	}
	refuses(ctx, t, proxy)
	h.finish()
	if text := rest(); text != heldEnds {
		t.Errorf("the stream ends with %q", text)
	}
	var status svc.Status
	becomes(ctx, t, "the service has stopped", func() bool {
		if status, err = service.Query(); err != nil {
			t.Fatal(err)
		}
		return status.State == svc.Stopped
	})
	if status.Win32ExitCode != 0 || status.ServiceSpecificExitCode != 0 {
		t.Errorf("it ends with %d %d", status.Win32ExitCode, status.ServiceSpecificExitCode)
	}
}
