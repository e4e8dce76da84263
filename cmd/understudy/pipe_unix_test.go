//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whoever reads the log may go away: the program serves on, and ends when it is told to,
// in good order.
func TestALostReaderOfTheLogEndsNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	cfg := fmt.Sprintf("server: {port: 0, admin: off, state_dir: %q}\nvirtual_models: {vm: [{base_url: 'http://127.0.0.1:1', model: m, auth_style: none}]}\n", dir)
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{"understudy", "serve", "-c", path, "--no-repl"}, Env: append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), Stderr: writer}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	defer cmd.Process.Kill()
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "proxy  "); ok {
			url = strings.Fields(rest)[0]
		}
	}
	log.Close()
	for range 20 {
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"nobody"}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != http.StatusNotFound {
			t.Fatal(resp.Status)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil { // it writes what is left of its log, and ends with 0
		t.Error(err)
	}
}
