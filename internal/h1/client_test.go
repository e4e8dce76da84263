package h1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upstream answers every connection with a script of raw bytes; the script gets the
// request's bytes as they come.
func upstream(t *testing.T, script func(n int, c net.Conn)) (addr string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(accepted.Add(1))
			go func() {
				defer c.Close()
				script(n, c)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), accepted
}

func client(t *testing.T) *Client {
	c := &Client{Dial: (&net.Dialer{}).DialContext}
	t.Cleanup(c.CloseIdle)
	return c
}

func get(addr string) *http.Request {
	r, _ := http.NewRequest("GET", "http://"+addr+"/v1/x?y=%2F", nil)
	return r
}

func post(addr string, parts ...[]byte) (*http.Request, [][]byte) {
	r, _ := http.NewRequest("POST", "http://"+addr+"/v1/x", nil)
	r.Header.Set("Content-Type", "application/json")
	for _, p := range parts {
		r.ContentLength += int64(len(p))
	}
	return r, parts
}

// readRequest reads one request off a connection.
func readRequest(c net.Conn) (string, error) {
	var got []byte
	one := make([]byte, 4096)
	for !bytes.Contains(got, []byte("\r\n\r\n")) {
		n, err := c.Read(one)
		if err != nil {
			return string(got), err
		}
		got = append(got, one[:n]...)
	}
	head, rest, _ := bytes.Cut(got, []byte("\r\n\r\n"))
	length := 0
	for line := range strings.Lines(string(head)) {
		fmt.Sscanf(line, "Content-Length: %d", &length)
	}
	for len(rest) < length {
		n, err := c.Read(one)
		if err != nil {
			return string(got), err
		}
		got = append(got, one[:n]...)
		rest = append(rest, one[:n]...)
	}
	return string(got), nil
}

func text(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	addr, accepted := upstream(t, func(_ int, c net.Conn) {
		for {
			got, err := readRequest(c)
			if err != nil {
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(got), got)
		}
	})
	k := client(t)
	for i := range 5 {
		var reused []bool
		r, parts := post(addr, []byte(`{"model":`), []byte(`"m"`), []byte(`}`))
		resp, err := k.RoundTrip(t.Context(), r, parts, false, told{connected: func(again bool) { reused = append(reused, again) }})
		got := text(t, resp, err)
		want := "POST /v1/x HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n" + `{"model":"m"}`
		if got != want {
			t.Fatalf("upstream saw %q, want %q", got, want)
		}
		if len(reused) != 1 || reused[0] != (i > 0) {
			t.Errorf("request %d: reused %v", i, reused)
		}
	}
	if accepted.Load() != 1 {
		t.Errorf("%d connections", accepted.Load())
	}
	resp, err := k.RoundTrip(t.Context(), get(addr), nil, true, told{})
	if text(t, resp, err); accepted.Load() != 2 {
		t.Errorf("a fresh connection was asked for; there are %d", accepted.Load())
	}
}

func TestADeadConnectionIsNotUsedAgain(t *testing.T) {
	for name, kill := range map[string]func(c net.Conn){
		"closed":        func(c net.Conn) { c.Close() },
		"reset":         func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
		"unasked bytes": func(c net.Conn) { io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			killed := make(chan struct{})
			addr, accepted := upstream(t, func(n int, c net.Conn) {
				if _, err := readRequest(c); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if n == 1 {
					<-killed
					kill(c)
				}
				readRequest(c)
			})
			k := client(t)
			resp, err := k.RoundTrip(t.Context(), get(addr), nil, false, told{})
			text(t, resp, err)
			close(killed)
			for k.idleAlive(addr) { // until the death has arrived
				runtime.Gosched()
			}
			resp, err = k.RoundTrip(t.Context(), get(addr), nil, false, told{})
			if got := text(t, resp, err); got != "ok" || accepted.Load() != 2 {
				t.Errorf("%q over %d connections", got, accepted.Load())
			}
		})
	}
}

// idleAlive says whether the kept connection still looks alive.
func (c *Client) idleAlive(addr string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept(addr)[0].alive()
}

func TestWhatIsKeptAndWhatIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		body   string
		kept   bool
		fails  bool
	}{
		"length":           {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true, false},
		"chunked":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok", true, false},
		"trailers":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", "ok", true, false},
		"no body":          {"HTTP/1.1 204 No Content\r\n\r\n", "", true, false},
		"empty":            {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true, false},
		"close":            {"HTTP/1.1 200 OK\r\nConnection: close, X-Up\r\nContent-Length: 2\r\n\r\nok", "ok", false, false},
		"HTTP/1.0":         {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", false, false},
		"more than asked":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", "ok", false, false},
		"interim answers":  {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 20) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true, false},
		"cut length":       {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "ok", false, true},
		"cut chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nok", "ok", false, true},
		"without its end":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "ok", false, true},
		"odd status":       {"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok", "ok", true, false}, // the judge's business
		"garbage":          {"\x00\x01garbage\r\n\r\n", "", false, true},
		"endless head":     {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: "+strings.Repeat("y", 1000)+"\r\n", 2000), "", false, true},
		"endless interims": {strings.Repeat("HTTP/1.1 100 Continue\r\nX: "+strings.Repeat("y", 1000)+"\r\n\r\n", 2000), "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			addr, accepted := upstream(t, func(_ int, conn net.Conn) {
				for {
					if _, err := readRequest(conn); err != nil {
						return
					}
					io.WriteString(conn, c.answer)
					if c.fails {
						return
					}
				}
			})
			k := client(t)
			resp, err := k.RoundTrip(t.Context(), get(addr), nil, false, told{})
			if err == nil {
				var text []byte
				text, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(text) != c.body {
					t.Errorf("body %q, want %q", text, c.body)
				}
			}
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			if name == "close" && resp.Header.Get("Connection") != "close, X-Up" {
				t.Errorf("the Connection header is lost: %v", resp.Header)
			}
			if name == "trailers" && resp.Trailer.Get("X-T") != "1" {
				t.Errorf("the trailer is lost: %v", resp.Trailer)
			}
			if name == "endless head" && !errors.Is(err, ErrHeadTooLarge) {
				t.Errorf("error %v", err)
			}
			if c.fails {
				return
			}
			resp, err = k.RoundTrip(t.Context(), get(addr), nil, false, told{})
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if kept := accepted.Load() == 1; kept != c.kept {
				t.Errorf("kept %v, want %v", kept, c.kept)
			}
		})
	}
}

// Where an upstream and we may disagree about where a request or an answer ends, its
// connection carries nothing else: what is left over is nobody's answer.
func TestWhatIsLeftOverIsNobodysAnswer(t *testing.T) {
	const surplus = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned"
	for name, c := range map[string]struct {
		method string
		body   []byte
		answer string
		kept   bool
	}{
		"a GET with a body":              {"GET", []byte("GET /x HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"a DELETE with a body":           {"DELETE", []byte("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"a method of nobody's":           {"PURGE", []byte("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"a HEAD":                         {"HEAD", nil, "HTTP/1.1 200 OK\r\nContent-Length: 54\r\n\r\n", false},
		"204 with a length":              {"GET", nil, "HTTP/1.1 204 No Content\r\nContent-Length: 54\r\n\r\n", false},
		"204 with chunks":                {"GET", nil, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		"304 with a length":              {"GET", nil, "HTTP/1.1 304 Not Modified\r\nContent-Length: 54\r\n\r\n", false},
		"204":                            {"GET", nil, "HTTP/1.1 204 No Content\r\n\r\n", true},
		"204 with no length":             {"GET", nil, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", true},
		"a DELETE without one":           {"DELETE", nil, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		"a POST":                         {"POST", []byte("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		"a POST that was answered twice": {"POST", []byte("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + surplus, false},
		"length and chunks":              {"POST", []byte("{}"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + surplus, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			addr, accepted := upstream(t, func(n int, conn net.Conn) {
				for i := 0; ; i++ {
					if _, err := readRequest(conn); err != nil {
						return
					}
					if n == 1 && i == 0 {
						io.WriteString(conn, c.answer)
						<-asked
						if !c.kept {
							io.WriteString(conn, surplus) // just when the next request is on its way
							return
						}
						continue
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine")
				}
			})
			k := client(t)
			r, _ := http.NewRequest(c.method, "http://"+addr+"/v1/x", nil)
			r.ContentLength = int64(len(c.body))
			resp, err := k.RoundTrip(t.Context(), r, [][]byte{c.body}, false, told{})
			text(t, resp, err)
			var again bool
			resp, err = k.RoundTrip(t.Context(), get(addr), nil, false, told{connected: func(reused bool) { again = reused; close(asked) }})
			if got := text(t, resp, err); got != "mine" || again != c.kept || (accepted.Load() == 1) != c.kept {
				t.Errorf("the next answer is %q, on a kept connection: %v, of %d", got, again, accepted.Load())
			}
		})
	}
}

func TestACancelledRequestClosesItsConnection(t *testing.T) {
	boom := errors.New("boom")
	for name, answer := range map[string]string{"before the head": "", "within the body": "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			addr, _ := upstream(t, func(_ int, c net.Conn) {
				readRequest(c)
				io.WriteString(c, answer)
				_, err := c.Read(make([]byte, 1))
				gone <- err
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			k := client(t)
			sent := make(chan struct{})
			go func() { <-sent; cancel(boom) }()
			resp, err := k.RoundTrip(ctx, get(addr), nil, false, told{sent: func() {
				if answer == "" {
					close(sent)
				}
			}})
			if answer != "" {
				if err != nil {
					t.Fatal(err)
				}
				close(sent)
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, boom) {
				t.Errorf("error %v", err)
			}
			if <-gone == nil {
				t.Error("the upstream still has the connection")
			}
		})
	}
}

// An upstream that answers before it has read a large body is heard, and its
// connection is not used again.
func TestAnEarlyAnswerIsHeard(t *testing.T) {
	addr, accepted := upstream(t, func(_ int, c net.Conn) {
		c.Read(make([]byte, 1000))
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		io.Copy(io.Discard, c)
	})
	k := client(t)
	r, parts := post(addr, bytes.Repeat([]byte("x"), 20<<20))
	resp, err := k.RoundTrip(t.Context(), r, parts, false, told{})
	if got := text(t, resp, err); got != "big" || resp.StatusCode != 413 {
		t.Errorf("%d %q", resp.StatusCode, got)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.kept(addr)); n > 1 || accepted.Load() != 1 {
		t.Errorf("%d kept", n)
	}
}

func TestLargeBodiesArriveWhole(t *testing.T) {
	addr, _ := upstream(t, func(_ int, c net.Conn) {
		got, _ := readRequest(c)
		_, rest, _ := strings.Cut(got, "\r\n\r\n")
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(rest))
		io.WriteString(c, rest)
	})
	k := client(t)
	want := bytes.Repeat([]byte("0123456789"), 300_000)
	r, parts := post(addr, want[:1], want[1:2_000_000], nil, want[2_000_000:])
	resp, err := k.RoundTrip(t.Context(), r, parts, false, told{})
	if got := text(t, resp, err); got != string(want) {
		t.Errorf("%d bytes came back, want %d", len(got), len(want))
	}
}

func TestIdleConnectionsExpire(t *testing.T) {
	addr, _ := upstream(t, func(_ int, c net.Conn) {
		for {
			if _, err := readRequest(c); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	k := client(t)
	resp, err := k.RoundTrip(t.Context(), get(addr), nil, false, told{})
	text(t, resp, err)
	k.mu.Lock()
	k.kept(addr)[0].since = time.Now().Add(-2 * idleTime)
	k.mu.Unlock()
	k.expire()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) != 0 || k.sweep != nil {
		t.Errorf("still kept: %v", k.idle)
	}
}

// told is a Watcher that calls the functions it has.
type told struct {
	connected func(reused bool)
	sent      func()
	freed     func()
}

func (told) Connecting() {}
func (told) Heard()      {}

func (t told) Freed() {
	if t.freed != nil {
		t.freed()
	}
}

func (t told) Connected(reused bool) {
	if t.connected != nil {
		t.connected(reused)
	}
}

func (t told) Sent() {
	if t.sent != nil {
		t.sent()
	}
}

// kept are the connections kept for an address. c.mu is held.
func (c *Client) kept(addr string) []*conn {
	if kept := c.idle[addr]; kept != nil {
		return *kept
	}
	return nil
}

// Whatever becomes of a request, whoever lent the body hears once that it is free, and
// not while it may still be written.
func TestTheBodyIsFreedOnce(t *testing.T) {
	whole := func(_ int, c net.Conn) {
		if _, err := readRequest(c); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}
	early := func(_ int, c net.Conn) {
		c.Read(make([]byte, 1))
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
	}
	cut := func(_ int, c net.Conn) { c.Read(make([]byte, 1)) }
	for name, c := range map[string]struct {
		script func(int, net.Conn)
		size   int
	}{
		"small": {whole, 10}, "in parts": {whole, joinBelow}, "aside": {whole, 4 << 20},
		"answered early": {early, 16 << 20}, "cut": {cut, 16 << 20}, "refused": {nil, 100},
	} {
		t.Run(name, func(t *testing.T) {
			addr := "127.0.0.1:1"
			if c.script != nil {
				addr, _ = upstream(t, c.script)
			}
			var freed atomic.Int32
			done := make(chan struct{}, 8)
			r, parts := post(addr, bytes.Repeat([]byte("x"), c.size))
			resp, err := client(t).RoundTrip(t.Context(), r, parts, false, told{freed: func() { freed.Add(1); done <- struct{}{} }})
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			<-done
			if n := freed.Load(); n != 1 {
				t.Errorf("%d times", n)
			}
		})
	}
}

// A body may be closed while another goroutine still reads it: exactly one of the two
// says what becomes of the connection.
func TestABodyIsClosedWhileItIsRead(t *testing.T) {
	addr, _ := upstream(t, func(_ int, c net.Conn) {
		for {
			if _, err := readRequest(c); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	k := client(t)
	for range 200 {
		resp, err := k.RoundTrip(t.Context(), get(addr), nil, false, told{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { io.Copy(io.Discard, resp.Body) })
		resp.Body.Close()
		wg.Wait()
	}
}
