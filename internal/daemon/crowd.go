package daemon

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// adminConnections bounds the admin listener's connections.
	adminConnections = 512
	// shedAtOnce is how many connections are told at once that there are too many;
	// more are closed without a word.
	shedAtOnce = 64
	// shedTime bounds how long one is told.
	shedTime = time.Second
	// descriptorsPerClient are what a client's connection may take: its own and one to
	// an upstream. ownDescriptors are for everything else.
	descriptorsPerClient, ownDescriptors = 2, 64
)

// shedAnswer is what a connection too many gets, whatever it asks.
var shedAnswer = func() string {
	const body = `{"error":{"message":"too many connections (max_connections); try again in a moment","type":"overloaded_error","param":null,"code":"overloaded"}}` + "\n"
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}()

// mostConnections is how many connections there may be at once: what the file says, as
// far as there are descriptors.
func mostConnections(file int, descriptors uint64) int {
	if descriptors == 0 {
		return file
	}
	few := (int64(min(descriptors, 1<<40)) - ownDescriptors) / descriptorsPerClient
	return int(min(int64(file), max(few, 1)))
}

// A crowdListener accepts so many connections at once. One too many gets an answer
// that says so, where it may be in the clear, and is closed: it would wait in vain
// otherwise, for an accept that does not come.
type crowdListener struct {
	net.Listener
	most  int64
	mute  bool // TLS: nothing can be said
	open  atomic.Int64
	sheds chan struct{}
}

func bounded(l net.Listener, most int, mute bool) *crowdListener {
	return &crowdListener{Listener: l, most: int64(most), mute: mute, sheds: make(chan struct{}, shedAtOnce)}
}

// Accept implements net.Listener.
func (l *crowdListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &crowdConn{Conn: c, from: l}, nil
		}
		l.open.Add(-1)
		l.shed(c)
	}
}

// shed closes a connection too many.
func (l *crowdListener) shed(c net.Conn) {
	if l.mute {
		c.Close()
		return
	}
	select {
	case l.sheds <- struct{}{}:
	default:
		c.Close()
		return
	}
	go func() { // ends within shedTime
		defer func() { <-l.sheds }()
		defer c.Close()
		if c.SetDeadline(time.Now().Add(shedTime)) != nil {
			return
		}
		if _, err := io.WriteString(c, shedAnswer); err != nil {
			return
		}
		// Closed with bytes unread, the connection would be reset, and the answer lost.
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 64<<10))
	}()
}

// crowdConn gives its place back when it is closed.
type crowdConn struct {
	net.Conn
	from *crowdListener
	once sync.Once
}

// Close implements net.Conn.
func (c *crowdConn) Close() error {
	c.once.Do(func() { c.from.open.Add(-1) })
	return c.Conn.Close()
}

// NetConn is the connection itself.
func (c *crowdConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends what is sent, as TCP can.
func (c *crowdConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
