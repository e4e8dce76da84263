package wire

import "bytes"

// nesting follows the brackets and strings of JSON that arrives in pieces, so that
// its end is known without reading anything twice.
type nesting struct {
	depth  int
	text   bool // inside a string
	escape bool // behind a backslash in it
}

// bracketOrQuote marks the bytes that matter to the nesting of JSON.
var bracketOrQuote = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// scan reads b up to the bracket that closes the outermost container, or all of it,
// and returns how much that was.
func (n *nesting) scan(b []byte) (read int, closed bool) {
	for i := 0; i < len(b); i++ {
		if n.text {
			if n.escape {
				n.escape = false
				continue
			}
			// A quote ends the text behind an even number of backslashes.
			quote := bytes.IndexByte(b[i:], '"')
			end := i + quote
			if quote < 0 {
				end = len(b)
			}
			slashes := end
			for slashes > i && b[slashes-1] == '\\' {
				slashes--
			}
			odd := (end-slashes)%2 != 0
			if i = end; i == len(b) {
				n.escape = odd
				break
			}
			n.text = odd
			continue
		}
		if !bracketOrQuote[b[i]] {
			continue
		}
		switch b[i] {
		case '"':
			n.text = true
		case '{', '[':
			n.depth++
		case '}', ']':
			if n.depth--; n.depth <= 0 {
				n.depth = 0
				return i + 1, true
			}
		}
	}
	return len(b), false
}

// document is a body that is one JSON value.
type document struct {
	body    []byte
	nesting nesting
	end     int64 // offset after the closing bracket, 0 = not there yet
	over    bool  // longer than limit
	limit   int
	short   shortener
	trailed bool // something that is no blank follows it
	scalar  bool // it is no container: only the body's end ends it
	valid   bool // body has been read strictly
}

// feed reads p, which begins at offset r.at of the body, and returns what follows
// the document, from its first byte that is no blank.
func (d *document) feed(r *Reader, p []byte) (rest []byte) {
	if d.end == 0 {
		n := len(p)
		if !d.scalar {
			var closed bool
			if n, closed = d.whole(r, p); !closed {
				n, closed = d.nesting.scan(p)
			}
			if closed {
				d.end = r.at + int64(n)
			}
		}
		switch {
		case !r.keepsDocument():
		case !d.over:
			d.body, d.over = d.short.keep(d.body, p[:n], d.limit)
			d.valid = d.valid && !d.short.on
		}
		if d.end != 0 {
			r.document(d.body, d.over)
		}
		p = p[n:]
	}
	for i, c := range p {
		if !blank(c) {
			return p[i:]
		}
	}
	return nil
}

// whole reads a document that comes in one piece, as short ones do: strictly, and so
// but once. It is false where that is not so, or the document is broken.
func (d *document) whole(r *Reader, p []byte) (n int, ok bool) {
	if !r.keepsDocument() || d.over || len(d.body) > 0 || d.nesting != (nesting{}) {
		return 0, false
	}
	last := len(p) - 1
	for last > 0 && blank(p[last]) {
		last--
	}
	if last < 1 || p[last] != p[0]+2 { // '{'+2 is '}', '['+2 is ']'
		return 0, false
	}
	end, bad := jsonEnd(p, 0, 0, &r.stack)
	d.valid = bad == ""
	return end, d.valid
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// array is a body that is one JSON array which arrives element by element.
type array struct {
	element []byte
	nesting nesting // depth 1: between elements
	last    byte    // the last byte between elements that is no blank
	closed  bool
	over    bool // the element is longer than limit
	limit   int
	short   shortener
}

// feed reads p, which begins at offset r.at of the body.
func (a *array) feed(r *Reader, p []byte) {
	for i := 0; i < len(p) && !a.closed; {
		if a.nesting.depth > 1 {
			i = a.inside(r, p, i)
			continue
		}
		c := p[i]
		switch {
		case a.nesting.text || c == '"':
			a.nesting.scan(p[i : i+1])
			a.last = c
		case c == '{', c == '[' && a.nesting.depth == 1:
			a.nesting.depth++
			a.element = append(a.element[:0], c)
		case c == '[':
			a.nesting.depth, a.last = 1, c
		case c == ']':
			a.closed = true
		case !blank(c):
			a.last = c
		}
		i++
	}
}

// inside reads an element from p[i] on, and returns where it stopped.
func (a *array) inside(r *Reader, p []byte, i int) int {
	a.nesting.depth-- // so that the element is outermost
	n, closed := a.nesting.scan(p[i:])
	a.nesting.depth++
	if !a.over {
		a.element, a.over = a.short.keep(a.element, p[i:i+n], a.limit)
	}
	i += n
	if closed {
		a.last = '}'
		if a.over {
			r.overlong(r.at + int64(i))
		} else {
			r.event(nil, a.element, r.at+int64(i), true)
		}
		a.element, a.over, a.short = shrink(a.element), false, shortener{}
	}
	return i
}

func (a *array) framing() Framing {
	f := Framing{Format: Array, Inside: a.nesting.depth > 1 || a.nesting.text}
	f.Appendable = !f.Inside && !a.closed
	if f.Appendable && a.last != ',' && a.last != '[' {
		f.Close = ","
	}
	return f
}
