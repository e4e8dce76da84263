package upstreamtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve runs an http.Server on n at addr until the test ends.
func serve(t *testing.T, n *Net, addr string, h http.HandlerFunc) {
	srv := &http.Server{Handler: h}
	l := n.Listen(addr)
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
}

// transport returns a client side over n, closed when the test ends.
func transport(t *testing.T, n *Net) *http.Transport {
	tr := &http.Transport{DialContext: n.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func TestHTTPClientAndServerInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		serve(t, n, "u1.test:80", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			io.WriteString(w, "you said "+string(body))
		})
		client := &http.Client{Transport: transport(t, n)}
		for range 3 {
			resp, err := client.Post("http://u1.test/", "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || len(body) != 1<<20+len("you said ") {
				t.Errorf("got %d bytes, %v", len(body), err)
			}
		}
		if got := n.Dials("u1.test:80"); got != 1 {
			t.Errorf("%d dials, want one connection used three times", got)
		}
	})
}

// A client that waits for a silent stream notices after exactly the time it was
// told, which is what this package is for.
func TestAStallIsSeenAtExactlySixtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		left := make(chan time.Time, 1)
		serve(t, n, "u1.test:80", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "data: {}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			left <- time.Now()
		})
		start := time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stalled := errors.New("stalled")
		watch := time.AfterFunc(60*time.Second, func() { cancel(stalled) })
		defer watch.Stop()

		req, _ := http.NewRequestWithContext(ctx, "GET", "http://u1.test/", nil)
		resp, err := transport(t, n).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if string(got) != "data: {}\n\n" || !errors.Is(err, stalled) {
			t.Errorf("read %q, %v", got, err)
		}
		if took := time.Since(start); took != 60*time.Second {
			t.Errorf("noticed after %v, want exactly 60s", took)
		}
		if took := (<-left).Sub(start); took != 60*time.Second {
			t.Errorf("the server saw the client leave after %v, want exactly 60s", took)
		}
	})
}

func TestDialErrorsLookLikeThoseOfADialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		l := n.Listen("127.0.0.1:80")
		defer l.Close()
		n.Blackhole("hole.test:80")
		n.Fail("lost.test:80", &net.DNSError{Err: "no such host", Name: "lost.test", IsNotFound: true})

		_, err := n.DialContext(t.Context(), "tcp", "nobody.test:80")
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v, want ECONNREFUSED", err)
		}
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("%v is no dial error", err)
		}
		var dns *net.DNSError
		if _, err := n.DialContext(t.Context(), "tcp", "lost.test:80"); !errors.As(err, &dns) {
			t.Errorf("lost name: %v, want a DNS error", err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, err = n.DialContext(ctx, "tcp", "hole.test:80")
		if took := time.Since(start); took != 15*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("black hole: %v after %v", err, took)
		}
		if _, err := n.DialContext(ctx, "tcp", "127.0.0.1:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dial whose context has ended: %v", err)
		}
		n.Heal("lost.test:80")
		if _, err := n.DialContext(t.Context(), "tcp", "lost.test:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("healed: %v, want ECONNREFUSED", err)
		}
	})
}

func TestAClosedListenerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		l := n.Listen("u1.test:0")
		addr := l.Addr().String()
		waiting := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			waiting <- err
		}()
		synctest.Wait()
		l.Close()
		if err := <-waiting; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the waiting accept: %v, want net.ErrClosed", err)
		}
		if _, err := n.DialContext(t.Context(), "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: %v, want ECONNREFUSED", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		n.Listen(addr).Close() // the address is free again
	})
}

func TestUnacceptedConnectionsAreResetByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet()
		l := n.Listen("u1.test:80")
		c, err := n.DialContext(t.Context(), "tcp", "u1.test:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v, want ECONNRESET", err)
		}
	})
}

func TestAddresses(t *testing.T) {
	n := NewNet()
	l := n.Listen("[::1]:8080")
	defer l.Close()
	if _, ok := l.Addr().(*net.TCPAddr); !ok || l.Addr().String() != "[::1]:8080" {
		t.Errorf("listener's address is %T %v", l.Addr(), l.Addr())
	}
	c, err := n.DialContext(t.Context(), "tcp", "[::1]:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if host, _, err := net.SplitHostPort(c.LocalAddr().String()); host != "127.0.0.1" || err != nil {
		t.Errorf("the dialler's address is %v", c.LocalAddr())
	}
	if c.RemoteAddr().String() != "[::1]:8080" || c.RemoteAddr().Network() != "tcp" {
		t.Errorf("the dialled address is %v", c.RemoteAddr())
	}
}
