package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/h1server"
	"understudy/internal/health"
	"understudy/internal/stats"
	"understudy/internal/upstreamtest"
)

// bed is a proxy between a client and its upstreams, all in memory, so that a test
// in a bubble measures waits exactly.
type bed struct {
	t       *testing.T
	net     *upstreamtest.Net
	handler *Handler
	client  *http.Client
	log     *bytes.Buffer

	mu    sync.Mutex
	calls map[string][]call // by upstream
}

// call is one request as an upstream saw it.
type call struct {
	at     time.Time
	method string
	uri    string
	header http.Header
	body   string
	gone   <-chan struct{}
}

// newBed serves a configuration. It must be made inside the bubble.
func newBed(t *testing.T, cfg string) *bed {
	t.Helper()
	b := &bed{t: t, net: upstreamtest.NewNet(), log: new(bytes.Buffer), calls: map[string][]call{}}
	transports := &Transports{Dial: b.net.DialContext}
	b.handler = New(compile(t, cfg), health.NewBoard(), stats.NewLedger(100), transports, slog.New(slog.NewTextHandler(&lockedWriter{w: b.log}, nil)), func() float64 { return 0 })
	server := &h1server.Server{HTTP: &http.Server{Handler: b.handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), DisableGeneralOptionsHandler: true}}
	l := b.net.Listen("127.0.0.1:8787")
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) }) // ends with ErrServerClosed
	own := &http.Transport{DialContext: b.net.DialContext, DisableCompression: true}
	b.client = &http.Client{Transport: own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		own.CloseIdleConnections()
		server.Close()
		transports.CloseIdle()
		wg.Wait()
	})
	return b
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func compile(t *testing.T, cfg string) *Snapshot {
	t.Helper()
	parsed, problems := config.Parse(config.Source{Path: "test.yaml", Format: config.YAML, Bytes: []byte(cfg)})
	for _, p := range problems {
		if p.Severity == config.Error {
			t.Fatalf("configuration: %s", p)
		}
	}
	s, err := Compile(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// upstream serves a host of the bed's network, http://NAME.
func (b *bed) upstream(name string, script func(w http.ResponseWriter, r *http.Request, n int)) {
	b.t.Helper()
	server := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.calls[name] = append(b.calls[name], call{time.Now(), r.Method, r.RequestURI, r.Header.Clone(), string(body), r.Context().Done()})
		n := len(b.calls[name])
		b.mu.Unlock()
		script(w, r, n)
	})}
	l := b.net.Listen(name + ":80")
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) }) // ends with ErrServerClosed
	b.t.Cleanup(func() { server.Close(); wg.Wait() })
}

// seen are the calls that an upstream got.
func (b *bed) seen(name string) []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]call(nil), b.calls[name]...)
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // reading the body ended in one: the answer was cut
	took   time.Duration
	at     []time.Duration // when each read of the body returned
}

// ask sends a request and reads the answer to its end.
func (b *bed) ask(method, path, body string, headers ...string) reply {
	b.t.Helper()
	return b.askCtx(b.t.Context(), method, path, body, headers...)
}

func (b *bed) askCtx(ctx context.Context, method, path, body string, headers ...string) reply {
	b.t.Helper()
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			req.Header.Del(headers[i])
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return reply{err: err, took: time.Since(start)}
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	var got strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			got.Write(buf[:n])
			r.at = append(r.at, time.Since(start))
		}
		if err != nil {
			if err != io.EOF {
				r.err = err
			}
			break
		}
	}
	r.body, r.took = got.String(), time.Since(start)
	return r
}

// chat asks for a streamed chat completion.
func (b *bed) chat(model string, headers ...string) reply {
	b.t.Helper()
	return b.ask("POST", "/v1/chat/completions", chatBody(model, true), headers...)
}

func chatBody(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
}

const (
	pong  = `data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"PONG PONG PONG"},"finish_reason":null}]}` + "\n\n"
	stop  = `data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done  = "data: [DONE]\n\n"
	whole = pong + stop + done
	role  = `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	hel   = `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}` + "\n\n"
)

// sse sends events, each flushed.
func sse(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}

func healthy(w http.ResponseWriter, _ *http.Request, _ int) { sse(w, whole) }

func fail(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hijacked gives a script the connection itself.
func hijacked(script func(c net.Conn)) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		script(c)
	}
}

// chain is a configuration with one virtual model `vm` over upstreams u1, u2, …
func chain(n int, more string) string {
	cfg := more + "\nvirtual_models:\n  vm:\n"
	for i := range n {
		cfg += fmt.Sprintf("    - {name: u%d, base_url: \"http://u%d\", api_key: sk-upstream-secret-%d, model: m%d}\n", i+1, i+1, i+1, i+1)
	}
	return cfg
}

// handle serves a request without a network: for what never reaches an upstream.
func handle(t *testing.T, cfg string, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	h := New(compile(t, cfg), health.NewBoard(), stats.NewLedger(10), new(Transports), slog.New(slog.DiscardHandler), func() float64 { return 0 })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
