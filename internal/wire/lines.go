package wire

import "bytes"

// lines cuts newline-delimited JSON into its lines.
type lines struct {
	line  []byte // the current line, as far as it came in earlier chunks
	over  bool   // it is longer than limit
	begun bool   // a line was judged before
	limit int
	short shortener
}

// feed reads p, which begins at offset r.at of the body, and returns how much of it.
// That is less than all where the first line is no line but the beginning of a
// document that is spread over several: then head is what came of it in earlier
// chunks, and p[read:] its rest.
func (l *lines) feed(r *Reader, p []byte) (head []byte, read int) {
	for i := 0; i < len(p); {
		end := indexFrom(p, '\n', i)
		if end == len(p) {
			l.keep(p[i:])
			break
		}
		head, line := l.line, p[i:end]
		if len(head) > 0 || l.over {
			l.keep(line)
			line = l.line
		}
		if !l.begun && !l.over && unfinished(line) {
			return head, i
		}
		i = end + 1
		if l.over {
			r.overlong(r.at + int64(i))
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			l.begun = true
			r.event(nil, line, r.at+int64(i), true)
		}
		l.line, l.over, l.short = shrink(l.line), false, shortener{}
	}
	return nil, len(p)
}

func (l *lines) keep(b []byte) {
	if l.over {
		return
	}
	l.line, l.over = l.short.keep(l.line, b, l.limit)
}

// end reads a last line without its end; at is the body's length.
func (l *lines) end(r *Reader, at int64) {
	if line := bytes.TrimSpace(l.line); len(line) > 0 && !l.over {
		r.event(nil, line, at, false)
	}
	l.line = nil
}

// inside says that a line has begun and not ended.
func (l *lines) inside() bool { return l.over || len(bytes.TrimSpace(l.line)) > 0 }

func (l *lines) framing() Framing {
	f := Framing{Format: NDJSON, Appendable: true, Inside: len(l.line) > 0 || l.over}
	if f.Inside {
		f.Close = "\n"
	}
	return f
}

// unfinished says that a line is the beginning of a JSON container, up to a place
// where JSON may break the line.
func unfinished(line []byte) bool {
	var n nesting
	_, closed := n.scan(line)
	return !closed && n.depth > 0 && !n.text
}
