package probe

import (
	"errors"
	"io"
	"sync"
	"time"

	"understudy/internal/wire"
)

// readSize is the size of one read from an upstream. It is small because every
// open stream holds one such buffer for as long as it lives.
const readSize = 8 << 10

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// errCoding marks bytes that do not decode, apart from a connection that breaks.
var errCoding = errors.New("answer cannot be decoded")

// A source reads an answer's body once and yields it twice: as bytes for the
// client and as plain bytes for the judge. Without a content coding both are the
// same slice.
type source struct {
	body    io.ReadCloser
	coding  string
	plain   bool // the client gets decoded bytes
	buf     *[readSize]byte
	decoder io.ReadCloser
	raw     []byte // coded bytes that the decoder has read and the client has not got
	readErr error  // what the connection itself said
	stirred func() // told of coded bytes, which may decode to something much later

	pumped chan chunk    // reads made ahead by a goroutine; nil without one
	stop   chan struct{} // ends that goroutine
}

// chunk is one read made ahead.
type chunk struct {
	client, plain []byte
	err           error
}

// pump has a goroutine read from here on, so that a reader may wait for bytes and
// for a time at once. Every read is copied: this is for the few answers that are
// held for a time.
func (s *source) pump() {
	s.pumped, s.stop = make(chan chunk), make(chan struct{})
	go func() {
		defer s.release()
		for {
			client, plain, err := s.read()
			c := chunk{append([]byte(nil), client...), nil, err}
			if c.plain = c.client; s.coding != "" && !s.plain {
				c.plain = append([]byte(nil), plain...)
			}
			select {
			case s.pumped <- c:
			case <-s.stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// nextUntil is next on a pumped source, not ok when the time comes first.
func (s *source) nextUntil(end <-chan time.Time) (client, plain []byte, err error, ok bool) {
	select {
	case c := <-s.pumped:
		return c.client, c.plain, c.err, true
	case <-end:
		return nil, nil, nil, false
	}
}

func newSource(body io.ReadCloser, coding string, plain bool, stirred func()) *source {
	return &source{body: body, coding: coding, plain: plain, stirred: stirred, buf: buffers.Get().(*[readSize]byte)}
}

// next reads on. The slices are valid until the next call; bytes may come along
// with an error. A clean end is io.EOF; it is not called again after an error.
func (s *source) next() (client, plain []byte, err error) {
	if s.pumped != nil {
		c := <-s.pumped
		return c.client, c.plain, c.err
	}
	return s.read()
}

// read reads once from the body.
func (s *source) read() (client, plain []byte, err error) {
	if s.buf == nil {
		return nil, nil, io.ErrClosedPipe
	}
	if s.coding == "" {
		n, err := s.body.Read(s.buf[:])
		return s.buf[:n], s.buf[:n], err
	}
	s.raw = s.raw[:0]
	if s.decoder == nil {
		d, err := wire.NewDecoder(s.coding, (*tap)(s))
		if err != nil {
			return s.fail(0, err)
		}
		s.decoder = d
	}
	n, err := s.decoder.Read(s.buf[:])
	if err == nil {
		return s.give(n), s.buf[:n], nil
	}
	return s.fail(n, err)
}

// fail ends a coded body: what the connection said goes before what the decoder
// made of it, and after a decoder's clean end the rest is read to the body's own.
func (s *source) fail(n int, err error) ([]byte, []byte, error) {
	switch {
	case s.readErr != nil && s.readErr != io.EOF:
		err = s.readErr
	case err == io.EOF:
		if rest, rerr := io.ReadAll(io.LimitReader((*tap)(s), 1<<20)); rerr != nil || len(rest) == 1<<20 {
			err = errors.Join(errCoding, rerr)
		}
	default:
		err = errors.Join(errCoding, err)
	}
	return s.give(n), s.buf[:n], err
}

// asCoded says that the client gets the bytes in their coding, not decoded.
func (s *source) asCoded() bool { return s.coding != "" && !s.plain }

// give is what the client gets of a read of n decoded bytes.
func (s *source) give(n int) []byte {
	if s.plain {
		return s.buf[:n]
	}
	return s.raw
}

// close returns the buffer and closes the connection's body. Slices from next are
// dead after it. It is called once.
func (s *source) close() {
	if s.pumped != nil {
		close(s.stop)
		s.body.Close() // wakes the goroutine's read
		return
	}
	s.release()
	s.body.Close()
}

// release gives back what reading needed.
func (s *source) release() {
	buffers.Put(s.buf)
	s.buf = nil
	if s.decoder != nil {
		s.decoder.Close()
	}
}

// maxMute is how many coded bytes may come without decoding to a single one: more
// have nothing honest to say.
const maxMute = 1 << 20

// tap is the source as the decoder reads it: it keeps the coded bytes.
type tap source

func (t *tap) Read(p []byte) (int, error) {
	if len(t.raw) > maxMute {
		return 0, errCoding
	}
	n, err := t.body.Read(p)
	t.raw = append(t.raw, p[:n]...)
	if n > 0 {
		t.stirred()
	}
	if err != nil {
		t.readErr = err
	}
	return n, err
}
