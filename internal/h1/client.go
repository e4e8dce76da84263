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
	// maxHead bounds an answer's head, with the 1xx answers before it.
	maxHead = 1 << 20
)

// ErrHeadTooLarge is an answer whose head does not end.
var ErrHeadTooLarge = errors.New("the answer's head is too large")

// Hooks are told how far a request has come. Nil functions are not called; the
// others may be called from another goroutine while RoundTrip runs.
type Hooks struct {
	Connecting func()            // a new connection is needed
	Connected  func(reused bool) // a connection is there
	Sent       func()            // the request's last byte has been written
	Heard      func()            // bytes of the answer's head have come, or a 1xx answer
}

// A Client keeps connections. Its methods may be called from any goroutine.
type Client struct {
	// Dial opens connections; it is set before the first request.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	idle  map[string][]*conn // by address, most recently used last
	sweep *time.Timer        // closes what has been idle for too long; nil while nothing is idle
}

// RoundTrip sends a request and returns the answer when its head is there; the
// caller closes its body. The request's URL names an http:// host; its body is given
// in parts, which are not copied and must not change before the answer's body is
// closed. fresh demands a connection that was never used. When ctx is done the
// connection is closed, the body's reading too.
func (c *Client) RoundTrip(ctx context.Context, req *http.Request, body [][]byte, fresh bool, hooks *Hooks) (*http.Response, error) {
	k, err := c.get(ctx, address(req), fresh, hooks)
	if err != nil {
		return nil, err
	}
	return k.send(ctx, req, body, hooks)
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
func (c *Client) get(ctx context.Context, addr string, fresh bool, hooks *Hooks) (*conn, error) {
	for !fresh {
		k := c.take(addr)
		if k == nil {
			break
		}
		if !k.alive() {
			k.Close()
			continue
		}
		if hooks.Connected != nil {
			hooks.Connected(true)
		}
		return k, nil
	}
	if hooks.Connecting != nil {
		hooks.Connecting()
	}
	nc, err := c.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if hooks.Connected != nil {
		hooks.Connected(false)
	}
	k := &conn{Conn: nc, client: c, addr: addr}
	k.in = bufio.NewReader(k)
	return k, nil
}

// take hands over the connection used last, nil if none is kept.
func (c *Client) take(addr string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.idle[addr]
	if len(kept) == 0 {
		return nil
	}
	k := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	c.idle[addr] = kept[:len(kept)-1]
	return k
}

// put keeps a connection for the next request.
func (c *Client) put(k *conn) {
	k.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle[k.addr]) >= maxIdle {
		k.Close()
		return
	}
	if c.idle == nil {
		c.idle = map[string][]*conn{}
	}
	c.idle[k.addr] = append(c.idle[k.addr], k)
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
		for n < len(kept) && !kept[n].since.After(oldest) {
			kept[n].Close()
			n++
		}
		if kept = append([]*conn(nil), kept[n:]...); len(kept) == 0 {
			delete(c.idle, addr)
		} else {
			c.idle[addr] = kept
		}
		left += len(kept)
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
		for _, k := range kept {
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
