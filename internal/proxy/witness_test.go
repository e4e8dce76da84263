package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"understudy/internal/drill"
)

// Whatever way a head comes in, its Connection lines are seen: interim answers
// before it, folded lines, bare line feeds, and what follows it are not.
func TestWitnessSeesConnectionLines(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		want  []string
	}{
		"close and a name":  {"HTTP/1.1 200 OK\r\nConnection: close, X-Up\r\nX-Up: 1\r\n\r\nbody\r\nConnection: no\r\n\r\n", []string{"close, X-Up"}},
		"two lines":         {"HTTP/1.1 200 OK\r\nconnection:close\r\nA: b\r\nCONNECTION:\tX-Up \r\n\r\n", []string{"close", "X-Up"}},
		"behind an interim": {"HTTP/1.1 100 Continue\r\nConnection: x\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close,y\r\n\r\n", []string{"close,y"}},
		"folded":            {"HTTP/1.1 200 OK\r\nConnection: close,\r\n X-Up\r\nA: b\r\n c\r\n\r\n", []string{"close, X-Up"}},
		"line feeds":        {"HTTP/1.1 200 OK\nConnection: close, X-Up\n\nConnection: no\n\n", []string{"close, X-Up"}},
		"none":              {"HTTP/1.1 200 OK\r\nX-Connection: close\r\n\r\nConnection: no\r\n\r\n", nil},
		"no end":            {"HTTP/1.1 200 OK\r\nConnection: close\r\n", nil},
	} {
		w := new(witness)
		w.watch(func() {})
		w.note([]byte(c.bytes))
		if got := w.connection(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		w.watch(func() {})
		r := iotest.OneByteReader(strings.NewReader(c.bytes))
		for b := make([]byte, 8); ; {
			n, err := r.Read(b)
			w.note(b[:n])
			if err != nil {
				break
			}
		}
		if got := w.connection(); !slices.Equal(got, c.want) {
			t.Errorf("%s, byte by byte: %q, want %q", name, got, c.want)
		}
	}
}

// Case 30: what an answer's Connection names stops here over TLS too, and a kept
// connection is watched anew for every answer.
func TestNamedHeadersStopOverTLSAndOnKeptConnections(t *testing.T) {
	n := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("X-Up", "1")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "x-up")
		if n > 2 {
			w.Header().Set("Connection", "close, x-up")
		}
		w.Write([]byte(okChat))
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	server.StartTLS()
	defer server.Close()
	r := newRig(t, over("", server.URL))
	r.handler.transports.get("").pooled.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	for range 4 {
		got := r.post("/v1/chat/completions", `{"model":"vm"}`)
		r.is(got, 200, okChat)
		if got.Get("X-Up") != "" || got.Get("Connection") != "" {
			t.Errorf("client got %s", got.Head)
		}
	}

	plain := play(t, func(w *drill.Wire, _ drill.Request, n int) {
		header := []string{"Content-Type", "application/json", "X-Up", "1", "Connection", "X-Up"}
		if n == 3 {
			header[5] = "X-Up, close"
		}
		w.Head(200, drill.Length(len(okChat)), header...)
		w.Chunk([]byte(okChat))
	})
	r = newRig(t, over("", plain.URL()))
	for range 4 {
		if got := r.post("/v1/chat/completions", `{"model":"vm"}`); got.Status != 200 || got.Get("X-Up") != "" {
			t.Errorf("client got %s", got.Head)
		}
	}
}

// Case 30: over TLS the upstream is called by its own name, in the handshake and in
// Host, and HTTP/2 is spoken where it is offered.
func TestUpstreamIsCalledByItsOwnNameOverTLS(t *testing.T) {
	for proto, protocols := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": {"h2", "http/1.1"}} {
		var names []string
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			names = append(names, r.TLS.ServerName, r.Host, r.Proto, r.UserAgent(), fmt.Sprint(r.ContentLength))
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(okChat))
		}))
		server.TLS = &tls.Config{NextProtos: protocols}
		server.EnableHTTP2 = proto == "HTTP/2.0"
		server.StartTLS()
		r := newRig(t, over("", "https://example.com/v1"))
		r.handler.transports.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "example.com:443" {
				t.Errorf("dialled %s", addr)
			}
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}
		r.handler.transports.get("").pooled.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		r.is(r.post("/v1/chat/completions", `{"model":"vm"}`, "Host", "localhost", "User-Agent", "me"), 200, okChat)
		if want := []string{"example.com", "example.com", proto, "me", "14"}; !slices.Equal(names, want) {
			t.Errorf("upstream saw %q, want %q", names, want)
		}
		r.handler.transports.CloseIdle()
		server.Close()
	}
}
