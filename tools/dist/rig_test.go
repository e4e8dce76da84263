package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const checkout = "../.."

// sample is the release that the tests make.
var sample = Release{
	Version: "1.2.3", Commit: "0123456789abcdef0123456789abcdef01234567", Date: time.Date(2026, 11, 30, 4, 5, 6, 0, time.UTC),
	Repository: "https://git.example.com/o/understudy", Builder: "https://git.example.com/o/understudy/builder",
}

// built is what the tests share: the program for the systems under test, made once.
type built struct {
	dir      string
	binaries []Binary
	extras   Extras
	list     []Artifact
}

var (
	once    sync.Once
	shared  built
	failure error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// made builds the program for every system under test and packs it.
func made(t *testing.T) built {
	t.Helper()
	once.Do(func() {
		ctx := context.Background()
		if shared.dir, failure = os.MkdirTemp("", "understudy-dist-test-"); failure != nil {
			return
		}
		for _, target := range underTest {
			var b Binary
			if b, failure = build(ctx, checkout, shared.dir, target, sample); failure != nil {
				return
			}
			shared.binaries = append(shared.binaries, b)
		}
		if shared.extras, failure = gather(ctx, checkout, shared.binaries[0], sample); failure != nil {
			return
		}
		shared.list, failure = assemble(sample, shared.binaries, shared.extras)
	})
	if failure != nil {
		t.Fatal(failure)
	}
	return shared
}

// named is an artifact by the end of its name.
func (b built) named(t *testing.T, ending string) Artifact {
	t.Helper()
	for _, a := range b.list {
		if strings.HasSuffix(a.Name, ending) {
			return a
		}
	}
	t.Fatalf("no artifact %s", ending)
	return Artifact{}
}

// saved writes an artifact into a directory of its own and gives its path.
func saved(t *testing.T, a Artifact) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), a.Name)
	if err := os.WriteFile(path, a.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a command to its end and gives what it prints. It fails the test
// where the command fails.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What the upstream answers, whole and as a stream.
const (
	whole = `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"from the real upstream"},"finish_reason":"stop"}]}`

	streamBegins = "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"from the real \"}}]}\n\n"
	streamEnds   = "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"upstream, \u00e0 la fin\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
)

// An upstream answers chat requests and counts them. What is asked for below /broken it
// refuses. A stream of the model "held" ends when somebody gets /finish.
type upstream struct {
	*httptest.Server
	asked, refused atomic.Int64
	finish         chan struct{}
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{finish: make(chan struct{})}
	finish := sync.OnceFunc(func() { close(u.finish) })
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/finish" {
			finish()
			return
		}
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(r.URL.Path, "/broken") {
			u.refused.Add(1)
			http.Error(w, `{"error":{"message":"out of order"}}`, http.StatusServiceUnavailable)
			return
		}
		u.asked.Add(1)
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, whole)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, streamBegins)
		_ = http.NewResponseController(w).Flush()
		if bytes.Contains(body, []byte(`"held"`)) {
			select {
			case <-u.finish:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, streamEnds)
	}))
	t.Cleanup(u.Close)
	t.Cleanup(finish)
	return u
}

// settings is a configuration with one virtual model, whose first candidate is broken.
func settings(upstream string) string {
	return fmt.Sprintf("server: {port: 0, admin: \"127.0.0.1:0\"}\nvirtual_models:\n  auto:\n    - {base_url: %q, auth_style: none, model: m}\n    - {base_url: %q, auth_style: none, model: m}\n", upstream+"/broken", upstream)
}

// ask sends a chat request to a proxy, then one for a stream, and expects the bytes that
// the upstream sends.
func ask(t *testing.T, proxy string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, c := range []struct{ request, kind, want string }{
		{`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`, "application/json", whole},
		{`{"model":"auto","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "text/event-stream", streamBegins + streamEnds},
	} {
		request, err := http.NewRequestWithContext(ctx, "POST", proxy+"/v1/chat/completions", strings.NewReader(c.request))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != c.kind || string(body) != c.want {
			t.Errorf("%s\nis answered with %d %s %v\n%s", c.request, answer.StatusCode, answer.Header.Get("Content-Type"), err, body)
		}
	}
}

// A process is a running understudy.
type process struct {
	*exec.Cmd
	proxy string // its URL
	errs  *bytes.Buffer
	out   chan string // what it prints, closed at its end
}

// start starts a command that serves, and waits until it says where.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, errs: new(bytes.Buffer), out: make(chan string, 64)}
	cmd.Stderr = p.errs
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
	go func() {
		defer close(p.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.out <- strings.TrimSpace(lines.Text())
		}
	}()
	late := time.After(60 * time.Second)
	for {
		select {
		case line, more := <-p.out:
			if !more {
				_ = cmd.Wait()
				t.Fatalf("it ended early: %s", p.errs)
			}
			if url, ok := strings.CutPrefix(line, "proxy  "); ok {
				p.proxy = url
				return p
			}
		case <-late:
			t.Fatalf("it does not say where it serves")
		}
	}
}

// end sends a signal and waits for a good end.
func (p *process) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	for range p.out {
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, p.errs)
	}
}
