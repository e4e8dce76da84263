package wire

import "bytes"

const (
	// maxEvent bounds what is kept of one event, line, element or document, without
	// the long strings in it. What is longer is passed over as if it said nothing.
	maxEvent = 16 << 20
	// keepBuffer is how large a buffer may stay between events.
	keepBuffer = 1 << 20
)

var newline = []byte{'\n'}

// sseLine is what the line being read turned out to be.
type sseLine uint8

const (
	sseName    sseLine = iota // its field name is not complete yet
	sseData                   // data:
	sseEvent                  // event:
	sseError                  // error: (llama.cpp until autumn 2025)
	sseRaw                    // JSON outside SSE framing
	sseIgnored                // a comment, id:, retry:, an unknown field
)

// sse cuts a body into events as the WHATWG specification has it: a line ends with
// LF, CRLF or CR, a blank line dispatches. A CR is a line end at once, without
// waiting for the LF that may follow, so that nothing depends on where packets end.
// It also finds what is not SSE at all but comes in such bodies: bare JSON, and
// llama.cpp's error field.
type sse struct {
	data, bare, value []byte // the event's data, JSON outside SSE, the error field
	event             [64]byte
	name              [8]byte
	eventLen, nameLen int

	nesting nesting   // of bare
	short   shortener // of data

	line    sseLine
	begun   bool // the current line has bytes
	space   bool // the next byte may be the one space after the colon
	cr      bool // the last byte was a CR: an LF now belongs to it
	hasData bool
	open    bool // the event has a field
	fields  bool // something that only SSE has was seen, ever
	over    bool // the event is longer than limit
	limit   int
}

// feed reads p, which begins at offset r.at of the body.
func (s *sse) feed(r *Reader, p []byte) {
	lf, cr := -1, -1 // of the first at or after i; looked for once each
	for i := 0; i < len(p); {
		if s.cr {
			s.cr = false
			if p[i] == '\n' {
				i++
				continue
			}
		}
		if lf < i {
			lf = indexFrom(p, '\n', i)
		}
		if cr < i {
			cr = indexFrom(p, '\r', i)
		}
		end := min(lf, cr)
		if end > i {
			s.part(r, p[i:end])
		}
		if end == len(p) {
			return
		}
		s.cr = end == cr
		i = end + 1
		s.lineEnd(r, r.at+int64(i))
	}
}

// indexFrom is the index of the first c in p at or after i, or len(p).
func indexFrom(p []byte, c byte, i int) int {
	if n := bytes.IndexByte(p[i:], c); n >= 0 {
		return i + n
	}
	return len(p)
}

// part takes bytes of the current line.
func (s *sse) part(r *Reader, b []byte) {
	if !s.begun {
		s.begun = true
		switch {
		case s.nesting.depth > 0:
			s.line = sseRaw
		case b[0] == ':':
			s.line, s.fields = sseIgnored, true
		case b[0] == '{':
			s.line, s.fields = sseRaw, true
			s.bare = s.bare[:0]
		}
	}
	if s.line == sseName {
		if b = s.fieldName(b); len(b) == 0 {
			return
		}
	}
	if s.space {
		s.space = false
		if b[0] == ' ' {
			b = b[1:]
		}
	}
	switch s.line {
	case sseData:
		s.keepData(b)
	case sseError:
		s.value = s.keep(s.value, b)
	case sseEvent:
		s.eventLen += copy(s.event[s.eventLen:], b)
	case sseRaw:
		n, closed := s.nesting.scan(b)
		s.bare = s.keep(s.bare, b[:n])
		if closed {
			r.bareJSON(s.bare, s.over)
			s.bare, s.line = shrink(s.bare), sseIgnored
		}
	}
}

// fieldName takes bytes until the line's colon and returns those behind it.
func (s *sse) fieldName(b []byte) []byte {
	colon := bytes.IndexByte(b, ':')
	if colon < 0 {
		if s.nameLen += copy(s.name[s.nameLen:], b); s.nameLen == len(s.name) {
			s.line = sseIgnored
		}
		return nil
	}
	if s.nameLen+colon > len(s.name) {
		s.line = sseIgnored
		return nil
	}
	s.nameLen += copy(s.name[s.nameLen:], b[:colon])
	s.field()
	s.space = true
	return b[colon+1:]
}

// field tells from its name what the line is.
func (s *sse) field() {
	switch string(s.name[:s.nameLen]) {
	case "data":
		if s.line = sseData; s.hasData {
			s.keepData(newline)
		}
		s.hasData = true
	case "event":
		s.line, s.eventLen = sseEvent, 0
	case "error":
		s.line, s.value = sseError, s.value[:0]
	case "id", "retry":
		s.line = sseIgnored
	default:
		s.line = sseIgnored
		return
	}
	s.open, s.fields = true, true
}

// keepData appends b to the event's data, unless the event is too long.
func (s *sse) keepData(b []byte) {
	if s.over {
		return
	}
	s.data, s.over = s.short.keep(s.data, b, s.limit)
}

// keep appends b to one of the event's other buffers, unless the event is too long.
func (s *sse) keep(dst, b []byte) []byte {
	if len(dst)+len(b) > s.limit {
		s.over = true
		return dst
	}
	return extend(dst, b)
}

// lineEnd ends the current line; at is the offset in the body after its end.
func (s *sse) lineEnd(r *Reader, at int64) {
	line, begun := s.line, s.begun
	s.line, s.begun, s.space = sseName, false, false
	switch {
	case !begun:
		s.blank(r, at)
	case line == sseName: // a field without colon has an empty value
		s.field()
		s.line = sseName
	case line == sseError:
		r.errorField(s.value)
		s.value = shrink(s.value)
	case line == sseRaw:
		if s.nesting.text {
			s.cutBare(r) // no JSON string holds a raw line end
		} else {
			s.bare = s.keep(s.bare, newline)
		}
	}
	s.nameLen = 0
}

// blank is a line without bytes: it dispatches the event.
func (s *sse) blank(r *Reader, at int64) {
	if s.nesting.depth > 0 {
		s.cutBare(r)
	}
	if s.hasData {
		if s.over {
			r.overlong(at)
		} else {
			r.event(s.event[:s.eventLen], s.data, at, true)
		}
	}
	s.reset()
}

func (s *sse) cutBare(r *Reader) {
	s.bare, s.nesting = shrink(s.bare), nesting{}
	r.garbage()
}

func (s *sse) reset() {
	s.data, s.short = shrink(s.data), shortener{}
	s.hasData, s.open, s.over, s.eventLen = false, false, false, 0
}

// end reads what stands behind the last blank line; at is the body's length.
func (s *sse) end(r *Reader, at int64) {
	if s.line == sseError {
		r.errorField(s.value)
	}
	if s.nesting.depth > 0 {
		s.cutBare(r)
	}
	if s.hasData && !s.over {
		r.event(s.event[:s.eventLen], s.data, at, false)
	}
	s.reset()
}

// inside says that an event has begun and not ended.
func (s *sse) inside() bool {
	return s.open || s.nesting.depth > 0 || s.begun && s.line != sseIgnored
}

// framing says what has to be closed before an event can be appended.
func (s *sse) framing() Framing {
	open := s.open || s.nesting.depth > 0
	f := Framing{Format: SSE, Appendable: true, Inside: s.begun || open}
	switch {
	case s.begun, open && s.cr: // behind a CR the first LF would only complete it
		f.Close = "\n\n"
	case open:
		f.Close = "\n"
	}
	return f
}

// extend appends b to a buffer that may become large: it doubles, where append by
// itself would copy a large one five times over.
func extend(dst, b []byte) []byte {
	if n := len(dst) + len(b); n > cap(dst) && cap(dst) >= keepBuffer/8 {
		dst = append(make([]byte, 0, max(2*cap(dst), n)), dst...)
	}
	return append(dst, b...)
}

// shrink empties a buffer, and lets go of a large one.
func shrink(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}
