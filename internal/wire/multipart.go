package wire

import (
	"bytes"
	"strings"
)

// What can be wrong with a form, in the words of SyntaxError.
const (
	partNoBoundary  = "the boundary is empty or holds a line break"
	partCut         = "the form ends before its closing boundary"
	partAmbiguous   = "a boundary line that readers understand differently"
	partAfterEnd    = "a boundary line behind the closing one"
	partNoBlankLine = "a part's header has no end"
	partBadHeader   = "a part's header line is broken"
	partTwoNames    = "a part has two names"
)

// ScanMultipart reads a multipart/form-data body in one pass. boundary is the
// parameter's value as decoded by the caller, without quotes or dashes. Each
// part counts as a top-level member whose value is its content.
//
// Readers of forms differ in what they take for a boundary or a name. So that
// no upstream sees a part that understudy did not see, a form that can be read
// in two ways is refused: line ends must be the same throughout, CRLF or LF, and
// nothing may follow the closing boundary that looks like a part. What is wrong
// is a *SyntaxError.
//
// body is not copied.
func ScanMultipart(body []byte, boundary string) (*Doc, error) {
	d := &Doc{body: body, object: true, boundary: boundary}
	c := partsOf(body, boundary)
	for c.next() {
		if bad := d.keepNamed(c.name, c.content); bad != "" {
			return nil, &SyntaxError{Offset: c.content.Start, What: bad}
		}
	}
	if c.bad != "" {
		return nil, &SyntaxError{Offset: c.i, What: c.bad}
	}
	return d, nil
}

// part returns the content of the last part of that name.
func (d *Doc) part(name string) (content []byte, ok bool) {
	for c := partsOf(d.body, d.boundary); c.next(); {
		if string(c.name) == name {
			content, ok = d.body[c.content.Start:c.content.End], true
		}
	}
	return content, ok
}

// partText writes a model as the content of a part. A line break could begin a
// boundary, so none is let through.
func partText(model string) []byte {
	return []byte(strings.NewReplacer("\r", "", "\n", "").Replace(model))
}

// partCursor walks the parts of a form.
type partCursor struct {
	name    []byte // decoded; empty for a part without a name
	content Span

	body []byte
	dash []byte // two dashes and the boundary
	eol  string // what the first boundary line ends with; "" before it
	i    int    // where the next part's header begins, or what is wrong lies
	bad  string
	end  bool // the closing boundary was read
}

func partsOf(body []byte, boundary string) partCursor {
	c := partCursor{body: body, dash: []byte("--" + boundary)}
	if boundary == "" || strings.ContainsAny(boundary, "\r\n") {
		c.bad = partNoBoundary
		return c
	}
	c.boundary() // skips the preamble
	return c
}

// next goes to the following part and reports whether there is one; if not,
// either the form has ended or bad says what is wrong with it.
func (c *partCursor) next() bool {
	if c.bad != "" || c.end {
		return false
	}
	start := c.i
	line := c.boundary()
	if c.bad != "" {
		return false
	}
	after := c.i
	// The line break before the boundary belongs to the boundary. Where it is the
	// one that ends the header, some readers see an empty part; but nothing could
	// be put into it, and nobody writes it.
	end := max(start, line-len(c.eol))
	content, name := c.header(start, end)
	if c.bad != "" {
		return false
	}
	c.name, c.content = name, Span{content, end}
	c.i = after
	return true
}

// boundary finds the next boundary line at or after i, returns where it begins
// and leaves i behind it.
func (c *partCursor) boundary() (line int) {
	for at := c.i; ; at++ {
		n := bytes.Index(c.body[at:], c.dash)
		if n < 0 {
			c.i, c.bad = len(c.body), partCut
			return 0
		}
		at += n
		rest := c.body[at+len(c.dash):]
		if !c.startsLine(at) || !boundaryTail(rest) {
			continue // content that happens to hold the boundary's text
		}
		c.i = at
		if closing, ok := bytes.CutPrefix(rest, []byte("--")); ok {
			padding := boundaryPadding(closing)
			if eol := lineEnd(closing[padding:]); eol == "" && padding < len(closing) {
				c.bad = partAmbiguous
			}
			c.end = true
			if c.bad == "" {
				c.epilogue(at)
			}
		} else {
			padding := boundaryPadding(rest)
			eol := lineEnd(rest[padding:])
			switch {
			case padding == len(rest):
				c.bad = partCut
			case eol == "", eol == "\r", c.eol != "" && eol != c.eol:
				c.bad = partAmbiguous
			}
			c.eol = eol
			rest = rest[padding+len(eol):]
			c.i = len(c.body) - len(rest)
		}
		if c.bad == "" && !c.breaksBefore(at) {
			c.i, c.bad = at, partAmbiguous
		}
		return at
	}
}

// startsLine reports whether some reader sees the start of a line at i.
func (c *partCursor) startsLine(i int) bool {
	return i == 0 || c.body[i-1] == '\n' || c.body[i-1] == '\r'
}

// breaksBefore reports whether every reader sees the start of a line at i: what
// stands before it is exactly the form's own line end.
func (c *partCursor) breaksBefore(i int) bool {
	before := c.body[:i]
	switch {
	case i == 0:
		return true
	case c.eol == "\n":
		return before[i-1] == '\n' && !bytes.HasSuffix(before, []byte("\r\n"))
	}
	return bytes.HasSuffix(before, []byte("\r\n"))
}

// epilogue refuses boundary lines behind the closing one at line: some readers
// go on.
func (c *partCursor) epilogue(line int) {
	for at := line + len(c.dash); ; at++ {
		n := bytes.Index(c.body[at:], c.dash)
		if n < 0 {
			return
		}
		at += n
		if c.startsLine(at) && boundaryTail(c.body[at+len(c.dash):]) {
			c.i, c.bad = at, partAfterEnd
			return
		}
	}
}

// boundaryTail reports whether what follows a boundary's text lets it be a
// boundary line for some reader. RFC 2046 allows space there.
func boundaryTail(rest []byte) bool {
	return len(rest) == 0 || strings.IndexByte(" \t\r\n-", rest[0]) >= 0
}

func boundaryPadding(rest []byte) int {
	return len(rest) - len(bytes.TrimLeft(rest, " \t"))
}

// lineEnd returns the line end that b begins with, "" if it begins with none.
func lineEnd(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\r\n")):
		return "\r\n"
	case bytes.HasPrefix(b, []byte("\n")):
		return "\n"
	case bytes.HasPrefix(b, []byte("\r")):
		return "\r"
	}
	return ""
}

// header reads the header of the part that stands between start and end, and
// returns where its content begins and what it is called.
func (c *partCursor) header(start, end int) (content int, name []byte) {
	var disposition []byte
	found, open := false, false // a disposition was found; the line before belongs to it
	for i := start; ; {
		n := bytes.IndexByte(c.body[i:end], '\n')
		if n < 0 {
			c.i, c.bad = i, partNoBlankLine
			return 0, nil
		}
		line, ok := bytes.CutSuffix(c.body[i:i+n+1], []byte(c.eol))
		folded := len(line) > 0 && (line[0] == ' ' || line[0] == '\t') // an old way to break long lines
		if !ok || bytes.ContainsFunc(line, isControl) || folded && i == start {
			c.i, c.bad = i, partBadHeader
			return 0, nil
		}
		key, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			if name, c.bad = partName(disposition); c.bad != "" {
				c.i = start
			}
			return i + n + 1, name
		case folded && open:
			disposition = append(disposition[:len(disposition):len(disposition)], line...)
		case folded:
		case !ok || len(key) == 0 || bytes.ContainsFunc(key, isNoToken):
			c.i, c.bad = i, partBadHeader
			return 0, nil
		default:
			if open = strings.EqualFold(string(key), "Content-Disposition"); open && found {
				c.i, c.bad = i, partTwoNames
				return 0, nil
			} else if open {
				disposition, found = value, true
			}
		}
		i += n + 1
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isNoToken reports whether RFC 9110 keeps r out of the name of a header.
func isNoToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
}

// partName reads the name out of the value of a Content-Disposition header:
//
//	form-data; name="model"; filename="a \"b\"; c.wav"
//
// A backslash escapes whatever follows it. A name in the form of RFC 5987
// (name*=UTF-8”model) counts too; one in numbered pieces, which nobody sends, is
// refused.
func partName(disposition []byte) (name []byte, bad string) {
	_, rest, _ := bytes.Cut(disposition, []byte(";"))
	named := false
	for len(rest) > 0 {
		end := bytes.IndexAny(rest, "=;")
		if end < 0 {
			break
		}
		key := string(bytes.ToLower(bytes.TrimSpace(rest[:end])))
		if rest[end] == ';' {
			rest = rest[end+1:]
			continue
		}
		var value []byte
		value, rest = partValue(rest[end+1:])
		if piece, ok := strings.CutPrefix(key, "name*"); ok && piece != "" {
			return nil, partTwoNames
		} else if ok {
			value = partExtended(value)
		} else if key != "name" {
			continue
		}
		if named && !bytes.Equal(name, value) {
			return nil, partTwoNames
		}
		name, named = value, true
	}
	return name, ""
}

// partValue reads a parameter's value and returns what follows its semicolon.
func partValue(b []byte) (value, rest []byte) {
	b = bytes.TrimLeft(b, " \t")
	if len(b) == 0 || b[0] != '"' {
		value, rest, _ = bytes.Cut(b, []byte(";"))
		return bytes.TrimRight(value, " \t"), rest
	}
	b = b[1:]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			_, rest, _ = bytes.Cut(b[i+1:], []byte(";"))
			if value == nil {
				value = b[:i]
			}
			return value, rest
		case '\\':
			if value == nil {
				value = append([]byte{}, b[:i]...)
			}
			if i++; i == len(b) {
				return value, nil
			}
		}
		if value != nil {
			value = append(value, b[i])
		}
	}
	if value == nil {
		value = b // the closing quote is missing
	}
	return value, nil
}

// partExtended decodes charset'language'percent-encoded, whatever the charset.
func partExtended(value []byte) []byte {
	_, text, _ := strings.Cut(string(value), "'")
	_, text, ok := strings.Cut(text, "'")
	if !ok {
		return value
	}
	return []byte(pathText(text))
}
