package h1

import (
	"bytes"
	"encoding/binary"
	"net/http"
)

// A usualHead reads the head of an answer where it lies in the read buffer, as long as
// it is one that servers usually write; with anything else it says so, and net/http
// reads the same bytes from their beginning. It is strict, so that it need not decide
// what net/http decides: what it takes, both read alike (FuzzHead holds them together).
//
// Usual is HTTP/1.1 with a final status that has a body, lines that end with CR and LF,
// names of token characters, values on one line without control characters, either one
// Content-Length of digits or chunks, a connection that stays open, and no more fields
// and bytes than there is room for.
type usualHead struct {
	line    int // where the line begins that is read next
	status  int // where the status line ends; 0 until it has come
	length  int64
	chunked bool
	sized   bool // a Content-Length has come
	count   int
	fields  [48]fieldAt
}

// A fieldAt says where a field lies in the read buffer, which holds no more than
// readAhead bytes.
type fieldAt struct{ name, colon, value, end uint16 }

// What a usualHead says of the bytes that have come up to now.
type reading int

const (
	more  reading = iota // a usual head, but for the end
	whole                // one with its end
	odd                  // something else
)

// statusAt is where a status line's code begins.
const statusAt = len("HTTP/1.1 ")

// scan reads on in a head. b begins where the head does, and holds all that has come
// of it; each call continues where the last one stopped. No line that is odd is waited
// beyond: an answer that is none is known as early as net/http knows it.
func (h *usualHead) scan(b []byte) reading {
	for {
		rest := b[h.line:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return more
		}
		if end == 0 || rest[end-1] != '\r' {
			return odd
		}
		line := rest[:end-1]
		switch {
		case h.status == 0:
			if !usualStatus(line) {
				return odd
			}
			h.status = len(line)
		case len(line) == 0:
			h.line += end + 1
			if h.chunked == h.sized {
				return odd
			}
			return whole
		case !h.field(line):
			return odd
		}
		h.line += end + 1
	}
}

// usualStatus says whether a status line is "HTTP/1.1", a final status whose answer has
// a body, and perhaps a reason.
func usualStatus(line []byte) bool {
	if len(line) < statusAt+3 || string(line[:statusAt]) != "HTTP/1.1 " {
		return false
	}
	code := line[statusAt : statusAt+3]
	if code[0] < '2' || code[0] > '9' || !digit(code[1]) || !digit(code[2]) || string(code) == "204" || string(code) == "304" {
		return false
	}
	reason := line[statusAt+3:]
	return len(reason) == 0 || reason[0] == ' ' && visible(reason)
}

// field notes where a field lies, and what it says of the body.
func (h *usualHead) field(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || h.count == len(h.fields) {
		return false
	}
	value, end := colon+1, len(line)
	for value < end && blank(line[value]) {
		value++
	}
	for end > value && blank(line[end-1]) {
		end--
	}
	if !visible(line[value:end]) || !h.understood(line[:colon], line[value:end]) {
		return false
	}
	at := h.line
	h.fields[h.count] = fieldAt{uint16(at), uint16(at + colon), uint16(at + value), uint16(at + end)}
	h.count++
	return true
}

// understood reads what net/http acts upon, and says whether there is nothing to it.
func (h *usualHead) understood(name, value []byte) bool {
	switch usualName(name) {
	case "Content-Length":
		if h.sized || len(value) == 0 || len(value) > 18 {
			return false
		}
		for _, c := range value {
			if !digit(c) {
				return false
			}
			h.length = h.length*10 + int64(c-'0')
		}
		h.sized = true
	case "Transfer-Encoding":
		if h.chunked || string(value) != "chunked" {
			return false
		}
		h.chunked = true
	case "Connection":
		return string(value) == "keep-alive" || string(value) == "Keep-Alive"
	case "Trailer", "Pragma":
		return false
	case "":
		return canonical(name) && !actedUpon(name)
	}
	return true
}

// actedUpon says whether net/http does more with a field than to pass it on.
func actedUpon(name []byte) bool {
	switch string(name) {
	case "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Pragma":
		return true
	}
	return false
}

// fill makes the answer of a whole head: all its text is one string, and all its values
// lie in one array.
func (h *usualHead) fill(b []byte, resp *http.Response) {
	text := string(b[:h.line])
	resp.Status = text[statusAt:h.status]
	resp.StatusCode = int(text[statusAt]-'0')*100 + int(text[statusAt+1]-'0')*10 + int(text[statusAt+2]-'0')
	resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	resp.ContentLength = h.length
	resp.Header = make(http.Header, h.count)
	values := make([]string, h.count)
	passed := 0
	for i, at := range h.fields[:h.count] {
		values[i] = text[at.value:at.end]
		name := nameOf(b, text, at)
		if name == "Transfer-Encoding" { // net/http takes it out too
			resp.ContentLength, resp.TransferEncoding = -1, values[i:i+1:i+1]
			continue
		}
		resp.Header[name] = values[i : i+1 : i+1]
		passed++
	}
	if len(resp.Header) == passed {
		return
	}
	clear(resp.Header) // some name has come more than once
	for i, at := range h.fields[:h.count] {
		if name := nameOf(b, text, at); name != "Transfer-Encoding" {
			resp.Header[name] = append(resp.Header[name], values[i])
		}
	}
}

// nameOf is a field's name, b and text being the same.
func nameOf(b []byte, text string, at fieldAt) string {
	if name := usualName(b[at.name:at.colon]); name != "" {
		return name
	}
	return text[at.name:at.colon]
}

// canonical spells a field's name as the keys of an http.Header are, where it lies: a
// line that net/http may yet read is no other for it. It does nothing to what is no name,
// and to one that is longer than it has room for.
func canonical(name []byte) bool {
	var spelt [64]byte
	if len(name) > len(spelt) {
		return false
	}
	spell := &upper
	for i, c := range name {
		if spelt[i] = spell[c]; spelt[i] == 0 {
			return false
		}
		if spell = &lower; c == '-' {
			spell = &upper
		}
	}
	copy(name, spelt[:])
	return true
}

// usualName is a name as it is spelt in an http.Header, if it is one that upstreams
// usually send, spelt like that or in lower case; "" for any other. It saves looking at
// every letter.
func usualName(name []byte) string {
	switch string(name) {
	case "Access-Control-Allow-Credentials", "access-control-allow-credentials":
		return "Access-Control-Allow-Credentials"
	case "Access-Control-Allow-Headers", "access-control-allow-headers":
		return "Access-Control-Allow-Headers"
	case "Access-Control-Allow-Methods", "access-control-allow-methods":
		return "Access-Control-Allow-Methods"
	case "Access-Control-Allow-Origin", "access-control-allow-origin":
		return "Access-Control-Allow-Origin"
	case "Access-Control-Expose-Headers", "access-control-expose-headers":
		return "Access-Control-Expose-Headers"
	case "Cache-Control", "cache-control":
		return "Cache-Control"
	case "Connection", "connection":
		return "Connection"
	case "Content-Encoding", "content-encoding":
		return "Content-Encoding"
	case "Content-Length", "content-length":
		return "Content-Length"
	case "Content-Type", "content-type":
		return "Content-Type"
	case "Date", "date":
		return "Date"
	case "Etag", "etag":
		return "Etag"
	case "Keep-Alive", "keep-alive":
		return "Keep-Alive"
	case "Openai-Organization", "openai-organization":
		return "Openai-Organization"
	case "Openai-Processing-Ms", "openai-processing-ms":
		return "Openai-Processing-Ms"
	case "Openai-Version", "openai-version":
		return "Openai-Version"
	case "Request-Id", "request-id":
		return "Request-Id"
	case "Retry-After", "retry-after":
		return "Retry-After"
	case "Server", "server":
		return "Server"
	case "Set-Cookie", "set-cookie":
		return "Set-Cookie"
	case "Strict-Transport-Security", "strict-transport-security":
		return "Strict-Transport-Security"
	case "Transfer-Encoding", "transfer-encoding":
		return "Transfer-Encoding"
	case "Vary", "vary":
		return "Vary"
	case "Via", "via":
		return "Via"
	case "X-Accel-Buffering", "x-accel-buffering":
		return "X-Accel-Buffering"
	case "X-Content-Type-Options", "x-content-type-options":
		return "X-Content-Type-Options"
	case "X-Powered-By", "x-powered-by":
		return "X-Powered-By"
	case "X-Request-Id", "x-request-id":
		return "X-Request-Id"
	}
	return ""
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
func blank(c byte) bool { return c == ' ' || c == '\t' }

// visible says whether all of a value may stand in one (RFC 9110, 5.5): no control
// character but the tab. It looks at eight bytes at once.
func visible(b []byte) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		control := (w - 0x20*each) &^ w // the high bit of a byte below 0x20
		del := w ^ 0x7f*each            // a byte of zero for each 0x7f
		del = (del - each) &^ del       // and that one's high bit
		if (control|del)&high != 0 && !tabbed(b[:8]) {
			return false
		}
		b = b[8:]
	}
	return tabbed(b)
}

// tabbed is visible, byte by byte.
func tabbed(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// The characters of a field's name (RFC 9110, 5.6.2), as they are spelt at the beginning
// of a word and within one; 0 for all others.
var upper, lower = func() (upper, lower [256]byte) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789") {
		upper[c], lower[c] = c, c
	}
	for c := byte('a'); c <= 'z'; c++ {
		big := c - 'a' + 'A'
		upper[c], upper[big], lower[c], lower[big] = big, big, c, c
	}
	return upper, lower
}()
