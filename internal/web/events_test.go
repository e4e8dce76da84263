package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

// serve runs the handler on a network in memory, inside a bubble.
func (r *rig) serve(network *upstreamtest.Net) (stop func()) {
	s := &http.Server{Handler: r}
	s.RegisterOnShutdown(r.Close)
	l := network.Listen("127.0.0.1:8788")
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	return func() {
		if err := s.Shutdown(context.Background()); err != nil {
			r.t.Error(err)
		}
		wg.Wait()
	}
}

// listen opens the stream of events.
func listen(t *testing.T, network *upstreamtest.Net, head ...string) (*http.Response, *bufio.Reader) {
	t.Helper()
	tr := &http.Transport{DialContext: network.DialContext}
	q, _ := http.NewRequest("GET", "http://127.0.0.1:8788/api/events", nil)
	for _, line := range head {
		name, value, _ := strings.Cut(line, ": ")
		q.Header.Set(name, value)
	}
	a, err := tr.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return a, bufio.NewReader(a.Body)
}

// event reads one event, or comment, whole.
func event(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var lines []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return strings.Join(lines, "|") + err.Error()
		}
		if line == "\n" {
			return strings.Join(lines, "|")
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

func number(n int) string { return fmt.Sprintf("id: %d|event: change|data: {\"sequence\":%d}", n, n) }

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, network := newRig(t, models), upstreamtest.NewNet()
		stop := r.serve(network)
		a, stream := listen(t, network)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" || a.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		if got := event(t, stream); got != number(0) {
			t.Errorf("at once: %s", got)
		}
		for range 50 {
			r.book(success("x"))
		}
		start := time.Now()
		if got := event(t, stream); got != number(50) {
			t.Errorf("after fifty requests: %s", got)
		}
		if waited := time.Since(start); waited > 250*time.Millisecond {
			t.Errorf("it came after %s", waited)
		}
		start = time.Now()
		if got := event(t, stream); got != ": still here" || time.Since(start) > heartbeat {
			t.Errorf("in silence: %s after %s", got, time.Since(start))
		}
		r.proxy.Target().Set(true)
		if got := event(t, stream); got != number(50) {
			t.Errorf("after a change that is no request: %s", got)
		}
		// A server that shuts down ends the streams, so that they do not hold it up.
		start = time.Now()
		stop()
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the shutdown took %s", waited)
		}
		if rest, err := io.ReadAll(stream); err != nil || len(rest) != 0 {
			t.Errorf("the stream ends with %q, %v", rest, err)
		}
	})
}

func TestReadersThatLeaveFreeTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, network := newRig(t, models), upstreamtest.NewNet()
		stop := r.serve(network)
		var open []*http.Response
		for range maxStreams {
			a, stream := listen(t, network)
			event(t, stream)
			open = append(open, a)
		}
		a, _ := listen(t, network)
		if body := text(t, a); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
			t.Errorf("one too many: %d %s", a.StatusCode, body)
		}
		for _, a := range open {
			a.Body.Close()
		}
		synctest.Wait()
		if n := len(r.streams); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
		a, stream := listen(t, network)
		if got := event(t, stream); got != number(0) {
			t.Errorf("afterwards: %s", got)
		}
		a.Body.Close()
		stop()
	})
}

// TestASlowReaderHoldsUpNobody has a reader that never takes a byte: others get
// their events, requests are booked, and the reader is let go.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, models)
		client, server := net.Pipe() // where a write waits for its reader
		l := &oneConn{conn: server, done: make(chan struct{})}
		s := &http.Server{Handler: r}
		var wg sync.WaitGroup
		wg.Go(func() { s.Serve(l) })
		if _, err := io.WriteString(client, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 1000 {
			r.book(success("x"))
			r.proxy.Target().Set(!r.proxy.Target().On())
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("a thousand requests took %s", waited)
		}
		synctest.Wait()
		if len(r.streams) != 1 {
			t.Error("the stream has not begun")
		}
		time.Sleep(maxWrite + time.Second)
		synctest.Wait()
		if len(r.streams) != 0 {
			t.Error("a reader that takes nothing is still served")
		}
		client.Close()
		s.Close()
		wg.Wait()
	})
}

// oneConn is a listener of one connection.
type oneConn struct {
	once sync.Once
	conn net.Conn
	done chan struct{}
	end  sync.Once
}

func (l *oneConn) Accept() (c net.Conn, err error) {
	l.once.Do(func() { c = l.conn })
	if c != nil {
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.end.Do(func() { close(l.done) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// TestEverythingAtOnce is for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	r := newRig(t, models)
	var wg sync.WaitGroup
	for _, path := range []string{"/", "/api/state", "/api/requests", "/api/requests/x", "/metrics"} {
		wg.Go(func() {
			for range 10 {
				if a := r.ask("GET", path, ""); a.StatusCode != 200 && path != "/api/requests/x" {
					t.Errorf("%s: %d", path, a.StatusCode)
				}
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			r.book(success("x"))
		}
	})
	wg.Go(func() {
		for _, line := range []string{"freeze add auto 1 60", "set stall_timeout 5", "freeze clear", "cand set auto 1 weight 2", "reload"} {
			if a := r.ask("POST", "/api/command", `{"line":"`+line+`"}`, jsonType); a.StatusCode != 200 {
				t.Errorf("%s: %s", line, text(t, a))
			}
		}
	})
	wg.Wait()
}

// A stream of events ends with what let its reader in: the login, or the token.
func TestEventsEndWithTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, network := newRig(t, guarded), upstreamtest.NewNet()
		stop := r.serve(network)
		cookie := r.login()
		_, out := listen(t, network, cookie)
		_, in := listen(t, network, "Authorization: Bearer "+token)
		for _, stream := range []*bufio.Reader{out, in} {
			if got := event(t, stream); got != number(0) {
				t.Errorf("at once: %s", got)
			}
		}
		r.ask("POST", "/logout", "", cookie)
		r.book(success("x"))
		if got := event(t, out); got != "EOF" {
			t.Errorf("after the logout: %s", got)
		}
		if got := event(t, in); got != number(1) {
			t.Errorf("with the token: %s", got)
		}
		r.proxy.Swap(newRig(t, strings.Replace(guarded, token, "another-"+token, 1)).proxy.Snapshot())
		r.book(success("y"))
		if got := event(t, in); got != "EOF" {
			t.Errorf("after the token: %s", got)
		}
		stop()
	})
}
