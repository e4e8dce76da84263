package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// benchBody is a small request for the virtual model vm.
var benchBody = `{"model":"` + benchModel + `","messages":[{"role":"user","content":"` + strings.Repeat("x", 800) + `"}]}`

// configured is a proxy with a configuration, over the network's upstream u1 and one
// more, bad, that refuses everything.
func (n *benchNet) configured(b *testing.B, text string) http.Handler {
	cfg, problems := config.Parse(config.Source{Path: "bench.yaml", Format: config.YAML, Bytes: []byte(text)})
	if cfg == nil {
		b.Fatal(problems)
	}
	s, err := Compile(cfg)
	if err != nil {
		b.Fatal(err)
	}
	bad := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `{"error":{"message":"overloaded","type":"server_error"}}`)
	})}
	go bad.Serve(n.net.Listen("bad:80"))
	b.Cleanup(func() { bad.Close() })
	return New(s, health.NewBoard(), stats.NewLedger(1000), &Transports{Dial: n.net.DialContext}, slog.New(slog.DiscardHandler), func() float64 { return 0 })
}

// twoBench is a chain of two, the first at a host, and what follows a refusal.
func twoBench(host, rule string) string {
	return fmt.Sprintf(`server: {auto_hedge_threshold: 0}
rules: [{match: {status: 503}, %s}]
virtual_models:
  vm:
    - {name: first, base_url: "http://%s", api_key: sk-first-0123456789, model: m-1}
    - {name: second, base_url: "http://u1", api_key: sk-second-0123456789, model: m-2}
`, rule, host)
}

// timed sends a request and says how long it took.
func timed(b *testing.B, client *http.Client, url string, status int) time.Duration {
	began := time.Now()
	resp, err := client.Post(url, "application/json", strings.NewReader(benchBody))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != status {
		b.Fatal(resp.StatusCode, err)
	}
	resp.Body.Close()
	return time.Since(began)
}

// calm is the tenth percentile: what it takes while nobody else wants the cores, which
// half of the samples on a busy machine are not.
func calm(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/10])
}

const benchURL = "http://127.0.0.1:8787/v1/chat/completions"

// BenchmarkFrozenFirst sends requests in turn through a chain that is well and through
// one whose first candidate is frozen: more-ns is what the frozen one costs, as the
// difference of the tenth percentiles.
func BenchmarkFrozenFirst(b *testing.B) {
	one, two := newBenchNet(b, "application/json", [][]byte{benchAnswer}), newBenchNet(b, "application/json", [][]byte{benchAnswer})
	well := one.front(b, one.configured(b, twoBench("u1", "action: next")))
	frozen := two.front(b, two.configured(b, twoBench("bad", "action: freeze, freeze_seconds: 7200")))
	for range 20 { // the first freezes
		timed(b, well, benchURL, 200)
		timed(b, frozen, benchURL, 200)
	}
	var without, with []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		without = append(without, timed(b, well, benchURL, 200))
		with = append(with, timed(b, frozen, benchURL, 200))
	}
	b.ReportMetric(calm(with)-calm(without), "more-ns")
}

// BenchmarkFailover sends requests in turn through a chain that is well, through one
// whose first candidate refuses, and to the one that refuses: more-ns is what the
// failover takes, and ours-ns what of it is not the refused attempt.
func BenchmarkFailover(b *testing.B) {
	one, two := newBenchNet(b, "application/json", [][]byte{benchAnswer}), newBenchNet(b, "application/json", [][]byte{benchAnswer})
	well := one.front(b, one.configured(b, twoBench("u1", "action: next")))
	failing := two.front(b, two.configured(b, twoBench("bad", "action: next")))
	straight := &http.Client{Transport: &http.Transport{DialContext: two.net.DialContext, DisableCompression: true}}
	var without, with, attempt []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		without = append(without, timed(b, well, benchURL, 200))
		with = append(with, timed(b, failing, benchURL, 200))
		attempt = append(attempt, timed(b, straight, "http://bad/v1/chat/completions", 503))
	}
	more := calm(with) - calm(without)
	b.ReportMetric(more, "more-ns")
	b.ReportMetric(more-calm(attempt), "ours-ns")
}

// BenchmarkWide is a small request among 200 virtual models of 50 candidates each.
func BenchmarkWide(b *testing.B) {
	var text strings.Builder
	text.WriteString("upstream:\n")
	for i := range 50 {
		fmt.Fprintf(&text, "  - {id: up-%d, base_url: \"http://u1\", api_key: sk-%d-0123456789}\n", i, i)
	}
	text.WriteString("virtual_models:\n  vm: &chain\n")
	for i := range 50 {
		fmt.Fprintf(&text, "    - {upstream: up-%d, model: m}\n", i)
	}
	for i := range 199 {
		fmt.Fprintf(&text, "  vm-%d: *chain\n", i)
	}
	n := newBenchNet(b, "application/json", [][]byte{benchAnswer})
	benchRequests(b, n.front(b, n.configured(b, text.String())), benchBody)
}
