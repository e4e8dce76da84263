package h1server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostRefusal bounds how long Serve waits before it accepts again after a failure that
	// passes, such as too few descriptors.
	mostRefusal = time.Second
	// lookEvery is how often Shutdown looks for connections that have become idle.
	lookEvery = 10 * time.Millisecond
	// newFor is how long Shutdown leaves a connection on which nothing has come.
	newFor = 5 * time.Second
)

// A Server serves listeners in the clear. It must not be copied once it serves.
type Server struct {
	// HTTP is net/http's server, which gets every connection that is not plain. Its
	// Handler, ConnState, ConnContext, ReadHeaderTimeout, IdleTimeout and ErrorLog hold for
	// the plain ones too. It must not serve a listener in the clear itself; over TLS it may.
	HTTP *http.Server
	// WatchAfter is how long a request runs before its connection is watched for a client
	// that leaves; 0 = from the beginning. A watch costs as much as a small answer.
	WatchAfter time.Duration

	once    sync.Once
	odd     handoff
	handing sync.WaitGroup
	going   atomic.Bool // Shutdown or Close was called

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	open      map[*Conn]struct{}
}

// Serve accepts connections until Shutdown or Close, and then returns
// http.ErrServerClosed; or until l fails, and then returns why. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.track(l) {
		return http.ErrServerClosed
	}
	s.once.Do(func() {
		go func() {
			_ = s.HTTP.Serve(&s.odd) // ends with Shutdown or Close
			s.odd.end()
		}()
	})
	for wait := time.Duration(0); ; {
		c, err := l.Accept()
		if err == nil {
			wait = 0
			s.take(c)
			continue
		}
		if s.going.Load() {
			return http.ErrServerClosed
		}
		if t, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); !ok || !t.Temporary() {
			return err
		}
		wait = min(max(2*wait, 5*time.Millisecond), mostRefusal)
		time.Sleep(wait)
	}
}

// track notes a listener, unless the server is ending.
func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.going.Load() {
		return false
	}
	if s.listeners == nil {
		s.listeners, s.open = map[net.Listener]struct{}{}, map[*Conn]struct{}{}
		s.odd.begin(l.Addr()) // here, so that whoever ends the server sees it
	}
	s.listeners[l] = struct{}{}
	return true
}

// take begins to serve a connection.
func (s *Server) take(c net.Conn) {
	k := &Conn{Conn: c, server: s, out: beneath(c), remote: c.RemoteAddr().String()}
	k.accepted.Store(time.Now().Unix())
	k.changed.L = &k.mu
	s.mu.Lock()
	if s.going.Load() {
		s.mu.Unlock()
		c.Close()
		return
	}
	s.open[k] = struct{}{}
	s.mu.Unlock()
	k.tell(http.StateNew)
	go k.serve()
}

// drop forgets a connection.
func (s *Server) drop(k *Conn) {
	s.mu.Lock()
	delete(s.open, k)
	s.mu.Unlock()
}

// hand hands a connection over to net/http's server, and says whether it was taken:
// that server closes what has asked for nothing when the end begins, and so do we.
func (s *Server) hand(k *Conn) bool {
	s.mu.Lock()
	if s.going.Load() {
		s.mu.Unlock()
		return false
	}
	s.handing.Add(1)
	s.mu.Unlock()
	defer s.handing.Done()
	return s.odd.give(k)
}

// Shutdown stops to accept, closes connections as they become idle, and returns when
// none is left; or when ctx is done, with its error. Answers that begin meanwhile say
// that the connection ends with them.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	s.handing.Wait()
	s.odd.end()
	s.HTTP.SetKeepAlivesEnabled(false)
	odd := make(chan error, 1)
	go func() { odd <- s.HTTP.Shutdown(ctx) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for s.closeIdle() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return <-odd
}

// Close closes the listeners and every connection at once, and cancels what runs.
func (s *Server) Close() error {
	s.end()
	s.mu.Lock()
	for k := range s.open {
		k.end()
	}
	s.mu.Unlock()
	s.odd.end()
	return s.HTTP.Close()
}

// end closes the listeners.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.going.Store(true)
	for l := range s.listeners {
		l.Close()
	}
	clear(s.listeners)
}

// closeIdle closes connections on which nothing runs, and counts those that are left.
func (s *Server) closeIdle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for k := range s.open {
		accepted := k.accepted.Load()
		if (accepted == 0 || now.Sub(time.Unix(accepted, 0)) > newFor) && k.busy.CompareAndSwap(false, true) {
			k.Conn.Close()
		}
	}
	return len(s.open)
}

// beneath is the connection that others are wrapped around.
func beneath(c net.Conn) net.Conn {
	for outer, ok := c.(interface{ NetConn() net.Conn }); ok; outer, ok = c.(interface{ NetConn() net.Conn }) {
		c = outer.NetConn()
	}
	return c
}

// A handoff is the listener from which net/http's server takes what is not plain. That
// server's Shutdown closes it when it begins; it ends when nothing more will come.
type handoff struct {
	addr  net.Addr
	conns chan handed
	last  chan struct{} // of the connection that was taken last
	once  sync.Once
	ended chan struct{}
}

// A handed connection, and what is closed once net/http's server counts it among its own.
type handed struct {
	net.Conn
	counted chan struct{}
}

func (h *handoff) begin(addr net.Addr) {
	h.addr, h.conns, h.ended = addr, make(chan handed), make(chan struct{})
}

// give hands over a connection, and says whether it was taken.
func (h *handoff) give(c net.Conn) bool {
	counted := make(chan struct{})
	select {
	case h.conns <- handed{c, counted}:
	case <-h.ended:
		return false
	}
	select {
	case <-counted:
	case <-h.ended:
	}
	return true
}

// end lets Accept fail. It does nothing where the server has never served.
func (h *handoff) end() {
	if h.ended != nil {
		h.once.Do(func() { close(h.ended) })
	}
}

// Accept implements net.Listener. Who calls it again has counted the connection before.
func (h *handoff) Accept() (net.Conn, error) {
	if h.last != nil {
		close(h.last)
		h.last = nil
	}
	select {
	case c := <-h.conns:
		h.last = c.counted
		return c.Conn, nil
	case <-h.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error { return nil }

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return h.addr }
