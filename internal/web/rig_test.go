package web

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/control"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

const (
	models = `
virtual_models:
  auto:
    - {name: a, base_url: "http://127.0.0.1:9001", auth_style: none, model: m}
    - {name: "<script>alert(1)</script>", base_url: "http://127.0.0.1:9002", api_key: sk-literal-abcdefghijklmnop1234, model: n}
  other:
    - {name: the same as a, base_url: "http://127.0.0.1:9001", auth_style: none, model: m}
`
	token   = "admin-token-abcdefghijklmnop"
	guarded = "server: {admin_token: " + token + ", allowed_hosts: [proxy.example.com]}" + models
)

// A rig is a Handler over a real Control and a real file.
type rig struct {
	*Handler
	t      *testing.T
	proxy  *proxy.Handler
	log    *bytes.Buffer
	failed string // what the last reload failed with
}

func newRig(t *testing.T, text string) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "understudy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := func(src config.Source) (*proxy.Snapshot, error) {
		cfg, problems := config.Parse(src)
		if cfg == nil {
			t.Errorf("the configuration has mistakes: %v", problems)
		}
		return proxy.Compile(cfg)
	}
	load := func() (config.Source, *proxy.Snapshot) {
		src, err := config.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := compile(src)
		if err != nil {
			t.Fatal(err)
		}
		return src, s
	}
	r := &rig{t: t, log: new(bytes.Buffer)}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	_, first := load()
	r.proxy = proxy.New(first, health.NewBoard(), stats.NewLedger(100), new(proxy.Transports), log, func() float64 { return 0.5 })
	var edits sync.Mutex
	loaded := time.Now()
	c := control.New(control.Deps{
		Handler: r.proxy, Started: time.Now(), Version: "1.2.3", Log: log,
		Status: func() control.Status { return control.Status{Path: path, LoadedAt: loaded, Error: r.failed} },
		Reload: func(context.Context) error {
			_, s := load()
			r.proxy.Swap(s)
			return nil
		},
		Edit: func(_ context.Context, _ string, edit func(config.Source) (config.Source, error)) ([]string, error) {
			edits.Lock()
			defer edits.Unlock()
			src, _ := load()
			edited, err := edit(src)
			if err != nil {
				return nil, err
			}
			if err := edited.Write(); err != nil {
				return nil, err
			}
			_, s := load()
			r.proxy.Swap(s)
			return nil, nil
		},
	})
	r.Handler = New(c, log)
	t.Cleanup(r.Close)
	return r
}

// book adds a finished request to the ledger.
func (r *rig) book(record stats.Record) {
	r.proxy.Ledger().Enter(record.Model)
	r.proxy.Ledger().Add(record)
}

// success is a request that one attempt served.
func success(id string) stats.Record {
	usage := stats.Usage{Input: 100, Output: 20, Cached: -1, CacheWrite: -1, Reasoning: -1, Total: 120}
	return stats.Record{
		ID: id, Model: "auto", Method: "POST", Path: "/v1/chat/completions", Dialect: "openai", Start: time.Now(), End: 2 * time.Second, FirstContent: time.Second, Status: 200,
		Tries:  []stats.Try{{Candidate: "0123456789abcdef", Name: "a", Model: "m", Start: time.Now(), End: time.Second, Verdict: stats.OK, Usage: usage}},
		Winner: 0, Ending: stats.Success, Usage: usage,
	}
}

// ask sends one request; head are lines such as "Host: x".
func (r *rig) ask(method, target, body string, head ...string) *http.Response {
	r.t.Helper()
	q := httptest.NewRequest(method, target, strings.NewReader(body))
	q.Host = "127.0.0.1:8788"
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			q.Host = value
		} else {
			q.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w.Result()
}

const jsonType = "Content-Type: application/json"

func text(t *testing.T, a *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
