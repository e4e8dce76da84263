package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// overHTTP2 serves vm over upstreams that speak HTTP/2 alone, the n-th playing the
// n-th script.
func overHTTP2(t *testing.T, more string, scripts ...http.HandlerFunc) (h *Handler, addr string, calls []*atomic.Int64) {
	t.Helper()
	var urls []string
	var first *httptest.Server
	for _, script := range scripts {
		n := new(atomic.Int64)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			if r.ProtoMajor != 2 {
				t.Errorf("the upstream was asked over %s", r.Proto)
			}
			io.Copy(io.Discard, r.Body)
			script(w, r)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		if first == nil {
			first = server
		}
		urls, calls = append(urls, server.URL), append(calls, n)
	}
	h, addr, _ = wired(t, over(more, urls...))
	// All test servers have the same certificate.
	pair := h.transports.get("")
	pair.pooled.TLSClientConfig = first.Client().Transport.(*http.Transport).TLSClientConfig
	pair.fresh.TLSClientConfig = pair.pooled.TLSClientConfig.Clone()
	return h, addr, calls
}

// say writes pieces of an event stream, each flushed.
func say(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", sseType)
	for _, p := range pieces {
		io.WriteString(w, p)
		w.(http.Flusher).Flush()
	}
}

// Cases 10 to 13 over HTTP/2: a stream that the upstream resets fails over unseen
// before release, breaks for the client behind it, and is whole behind its end.
func TestStreamsThatAreResetOverHTTP2(t *testing.T) {
	for name, c := range map[string]struct {
		first  http.HandlerFunc
		body   string
		cut    bool
		calls  []int64
		ending stats.Ending
	}{
		"before the headers":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, okSSE, false, []int64{1, 1}, stats.Success},
		"before release":            {func(w http.ResponseWriter, _ *http.Request) { say(w, role, hel); panic(http.ErrAbortHandler) }, okSSE, false, []int64{1, 1}, stats.Success},
		"a clean end, too early":    {func(w http.ResponseWriter, _ *http.Request) { say(w, role, hel) }, okSSE, false, []int64{1, 1}, stats.Success},
		"behind release":            {func(w http.ResponseWriter, _ *http.Request) { say(w, pong); panic(http.ErrAbortHandler) }, pong, true, []int64{1, 0}, stats.Broken},
		"a clean end after release": {func(w http.ResponseWriter, _ *http.Request) { say(w, pong) }, pong, true, []int64{1, 0}, stats.Broken},
		"behind its terminal event": {func(w http.ResponseWriter, _ *http.Request) { say(w, pong, stop); panic(http.ErrAbortHandler) }, pong + stop, false, []int64{1, 0}, stats.Success},
		"whole":                     {func(w http.ResponseWriter, _ *http.Request) { say(w, whole) }, whole, false, []int64{1, 0}, stats.Success},
	} {
		t.Run(name, func(t *testing.T) {
			h, addr, calls := overHTTP2(t, "rules: []", c.first, func(w http.ResponseWriter, _ *http.Request) { say(w, okSSE) })
			resp := send(t, addr, chatPath, requestFor(chatPath, true))
			got, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 200 || string(got) != c.body || (err != nil) != c.cut {
				t.Errorf("client got %d %q, %v", resp.StatusCode, got, err)
			}
			for i, n := range calls {
				if n.Load() != c.calls[i] {
					t.Errorf("u%d was called %d times, want %d", i+1, n.Load(), c.calls[i])
				}
			}
			if r := booked(t, h, 1); r.Ending != c.ending {
				t.Errorf("booked as %v: %+v", r.Ending, r.Tries)
			}
		})
	}
}

// A stream that is reset on a kept connection before its headers is a failure like
// others: the connection has not died, and the upstream has read the request. It does
// not go out once more behind the rules' back.
func TestAStreamThatIsResetIsNoDeadConnection(t *testing.T) {
	var n atomic.Int64
	h, addr, calls := overHTTP2(t, "rules: []", func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		say(w, whole)
	}, func(w http.ResponseWriter, _ *http.Request) { say(w, okSSE) })
	for i, want := range []string{whole, okSSE} {
		resp := send(t, addr, chatPath, requestFor(chatPath, true))
		if body, err := io.ReadAll(resp.Body); string(body) != want || err != nil {
			t.Errorf("request %d got %q, %v", i+1, body, err)
		}
		booked(t, h, i+1)
	}
	if a, b := calls[0].Load(), calls[1].Load(); a != 2 || b != 1 {
		t.Errorf("called %d and %d times, want 2 and 1", a, b)
	}
}

// One broken stream leaves the others on its connection alone.
func TestAStreamThatIsGivenUpLeavesItsConnection(t *testing.T) {
	var n atomic.Int64
	var remotes = make(chan string, 4)
	h, addr, _ := overHTTP2(t, "", func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		if n.Add(1) == 1 {
			say(w, `data: {"error":{"message":"no","code":"content_policy_violation"}}`+"\n\n")
			<-r.Context().Done() // the attempt is given up before the stream's end
			return
		}
		say(w, whole)
	})
	resp := send(t, addr, chatPath, requestFor(chatPath, true))
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != 400 || err != nil {
		t.Errorf("client got %d %q, %v", resp.StatusCode, body, err)
	}
	resp = send(t, addr, chatPath, requestFor(chatPath, true))
	if body, err := io.ReadAll(resp.Body); string(body) != whole || err != nil {
		t.Errorf("client got %d %q, %v", resp.StatusCode, body, err)
	}
	booked(t, h, 2)
	if a, b := <-remotes, <-remotes; a != b {
		t.Errorf("the second request came over another connection, %s instead of %s", b, a)
	}
}

// Trailers pass from HTTP/2 to HTTP/1.1.
func TestTrailersOverHTTP2(t *testing.T) {
	_, addr, _ := overHTTP2(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Checksum")
		say(w, whole)
		w.Header().Set("X-Checksum", "abc")
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
	})
	r := drill.Ask(t.Context(), addr, drill.Query{Path: chatPath, Body: []byte(requestFor(chatPath, true))})
	got := map[string]string{}
	for _, f := range r.Trailer {
		got[f.Name] = f.Value
	}
	if string(r.Body) != whole || !r.Clean || got["X-Checksum"] != "abc" || got["X-Late"] != "1" || len(got) != 2 {
		t.Errorf("client got %q with %v, %v", r.Body, got, r.Err)
	}
}

// A big request to an upstream that refuses it unread comes back with the refusal,
// over HTTP/1.1, where the upstream lingers as nginx does, and HTTP/2.
func TestARefusalBeforeTheRequestIsRead(t *testing.T) {
	body := `{"model":"vm","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 4<<20) + `"}]}`
	refusal := `{"error":{"message":"too large for us","code":"request_too_large"}}`
	t.Run("HTTP/1.1", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		u := drill.StartRaw(l, func(c net.Conn) {
			if _, err := io.ReadFull(c, make([]byte, 1000)); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(refusal), refusal)
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c)
			}
		})
		t.Cleanup(u.Close)
		_, addr, log := wired(t, over("", u.URL()))
		resp := send(t, addr, chatPath, body)
		if got, err := io.ReadAll(resp.Body); resp.StatusCode != 413 || string(got) != refusal || err != nil {
			t.Errorf("client got %d %q, %v\n%s", resp.StatusCode, got, err, log)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(413)
			io.WriteString(w, refusal)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		h, addr, _ := wired(t, over("", server.URL))
		h.transports.get("").pooled.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		resp := send(t, addr, chatPath, body)
		if got, err := io.ReadAll(resp.Body); resp.StatusCode != 413 || string(got) != refusal || err != nil {
			t.Errorf("client got %d %q, %v", resp.StatusCode, got, err)
		}
	})
}

// A client over HTTP/2 may wait for longer than it may take to write to it: the limit
// on what it takes counts only while there is something to take.
func TestAPauseIsNoSlowClientOverHTTP2(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "server: {write_idle_timeout: 5, relay_stall_timeout: 60}", halves(sseType, pong, stop+done), mute)
		server := &http.Server{Handler: s.handler, Protocols: new(http.Protocols)}
		server.Protocols.SetUnencryptedHTTP2(true)
		l := s.net.Listen("127.0.0.1:8443")
		go server.Serve(l) // ends with Close
		tr := &http.Transport{DialContext: s.net.DialContext, Protocols: new(http.Protocols), DisableCompression: true}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer server.Close()
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1:8443"+chatPath, strings.NewReader(requestFor(chatPath, true)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); resp.ProtoMajor != 2 || string(got) != whole || err != nil {
			t.Errorf("client got %s %d %q, %v", resp.Proto, resp.StatusCode, got, err)
		}
	})
}
