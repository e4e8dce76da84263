package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server that is left closes no connection under a request: the next answer says
// that it is the last, and only what stays idle is closed.
func TestLeavingClosesNoConnectionInUse(t *testing.T) {
	c := newConnections()
	release := make(chan struct{})
	s := httptest.NewUnstartedServer(c.closing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		if r.URL.Path == "/held" {
			<-release
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})))
	s.Config.ConnState = c.note
	s.Start()
	t.Cleanup(s.Close)
	ask := func(client *http.Client, path string) (closes bool) {
		t.Helper()
		resp, err := client.Post(s.URL+path, "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != path {
			t.Fatalf("%q, %v", body, err)
		}
		return resp.Close
	}
	fresh := func() *http.Client {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	used, unused, held := fresh(), fresh(), fresh()
	if ask(used, "/a") || ask(unused, "/a") {
		t.Fatal("closed before anybody leaves")
	}
	over := make(chan bool, 1)
	go func() { over <- ask(held, "/held") }()
	eventually(t, "three connections, one in use", func() bool {
		c.mu.RLock()
		defer c.mu.RUnlock()
		active := 0
		for _, since := range c.open {
			if since.Load() == 0 {
				active++
			}
		}
		return len(c.open) == 3 && active == 1
	})
	left := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(left)
		c.leave(t.Context(), 300*time.Millisecond)
	}()
	eventually(t, "it is being left", c.leaving.Load)
	if !ask(used, "/b") {
		t.Error("the answer on a kept connection does not say that it is the last")
	}
	eventually(t, "the idle one is closed", func() bool { c.mu.RLock(); defer c.mu.RUnlock(); return len(c.open) == 1 })
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("closed after %v", took)
	}
	select {
	case <-left:
		t.Fatal("left while a request runs")
	default:
	}
	close(release)
	if <-over {
		t.Error("an answer that had begun says that it is the last")
	}
	// Its connection seems to be kept: one more request finds it.
	if !ask(held, "/c") {
		t.Error("the answer does not say that it is the last")
	}
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("not left in ten seconds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.leave(ctx, time.Hour) // does not wait
}

// What a request adds to be found out about: its connection becomes active, and idle.
func BenchmarkNote(b *testing.B) {
	c := newConnections()
	var conns []*net.TCPConn
	for range 32 {
		conn := new(net.TCPConn)
		c.note(conn, http.StateNew)
		conns = append(conns, conn)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.note(conns[n%len(conns)], http.StateActive)
		c.note(conns[n%len(conns)], http.StateIdle)
	}
}
