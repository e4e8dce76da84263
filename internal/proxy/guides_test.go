package proxy

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// keyed sets the keys that the guides' configurations name.
func keyed(t *testing.T) {
	for _, name := range []string{"ONE", "TWO", "THREE", "SPARE"} {
		t.Setenv(name+"_KEY", "sk-upstream-secret-"+name)
	}
}

// What docs/delivery.md promises of its configuration.
func TestDeliveryGuide(t *testing.T) {
	keyed(t)
	cfg := setup(t, "delivery.md", 1)
	breaks := telling(true, pong, time.Second) // it ends, but for no reason
	inBubble(t, "a break within the window", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("one.example", breaks)
		s.play("two.example", sayPong)
		got := s.chat("chat")
		s.from(got, "two")
		equal(t, "took", got.took, time.Second)
	})
	inBubble(t, "the window", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("one.example", telling(true, pong, 9*time.Second, stop+done))
		got := s.chat("chat")
		s.from(got, "one")
		equal(t, "first byte", got.at[0], 1500*time.Millisecond)
	})
	inBubble(t, "complete", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("one.example", telling(true, pong, 9*time.Second, pong))
		s.play("two.example", sayPong)
		got := s.chat("agent")
		s.from(got, "two")
		equal(t, "took", got.took, 9*time.Second)
	})
	inBubble(t, "the header", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("one.example", telling(true, pong, 9*time.Second, pong))
		s.play("two.example", sayPong)
		s.from(s.chat("chat", "X-Understudy-Delivery", "complete"), "two")
		for _, r := range s.cast["one.example"].Requests() {
			if v := r.Values("X-Understudy-Delivery"); len(v) != 0 {
				t.Errorf("the upstream got the header: %q", v)
			}
		}
		if got := s.chat("agent", "X-Understudy-Delivery", "stream"); got.err == nil || got.at[0] != 0 {
			t.Errorf("a stream began after %v and ended in %v", got.at, got.err)
		}
	})
	inBubble(t, "the pool's window", func(t *testing.T) {
		s := newScene(t, pooled(1, "", ""))
		s.play("u1", telling(true, pong, 9*time.Second, stop+done))
		got := s.hi("X-Understudy-Delivery", "window")
		s.from(got, "u1")
		equal(t, "first byte", got.at[0], 1500*time.Millisecond)
	})
}

// What docs/failure-domains.md promises of its configuration.
func TestFailureDomainsGuide(t *testing.T) {
	keyed(t)
	cfg := setup(t, "failure-domains.md", 1)
	inBubble(t, "a host that is down", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("two.example", sayPong)
		s.from(s.chat("auto"), "elsewhere")
		equal(t, "dials", s.net.Dials("one.example:80"), 1)
		equal(t, "frozen", s.stands("large", "small", "spare", "elsewhere"), "large frozen 30s, small frozen 30s, spare frozen 30s")
	})
	inBubble(t, "a key without credit", func(t *testing.T) {
		s := newScene(t, cfg)
		s.play("one.example", func(w *drill.Wire, r drill.Request, n int) {
			if r.Get("Authorization") == "Bearer sk-upstream-secret-ONE" {
				refusal(402, `{"error":{"message":"Insufficient credits"}}`)(w, r, n)
				return
			}
			sayPong(w, r, n)
		})
		s.from(s.chat("auto"), "spare")
		equal(t, "calls", s.counts("one.example"), []int{2})
		equal(t, "frozen", s.stands("large", "small", "spare", "elsewhere"), "large frozen 10m0s, small frozen 10m0s")
	})
}

// What docs/websocket.md promises of its configuration.
func TestWebSocketGuide(t *testing.T) {
	keyed(t)
	cfg := setup(t, "websocket.md", 1)
	inBubble(t, "Codex and Realtime", func(t *testing.T) {
		b := newBed(t, cfg)
		speak := func(w http.ResponseWriter, r *http.Request, _ int) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
			if err != nil {
				return
			}
			defer c.CloseNow()
			echo(context.Background(), c)
		}
		b.upstream("one.example", fail(503, `{"error":{"message":"overloaded"}}`))
		b.upstream("two.example", speak)
		b.upstream("three.example", speak)
		for path, asked := range map[string]string{"/v1/responses": "/v1/responses", "/v1/realtime?model=voice": "/v1/realtime?model=gpt-realtime-mini"} {
			c, resp, err := websocket.Dial(t.Context(), "ws://127.0.0.1:8787"+path, &websocket.DialOptions{HTTPClient: b.client})
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, b.log)
			}
			if by := resp.Header.Get("X-Understudy-Candidate"); by != "spare" && by != "voice#2" {
				t.Errorf("%s by %q", path, by)
			}
			says(t, c, "hi", "hi")
			calls := b.seen("two.example")
			if got := calls[len(calls)-1].uri; got != asked {
				t.Errorf("the upstream got %s, want %s", got, asked)
			}
			c.Close(websocket.StatusNormalClosure, "")
		}
		if n := len(b.seen("three.example")); n != 0 {
			t.Errorf("plain was called %d times", n)
		}
		records, _ := b.handler.Ledger().Since(0, 10)
		for _, r := range records {
			equal(t, "ending", r.Ending, stats.Success)
		}
	})
}
