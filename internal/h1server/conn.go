package h1server

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readSize is the size of the buffer for a head; a longer one is not plain.
	readSize = 4 << 10
	// lingerTime is how long a connection stays open whose client has not sent its request
	// whole, and lingerBytes how much of it is read meanwhile: closed at once it would be
	// reset, and the answer lost.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
	// deadlineSlack says by what part of its time a deadline may stand too early: one that
	// is moved along all the time is left alone for so long. Whoever meets it waits for
	// the rest.
	deadlineSlack = 16
)

var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// A Conn is a client's connection. It is net/http's from the first request on that is
// not plain, and begins with what has been read already then.
type Conn struct {
	net.Conn
	// Since is for whoever is told of its states (http.Server.ConnState), to keep what it
	// knows of the connection. It means nothing here.
	Since atomic.Int64

	server *Server
	out    net.Conn // what is beneath: it can write several pieces at once
	remote string
	base   context.Context

	within time.Time       // the write deadline that stands
	buffer *[readSize]byte // nil while nothing is in it
	r, w   int             // what is in it
	used   bool            // there has been a request
	posted bool            // and the last one was a POST

	busy     atomic.Bool  // a request runs, or it is not ours any more
	accepted atomic.Int64 // Unix seconds; 0 = there has been a request

	mu      sync.Mutex
	changed sync.Cond // of watch
	watch   watchState
	timer   *time.Timer
	until   time.Time          // the read deadline that stands
	cancel  context.CancelFunc // of the request that runs
	early   [1]byte            // what a watch has read
	came    bool               // there is a byte in it
	broken  bool               // a watch has seen the connection's end
}

// NetConn is the connection itself.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends what is sent, as TCP can.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read gives what had been read before, and then what comes: it is net/http's.
func (c *Conn) Read(p []byte) (int, error) {
	if c.buffer != nil {
		n := copy(p, c.buffer[c.r:c.w])
		c.took(n)
		return n, nil
	}
	return c.more(p)
}

// more gives what comes behind the buffer: first the byte that a watch has read.
func (c *Conn) more(p []byte) (int, error) {
	if c.came && len(p) > 0 {
		p[0], c.came = c.early[0], false
		return 1, nil
	}
	return c.Conn.Read(p)
}

// took moves past n bytes of the buffer, which is given back when it is empty.
func (c *Conn) took(n int) {
	if c.r += n; c.r == c.w {
		readBuffers.Put(c.buffer)
		c.buffer, c.r, c.w = nil, 0, 0
	}
}

func (c *Conn) tell(s http.ConnState) {
	if f := c.server.HTTP.ConnState; f != nil {
		f(c, s)
	}
}

// serve serves one request after the other.
func (c *Conn) serve() {
	given := false
	defer func() { // also where a handler has ended the goroutine
		if !given {
			c.Conn.Close()
			if c.buffer != nil {
				c.took(c.w - c.r)
			}
			c.tell(http.StateClosed)
		}
		c.server.drop(c)
	}()
	if !c.requests() {
		_ = c.Conn.SetReadDeadline(time.Time{}) // net/http sets its own
		given = c.server.hand(c)
	}
}

// requests serves plain requests. ended is false where the next one is not.
func (c *Conn) requests() (ended bool) {
	c.base = context.WithValue(context.Background(), http.ServerContextKey, c.server.HTTP)
	c.base = context.WithValue(c.base, http.LocalAddrContextKey, c.LocalAddr())
	if f := c.server.HTTP.ConnContext; f != nil {
		c.base = f(c.base, c)
	}
	for {
		if !c.fill() || !c.skip() || !c.busy.CompareAndSwap(false, true) {
			return true
		}
		h, size, ok := parse(c.buffer[c.r:c.w])
		if !ok {
			_ = c.Conn.SetWriteDeadline(time.Time{}) // of an answer before
			return c.used && c.prefaced()
		}
		c.took(size)
		c.tell(http.StateActive)
		if !c.used {
			c.used = true
			c.accepted.Store(0)
		}
		if !c.exchange(&h) || c.server.going.Load() {
			return true
		}
		c.posted = h.method == http.MethodPost
		c.tell(http.StateIdle)
		c.busy.Store(false)
	}
}

// skip passes over line ends behind a body: there are old clients that send one, and
// net/http puts up with as many.
func (c *Conn) skip() bool {
	for most := 4; c.posted && most > 0 && (c.buffer[c.r] == '\r' || c.buffer[c.r] == '\n'); most-- {
		if c.took(1); !c.fill() {
			return false
		}
	}
	return true
}

// fill reads until there is something in the buffer.
func (c *Conn) fill() bool {
	if c.buffer != nil {
		return true // sent behind the last request
	}
	patience := c.server.HTTP.IdleTimeout
	if !c.used || c.came {
		patience = c.server.HTTP.ReadHeaderTimeout
	}
	until := c.expect(patience)
	b := readBuffers.Get().(*[readSize]byte)
	at := 0
	if c.came {
		b[0], at, c.came = c.early[0], 1, false
		c.buffer, c.w = b, at
	}
	n, err := c.Conn.Read(b[at:])
	if n == 0 && early(err, until) {
		c.until = until
		_ = c.Conn.SetReadDeadline(until)
		n, _ = c.Conn.Read(b[at:])
	}
	if at+n > 0 {
		c.buffer, c.r, c.w = b, 0, at+n
		return true
	}
	readBuffers.Put(b)
	return false // whatever it was, the connection is of no more use
}

// preface is how a connection begins that speaks HTTP/2. Behind a request it is refused
// as net/http does: that server would take it here for the connection's beginning.
const (
	preface = "PRI"
	refused = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
)

// prefaced says whether that is what has come, and refuses it. It reads on where it
// cannot tell yet.
func (c *Conn) prefaced() bool {
	c.expect(c.server.HTTP.ReadHeaderTimeout)
	for {
		came := c.buffer[c.r:c.w]
		n := min(len(came), len(preface))
		if string(came[:n]) != preface[:n] {
			return false
		}
		if n == len(preface) {
			_, _ = c.Conn.Write([]byte(refused))
			return true
		}
		if c.w == readSize {
			c.r, c.w = 0, copy(c.buffer[:], came)
		}
		m, err := c.more(c.buffer[c.w:])
		if c.w += m; m == 0 && err != nil {
			return true
		}
	}
}

// expect moves the read deadline, unless it stands about there already. It returns where
// it should stand; zero = nowhere.
func (c *Conn) expect(patience time.Duration) (until time.Time) {
	if patience > 0 {
		until = time.Now().Add(patience)
	}
	if !near(c.until, until, patience) {
		c.until = until
		_ = c.Conn.SetReadDeadline(until)
	}
	return until
}

// near says whether a deadline that stands will do for one that is wanted, patience from
// now.
func near(stands, wanted time.Time, patience time.Duration) bool {
	if stands.IsZero() || wanted.IsZero() {
		return stands.IsZero() && wanted.IsZero()
	}
	early := wanted.Sub(stands)
	return early >= 0 && early <= patience/deadlineSlack
}

// early says whether a deadline was met before the one that was wanted.
func early(err error, wanted time.Time) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(wanted)
}

// exchange serves one request, and says whether the connection can carry another.
func (c *Conn) exchange(h *head) (reusable bool) {
	ctx, cancel := context.WithCancel(c.base)
	defer cancel()
	x := &response{conn: c, length: -1, header: make(http.Header, 8)}
	r := x.request(ctx, h)
	c.begin(cancel, h.length <= 0)
	whole := c.handle(x, r)
	if whole {
		whole = x.finish()
	} else if x.framed && x.written != x.length {
		x.flush() // what the client may see of an answer that was broken off
	}
	x.err = errOver
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll() // what it has left on disk
	}
	left, idle := x.body.end()
	if gone := c.settle(); gone && c.buffer == nil || !whole || !idle {
		return false
	}
	if left > 0 || x.closing {
		c.linger(left > 0)
		return false
	}
	return true
}

// request is what a handler gets, as net/http's server gives it.
func (x *response) request(ctx context.Context, h *head) *http.Request {
	r := new(http.Request).WithContext(ctx)
	x.url.Path, x.url.RawQuery = h.path, h.query
	r.Method, r.URL, r.RequestURI, r.Host = h.method, &x.url, h.target, h.host
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Header, r.RemoteAddr, r.Close = h.header, x.conn.remote, h.close
	r.Body, x.closing = http.NoBody, h.close
	if h.length > 0 {
		r.ContentLength = h.length
		x.body.conn, x.body.left = x.conn, h.length
		r.Body = &x.body
	}
	return r
}

// handle calls the handler, and is false where that has broken the answer off.
func (c *Conn) handle(w http.ResponseWriter, r *http.Request) (whole bool) {
	defer func() {
		if fault := recover(); fault != nil && fault != http.ErrAbortHandler {
			printf := log.Printf
			if l := c.server.HTTP.ErrorLog; l != nil {
				printf = l.Printf
			}
			printf("http: panic serving %v: %v\n%s", c.remote, fault, debug.Stack())
		}
	}()
	c.server.HTTP.Handler.ServeHTTP(w, r)
	return true
}

// linger ends what is sent, and reads for a while what the client still sends.
func (c *Conn) linger(unread bool) {
	if !unread || c.CloseWrite() != nil {
		return
	}
	until := time.Now().Add(lingerTime)
	_ = c.Conn.SetReadDeadline(until)
	b := readBuffers.Get().(*[readSize]byte)
	defer readBuffers.Put(b)
	for got := 0; got < lingerBytes; {
		n, err := c.Conn.Read(b[:])
		if err != nil {
			return
		}
		got += n
	}
	time.Sleep(time.Until(until))
}

// A watchState is how far the watch for a client that leaves has come.
type watchState int

const (
	unwatched watchState = iota
	armed                // begins when the request has run for a while
	watching             // somebody reads
	leaving              // who reads is to stop
)

// begin notes how the request that begins is cancelled.
func (c *Conn) begin(cancel context.CancelFunc, bare bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel = cancel; c.broken {
		cancel() // it came with the one before
	}
	if bare {
		c.arm()
	}
}

// end closes the connection, and cancels the request that runs: it may not be watched.
func (c *Conn) end() {
	c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken = true; c.cancel != nil {
		c.cancel()
	}
}

// arm has the connection watched once the request has run for a while. Its body must
// have been read, and the mutex is held.
func (c *Conn) arm() {
	if c.watch != unwatched || c.came || c.broken {
		return
	}
	c.watch = armed
	switch after := c.server.WatchAfter; {
	case after <= 0:
		go c.look() // ends with the request
	case c.timer == nil:
		c.timer = time.AfterFunc(after, c.look)
	default:
		c.timer.Reset(after)
	}
}

// look reads a byte, which is the next request's where one comes; what ends the
// connection cancels the request.
func (c *Conn) look() {
	c.mu.Lock()
	if c.watch != armed {
		c.mu.Unlock()
		return
	}
	c.watch = watching
	c.deadline(time.Time{})
	c.mu.Unlock()

	n, err := c.Conn.Read(c.early[:])

	c.mu.Lock()
	c.came = n == 1
	stopped := c.watch == leaving && errors.Is(err, os.ErrDeadlineExceeded)
	cancel := context.CancelFunc(nil)
	if err != nil && !stopped {
		c.broken, cancel = true, c.cancel
	}
	c.watch = unwatched
	c.changed.Broadcast()
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// settle ends the watch, and says whether the connection is at its end.
func (c *Conn) settle() (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = nil
	switch c.watch {
	case armed:
		c.watch = unwatched
		if c.timer != nil {
			c.timer.Stop() // where it is late, look finds nothing to do
		}
	case watching:
		c.watch = leaving
		c.deadline(time.Unix(1, 0))
		for c.watch != unwatched {
			c.changed.Wait()
		}
		c.deadline(time.Time{})
	}
	return c.broken
}

// deadline moves the read deadline where it stands elsewhere. The mutex is held.
func (c *Conn) deadline(t time.Time) {
	if !t.Equal(c.until) {
		c.until = t
		_ = c.Conn.SetReadDeadline(t)
	}
}
