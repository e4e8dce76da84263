package proxy

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/h1server"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// A stage is a bed whose upstreams u1, u2, … are played by scripts that hold the
// connection themselves, so that framing and endings are the test's own. They are
// the candidates of the virtual model vm, in chain order, with the real models m1,
// m2, ….
type stage struct {
	*bed
	up []*drill.Upstream
}

// newStage serves vm over one upstream per script; more is put before the chain.
func newStage(t *testing.T, more string, scripts ...drill.Script) *stage {
	t.Helper()
	s := &stage{bed: newBed(t, chain(len(scripts), more))}
	for i, script := range scripts {
		u := drill.StartOn(s.net.Listen(fmt.Sprintf("u%d:80", i+1)), script)
		t.Cleanup(u.Close)
		s.up = append(s.up, u)
	}
	return s
}

// outcome is what a client must get, and from whom.
type outcome struct {
	status int    // 0: 200
	body   string // exactly; "" where own is set
	own    string // our own JSON answer holds this
	winner int    // number of the upstream that answered; 0: we did
	calls  []int  // how many requests every upstream got
	took   time.Duration
	cut    bool // the answer must not look whole
	ending stats.Ending
}

// expect asserts an outcome, and what holds for every request: an upstream sees the
// client's bytes but for the model's value, and its own credential; the client gets
// the winner's bytes once, in order, with nothing added; nothing stays in flight.
func (s *stage) expect(sent string, got reply, want outcome) {
	s.t.Helper()
	synctest.Wait()
	if want.status == 0 {
		want.status = 200
	}
	if got.status != want.status || want.own == "" && got.body != want.body || want.own != "" && !strings.Contains(got.body, want.own) {
		s.t.Errorf("client got %d %q, want %d %q%s\n%s", got.status, brief(got.body), want.status, brief(want.body), want.own, s.log)
	}
	if (got.err != nil) != want.cut {
		s.t.Errorf("the answer ended with %v, want it cut: %v", got.err, want.cut)
	}
	if got.took != want.took {
		s.t.Errorf("took %v, want %v", got.took, want.took)
	}
	name := ""
	if want.winner > 0 {
		name = fmt.Sprintf("u%d", want.winner)
	} else if type_ := got.header.Get("Content-Type"); type_ != "application/json" {
		s.t.Errorf("our own answer has the type %q", type_)
	}
	if c := got.header.Get("X-Understudy-Candidate"); c != name {
		s.t.Errorf("candidate %q, want %q", c, name)
	}
	total := 0
	for i, calls := range want.calls {
		s.saw(i+1, calls, sent)
		total += calls
	}
	if n := got.header.Get("X-Understudy-Attempts"); n != fmt.Sprint(total) {
		s.t.Errorf("attempts %q, want %d", n, total)
	}
	r := s.record()
	if r.Ending != want.ending || len(r.Tries) != total || r.Winner < 0 != (want.winner == 0 || r.Ending == stats.PassedThrough) {
		s.t.Errorf("booked as %v with %d attempts and winner %d, want %v with %d", r.Ending, len(r.Tries), r.Winner, want.ending, total)
	}
	if n := s.handler.Ledger().Totals(); n.InFlight != 0 || n.Requests != 1 {
		s.t.Errorf("totals %+v", n)
	}
	if strings.Contains(s.log.String(), "sk-upstream-secret") {
		s.t.Errorf("the log shows a secret:\n%s", s.log)
	}
}

// saw asserts what the n-th upstream was sent.
func (s *stage) saw(n, calls int, sent string) {
	s.t.Helper()
	requests := s.up[n-1].Requests()
	if len(requests) != calls {
		s.t.Errorf("u%d was called %d times, want %d\n%s", n, len(requests), calls, s.log)
	}
	for _, r := range requests {
		if want := strings.Replace(sent, `"vm"`, fmt.Sprintf(`"m%d"`, n), 1); string(r.Body) != want {
			s.t.Errorf("u%d was sent %q, want %q", n, brief(string(r.Body)), brief(want))
		}
		if auth := r.Get("Authorization"); sent != "" && auth != fmt.Sprintf("Bearer sk-upstream-secret-%d", n) {
			s.t.Errorf("u%d got the credential %q", n, auth)
		}
	}
}

// record is the one request's.
func (s *stage) record() stats.Record {
	s.t.Helper()
	records, _ := s.handler.Ledger().Since(0, 10)
	if len(records) != 1 {
		s.t.Fatalf("%d records", len(records))
	}
	return records[0].Record
}

// verdicts are the attempts' verdicts with their classes.
func (s *stage) verdicts() string {
	var out []string
	for _, t := range s.record().Tries {
		out = append(out, strings.TrimSpace(t.Verdict.String()+" "+t.Class))
	}
	return strings.Join(out, ", ")
}

// unfrozen asserts that nobody is frozen.
func (s *stage) unfrozen() {
	s.t.Helper()
	if f := s.handler.Board().Freezes(time.Now()); len(f) != 0 {
		s.t.Errorf("frozen: %+v", f)
	}
}

// streak is how many failures in a row the n-th upstream has.
func (s *stage) streak(n int) int64 {
	c := &s.handler.Snapshot().Routes.Chains()[0].Tiers[n-1][0]
	return s.handler.Board().Counters(Key(c.ID)).Streak
}

// brief is a text fit for an error message.
func brief(s string) string {
	if len(s) > 1200 {
		return s[:600] + " … " + s[len(s)-600:]
	}
	return s
}

// frames sends an event stream, one chunk per piece, with a clean end.
func frames(pieces ...string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", "text/event-stream")
		for _, p := range pieces {
			w.Chunk([]byte(p))
		}
		w.End()
	}
}

// page sends a whole body of a content type.
func page(contentType, body string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Length(len(body)), "Content-Type", contentType)
		w.Chunk([]byte(body))
		w.End()
	}
}

// refusal answers with a status and a JSON body.
func refusal(status int, body string, header ...string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(status, []byte(body), header...) }
}

// inBubble runs a test where time stands still unless everybody waits.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// wired serves a configuration on a real socket, for what only a network does.
func wired(t *testing.T, cfg string) (h *Handler, addr string, log *logBook) {
	t.Helper()
	log = new(logBook)
	transports := new(Transports)
	h = New(compile(t, cfg), health.NewBoard(), stats.NewLedger(100), transports, slog.New(slog.NewTextHandler(log, nil)), func() float64 { return 0 })
	server := &h1server.Server{HTTP: &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) }) // ends with ErrServerClosed
	t.Cleanup(func() {
		server.Close()
		transports.CloseIdle()
		wg.Wait()
	})
	return h, l.Addr().String(), log
}

// A logBook is a log that can be read while it is written.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// play starts an upstream on a real socket.
func play(t *testing.T, script drill.Script) *drill.Upstream {
	t.Helper()
	u := drill.Start(script)
	t.Cleanup(u.Close)
	return u
}

// over is a configuration with vm over upstreams with these URLs.
func over(more string, urls ...string) string {
	cfg := more + "\nvirtual_models:\n  vm:\n"
	for i, url := range urls {
		cfg += fmt.Sprintf("    - {name: u%d, base_url: %q, api_key: sk-upstream-secret-%d, model: m%d}\n", i+1, url, i+1, i+1)
	}
	return cfg
}
