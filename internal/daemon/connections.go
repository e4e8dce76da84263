package daemon

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/h1server"
)

const (
	// linger is how long a connection on which nothing runs is kept after a hand-over,
	// so that a request which is just on its way to it is served: whoever closes an
	// idle connection at once cuts off what the client has sent already.
	linger = 5 * time.Second
	// lingerLook is how often such connections are looked for.
	lingerLook = 50 * time.Millisecond
)

// connections are a server's, so that it can be left without cutting a request off:
// http.Server.Shutdown closes those that seem idle at once.
type connections struct {
	leaving atomic.Bool

	mu sync.RWMutex
	// open has Unix nanoseconds since when each is idle; 0 = a request runs, and less
	// than 0 = since when it is new.
	open map[net.Conn]*atomic.Int64
}

func newConnections() *connections {
	return &connections{open: map[net.Conn]*atomic.Int64{}}
}

// note is http.Server.ConnState.
func (c *connections) note(conn net.Conn, s http.ConnState) {
	at := int64(0)
	switch s {
	case http.StateNew:
		since := new(atomic.Int64)
		if k, ok := conn.(*h1server.Conn); ok {
			since = &k.Since
		}
		since.Store(-time.Now().UnixNano())
		c.mu.Lock()
		c.open[conn] = since
		c.mu.Unlock()
		return
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		delete(c.open, conn)
		c.mu.Unlock()
		return
	case http.StateIdle:
		at = time.Now().UnixNano()
	}
	if k, ok := conn.(*h1server.Conn); ok {
		k.Since.Store(at) // with every request, and without a search
		return
	}
	c.mu.RLock()
	since := c.open[conn]
	c.mu.RUnlock()
	if since != nil {
		since.Store(at)
	}
}

// connName is where a request's context has its connection.
type connName struct{}

// named is http.Server.ConnContext.
func (c *connections) named(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connName{}, conn)
}

// shared leaves a connection to http.Server.Shutdown: it speaks HTTP/2 in the clear,
// which nothing but its first request tells.
func (c *connections) shared(ctx context.Context) {
	conn, ok := ctx.Value(connName{}).(net.Conn)
	if !ok {
		return
	}
	c.mu.RLock()
	_, open := c.open[conn]
	c.mu.RUnlock()
	if open {
		c.mu.Lock()
		delete(c.open, conn)
		c.mu.Unlock()
	}
}

// closing has every answer that begins once the server is being left tell its client
// that the connection ends with it. In HTTP/2 the server says GOAWAY for it.
func (c *connections) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.TLS == nil {
			c.shared(r.Context())
		}
		if c.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		if r.ProtoAtLeast(1, 1) {
			next.ServeHTTP(w, r)
			return
		}
		// The connection's end is the body's: until the answer is whole only a reset may
		// end it, whatever ends the process.
		reset := func(on int) {
			if c := socket(r.Context()); c != nil {
				_ = c.SetLinger(on) // without it a plain close is all there is
			}
		}
		reset(0)
		next.ServeHTTP(w, r)
		reset(-1)
	})
}

// socket is the connection of a request's context, beneath TLS and what else is around
// it; nil where it is none of the system's.
func socket(ctx context.Context) *net.TCPConn {
	c, _ := ctx.Value(connName{}).(net.Conn)
	for outer, ok := c.(interface{ NetConn() net.Conn }); ok; outer, ok = c.(interface{ NetConn() net.Conn }) {
		c = outer.NetConn()
	}
	tcp, _ := c.(*net.TCPConn)
	return tcp
}

// leave waits until no HTTP/1 connection is left, or ctx is done. Those on which
// nothing has run for so long, and at least since now, are closed; HTTP/2 connections
// are http.Server.Shutdown's, which says farewell to them.
func (c *connections) leave(ctx context.Context, idle time.Duration) {
	c.leaving.Store(true)
	tick := time.NewTicker(lingerLook)
	defer tick.Stop()
	for began := time.Now(); c.look(began, idle) > 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look closes what is idle, and counts what is left.
func (c *connections) look(began time.Time, idle time.Duration) (left int) {
	now := time.Now()
	c.mu.RLock()
	defer c.mu.RUnlock()
	for conn, since := range c.open {
		at := since.Load()
		// A new one may be in its handshake, which would hold up who asks.
		if t, ok := conn.(*tls.Conn); ok && at >= 0 && t.ConnectionState().NegotiatedProtocol == "h2" {
			continue
		}
		left++
		if at = max(at, -at); at != 0 && now.Sub(began) >= idle && now.Sub(time.Unix(0, at)) >= idle {
			_ = conn.Close() // its server counts it out
		}
	}
	return left
}
