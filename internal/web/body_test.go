package web

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

// A body that does not come holds its connection for a while only, whoever sends it and
// whatever becomes of the request.
func TestSlowBodiesAreLetGo(t *testing.T) {
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"a login":            {"POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n", 408},
		"a command":          {"POST /api/command HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer " + token + "\r\n", 408},
		"an edit":            {"PUT /api/config HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: x\r\nAuthorization: Bearer " + token + "\r\n", 408},
		"one without a key":  {"POST /api/command HTTP/1.1\r\nContent-Type: application/json\r\n", 401},
		"one of a page":      {"POST /api/command HTTP/1.1\r\nOrigin: https://evil.example\r\n", 403},
		"one for nothing":    {"POST /nothing HTTP/1.1\r\n", 404},
		"a page with a body": {"GET /login HTTP/1.1\r\n", 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, network := newRig(t, guarded), upstreamtest.NewNet()
			defer r.serve(network)()
			conn, err := network.DialContext(t.Context(), "tcp", "127.0.0.1:8788")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			began := time.Now()
			fmt.Fprintf(conn, "%sHost: localhost\r\nContent-Length: 2000\r\n\r\n{", c.head)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != c.status {
				t.Fatalf("%s: %v, %v, want %d", name, resp, err, c.status)
			}
			_, _ = io.Copy(io.Discard, conn) // until it is closed
			if took := time.Since(began); took > bodyTime+5*time.Second {
				t.Errorf("%s: its connection is kept for %v", name, took)
			}
		})
	}
}

// What a body was for may take longer than the body: a stream whose request had one
// does not end with the time for it.
func TestAStreamOutlivesTheTimeForItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, network := newRig(t, models), upstreamtest.NewNet()
		defer r.serve(network)()
		tr := &http.Transport{DialContext: network.DialContext}
		defer tr.CloseIdleConnections()
		q, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:8788/api/events", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		a, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		began, events := time.Now(), bufio.NewReader(a.Body)
		for time.Since(began) < 3*bodyTime {
			if got := event(t, events); !strings.Contains(got, "change") && !strings.Contains(got, "still here") {
				t.Fatalf("after %v the stream says %q", time.Since(began), got)
			}
		}
	})
}
