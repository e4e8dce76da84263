package upstreamtest

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// Conn is one end of a connection in memory. It is a net.Conn whose errors look
// like those of a TCP connection (*net.OpError around ECONNRESET, EPIPE,
// os.ErrDeadlineExceeded or net.ErrClosed; io.EOF bare), and it can be half
// closed and reset. It behaves like TCP but for one thing: writing to a peer that
// has closed fails at once, where TCP lets the first such write through.
type Conn struct {
	in, out       *stream
	local, remote net.Addr
}

// Pipe returns the two ends of a connection that nobody dialled, each direction
// holding buffer bytes (0: DefaultBuffer).
func Pipe(buffer int) (*Conn, *Conn) {
	return pipe(name("pipe:1"), name("pipe:2"), buffer)
}

func pipe(a, b net.Addr, buffer int) (*Conn, *Conn) {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	ab, ba := newStream(buffer), newStream(buffer)
	return &Conn{in: ba, out: ab, local: a, remote: b}, &Conn{in: ab, out: ba, local: b, remote: a}
}

// Read returns what has arrived, waiting for the first byte of it. After the
// peer's Close or CloseWrite it returns io.EOF, after its Reset ECONNRESET, both
// only when all bytes sent before were read, as Linux does it.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

// Write queues p for the peer and waits while the buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// Close ends both directions: the peer reads what was sent and then io.EOF, and
// its writes fail. Bytes not yet read here are dropped.
func (c *Conn) Close() error {
	if !c.out.finish(closedHere) || !c.in.abandon() {
		return c.wrap("close", net.ErrClosed)
	}
	return nil
}

// CloseWrite ends the direction to the peer, who reads io.EOF once it has read
// all; the other direction stays open.
func (c *Conn) CloseWrite() error {
	if !c.out.finish(finished) {
		return c.wrap("close", net.ErrClosed)
	}
	return nil
}

// Reset tears the connection down as a TCP RST does: once the peer has read what
// was sent before, its reads fail with ECONNRESET, and its writes fail at once.
func (c *Conn) Reset() error {
	c.out.tear()
	c.in.tear()
	return c.Close()
}

// LocalAddr returns this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the read and the write deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline makes reads fail from t on, also one that waits now; the zero
// time takes the deadline away.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.wrap("set", c.in.setDeadline(&c.in.readBy, t))
}

// SetWriteDeadline does for writes what SetReadDeadline does for reads.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.wrap("set", c.out.setDeadline(&c.out.writeBy, t))
}

// Buffered returns how many bytes have arrived and were not read yet.
func (c *Conn) Buffered() int {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return c.in.len()
}

// wrap dresses err as a TCP connection would; io.EOF and nil stay bare.
func (c *Conn) wrap(op string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		err = os.NewSyscallError(op, errno)
	case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
