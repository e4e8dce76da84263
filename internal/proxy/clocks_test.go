package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// drip sends pieces, one every gap, the first at once, and the end.
func drip(gap time.Duration, pieces ...string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for i, p := range pieces {
			if i > 0 && !w.Pause(gap) {
				return
			}
			w.Chunk([]byte(p))
		}
		w.End()
	}
}

func times(n int, piece string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = piece
	}
	return out
}

// everyClock is all limits at two seconds.
const everyClock = "server: {stall_timeout: 2, stream_timeout: 2, nonstream_timeout: 2, connect_timeout: 2, content_timeout: 2, chain_timeout: 2, relay_stall_timeout: 2, write_idle_timeout: 2}"

// Case 51: limits bound silence and the wait for the first word, not a healthy
// stream's length, a slow upload, or an answer that takes its time within them.
func TestHealthyIsNotCut(t *testing.T) {
	thirty := append(times(30, said("a word of it ")), stop, done)
	for _, c := range []struct {
		name   string
		stream bool
		script drill.Script
		body   string
		took   time.Duration
	}{
		{"an event a second for half a minute", true, drip(time.Second, thirty...), strings.Join(thirty, ""), 31 * time.Second},
		{"keep-alives for half a minute, after release", true, drip(time.Second, append(append([]string{pong}, times(30, ": keep-alive\n\n")...), stop+done)...), pong + strings.Repeat(": keep-alive\n\n", 30) + stop + done, 31 * time.Second},
		{"a whole answer after 1.5 s of silence", false, func(w *drill.Wire, r drill.Request, n int) {
			w.Pause(1500 * time.Millisecond)
			page("application/json", okChat)(w, r, n)
		}, okChat, 1500 * time.Millisecond},
		{"a first word after 1.9 s", true, func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Pause(1900 * time.Millisecond)
			w.Chunk([]byte(whole))
			w.End()
		}, whole, 1900 * time.Millisecond},
		{"a silence of 1.9 s after release", true, drip(1900*time.Millisecond, pong, stop, done), whole, 3800 * time.Millisecond},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, chain(2, everyClock))
			s.play("u1", c.script)
			s.play("u2", sayPong)
			got := s.ask("POST", chatPath, chatBody("vm", c.stream))
			s.from(got, "u1")
			equal(t, "took", got.took, c.took)
			if got.body != c.body {
				t.Errorf("body %q", brief(got.body))
			}
		})
	}
	inBubble(t, "a body that takes twenty seconds to come", func(t *testing.T) {
		s := newScene(t, chain(1, everyClock))
		s.play("u1", sayPong)
		body := chatBody("vm", true)
		got := s.over(drill.Query{Path: chatPath, Body: []byte(body), Chunked: true, Piece: len(body)/20 + 1, Gap: time.Second})
		if got.Status != 200 || string(got.Body) != okSSE || !got.Clean {
			t.Errorf("client got %d %q, %v", got.Status, got.Body, got.Err)
		}
	})
}

// An answer's head that comes letter by letter is no silence, over whatever transport.
func TestAHeadInPiecesIsNoSilence(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Long: " + strings.Repeat("x", 50) + "\r\n\r\n"
	pieces := func(w *drill.Wire, _ drill.Request, _ int) {
		for i := range len(head) {
			w.Pause(time.Second)
			w.Raw([]byte(head[i : i+1]))
		}
		w.Raw([]byte(okSSE))
		w.FIN()
	}
	inBubble(t, "plain", func(t *testing.T) {
		s := newScene(t, chain(2, "server: {stall_timeout: 2}"))
		s.play("u1", pieces)
		s.play("u2", sayPong)
		got := s.ask("POST", chatPath, chatBody("vm", true))
		s.from(got, "u1")
		equal(t, "took", got.took, time.Duration(len(head))*time.Second)
	})
	inBubble(t, "through net/http", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {stall_timeout: 2}"))
		s.play("u1", pieces)
		s.handler.transports.get("").direct["u1"] = false
		got := s.ask("POST", chatPath, chatBody("vm", true))
		s.from(got, "u1")
		equal(t, "took", got.took, time.Duration(len(head))*time.Second)
	})
}

// over sends a request on a raw connection of its own.
func (s *scene) over(q drill.Query) drill.Reply {
	s.t.Helper()
	c := s.dialClient()
	defer c.Close()
	return c.Ask(s.t.Context(), q)
}

// dialClient is a connection to the proxy on which a test can do as it likes.
func (s *scene) dialClient() *drill.Client {
	s.t.Helper()
	c, err := s.net.DialContext(s.t.Context(), "tcp", "127.0.0.1:8787")
	if err != nil {
		s.t.Fatal(err)
	}
	return drill.NewClient(c, "127.0.0.1:8787")
}

// Every limit before release ends the attempt at its exact time, with its own class,
// by the next candidate; the upstream sees it at that moment.
func TestLimitsBeforeRelease(t *testing.T) {
	silent := func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }
	headThenSilent := func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		w.Silence()
	}
	every := func(gap time.Duration, first, piece string) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(first))
			for w.Pause(gap) {
				w.Chunk([]byte(piece))
			}
		}
	}
	s := time.Second
	for _, c := range []struct {
		name   string
		server string
		path   string
		whole  bool
		script drill.Script
		at     time.Duration
		class  string
	}{
		{"stall, before the head", "stall_timeout: 5", chatPath, false, silent, 5 * s, "stalled_stream"},
		{"stall, after the head", "stall_timeout: 5", chatPath, false, func(w *drill.Wire, r drill.Request, n int) { w.Pause(3 * s); headThenSilent(w, r, n) }, 8 * s, "stalled_stream"},
		{"stall, after two letters", "stall_timeout: 5", chatPath, false, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Pause(4 * s)
			w.Chunk([]byte(hel))
			w.Silence()
		}, 9 * s, "stalled_stream"},
		{"stall, but keep-alives hold it off; the budget ends it", "stall_timeout: 5, stream_timeout: 12", chatPath, false, every(s, "", ": OPENROUTER PROCESSING\n\n"), 12 * s, "timeout"},
		{"budget of a stream", "stream_timeout: 7", chatPath, false, silent, 7 * s, "timeout"},
		{"budget of a whole answer", "nonstream_timeout: 9, stall_timeout: 2", chatPath, true, silent, 9 * s, "timeout"},
		{"budget of a whole answer, its head there", "nonstream_timeout: 9, stall_timeout: 2", chatPath, true, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Length(100), "Content-Type", "application/json")
			w.Chunk([]byte(`{"choices":`))
			w.Silence()
		}, 9 * s, "timeout"},
		{"first content, with keep-alives", "content_timeout: 3", chatPath, false, every(s, role, ": ping\n\n"), 3 * s, "timeout"},
		{"first content, with Anthropic's pings", "content_timeout: 3", messagesPath, false, every(s, messageStart, ping), 3 * s, "timeout"},
		{"first content, silent", "content_timeout: 3", chatPath, false, silent, 3 * s, "timeout"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			sc := newScene(t, chain(2, "server: {"+c.server+"}"))
			gone := make(chan time.Duration, 1)
			u1 := sc.play("u1", c.script)
			go func() {
				if u1.Await(t.Context(), func() bool { return u1.Gone() == 1 }) {
					gone <- sc.now()
				}
			}()
			sc.play("u2", drill.Healthy(drill.Answer{}))
			got := sc.ask("POST", c.path, requestFor(c.path, !c.whole))
			sc.from(got, "u2")
			equal(t, "took", got.took, c.at)
			synctest.Wait()
			if try := sc.records()[0].Tries[0]; try.Class != c.class || try.End != c.at || try.Verdict != stats.Failed {
				t.Errorf("booked %+v", try)
			}
			select {
			case at := <-gone:
				equal(t, "u1 sees it", at, c.at)
			default:
				t.Error("u1 does not see that it was given up")
			}
			sc.idle()
		})
	}
}

// Content that came in time satisfies content_timeout, whatever comes after it.
func TestContentSatisfiesItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "server: {content_timeout: 3}"))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Pause(2 * time.Second)
			w.Chunk([]byte(said("a")))
			w.Pause(40 * time.Second)
			w.Chunk([]byte(whole))
			w.End()
		})
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 42*time.Second)
	})
}

// Case 52 in the bubble: what cannot be reached is left at connect_timeout, a refused
// port at once, a TLS that never finishes at connect_timeout too; and each counts as
// what it is.
func TestLimitsOfConnecting(t *testing.T) {
	for _, c := range []struct {
		name  string
		url   string
		set   func(s *scene)
		at    []time.Duration // attempts at u1
		took  time.Duration
		class string
	}{
		{"a black hole", "http://u1", func(s *scene) { s.net.Blackhole("u1:80") }, nil, 4 * time.Second, "timeout"},
		{"a refused port, tried twice", "http://u1", func(*scene) {}, nil, 1500 * time.Millisecond, "network"},
		{"a name that is none", "http://u1", func(s *scene) { s.net.Fail("u1:80", errNoHost) }, nil, 1500 * time.Millisecond, "network"},
		{"TLS that never finishes", "https://u1", func(s *scene) {
			u := drill.StartRaw(s.net.Listen("u1:443"), func(c net.Conn) { io.Copy(io.Discard, c) })
			s.t.Cleanup(u.Close)
		}, nil, 4 * time.Second, "timeout"},
	} {
		for _, stream := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("%s, stream %v", c.name, stream), func(t *testing.T) {
				s := newScene(t, strings.Replace(chain(2, "server: {connect_timeout: 4}"), "http://u1", c.url, 1))
				c.set(s)
				s.play("u2", drill.Healthy(drill.Answer{}))
				got := s.ask("POST", chatPath, chatBody("vm", stream))
				s.from(got, "u2")
				equal(t, "took", got.took, c.took)
				synctest.Wait()
				if try := s.records()[0].Tries[0]; try.Class != c.class || try.Connected != 0 {
					t.Errorf("booked %+v", try)
				}
				s.idle()
			})
		}
	}
}

// chain_timeout bounds all attempts and waits of a request, to the moment; then comes
// the exhausted answer. What it cuts off is nobody's failure.
func TestChainTimeout(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name   string
		rules  string
		u1, u2 drill.Script
		calls  []int
		streak int64
		abandoned,
		streams bool
	}{
		{"in an attempt", "", func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }, sayPong, []int{1, 0}, 0, true, true},
		{"in an attempt at a whole answer", "", func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }, sayPong, []int{1, 0}, 0, true, false},
		{"in a wait", `rules: [{match: {status: 500}, action: retry, backoff_base: 20, max_wait: 25}]`, refusal(500, `{}`), sayPong, []int{1, 0}, 1, false, true},
		{"in the second attempt", "", func(w *drill.Wire, r drill.Request, n int) { w.Pause(4 * s); refusal(401, `{}`)(w, r, n) }, func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }, []int{1, 1}, 1, true, true},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			sc := newScene(t, chain(3, "server: {chain_timeout: 10}\n"+c.rules))
			sc.play("u1", c.u1)
			sc.play("u2", c.u2)
			sc.play("u3", sayPong)
			got := sc.ask("POST", chatPath, chatBody("vm", c.streams))
			sc.refused(got, 502)
			equal(t, "took", got.took, 10*s)
			equal(t, "calls", sc.counts("u1", "u2", "u3"), append(c.calls, 0))
			equal(t, "streak", sc.counters("u1").Streak, c.streak)
			if !strings.Contains(got.body, "chain_timeout") || !strings.Contains(got.body, "u3 (m3): not tried") {
				t.Errorf("body %s", got.body)
			}
			synctest.Wait()
			tries := sc.records()[0].Tries
			if last := tries[len(tries)-1]; (last.Verdict == stats.Abandoned) != c.abandoned {
				t.Errorf("the last attempt is %v", last.Verdict)
			}
			sc.idle()
		})
	}
	synctest.Test(t, func(t *testing.T) { // from admission to release, and no further
		sc := newScene(t, chain(1, "server: {chain_timeout: 10}"))
		thirty := append(times(30, said("a word of it ")), stop, done)
		sc.play("u1", drip(time.Second, thirty...))
		got := sc.hi()
		sc.from(got, "u1")
		equal(t, "took", got.took, 31*s)
	})
	synctest.Test(t, func(t *testing.T) { // 0 = off
		sc := newScene(t, chain(1, "server: {chain_timeout: 0, stall_timeout: 2000, stream_timeout: 4000}"))
		sc.play("u1", func(w *drill.Wire, r drill.Request, n int) { w.Pause(1500 * s); sayPong(w, r, n) })
		got := sc.hi()
		sc.from(got, "u1")
		equal(t, "took", got.took, 1500*s)
	})
}

// A candidate's own limits go before the server's.
func TestACandidatesOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, strings.Replace(chain(2, "server: {stall_timeout: 30}"), "model: m1}", "model: m1, stall_timeout: 3}", 1))
		s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() })
		s.play("u2", func(w *drill.Wire, r drill.Request, n int) { w.Pause(20 * time.Second); sayPong(w, r, n) })
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 23*time.Second)
	})
}

// relay_stall_timeout bounds an upstream's silence after release, and breaks the
// answer off; 0 is never.
func TestRelayStall(t *testing.T) {
	silentFor := func(d time.Duration) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			if w.Pause(d) {
				w.Chunk([]byte(stop + done))
				w.End()
			}
		}
	}
	for _, c := range []struct {
		setting string
		pause   time.Duration
		took    time.Duration
		cut     bool
	}{
		{"7", 6999 * time.Millisecond, 6999 * time.Millisecond, false},
		{"7", 8 * time.Second, 7 * time.Second, true},
		{"0", 5 * time.Hour, 5 * time.Hour, false},
	} {
		inBubble(t, fmt.Sprint(c.setting, c.pause), func(t *testing.T) {
			s := newScene(t, chain(1, "server: {relay_stall_timeout: "+c.setting+"}"))
			s.play("u1", silentFor(c.pause))
			got := s.hi()
			equal(t, "took", got.took, c.took)
			if (got.err != nil) != c.cut || c.cut && got.body != pong || !c.cut && got.body != whole {
				t.Errorf("client got %q, %v", got.body, got.err)
			}
			synctest.Wait()
			if c.cut {
				if r := s.records()[0]; r.Ending != stats.Broken || r.Tries[0].Class != "stalled_stream" || s.counters("u1").Streak != 1 {
					t.Errorf("booked %v as %q, streak %d", r.Ending, r.Tries[0].Class, s.counters("u1").Streak)
				}
			}
			s.idle()
		})
	}
}

// flood sends a healthy stream of n events of about a KiB as fast as it can.
func flood(n int) drill.Script {
	piece := []byte(said(strings.Repeat("x", 1024)))
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for range n {
			if w.Chunk(piece); w.Err() != nil {
				return
			}
		}
		w.Chunk([]byte(stop + done))
		w.End()
	}
}

// write_idle_timeout lets a client go that takes no byte for so long; that is the
// client's doing, not the upstream's. One that takes something now and then stays.
func TestWriteIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(1, "server: {write_idle_timeout: 9, relay_stall_timeout: 5}"))
		u := s.play("u1", flood(1000))
		c := s.dialClient()
		defer c.Close()
		got := c.Ask(t.Context(), drill.Query{Path: chatPath, Body: []byte(chatBody("vm", true)), Watch: func(r drill.Reply) bool {
			if len(r.Body) > 0 {
				u.Await(t.Context(), func() bool { return u.Gone() == 1 })
				return false
			}
			return true
		}})
		if got.Status != 200 || got.Clean {
			t.Errorf("client got %d, clean %v", got.Status, got.Clean)
		}
		equal(t, "let go", s.now(), 9*time.Second)
		synctest.Wait()
		if r := s.records()[0]; r.Ending != stats.Cancelled || r.Tries[0].Verdict != stats.Abandoned || s.counters("u1").Streak != 0 {
			t.Errorf("booked %v, attempt %v, streak %d", r.Ending, r.Tries[0].Verdict, s.counters("u1").Streak)
		}
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // it reads a little every eight seconds
		s := newScene(t, chain(1, "server: {write_idle_timeout: 9, relay_stall_timeout: 5}"))
		s.play("u1", flood(400))
		c := s.dialClient()
		defer c.Close()
		took := 0
		got := c.Ask(t.Context(), drill.Query{Path: chatPath, Body: []byte(chatBody("vm", true)), Watch: func(r drill.Reply) bool {
			if len(r.Body) > took+64<<10 {
				took = len(r.Body)
				<-time.After(8 * time.Second)
			}
			return true
		}})
		if !got.Clean || !strings.HasSuffix(string(got.Body), done) {
			t.Errorf("client got %d bytes, %v\n%s", len(got.Body), got.Err, s.log)
		}
		if s.now() < 40*time.Second {
			t.Errorf("it took only %v", s.now())
		}
		synctest.Wait()
		if r := s.records()[0]; r.Ending != stats.Success {
			t.Errorf("booked %v", r.Ending)
		}
	})
}
