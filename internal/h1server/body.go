package h1server

import (
	"io"
	"net/http"
	"time"
)

// A body is a request's, of the length that its head announced. The connection's mutex
// guards it: a handler may have another goroutine read, which may be late.
type body struct {
	conn *Conn
	left int64

	// The deadline that the handler has set takes hold when something is read from the
	// network: most bodies have come with their head.
	by      time.Time
	reading bool // somebody waits for the network
	closed  bool
}

// Read implements io.Reader. A body that ends early is io.ErrUnexpectedEOF; one that was
// closed, or is not wanted any more since the answer has begun, is
// http.ErrBodyReadAfterClose.
func (b *body) Read(p []byte) (n int, err error) {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	if b.closed || b.reading {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// read is Read, with the mutex held.
func (b *body) read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	c := b.conn
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	if c.buffer != nil {
		n = copy(p, c.buffer[c.r:c.w])
		c.took(n)
	} else {
		n, err = b.receive(p)
	}
	if b.left -= int64(n); b.left == 0 {
		c.arm()
		return n, io.EOF
	}
	if err != nil && c.cancel != nil {
		c.cancel() // as net/http does: nothing of what is asked for can come any more
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// receive reads from the network, without the mutex.
func (b *body) receive(p []byte) (int, error) {
	c := b.conn
	c.deadline(b.by)
	b.reading = true
	c.mu.Unlock()
	n, err := c.more(p)
	c.mu.Lock()
	b.reading = false
	return n, err
}

// until sets the deadline of reads, of one under way too.
func (b *body) until(t time.Time) {
	if b.conn == nil {
		return
	}
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	if b.by = t; b.reading {
		b.conn.deadline(t)
	}
}

// Close implements io.Closer. What has not been read is seen to when the answer begins.
func (b *body) Close() error {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	b.closed = true
	return nil
}

// mostUnread is how much of a body that the handler did not want is read before the
// answer, as net/http does: many clients read nothing before they have sent all.
const mostUnread = 256 << 10

// discard reads the rest of a body, and says whether it was little enough. Nobody reads
// it afterwards: what is missing must not look like the body's end.
func (b *body) discard() bool {
	if b.conn == nil {
		return true
	}
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	if b.reading || b.left >= mostUnread {
		return false
	}
	if b.left > 0 && !b.drain() {
		return false
	}
	b.closed = true
	return true
}

// drain reads the rest. The mutex is held.
func (b *body) drain() bool {
	scratch := readBuffers.Get().(*[readSize]byte)
	defer readBuffers.Put(scratch)
	for b.left > 0 {
		if _, err := b.read(scratch[:]); err != nil && err != io.EOF {
			return false
		}
	}
	return true
}

// end closes a body for good, and says how much of it is unread. idle is false where
// somebody still reads from the connection.
func (b *body) end() (left int64, idle bool) {
	if b.conn == nil {
		return 0, true
	}
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	b.closed = true
	return b.left, !b.reading
}
