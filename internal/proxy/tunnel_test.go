package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// shaking is a client's side of the handshake, and what the upstream answers to it
// (RFC 6455, 1.3).
const (
	shaking = "GET /v1/realtime?model=vm HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	shook   = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)

// switched answers the handshake and gives a script the connection.
func switched(script func(w *drill.Wire)) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Raw([]byte(shook))
		script(w)
		w.FIN()
	}
}

// shake opens a WebSocket by hand. sent early goes along with the handshake.
func (s *scene) shake(early string) (c net.Conn, r *bufio.Reader, head string) {
	s.t.Helper()
	c, err := s.net.DialContext(s.t.Context(), "tcp", "127.0.0.1:8787")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, shaking+early); err != nil {
		s.t.Fatal(err)
	}
	r = bufio.NewReader(c)
	for !strings.HasSuffix(head, "\r\n\r\n") {
		line, err := r.ReadString('\n')
		if head += line; err != nil {
			s.t.Fatalf("the handshake ended in %v behind %q", err, head)
		}
	}
	return c, r, head
}

// read expects bytes.
func read(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got[:n], err, want)
	}
}

const wsOn = "server: {websocket: on}\nrules: []"

// A tunnel carries bytes as they come, the early ones too, for as long as it is open:
// nothing has to be said in it. What ends on one side ends on the other.
func TestATunnelStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(1, wsOn))
		s.play("u1", switched(func(w *drill.Wire) {
			read(t, w, "early")
			w.Raw([]byte("first"))
			read(t, w, "late")
			w.Raw([]byte("last"))
			if _, err := w.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the upstream's connection ended in %v", err)
			}
		}))
		c, r, head := s.shake("early")
		if !strings.HasPrefix(head, "HTTP/1.1 101 Switching Protocols\r\n") || !strings.Contains(head, "X-Understudy-Candidate: u1\r\n") || strings.Contains(head, "Content-") {
			t.Errorf("head %q", head)
		}
		read(t, r, "first")
		s.till(3 * time.Hour) // a person thinks
		equal(t, "in flight", s.handler.Ledger().Totals().InFlight, int64(1))
		io.WriteString(c, "late")
		read(t, r, "last")
		c.(interface{ CloseWrite() error }).CloseWrite()
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the client's connection ended in %v", err)
		}
		synctest.Wait()
		s.idle()
		rec := s.records()[0]
		equal(t, "ending", rec.Ending, stats.Success)
		equal(t, "lasted", rec.End, 3*time.Hour)
		equal(t, "bytes", rec.Bytes, int64(len("first")+len("last")))
		// Which says nothing about how fast the upstream is.
		if l := s.handler.Ledger().Model("vm", time.Now()).Windows[stats.All].Latency.Avg; l != nil {
			t.Errorf("its length counts as a latency of %v", *l)
		}
	})
}

// A handshake has the clocks of an attempt, and then none of them runs any more.
func TestASilentHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "server: {websocket: on, stall_timeout: 7}\nrules: []"))
		s.play("u1", silent)
		s.play("u2", switched(func(w *drill.Wire) { w.Raw([]byte("hi")); w.Pause(time.Hour) }))
		c, r, _ := s.shake("")
		equal(t, "u2 called at", s.when("u2"), []time.Duration{7 * second})
		read(t, r, "hi")
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("ended in %v", err)
		}
		equal(t, "it lasted until", s.now(), 7*second+time.Hour)
		c.Close()
		synctest.Wait()
		s.idle()
	})
}

// A client that leaves during the handshake ends it at once, and is nobody's failure.
func TestAClientThatLeavesTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, wsOn))
		s.play("u1", silent)
		s.play("u2", silent)
		c, err := s.net.DialContext(t.Context(), "tcp", "127.0.0.1:8787")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, shaking)
		s.till(3 * second)
		c.Close()
		synctest.Wait()
		s.idle()
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
		equal(t, "streak", s.counters("u1").Streak, int64(0))
		equal(t, "ending", s.records()[0].Ending, stats.Cancelled)
	})
}

// An upstream that breaks a tunnel off has failed; a client that does has not. A
// client that takes nothing is let go.
func TestHowATunnelBreaks(t *testing.T) {
	inBubble(t, "the upstream", func(t *testing.T) {
		s := newScene(t, chain(1, wsOn))
		s.play("u1", switched(func(w *drill.Wire) { w.Raw([]byte("hi")); w.Pause(time.Second); w.Reset() }))
		_, r, _ := s.shake("")
		read(t, r, "hi")
		if _, err := r.ReadByte(); err == nil {
			t.Error("the client's goes on")
		}
		synctest.Wait()
		s.idle()
		rec := s.records()[0]
		equal(t, "ending", rec.Ending, stats.Broken)
		equal(t, "class", rec.Tries[0].Class, "network")
		equal(t, "streak", s.counters("u1").Streak, int64(1))
	})
	inBubble(t, "the client", func(t *testing.T) {
		s := newScene(t, chain(1, wsOn))
		s.play("u1", switched(func(w *drill.Wire) { w.Raw([]byte("hi")); w.Silence() }))
		c, r, _ := s.shake("")
		read(t, r, "hi")
		c.(interface{ Reset() error }).Reset()
		synctest.Wait()
		s.idle()
		equal(t, "ending", s.records()[0].Ending, stats.Cancelled)
		equal(t, "streak", s.counters("u1").Streak, int64(0))
	})
	inBubble(t, "the client takes nothing", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {websocket: on, write_idle_timeout: 40}\nrules: []"))
		s.play("u1", switched(func(w *drill.Wire) {
			for w.Err() == nil {
				w.Raw(make([]byte, 1<<20))
			}
		}))
		s.shake("")
		s.till(time.Hour)
		s.idle()
		rec := s.records()[0]
		equal(t, "ending", rec.Ending, stats.Cancelled)
		equal(t, "ended", rec.End, 40*second)
	})
	inBubble(t, "one side ends, and the other never does", func(t *testing.T) {
		s := newScene(t, chain(1, wsOn))
		s.play("u1", switched(func(w *drill.Wire) { w.Raw([]byte("hi")) }))
		_, r, _ := s.shake("")
		read(t, r, "hi")
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("ended in %v", err)
		}
		s.till(time.Hour)
		s.idle()
		equal(t, "ended", s.records()[0].End, tunnelLinger)
	})
}

// The program's end waits for what is being said in a tunnel, and for no silent one;
// when its time is up it waits for nobody.
func TestTheEndOfTheProgramEndsTunnels(t *testing.T) {
	talking := func(n int) drill.Script {
		return switched(func(w *drill.Wire) {
			for range n {
				w.Raw([]byte("."))
				if !w.Pause(5 * second) {
					return
				}
			}
			w.Silence()
		})
	}
	for name, c := range map[string]struct {
		turns int
		want  time.Duration // after the end has begun, at 60 s
	}{"silent": {1, 0}, "talking": {20, 45 * second}, "talking for too long": {1000, 300 * second}} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, chain(1, wsOn))
			s.play("u1", talking(c.turns))
			s.shake("")
			s.till(60 * second)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
			defer cancel()
			s.handler.EndTunnels(ctx)
			if took := s.now() - 60*second; took < c.want || took > c.want+2*tunnelLook {
				t.Errorf("took %v, want %v", took, c.want)
			}
			s.idle()
			rec := s.records()[0]
			equal(t, "ending", rec.Ending, stats.Cancelled)
			equal(t, "why", rec.Tries[0].Text, "broken off: the program ended")
			equal(t, "streak", s.counters("u1").Streak, int64(0))
		})
	}
	synctest.Test(t, func(t *testing.T) { // nothing to do
		s := newScene(t, chain(1, wsOn))
		s.handler.EndTunnels(t.Context())
		equal(t, "took", s.now(), 0)
	})
}
