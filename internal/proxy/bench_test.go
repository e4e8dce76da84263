package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/config"
	"understudy/internal/h1server"
	"understudy/internal/health"
	"understudy/internal/stats"
	"understudy/internal/upstreamtest"
)

// The figures of these benchmarks mean something only against each other: the bare
// ReverseProxy is in the same run for that.

const benchModel = "vm"

// benchNet is an upstream that answers a fixed text, and a client's connection to
// whatever is in front of it.
type benchNet struct {
	net *upstreamtest.Net
}

func newBenchNet(b *testing.B, contentType string, answer [][]byte) *benchNet {
	n := &benchNet{net: upstreamtest.NewNet()}
	l := n.net.Listen("u1:80")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for _, part := range answer {
			_, _ = w.Write(part)
			if len(answer) > 1 {
				w.(http.Flusher).Flush()
			}
		}
	})}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	return n
}

// front serves a handler, and returns a client's way to it.
func (n *benchNet) front(b *testing.B, h http.Handler) *http.Client {
	l := n.net.Listen("127.0.0.1:8787")
	server := &h1server.Server{HTTP: &http.Server{Handler: h}}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	return &http.Client{Transport: &http.Transport{DialContext: n.net.DialContext, DisableCompression: true}}
}

func (n *benchNet) proxy(b *testing.B) http.Handler {
	cfg, problems := config.Parse(config.Source{Path: "bench.yaml", Format: config.YAML, Bytes: []byte(chain(2, ""))})
	if cfg == nil {
		b.Fatal(problems)
	}
	s, err := Compile(cfg)
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return New(s, health.NewBoard(), stats.NewLedger(1000), &Transports{Dial: n.net.DialContext}, log, func() float64 { return 0 })
}

func (n *benchNet) bare() http.Handler {
	target, _ := url.Parse("http://u1")
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.net.DialContext(ctx, network, addr)
		}, DisableCompression: true, MaxIdleConnsPerHost: 512}}
}

func benchRequests(b *testing.B, client *http.Client, body string) {
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Post("http://127.0.0.1:8787/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			b.Fatal(resp.StatusCode, err)
		}
		resp.Body.Close()
	}
}

var (
	benchAnswer = []byte(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 150) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":150,"total_tokens":162}}`)
	benchDelta  = []byte(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
)

func benchStream() (parts [][]byte) {
	for range 100 {
		parts = append(parts, benchDelta)
	}
	return append(parts, []byte(stop), []byte(done))
}

func BenchmarkRequest(b *testing.B) {
	body := `{"model":"` + benchModel + `","messages":[{"role":"user","content":"` + strings.Repeat("x", 800) + `"}]}`
	b.Run("understudy", func(b *testing.B) {
		n := newBenchNet(b, "application/json", [][]byte{benchAnswer})
		benchRequests(b, n.front(b, n.proxy(b)), body)
	})
	b.Run("bare", func(b *testing.B) {
		n := newBenchNet(b, "application/json", [][]byte{benchAnswer})
		benchRequests(b, n.front(b, n.bare()), body)
	})
}

func BenchmarkStream(b *testing.B) {
	body := `{"model":"` + benchModel + `","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	b.Run("understudy", func(b *testing.B) {
		n := newBenchNet(b, "text/event-stream", benchStream())
		benchRequests(b, n.front(b, n.proxy(b)), body)
	})
	b.Run("bare", func(b *testing.B) {
		n := newBenchNet(b, "text/event-stream", benchStream())
		benchRequests(b, n.front(b, n.bare()), body)
	})
}

func BenchmarkLargeBody(b *testing.B) {
	body := `{"model":"` + benchModel + `","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("x"), 8<<20)) + `"}]}`
	b.Run("understudy", func(b *testing.B) {
		n := newBenchNet(b, "application/json", [][]byte{benchAnswer})
		benchRequests(b, n.front(b, n.proxy(b)), body)
	})
	b.Run("bare", func(b *testing.B) {
		n := newBenchNet(b, "application/json", [][]byte{benchAnswer})
		benchRequests(b, n.front(b, n.bare()), body)
	})
}
