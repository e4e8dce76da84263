package probe

import (
	"errors"
	"io"
	"sync"
	"time"

	"understudy/internal/wire"
)

// The sizes of one read from an upstream. Every open stream holds a buffer for as
// long as it lives, and most streams say little at a time: it is small until a read
// fills it.
const (
	smallRead = 2 << 10
	readSize  = 8 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallRead]byte) }}
	buffers      = sync.Pool{New: func() any { return new([readSize]byte) }}
)

// errCoding marks bytes that do not decode, apart from a connection that breaks.
var errCoding = errors.New("answer cannot be decoded")

// A source reads an answer's body once and yields it twice: as bytes for the
// client and as plain bytes for the judge. Without a content coding both are the
// same slice.
type source struct {
	body    io.ReadCloser
	coding  string
	plain   bool             // the client gets decoded bytes
	small   *[smallRead]byte // one of the two, until it is released
	large   *[readSize]byte
	filled  bool // the last read left no room
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
	return &source{body: body, coding: coding, plain: plain, stirred: stirred, small: smallBuffers.Get().(*[smallRead]byte)}
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
	buf := s.buffer()
	if buf == nil {
		return nil, nil, io.ErrClosedPipe
	}
	if s.coding == "" {
		n, err := s.body.Read(buf)
		s.filled = n == len(buf)
		return buf[:n], buf[:n], err
	}
	s.raw = s.raw[:0]
	if s.decoder == nil {
		d, err := wire.NewDecoder(s.coding, (*tap)(s))
		if err != nil {
			return s.fail(0, err)
		}
		s.decoder = d
	}
	n, err := s.decoder.Read(buf)
	s.filled = n == len(buf)
	if err == nil {
		return s.give(n), buf[:n], nil
	}
	return s.fail(n, err)
}

// buffer is what the next read goes into: a larger one after a read that filled the
// small one. What came before is not needed any more.
func (s *source) buffer() []byte {
	if s.small != nil && s.filled {
		smallBuffers.Put(s.small)
		s.small, s.large = nil, buffers.Get().(*[readSize]byte)
	}
	return s.held()
}

// held is the buffer of the last read; nil when it is released.
func (s *source) held() []byte {
	switch {
	case s.small != nil:
		return s.small[:]
	case s.large != nil:
		return s.large[:]
	}
	return nil
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
	return s.give(n), s.held()[:n], err
}

// asCoded says that the client gets the bytes in their coding, not decoded.
func (s *source) asCoded() bool { return s.coding != "" && !s.plain }

// give is what the client gets of a read of n decoded bytes.
func (s *source) give(n int) []byte {
	if s.plain {
		return s.held()[:n]
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
	if s.small != nil {
		smallBuffers.Put(s.small)
	}
	if s.large != nil {
		buffers.Put(s.large)
	}
	s.small, s.large = nil, nil
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
