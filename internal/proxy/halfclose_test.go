package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// A client that has closed its sending half looks as if it had left. It is broken off,
// without a head: an empty 200 would be an answer that no upstream gave.
func TestAHalfClosedClientGetsNoEmptyAnswer(t *testing.T) {
	for name, stream := range map[string]bool{"JSON": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				close(asked)
				w.Silence() // until the proxy gives it up
			})
			h, addr, _ := wired(t, over("", u.URL()))
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			body := requestFor(chatPath, stream)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatPath, addr, len(body), body)
			<-asked
			c.(*net.TCPConn).CloseWrite()
			if got, _ := io.ReadAll(c); len(got) > 0 { // an end or a reset
				t.Errorf("it got %q", got)
			}
			if r := booked(t, h, 1); r.Ending != stats.Cancelled {
				t.Errorf("it ended as %v", r.Ending)
			}
		})
	}
}

// HTTP/1.0 has no chunks: a body without a length is refused, and nothing that stands
// behind a request is taken for another one.
func TestHTTP10BodiesHaveALength(t *testing.T) {
	smuggled := "GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		head, body string
		status     string
		calls      int
	}{
		"chunks alone":        {"Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", "411", 0},
		"no length":           {"", "", "411", 0},
		"a length and chunks": {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\nConnection: keep-alive\r\n", "30\r\n" + smuggled + "\r\n0\r\n\r\n", "200", 1},
		"a length":            {"Content-Length: 2\r\nConnection: keep-alive\r\n", "{}" + smuggled, "200", 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := play(t, drill.Healthy(drill.Answer{}))
			_, addr, _ := wired(t, pool("", u.URL()))
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "POST /v1/things HTTP/1.0\r\nHost: localhost\r\n%s\r\n%s", c.head, c.body)
			got, _ := io.ReadAll(conn) // to its end: the connection is closed
			if _, status, _ := strings.Cut(string(got), " "); !strings.HasPrefix(status, c.status) || strings.Contains(string(got), "HTTP/1.1 ") {
				t.Errorf("%q", got)
			}
			if u.Count() != c.calls {
				t.Errorf("%d calls", u.Count())
			}
		})
	}
}
