package upstreamtest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection: a bounded buffer between the end that
// writes and the end that reads.
type stream struct {
	mu    sync.Mutex
	moved sync.Cond // any field below changed

	buf     []byte // buf[start:] is unread
	start   int
	limit   int
	writing bool // a Write is under way; the next one waits, so that writes do not mix

	sent    ending
	dropped bool // the reading end closed
	torn    bool // reset, by either end

	readBy, writeBy deadline
}

// ending says how far the writing end is done.
type ending uint8

const (
	open       ending = iota
	finished          // half closed
	closedHere        // closed
)

func newStream(limit int) *stream {
	s := &stream{limit: limit}
	s.moved.L = &s.mu
	return s
}

// len returns the number of unread bytes; s.mu is held.
func (s *stream) len() int { return len(s.buf) - s.start }

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.dropped:
			return 0, net.ErrClosed
		case s.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.len() > 0:
			n := copy(p, s.buf[s.start:])
			if s.start += n; s.len() == 0 {
				s.buf, s.start = s.buf[:0], 0
			}
			s.moved.Broadcast()
			return n, nil
		case s.torn:
			return 0, syscall.ECONNRESET
		case s.sent != open:
			return 0, io.EOF
		}
		s.moved.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing && s.writable() == nil {
		s.moved.Wait()
	}
	s.writing = true
	defer func() {
		s.writing = false
		s.moved.Broadcast()
	}()
	for {
		if err := s.writable(); err != nil {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		if room := s.limit - s.len(); room > 0 {
			if s.start > 0 && len(s.buf) == cap(s.buf) {
				s.buf, s.start = append(s.buf[:0], s.buf[s.start:]...), 0
			}
			k := min(room, len(p)-n)
			s.buf = append(s.buf, p[n:n+k]...)
			n += k
			s.moved.Broadcast()
			continue
		}
		s.moved.Wait()
	}
}

// writable returns why nothing can be written now or later, nil if it can; s.mu
// is held.
func (s *stream) writable() error {
	switch {
	case s.sent == closedHere:
		return net.ErrClosed
	case s.torn:
		return syscall.ECONNRESET
	case s.sent == finished, s.dropped:
		return syscall.EPIPE
	case s.writeBy.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// finish ends the stream from its writing end; false if that end was closed.
func (s *stream) finish(how ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == closedHere {
		return false
	}
	s.sent = max(s.sent, how)
	s.writeBy.stop()
	s.moved.Broadcast()
	return true
}

// abandon ends the stream from its reading end; false if that end was closed.
func (s *stream) abandon() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return false
	}
	s.dropped = true
	s.buf, s.start = nil, 0
	s.readBy.stop()
	s.moved.Broadcast()
	return true
}

// tear resets the stream.
func (s *stream) tear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = true
	s.moved.Broadcast()
}

// deadline is the moment after which one side of a stream no longer waits.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// setDeadline moves d, which is one of s's own, to t.
func (s *stream) setDeadline(d *deadline, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d == &s.readBy && s.dropped || d == &s.writeBy && s.sent == closedHere {
		return net.ErrClosed
	}
	d.stop()
	d.at = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.moved.Broadcast()
		})
	}
	s.moved.Broadcast()
	return nil
}
