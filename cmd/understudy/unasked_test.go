package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// What an upstream says that nobody asked for is no answer to anybody, and ends on no
// terminal and in no log as it came: net/http would write it to standard error.
func TestWhatNobodyAskedForIsNotWritten(t *testing.T) {
	const key = "sk-upstream-0123456789-secret-1"
	unasked := "HTTP/1.1 200 OK\x1b[2J\r\nX-Echo: Bearer " + key + " " + base64.StdEncoding.EncodeToString([]byte("user:"+key)) + "\r\n\r\nlevel=ERROR msg=forged\r\n"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	noticed := make(chan struct{}, 100)
	// It plays an HTTP proxy: what goes there goes by net/http.
	u := drill.StartRaw(l, func(c net.Conn) {
		in := bufio.NewReader(c)
		q, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, q.Body)
		body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"mine"},"finish_reason":"stop"}]}`
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		io.WriteString(c, unasked)
		io.Copy(io.Discard, in) // until the connection is given up
		noticed <- struct{}{}
	})
	defer u.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	text := fmt.Sprintf("server: {port: 0, admin: 127.0.0.1:0, state_dir: %q}\nvirtual_models: {vm: [{base_url: \"http://upstream.example\", proxy: %q, api_key: %s, model: m1}]}\n", dir, u.URL(), key)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"info", "debug"} {
		p := launch(t, "serve", "--no-repl", "-c", path, "--log-level", level)
		for range 5 {
			resp, err := http.Post("http://"+p.proxy+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"vm","messages":[]}`))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || !strings.Contains(string(answer), "mine") {
				t.Errorf("client got %d %q, %v", resp.StatusCode, answer, err)
			}
			select {
			case <-noticed:
			case <-time.After(20 * time.Second):
				t.Fatal("a connection that says more than it should is kept")
			}
		}
		p.end(t)
		said := p.errs.String()
		if strings.Contains(said, "Unsolicited") != (level == "debug") {
			t.Errorf("level %s: %s", level, said)
		}
		for _, bad := range []string{key, "secret-1", base64.StdEncoding.EncodeToString([]byte("user:" + key))[8:40], "\x1b"} {
			if strings.Contains(said, bad) {
				t.Errorf("level %s: %q shows in %s", level, bad, said)
			}
		}
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "level=ERROR") || strings.HasPrefix(line, "Unsolicited") {
				t.Errorf("level %s: a line that is not ours: %s", level, line)
			}
		}
	}
}
