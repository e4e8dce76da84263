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
	// turnedAtOnce is how many may be told at once that there is a rush; they have places
	// of their own among max_connections.
	turnedAtOnce = 1024
	// rushWait is how often a connection that waits to be let in is looked at.
	rushWait = 5 * time.Millisecond
	// shedTime bounds how long one is told, and shedBytes how much of its request is read
	// meanwhile: those of agents are large.
	shedTime  = time.Second
	shedBytes = 16 << 20
	// descriptorsPerClient are what a client's connection may take: its own and one to
	// an upstream. ownDescriptors are for everything else.
	descriptorsPerClient, ownDescriptors = 2, 64
)

// What a connection too many gets, whatever it asks, and one too many in a rush.
var (
	shedAnswer = refusal(`{"error":{"message":"too many connections (max_connections); try again in a moment","type":"overloaded_error","param":null,"code":"overloaded"}}` + "\n")
	rushAnswer = refusal(rushBody)
)

// refusal is a whole answer that a connection is closed with.
func refusal(body string) string {
	return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

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
// otherwise, for an accept that does not come. In a rush it accepts as fast as requests
// are let in, and the system keeps who waits.
type crowdListener struct {
	net.Listener
	most  int64
	mute  bool // TLS: nothing can be said
	open  atomic.Int64
	sheds chan struct{} // those that are being told that they are too many
	turns chan struct{} // those that are being turned away in a rush
	rush  *rush
}

func bounded(l net.Listener, most int, mute bool, r *rush) *crowdListener {
	return &crowdListener{Listener: l, most: int64(most), mute: mute, sheds: make(chan struct{}, shedAtOnce), turns: make(chan struct{}, turnedAtOnce), rush: r}
}

// Accept implements net.Listener.
func (l *crowdListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			l.shed(c, shedAnswer, l.sheds, func() {})
			continue
		}
		if l.let(c) {
			return &crowdConn{Conn: c, from: l}, nil
		}
	}
}

// let waits until a connection may come in, and is false where it was turned away.
func (l *crowdListener) let(c net.Conn) bool {
	for !l.rush.enter(time.Now()) {
		if now := time.Now(); l.rush.on(now) && len(l.turns) < cap(l.turns) && l.rush.afford(now) {
			l.rush.count()
			l.shed(c, rushAnswer, l.turns, func() { l.open.Add(-1) }) // it keeps its place until then
			return false
		}
		time.Sleep(rushWait)
	}
	return true
}

// shed closes a connection too many, and tells it why where there are not too many that
// are being told.
func (l *crowdListener) shed(c net.Conn, answer string, told chan struct{}, closed func()) {
	if !l.mute {
		select {
		case told <- struct{}{}:
			go func() { // ends within shedTime
				defer closed()
				defer func() { <-told }()
				tell(c, answer)
			}()
			return
		default:
		}
	}
	c.Close()
	closed()
}

// tell answers a connection whatever it asks, and closes it.
func tell(c net.Conn, answer string) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(shedTime)) != nil {
		return
	}
	if _, err := io.WriteString(c, answer); err != nil {
		return
	}
	// Closed with bytes unread, the connection would be reset, and the answer lost.
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c, shedBytes))
}

// crowdConn gives its place back when it is closed.
type crowdConn struct {
	net.Conn
	from *crowdListener
	once sync.Once
	used atomic.Bool // there has been a request on it
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
