package h1server

import (
	"io"
	"time"
)

// A body is a request's, of the length that its head announced.
type body struct {
	conn *Conn
	left int64

	// The deadline that the handler has set takes hold when something is read from the
	// network: most bodies have come with their head.
	by      time.Time
	reading bool
}

// Read implements io.Reader. A body that ends early is io.ErrUnexpectedEOF.
func (b *body) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	if c := b.conn; c.buffer != nil {
		n = copy(p, c.buffer[c.r:c.w])
		c.took(n)
	} else {
		n, err = b.receive(p)
	}
	b.left -= int64(n)
	if b.left == 0 {
		b.conn.arm()
		return n, io.EOF
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// receive reads from the network.
func (b *body) receive(p []byte) (int, error) {
	c := b.conn
	c.mu.Lock()
	c.deadline(b.by)
	b.reading = true
	c.mu.Unlock()
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	b.reading = false
	c.mu.Unlock()
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
func (b *body) Close() error { return nil }

// mostUnread is how much of a body that the handler did not want is read before the
// answer, as net/http does: many clients read nothing before they have sent all.
const mostUnread = 256 << 10

// discard reads the rest of a body, and says whether it was little enough.
func (b *body) discard() bool {
	if b.left > mostUnread {
		return false
	}
	var scratch [512]byte
	for b.left > 0 {
		if _, err := b.Read(scratch[:]); err != nil && err != io.EOF {
			return false
		}
	}
	return true
}
