package daemon

import (
	"errors"
	"io"
	"net"
	"os"
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
	// rushWait is how often those that wait to be let in are looked at.
	rushWait = 5 * time.Millisecond
	// rushWork is how long they are seen to without a rest. Whoever works for longer is
	// interrupted after 10 ms, and comes behind everybody who waits for a processor; who has
	// slept comes first.
	rushWork = 5 * time.Millisecond
	// rushPatience is how long one stands in line before it is turned away: there should
	// be somebody to let in at each return of a sounding.
	rushPatience = 200 * time.Millisecond
	// mostWaiting is what part of the connections may stand in line; others are left to
	// the system.
	mostWaiting = 2
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
// otherwise, for an accept that does not come. In a rush those that come stand in line,
// where it is known for how long they have; the system would have the clients that find
// its queue full knock again after a second, three and seven.
type crowdListener struct {
	net.Listener
	most  int64
	mute  bool // TLS: nothing can be said
	open  atomic.Int64
	sheds chan struct{} // those that are being told that they are too many
	turns chan struct{} // those that are being turned away in a rush
	rush  *rush

	// These are Accept's, which one goroutine calls:
	line   []waiter  // who waits to be let in, the first first
	timed  bool      // the listener has a deadline
	rested time.Time // when it slept last
}

// A waiter is a connection in line.
type waiter struct {
	conn net.Conn
	came time.Time
}

func bounded(l net.Listener, most int, mute bool, r *rush) *crowdListener {
	return &crowdListener{Listener: l, most: int64(most), mute: mute, sheds: make(chan struct{}, shedAtOnce), turns: make(chan struct{}, turnedAtOnce), rush: r}
}

// Accept implements net.Listener.
func (l *crowdListener) Accept() (net.Conn, error) {
	for {
		if c := l.first(); c != nil {
			return c, nil
		}
		if len(l.line) > 0 {
			// Asked first, since it alone tells of the listener's end where nobody is accepted.
			err := l.hurry()
			if errors.Is(err, net.ErrClosed) {
				l.dismiss()
				return nil, err
			}
			if err != nil || time.Since(l.rested) > rushWork || int64(len(l.line)) >= l.most/mostWaiting {
				l.rest()
				continue
			}
		}
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil && len(l.line) > 0 && passes(err):
			l.rest() // our caller would rest for longer, and the line would be in its hands
			continue
		case err != nil:
			l.dismiss()
			return nil, err
		}
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			l.shed(c, shedAnswer, l.sheds, func() {})
			continue
		}
		if now := time.Now(); len(l.line) > 0 || !l.rush.enter(now) {
			l.line = append(l.line, waiter{c, now})
			continue
		}
		return &crowdConn{Conn: c, from: l}, nil
	}
}

// first is the first in line, where it may come in now; nil where nobody may. Who has
// stood there for too long is turned away.
func (l *crowdListener) first() net.Conn {
	for len(l.line) > 0 {
		w, now := l.line[0], time.Now()
		in := l.rush.enter(now)
		if !in && (now.Sub(w.came) < rushPatience || !l.rush.on(now) || len(l.turns) == cap(l.turns) || !l.rush.afford(now)) {
			return nil
		}
		l.line[0] = waiter{}
		if l.line = l.line[1:]; len(l.line) == 0 {
			l.line = nil
			l.linger()
		}
		if in {
			return &crowdConn{Conn: w.conn, from: l}
		}
		l.rush.count()
		l.shed(w.conn, rushAnswer, l.turns, func() { l.open.Add(-1) }) // it keeps its place until then
	}
	return nil
}

// rest leaves the line alone for a moment.
func (l *crowdListener) rest() {
	time.Sleep(rushWait)
	l.rested = time.Now()
}

// passes says whether an accept may go well again after a failure, such as too few
// descriptors.
func passes(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// hurry has the next accept take no longer than those in line can wait for, and says why
// where that cannot be.
func (l *crowdListener) hurry() error {
	t, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	if err := t.SetDeadline(time.Now().Add(rushWait)); err != nil {
		return err
	}
	l.timed = true
	return nil
}

// linger takes that back.
func (l *crowdListener) linger() {
	if l.timed {
		_ = l.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Time{}) // one was set
		l.timed = false
	}
}

// dismiss turns away all who stand in line, where nobody will be let in any more. All are
// told, however many others are: they are no more than the line may be long, and only once.
func (l *crowdListener) dismiss() {
	told := make(chan struct{}, len(l.line))
	for _, w := range l.line {
		l.shed(w.conn, rushAnswer, told, func() { l.open.Add(-1) })
	}
	l.line = nil
	l.linger()
}

// shed closes a connection too many, and tells it why where there are not too many that
// are being told.
func (l *crowdListener) shed(c net.Conn, answer string, told chan struct{}, closed func()) {
	if !l.mute {
		select {
		case told <- struct{}{}:
			// Said here and now, not when it is a goroutine's turn: in a rush there are many,
			// and whoever waits for this is one of those who have waited for long.
			said := tell(c, answer)
			go func() { // ends within shedTime
				defer closed()
				defer func() { <-told }()
				if said {
					hear(c)
				}
				c.Close()
			}()
			return
		default:
		}
	}
	c.Close()
	closed()
}

// tell answers a new connection whatever it asks, which never waits, since nothing has
// been sent on it, and ends what is sent. It is false where that has come to nothing.
func tell(c net.Conn, answer string) bool {
	if c.SetDeadline(time.Now().Add(shedTime)) != nil {
		return false
	}
	if _, err := io.WriteString(c, answer); err != nil {
		return false
	}
	half, ok := c.(interface{ CloseWrite() error })
	return !ok || half.CloseWrite() == nil
}

// hear reads what a connection still sends that has been answered: closed with bytes
// unread it would be reset, and the answer lost.
func hear(c net.Conn) {
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
