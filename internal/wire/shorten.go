package wire

import (
	"bytes"
	"unicode/utf8"
)

const (
	// wholeBelow is the length up to which an event, line, element or document is
	// kept as it is.
	wholeBelow = 1 << 20
	// maxString is how much is kept of one string beyond that: what makes an event long
	// is an image or a document in one string, of which nobody here reads the rest.
	maxString = 64 << 10
)

// A shortener collects JSON that arrives in pieces. From wholeBelow on it leaves out
// what a string has beyond maxString, so that the memory that a long event takes does
// not grow with it. What is kept is valid JSON if all of it was.
type shortener struct {
	on     bool
	text   bool // inside a string
	escape bool // behind a backslash in it
	hex    int  // digits that are still due of a \u escape
	size   int  // of the string so far
	leave  bool // its rest is left out
}

// keep appends b to dst. over says that even so it is longer than limit; then nothing
// is kept.
func (s *shortener) keep(dst, b []byte, limit int) (_ []byte, over bool) {
	if n := len(dst) + len(b); !s.on && n <= wholeBelow {
		if n > limit {
			return nil, true
		}
		return extend(dst, b), false
	}
	if !s.on {
		s.on = true
		s.look(dst)
	}
	if dst = s.add(dst, b); len(dst) > limit {
		return nil, true
	}
	return dst, false
}

// look finds out where b, all of which is kept, ends.
func (s *shortener) look(b []byte) {
	for _, c := range b {
		switch {
		case !s.text:
			if c == '"' {
				s.text, s.size = true, 0
			}
			continue
		case s.within(c):
		case c == '"':
			s.text = false
		case c == '\\':
			s.escape = true
		}
		s.size++
	}
}

// within says whether c, in a string, belongs to an escape that has begun.
func (s *shortener) within(c byte) bool {
	switch {
	case s.escape:
		s.escape = false
		if c == 'u' {
			s.hex = 4
		}
	case s.hex > 0:
		s.hex--
	default:
		return false
	}
	return true
}

// add appends what is kept of b. A string is cut between two characters.
func (s *shortener) add(dst, b []byte) []byte {
	for len(b) > 0 {
		if !s.text {
			n := bytes.IndexByte(b, '"') + 1
			if n == 0 {
				return extend(dst, b)
			}
			dst, b = extend(dst, b[:n]), b[n:]
			s.text, s.size, s.leave = true, 0, false
			continue
		}
		if s.within(b[0]) {
			if s.size++; !s.leave {
				dst = extend(dst, b[:1])
			}
			b = b[1:]
			continue
		}
		n := min(indexFrom(b, '"', 0), indexFrom(b, '\\', 0))
		dst = s.run(dst, b[:n])
		if n == len(b) {
			return dst
		}
		if b[n] == '"' {
			s.text = false
			dst = append(dst, '"')
		} else {
			s.escape = true
			s.size++
			if s.leave = s.leave || s.size > maxString; !s.leave {
				dst = append(dst, '\\')
			}
		}
		b = b[n+1:]
	}
	return dst
}

// run appends what is kept of characters inside a string.
func (s *shortener) run(dst, b []byte) []byte {
	n := len(b)
	if !s.leave && s.size+n > maxString {
		n = max(0, maxString-s.size)
		for n < len(b) && !utf8.RuneStart(b[n]) {
			n++
		}
		s.leave = n < len(b)
		dst = extend(dst, b[:n])
	} else if !s.leave {
		dst = extend(dst, b)
	}
	s.size += len(b)
	return dst
}
