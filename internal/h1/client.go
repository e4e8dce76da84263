package h1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits of a Client.
const (
	// maxIdle is how many unused connections are kept per address.
	maxIdle = 512
	// idleTime is how long an unused connection is kept.
	idleTime = 90 * time.Second
	// readAhead is the size of a connection's read buffer. Every stream holds one for
	// as long as it runs, and what is larger is read past it.
	readAhead = 2 << 10
	// maxHead bounds an answer's head, with the 1xx answers before it.
	maxHead = 1 << 20
)

// ErrHeadTooLarge is an answer whose head does not end.
var ErrHeadTooLarge = errors.New("the answer's head is too large")

// A Watcher is told how far a request has come; it may be called from another
// goroutine while RoundTrip runs.
type Watcher interface {
	// Connecting says that a new connection is needed.
	Connecting()
	// Connected says that a connection is there, and whether it was used before.
	Connected(reused bool)
	// Sent says that the request's last byte has been written.
	Sent()
	// Heard says that bytes of the answer's head have come, or a 1xx answer.
	Heard()
	// Freed says that the body's parts are not read any more. It is called once for each
	// RoundTrip, perhaps after that has returned.
	Freed()
}

// A Client keeps connections. Its methods may be called from any goroutine.
type Client struct {
	// Dial opens connections; it is set before the first request.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	idle  map[string]*[]*conn // by address, most recently used last
	sweep *time.Timer         // closes what has been idle for too long; nil while nothing is idle
}

// RoundTrip sends a request and returns the answer when its head is there; the
// caller closes its body. The request's URL names an http:// host; its body is given
// in parts, which are not copied and must not change before the watcher is told that
// they are free. fresh demands a connection that was never used. When ctx is done the
// connection is closed, the body's reading too. Where it fails with ErrUnsendable nobody
// was called.
func (c *Client) RoundTrip(ctx context.Context, req *http.Request, body [][]byte, fresh bool, watch Watcher) (*http.Response, error) {
	w := writings.Get().(*writing)
	err := w.head(req)
	var k *conn
	if err == nil {
		k, err = c.get(ctx, address(req), fresh, watch)
	}
	if err != nil {
		w.free()
		watch.Freed()
		return nil, err
	}
	return k.send(ctx, req, w, body, watch)
}

// address is where a request goes.
func address(req *http.Request) string {
	host := req.URL.Host
	if req.URL.Port() == "" {
		host = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	return host
}

// get returns a kept connection, or a new one.
func (c *Client) get(ctx context.Context, addr string, fresh bool, watch Watcher) (*conn, error) {
	for !fresh {
		k := c.take(addr)
		if k == nil {
			break
		}
		if !k.alive() {
			k.Close()
			continue
		}
		watch.Connected(true)
		return k, nil
	}
	watch.Connecting()
	nc, err := c.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	watch.Connected(false)
	k := &conn{Conn: nc, client: c, addr: addr, abort: func() { nc.Close() }}
	k.in = bufio.NewReaderSize(k, readAhead)
	return k, nil
}

// take hands over the connection used last, nil if none is kept.
func (c *Client) take(addr string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.idle[addr]
	if kept == nil || len(*kept) == 0 {
		return nil
	}
	last := len(*kept) - 1
	k := (*kept)[last]
	(*kept)[last] = nil
	*kept = (*kept)[:last]
	return k
}

// put keeps a connection for the next request.
func (c *Client) put(k *conn) {
	k.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = map[string]*[]*conn{}
	}
	kept := c.idle[k.addr]
	if kept == nil {
		kept = new([]*conn)
		c.idle[k.addr] = kept
	}
	if len(*kept) >= maxIdle {
		k.Close()
		return
	}
	*kept = append(*kept, k)
	if c.sweep == nil {
		c.sweep = time.AfterFunc(idleTime, c.expire)
	}
}

// expire closes what has been idle for too long.
func (c *Client) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, left := time.Now().Add(-idleTime), 0
	for addr, kept := range c.idle {
		n := 0
		for n < len(*kept) && !(*kept)[n].since.After(oldest) {
			(*kept)[n].Close()
			n++
		}
		if *kept = append([]*conn(nil), (*kept)[n:]...); len(*kept) == 0 {
			delete(c.idle, addr)
		}
		left += len(*kept)
	}
	if c.sweep = nil; left > 0 {
		c.sweep = time.AfterFunc(idleTime/3, c.expire)
	}
}

// CloseIdle closes every kept connection.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range c.idle {
		for _, k := range *kept {
			k.Close()
		}
	}
	c.idle = nil
	if c.sweep != nil {
		c.sweep.Stop()
		c.sweep = nil
	}
}

// malformed wraps what net/http says of an answer that is no HTTP.
func malformed(err error) error { return fmt.Errorf("read the answer's head: %w", err) }
