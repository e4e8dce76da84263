package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// dying answers, keeps the connection, and lets it die when it is used again.
func dying(how drill.Ending) drill.Script {
	return func(w *drill.Wire, r drill.Request, n int) {
		w.DieNext(how)
		w.JSON(200, []byte(okChat))
	}
}

// Case 53: a kept connection that has died is no outage: the same request goes out
// once more, on a new connection to the same upstream, whole; nobody is frozen,
// nobody else is asked, and the upstream sees it once.
func TestADeadConnectionIsNoOutage(t *testing.T) {
	large := `{"model":"vm","messages":[{"role":"user","content":"` + strings.Repeat("a long prompt ", 150_000) + `"}]}`
	for _, how := range []drill.Ending{drill.FIN, drill.RST} {
		for name, body := range map[string]string{"a small body": chatBody("vm", false), "two MiB": large} {
			t.Run(fmt.Sprint(how, " on the next request, ", name), func(t *testing.T) {
				u1, u2 := play(t, dying(how)), play(t, page("application/json", okChat))
				r := newRig(t, over("server: {auto_hedge_threshold: 1}", u1.URL(), u2.URL()))
				for range 6 {
					r.is(r.post(chatPath, body), 200, okChat)
				}
				sentWhole(t, u1, 6, body)
				if n := u1.Accepted(); n < 6 {
					t.Errorf("%d connections for 6 requests, each of which kills its own", n)
				}
				uncalled(t, u2)
				unharmed(t, r)
			})
		}
	}
	t.Run("a FIN while nobody looks", func(t *testing.T) {
		// The connection ends right behind an answer that promised to keep it; the
		// next request may or may not notice in time.
		u1 := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			w.JSON(200, []byte(okChat))
			w.FIN()
		})
		r := newRig(t, over("server: {auto_hedge_threshold: 1}", u1.URL()))
		for range 100 {
			r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		}
		sentWhole(t, u1, 100, chatBody("vm", false))
		unharmed(t, r)
	})
	t.Run("one that a 408 ends", func(t *testing.T) {
		// The upstream gives up on an idle connection while the request is on its way.
		gone := func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nidle"))
			w.FIN()
		}
		whole := page("application/json", okChat)
		u1, u2 := play(t, drill.Sequence(whole, gone, whole)), play(t, whole)
		r := newRig(t, over("server: {auto_hedge_threshold: 1}", u1.URL(), u2.URL()))
		for range 2 {
			r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		}
		sentWhole(t, u1, 3, chatBody("vm", false))
		uncalled(t, u2)
		unharmed(t, r)
	})
	t.Run("several that died together", func(t *testing.T) {
		gate := make(chan struct{})
		u1 := play(t, func(w *drill.Wire, r drill.Request, n int) {
			if n <= 8 {
				w.Wait(gate)
			}
			w.DieNext(drill.RST)
			w.JSON(200, []byte(okChat))
		})
		r := newRig(t, over("server: {auto_hedge_threshold: 1}", u1.URL()))
		ask := func() {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat) })
			}
			wg.Wait()
		}
		go func() { u1.Await(t.Context(), func() bool { return u1.Count() == 8 }); close(gate) }()
		ask()
		ask()
		sentWhole(t, u1, 16, chatBody("vm", false))
		unharmed(t, r)
	})
}

// What dies on a new connection is a failure, and so is what dies behind the first
// byte of an answer, or the second time.
func TestWhatIsNoDeadConnection(t *testing.T) {
	reset := func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() }
	t.Run("a new connection", func(t *testing.T) {
		u1, u2 := play(t, reset), play(t, page("application/json", okChat))
		r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
		r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		equal(t, "calls", []int{u1.Count(), u2.Count()}, []int{1, 1})
	})
	t.Run("behind the first byte", func(t *testing.T) {
		u1, u2 := play(t, drill.Sequence(page("application/json", okChat), func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 200 O"))
			w.Reset()
		})), play(t, page("application/json", okChat))
		r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
		r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		got := r.post(chatPath, chatBody("vm", false))
		r.is(got, 200, okChat)
		equal(t, "candidate", got.Get("X-Understudy-Candidate"), "u2")
		equal(t, "calls", []int{u1.Count(), u2.Count()}, []int{2, 1})
	})
	t.Run("a 408 on a new connection", func(t *testing.T) {
		u1, u2 := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nslow"))
			w.FIN()
		}), play(t, page("application/json", okChat))
		r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
		got := r.post(chatPath, chatBody("vm", false))
		r.is(got, 200, okChat)
		equal(t, "calls", []int{u1.Count(), u2.Count()}, []int{1, 1})
	})
	t.Run("and then a new one that dies too", func(t *testing.T) {
		u1, u2 := play(t, drill.Sequence(dying(drill.RST), reset)), play(t, page("application/json", okChat))
		r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
		r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		got := r.post(chatPath, chatBody("vm", false))
		r.is(got, 200, okChat)
		equal(t, "candidate", got.Get("X-Understudy-Candidate"), "u2")
		equal(t, "calls", []int{u1.Count(), u2.Count()}, []int{2, 1})
	})
}

// sentWhole asserts that an upstream saw so many requests, each with its whole body.
func sentWhole(t *testing.T, u *drill.Upstream, n int, body string) {
	t.Helper()
	all := u.Requests()
	if len(all) != n {
		t.Errorf("the upstream saw %d requests, want %d", len(all), n)
	}
	want := strings.Replace(body, `"vm"`, `"m1"`, 1)
	for _, q := range all {
		if string(q.Body) != want {
			t.Errorf("the upstream was sent %d bytes %q, want %d", len(q.Body), brief(string(q.Body)), len(want))
		}
	}
}

// unharmed asserts that nothing counts against anybody: every request was one attempt
// and a success.
func unharmed(t *testing.T, r *rig) {
	t.Helper()
	for _, rec := range r.settle() {
		if rec.Ending != stats.Success || len(rec.Tries) != 1 {
			t.Errorf("booked %v with %d attempts: %+v", rec.Ending, len(rec.Tries), rec.Tries)
		}
	}
	if n := r.frozen(); n != 0 {
		t.Errorf("%d are frozen", n)
	}
}

// An h2Server speaks HTTP/2 frame by frame (RFC 9113), so that a connection can end as
// none of a decent server's does. Its script answers the n-th stream of a connection.
type h2Server struct {
	script func(c *h2Conn, n int, stream uint32)
	// begun sees a stream before its body has come; nil = nobody does.
	begun func(c *h2Conn, stream uint32)

	mu   sync.Mutex
	seen []string // the bodies of streams that were answered
}

type h2Conn struct {
	net.Conn
	s    *h2Server
	body map[uint32]*bytes.Buffer
}

// The frames that matter here, and their flags.
const (
	h2Data, h2Headers, h2Reset, h2Settings, h2Ping, h2GoAway = 0, 1, 3, 4, 6, 7

	h2EndStream, h2Ack, h2EndHeaders = 1, 1, 4
)

// frame sends a frame.
func (c *h2Conn) frame(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// goAway says that no stream behind last was looked at.
func (c *h2Conn) goAway(last uint32) {
	c.frame(h2GoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), 0 /* NO_ERROR */))
}

// answer answers a stream well.
func (c *h2Conn) answer(stream uint32) {
	c.s.mu.Lock()
	c.s.seen = append(c.s.seen, c.body[stream].String())
	c.s.mu.Unlock()
	const kind = "application/json"
	// HPACK (RFC 7541): `:status: 200` by its index, content-type by its name's.
	head := append([]byte{0x88, 0x0f, 31 - 15, byte(len(kind))}, kind...)
	c.frame(h2Headers, h2EndHeaders, stream, head)
	c.frame(h2Data, h2EndStream, stream, []byte(okChat))
}

func (s *h2Server) serve(raw net.Conn) {
	defer raw.Close()
	if _, err := io.ReadFull(raw, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	c := &h2Conn{Conn: raw, s: s, body: map[uint32]*bytes.Buffer{}}
	c.frame(h2Settings, 0, 0, nil)
	for n, head := 0, make([]byte, 9); ; {
		if _, err := io.ReadFull(raw, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(raw, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == h2Settings && flags&h2Ack == 0:
			c.frame(h2Settings, h2Ack, 0, nil)
		case kind == h2Ping && flags&h2Ack == 0:
			c.frame(h2Ping, h2Ack, 0, payload)
		case kind == h2Headers:
			c.body[stream] = new(bytes.Buffer)
			if s.begun != nil {
				s.begun(c, stream)
			}
		case kind == h2Data:
			c.body[stream].Write(payload)
		}
		if kind <= h2Headers && flags&h2EndStream != 0 {
			n++
			s.script(c, n, stream)
		}
	}
}

// startH2 serves on a real socket, over TLS; it returns the base URL and what a client
// must trust.
func startH2(t *testing.T, script func(c *h2Conn, n int, stream uint32)) (s *h2Server, url string, trust *tls.Config) {
	t.Helper()
	s = &h2Server{script: script}
	// The certificate of net/http/httptest, and the configuration that trusts it.
	lent := httptest.NewUnstartedServer(http.NotFoundHandler())
	lent.StartTLS()
	certificate := lent.TLS.Certificates
	trust = lent.Client().Transport.(*http.Transport).TLSClientConfig
	lent.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	u := drill.StartRaw(l, s.serve)
	t.Cleanup(u.Close)
	return s, "https://" + u.Addr(), trust
}

// trusting serves a configuration whose upstreams' certificate is trusted.
func trusting(t *testing.T, cfg string, trust *tls.Config) *rig {
	t.Helper()
	r := newRig(t, cfg)
	pair := r.handler.transports.get("")
	pair.pooled.TLSClientConfig = trust.Clone()
	pair.fresh.TLSClientConfig = trust.Clone()
	return r
}

// Case 53 over HTTP/2: a connection that says goodbye, or just ends, is no outage.
func TestADeadHTTP2ConnectionIsNoOutage(t *testing.T) {
	for name, second := range map[string]func(c *h2Conn, stream uint32){
		"GOAWAY NO_ERROR for the next request": func(c *h2Conn, stream uint32) {
			c.goAway(stream - 2)
			c.Close()
		},
		"GOAWAY NO_ERROR, and the connection stays": func(c *h2Conn, stream uint32) {
			c.goAway(stream - 2)
		},
		"a FIN":            func(c *h2Conn, _ uint32) { c.Close() },
		"a refused stream": func(c *h2Conn, stream uint32) { c.frame(h2Reset, 0, stream, []byte{0, 0, 0, 7 /* REFUSED_STREAM */}) },
	} {
		t.Run(name, func(t *testing.T) {
			// Every connection serves one stream, and then does that to the next.
			s, url, trust := startH2(t, func(c *h2Conn, n int, stream uint32) {
				if n%2 == 1 {
					c.answer(stream)
				} else {
					second(c, stream)
				}
			})
			u2 := play(t, page("application/json", okChat))
			r := trusting(t, over("server: {auto_hedge_threshold: 1}", url, u2.URL()), trust)
			for i := range 8 {
				got := r.post(chatPath, chatBody("vm", false))
				r.is(got, 200, okChat)
				if c := got.Get("X-Understudy-Candidate"); c != "u1" {
					t.Errorf("request %d went to %s", i, c)
				}
			}
			uncalled(t, u2)
			unharmed(t, r)
			s.mu.Lock()
			defer s.mu.Unlock()
			want := strings.Replace(chatBody("vm", false), `"vm"`, `"m1"`, 1)
			if len(s.seen) != 8 || slices.ContainsFunc(s.seen, func(b string) bool { return b != want }) {
				t.Errorf("the upstream answered %d requests: %q", len(s.seen), s.seen)
			}
		})
	}
	t.Run("GOAWAY behind an answer", func(t *testing.T) {
		s, url, trust := startH2(t, func(c *h2Conn, n int, stream uint32) {
			if n == 1 { // what comes behind the goodbye is not looked at
				c.answer(stream)
				c.goAway(stream)
			}
		})
		r := trusting(t, over("server: {auto_hedge_threshold: 1}", url), trust)
		for range 20 {
			r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
		}
		unharmed(t, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		equal(t, "answered", len(s.seen), 20)
	})
}

// A connection that says goodbye while a request's body is being written, to a new
// connection's first request too: the body goes out whole on another, from its beginning,
// and nothing reads it twice at once.
func TestAGoodbyeWithinABodyIsNoOutage(t *testing.T) {
	last := map[*h2Conn]bool{} // belongs to the server's lock
	var s *h2Server
	s, url, trust := startH2(t, func(c *h2Conn, _ int, stream uint32) {
		s.mu.Lock()
		gone := last[c]
		s.mu.Unlock()
		if !gone {
			c.answer(stream)
		}
	})
	var conns atomic.Int64
	s.begun = func(c *h2Conn, stream uint32) {
		s.mu.Lock()
		_, known := last[c]
		if !known {
			last[c] = conns.Add(1)%2 == 1
		}
		bye := last[c]
		s.mu.Unlock()
		if bye {
			c.goAway(0) // and no more: what ends at once may not be heard
		}
	}
	u2 := play(t, page("application/json", okChat))
	r := trusting(t, over("server: {auto_hedge_threshold: 1}", url, u2.URL()), trust)
	body := `{"model":"vm","messages":[{"role":"user","content":"` + strings.Repeat("0123456789", 3_000) + `"}]}`
	for range 40 {
		r.is(r.post(chatPath, body), 200, okChat)
		r.handler.transports.CloseIdle()
	}
	uncalled(t, u2)
	unharmed(t, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	want := strings.Replace(body, `"vm"`, `"m1"`, 1)
	if len(s.seen) != 40 || slices.ContainsFunc(s.seen, func(b string) bool { return b != want }) {
		t.Errorf("the upstream answered %d requests", len(s.seen))
	}
}

// An upstream that looks at no request is asked once more, over a new connection, and
// then it is a failure like others.
func TestAnUpstreamThatRefusesEverythingUnread(t *testing.T) {
	var streams atomic.Int64
	_, url, trust := startH2(t, func(c *h2Conn, _ int, stream uint32) {
		streams.Add(1)
		c.frame(h2Reset, 0, stream, []byte{0, 0, 0, 7 /* REFUSED_STREAM */})
	})
	u2 := play(t, page("application/json", okChat))
	r := trusting(t, over("rules: []", url, u2.URL()), trust)
	r.is(r.post(chatPath, chatBody("vm", false)), 200, okChat)
	rec := r.settle()[0]
	if len(rec.Tries) != 2 || rec.Tries[0].Class != "network" || !strings.Contains(rec.Tries[0].Text, "not looked at") || streams.Load() != 2 {
		t.Errorf("%d streams, booked %+v", streams.Load(), rec.Tries)
	}
}

// A host that cannot be reached is left in time: case 52 on real sockets. The black
// hole is left at connect_timeout, a refused port at once, TLS that never finishes at
// connect_timeout, silence at its limit; the next candidate answers each time.
func TestWhatCannotBeReached(t *testing.T) {
	refused, release := drill.Refused()
	defer release()
	hole, close, err := drill.BlackHole()
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	hang := drill.TLSHang()
	defer hang.Close()
	mute := play(t, silent)
	for _, c := range []struct {
		name, url, class string
		at               time.Duration
	}{
		{"a refused port", refused, "network", 0},
		{"a black hole", hole, "timeout", time.Second},
		{"TLS that never finishes", "https://" + hang.Addr(), "timeout", time.Second},
		{"silence", mute.URL(), "stalled_stream", 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			u2 := play(t, sayPong)
			r := newRig(t, over("rules: []\nserver: {connect_timeout: 1, stall_timeout: 1.5}", c.url, u2.URL()))
			got := r.post(chatPath, chatBody("vm", true))
			r.is(got, 200, okSSE)
			// To the moment it is measured in a bubble; here the machine may be busy.
			if got.Elapsed < c.at || got.Elapsed > c.at+3*time.Second {
				t.Errorf("took %v, want %v and a little", got.Elapsed, c.at)
			}
			rec := r.settle()[0]
			if len(rec.Tries) != 2 || rec.Tries[0].Class != c.class {
				t.Errorf("booked %+v", rec.Tries)
			}
		})
	}
}
