package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/h1server"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// A rig is the proxy on a real socket, for what only a network shows: bytes of
// heads, framing, uploads. Its upstreams are played by drill.
type rig struct {
	t       *testing.T
	handler *Handler
	addr    string
	log     *rigLog
	active  sync.WaitGroup
}

// rigLog is a log that may be read while it is written.
type rigLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *rigLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *rigLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// last is the end of the log, fit for an error message.
func (l *rigLog) last() string {
	s := l.String()
	return s[max(0, len(s)-600):]
}

// newRig serves a configuration as the daemon does. Every line of the log is kept.
func newRig(t *testing.T, cfg string) *rig {
	t.Helper()
	r := &rig{t: t, log: new(rigLog)}
	transports := new(Transports)
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.handler = New(compile(t, cfg), health.NewBoard(), stats.NewLedger(1000), transports, log, func() float64 { return 0 })
	server := &h1server.Server{HTTP: &http.Server{DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			r.active.Add(1)
			defer r.active.Done()
			r.handler.ServeHTTP(w, q)
		})}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) }) // ends with ErrServerClosed
	t.Cleanup(func() {
		server.Close()
		wg.Wait()
		r.active.Wait()
		transports.CloseIdle()
	})
	return r
}

// send sends a request on a connection of its own.
func (r *rig) send(q drill.Query) drill.Reply {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	return drill.Ask(ctx, r.addr, q)
}

// post sends a JSON body.
func (r *rig) post(path, body string, header ...string) drill.Reply {
	r.t.Helper()
	return r.send(drill.Query{Path: path, Body: []byte(body), Header: header})
}

// get asks without a body.
func (r *rig) get(path string, header ...string) drill.Reply {
	r.t.Helper()
	return r.send(drill.Query{Path: path, Header: header})
}

// settle waits until every request that was answered is booked, and returns the
// records.
func (r *rig) settle() []stats.Record {
	r.t.Helper()
	r.active.Wait()
	sequenced, _ := r.handler.Ledger().Since(0, 1000)
	records := make([]stats.Record, 0, len(sequenced))
	for _, s := range sequenced {
		records = append(records, s.Record)
	}
	return records
}

// frozen is how many identities are frozen.
func (r *rig) frozen() int { return len(r.handler.Board().Freezes(time.Now())) }

// is asserts a whole answer.
func (r *rig) is(got drill.Reply, status int, body string) {
	r.t.Helper()
	if got.Status != status || string(got.Body) != body || !got.Clean {
		r.t.Errorf("client got %d %q (clean %v, %v), want %d %q\n%s", got.Status, brief(string(got.Body)), got.Clean, got.Err, status, brief(body), r.log.last())
	}
}

// fails asserts an error of our own: its status, and that its body holds every
// one of these pieces.
func (r *rig) fails(got drill.Reply, status int, pieces ...string) {
	r.t.Helper()
	if got.Status != status || !got.Clean || got.Get("Content-Type") != "application/json" {
		r.t.Errorf("client got %d %q %q (%v), want an error %d of our own\n%s", got.Status, got.Get("Content-Type"), brief(string(got.Body)), got.Err, status, r.log.last())
		return
	}
	for _, p := range pieces {
		if !strings.Contains(string(got.Body), p) {
			r.t.Errorf("the error %s lacks %s", got.Body, p)
		}
	}
}

// uncalled asserts that an upstream got no request.
func uncalled(t *testing.T, upstreams ...*drill.Upstream) {
	t.Helper()
	for i, u := range upstreams {
		for _, q := range u.Requests() {
			t.Errorf("upstream %d got %s %s", i+1, q.Method, q.Target)
		}
	}
}

// only is the one request that an upstream got.
func only(t *testing.T, u *drill.Upstream) drill.Request {
	t.Helper()
	all := u.Requests()
	if len(all) != 1 {
		t.Fatalf("the upstream got %d requests, want 1", len(all))
	}
	return all[0]
}

// pool is a configuration with a pool over upstreams with these URLs and no
// credentials; more goes before it.
func pool(more string, urls ...string) string {
	cfg := more + "\npool: {}\nupstream:\n"
	for i, url := range urls {
		cfg += "  - {id: p" + string(rune('1'+i)) + ", base_url: \"" + url + "\"}\n"
	}
	return cfg
}
