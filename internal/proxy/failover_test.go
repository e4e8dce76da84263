package proxy

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/stats"
)

// The healthy answer of the second upstream reaches the client whole, and alone,
// whatever the first one did before release.
func TestFailoverIsUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		first func(http.ResponseWriter, *http.Request, int)
		took  time.Duration
		calls int
	}{
		"refusal":               {fail(401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`), 0, 1},
		"overload, three times": {fail(503, `{"error":{"message":"overloaded"}}`), 3750 * time.Millisecond, 3},
		"error in a 200":        {fail(200, `{"error":{"message":"boom","code":"x"}}`), 0, 1},
		"empty stream":          {func(w http.ResponseWriter, _ *http.Request, _ int) { sse(w, done) }, 0, 1},
		"role, then nothing":    {func(w http.ResponseWriter, _ *http.Request, _ int) { sse(w, role) }, 0, 1},
		"cut after three letters": {func(w http.ResponseWriter, _ *http.Request, _ int) {
			sse(w, role, hel)
			panic(http.ErrAbortHandler)
		}, 1500 * time.Millisecond, 2},
		"stall before headers": {func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }, 60 * time.Second, 1},
		"stall after headers": {func(w http.ResponseWriter, r *http.Request, _ int) {
			sse(w, role)
			<-r.Context().Done()
		}, 60 * time.Second, 1},
		"html":  {func(w http.ResponseWriter, _ *http.Request, _ int) { w.Write([]byte("<!DOCTYPE html><html>hi</html>")) }, 0, 1},
		"reset": {hijacked(func(c net.Conn) { c.(interface{ Reset() error }).Reset() }), 1500 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, chain(2, ""))
				b.upstream("u1", c.first)
				b.upstream("u2", healthy)
				got := b.chat("vm")
				if got.status != 200 || got.body != whole || got.err != nil {
					t.Fatalf("client got %d %q, %v\n%s", got.status, got.body, got.err, b.log)
				}
				if got.took != c.took || len(b.seen("u1")) != c.calls || len(b.seen("u2")) != 1 {
					t.Errorf("took %v with %d and %d calls, want %v with %d and 1\n%s", got.took, len(b.seen("u1")), len(b.seen("u2")), c.took, c.calls, b.log)
				}
				if got.header.Get("X-Understudy-Candidate") != "u2" {
					t.Errorf("candidate header %q", got.header.Get("X-Understudy-Candidate"))
				}
				if strings.Contains(b.log.String(), "sk-upstream-secret") {
					t.Errorf("the log shows a secret:\n%s", b.log)
				}
				synctest.Wait()
				if n := b.handler.Ledger().Totals(); n.InFlight != 0 || n.Requests != 1 {
					t.Errorf("totals %+v", n)
				}
			})
		})
	}
}

// A stream that is cut after release never looks whole, and nobody else is called.
func TestCutAfterReleaseAborts(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"reset":     func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"clean end": func(http.ResponseWriter) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, chain(2, ""))
				b.upstream("u1", func(w http.ResponseWriter, _ *http.Request, _ int) { sse(w, pong); end(w) })
				b.upstream("u2", healthy)
				got := b.chat("vm")
				if got.status != 200 || got.body != pong || got.err == nil {
					t.Fatalf("client got %d %q, %v", got.status, got.body, got.err)
				}
				if len(b.seen("u2")) != 0 {
					t.Error("the second upstream was called after release")
				}
				synctest.Wait()
				records, _ := b.handler.Ledger().Since(0, 10)
				if len(records) != 1 || records[0].Ending != stats.Broken {
					t.Errorf("records %+v", records)
				}
			})
		})
	}
}

// What breaks behind the terminal event takes nothing away.
func TestBreakAfterTerminalEndsCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, chain(1, ""))
		b.upstream("u1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			sse(w, pong, stop, done)
			panic(http.ErrAbortHandler)
		})
		if got := b.chat("vm"); got.body != whole || got.err != nil {
			t.Fatalf("client got %q, %v", got.body, got.err)
		}
	})
}

// Silence after release ends the stream, as a broken one, at relay_stall_timeout.
func TestSilenceAfterReleaseAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, chain(1, "server: {relay_stall_timeout: 7}"))
		b.upstream("u1", func(w http.ResponseWriter, r *http.Request, _ int) { sse(w, pong); <-r.Context().Done() })
		got := b.chat("vm")
		if got.body != pong || got.err == nil || got.took != 7*time.Second {
			t.Fatalf("client got %q, %v after %v", got.body, got.err, got.took)
		}
	})
}
