package h1

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// body is an answer's body, together with what else one request needs to keep: all of
// it is one piece of memory.
type body struct {
	resp http.Response // of a usual answer
	from io.ReadCloser // of any other: net/http's own body
	left int64         // bytes that are still to come, where there are no chunks
	conn *conn
	ctx  context.Context
	stop func() bool
	sent atomic.Bool // the request has been written whole
	keep bool
	// done says that the connection has been given back, or closed: by whoever reads to
	// the end, or by whoever closes, perhaps while another still reads.
	done    atomic.Bool
	chunked bool
	chunks  chunks
	err     error // with which reading ended
}

func (b *body) Read(p []byte) (int, error) {
	if b.done.Load() {
		return 0, io.EOF
	}
	n, err := b.read(p)
	switch {
	case err == nil:
	case err == io.EOF:
		b.end()
	case b.ctx.Err() != nil:
		err = context.Cause(b.ctx)
	}
	return n, err
}

// read reads what the answer's head has announced.
func (b *body) read(p []byte) (n int, err error) {
	switch {
	case b.from != nil:
		return b.from.Read(p)
	case b.err != nil:
		return 0, b.err
	case b.chunked:
		n, b.err = b.chunks.read(b.conn.in, p)
		if b.err == io.EOF {
			b.err = readTrailer(b.conn.in, &b.resp)
		}
	default:
		n, b.err = b.conn.in.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		switch {
		case b.err == io.EOF && b.left > 0:
			b.err = io.ErrUnexpectedEOF
		case b.err == nil && b.left == 0:
			b.err = io.EOF
		}
	}
	return n, b.err
}

// end gives the connection back after a clean end.
func (b *body) end() {
	if !b.done.CompareAndSwap(false, true) {
		return
	}
	// Whoever cancels from here on must not close a connection that serves another.
	if b.stop() && b.keep && b.sent.Load() && b.conn.in.Buffered() == 0 {
		b.conn.client.put(b.conn)
		return
	}
	b.conn.Conn.Close()
}

// Close ends the connection unless the body was read to its end.
func (b *body) Close() error {
	if !b.done.CompareAndSwap(false, true) {
		return nil
	}
	b.stop()
	return b.conn.Conn.Close()
}
