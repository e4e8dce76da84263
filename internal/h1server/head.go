package h1server

import (
	"bytes"
	"net/http"
	"unsafe"
)

const (
	// mostFields bounds the fields of a plain head.
	mostFields = 64
	// mostDigits bounds a plain Content-Length, well below what an int64 holds.
	mostDigits = 15
)

// A head is what a plain request begins with.
type head struct {
	method, target, path, query, host string

	header http.Header
	length int64 // of the body, -1 where none is announced
	close  bool  // Connection: close
}

// Of each byte of a field's name, what it is at the beginning of a word and within one;
// 0 = it cannot stand in a name (RFC 9110, 5.6.2).
var wordStart, wordRest = nameBytes()

func nameBytes() (start, rest [256]byte) {
	for c := range 256 {
		b := byte(c)
		switch {
		case b >= 'a' && b <= 'z':
			start[c], rest[c] = b-'a'+'A', b
		case b >= 'A' && b <= 'Z':
			start[c], rest[c] = b, b-'A'+'a'
		case b >= '0' && b <= '9', bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), b) >= 0:
			start[c], rest[c] = b, b
		}
	}
	return start, rest
}

// Bytes that a plain path holds: those that no URL escapes or reads in two ways.
var pathBytes = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/$&+,:;=@")

// Bytes of a plain Host: a name or an address, and a port.
var hostBytes = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]")

func byteSet(all string) (set [256]bool) {
	for i := range len(all) {
		set[all[i]] = true
	}
	return set
}

var headEnd = []byte("\r\n\r\n")

// parse reads a head that stands whole at the beginning of in, and how long it is. ok is
// false where it is not plain, or not all there; in is left as it is.
func parse(in []byte) (h head, size int, ok bool) {
	end := bytes.Index(in, headEnd)
	if end < 0 {
		return h, 0, false
	}
	size = end + len(headEnd)
	// Names are spelled as net/http does in a copy, of which all strings are parts.
	b := make([]byte, size)
	copy(b, in)
	at, ok := h.requestLine(b)
	if !ok {
		return h, 0, false
	}
	ok = h.fields(b, at)
	return h, size, ok
}

// requestLine reads the first line, and says where the next begins.
func (h *head) requestLine(b []byte) (next int, ok bool) {
	end := bytes.IndexByte(b, '\r')
	if b[end+1] != '\n' {
		return 0, false
	}
	const version = " HTTP/1.1"
	line := b[:end]
	if !bytes.HasSuffix(line, []byte(version)) {
		return 0, false
	}
	target := line[:len(line)-len(version)]
	switch {
	case bytes.HasPrefix(target, []byte("POST /")):
		h.method, target = http.MethodPost, target[len("POST "):]
	case bytes.HasPrefix(target, []byte("GET /")):
		h.method, target = http.MethodGet, target[len("GET "):]
	default:
		return 0, false
	}
	if len(target) > 1 && target[1] == '/' {
		return 0, false // which might be a host
	}
	query := len(target)
	for i, c := range target {
		if c == '?' {
			query = i
			break
		}
		if !pathBytes[c] {
			return 0, false
		}
	}
	for _, c := range target[query:] {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return 0, false
		}
	}
	// A string of its own: the books keep it for longer than the head.
	h.target = string(target)
	h.path = h.target[:query]
	if query < len(target) {
		if h.query = h.target[query+1:]; h.query == "" {
			return 0, false // net/http takes note of a '?' alone
		}
	}
	return end + 2, true
}

// fields reads the header from at on. Afterwards b must not be written to any more.
func (h *head) fields(b []byte, at int) bool {
	var spans [mostFields]struct{ name, colon, value, end uint16 }
	if len(b) > 1<<16-1 {
		return false
	}
	n := 0
	for b[at] != '\r' {
		if n == mostFields {
			return false
		}
		f := &spans[n]
		n++
		i := at
		for start := true; b[i] != ':'; i++ {
			c := b[i]
			canonical := wordRest[c]
			if start {
				canonical = wordStart[c]
			}
			if canonical == 0 {
				return false
			}
			b[i], start = canonical, c == '-'
		}
		if i == at {
			return false
		}
		f.name, f.colon = uint16(at), uint16(i)
		for i++; b[i] == ' ' || b[i] == '\t'; i++ {
		}
		f.value = uint16(i)
		for ; b[i] != '\r'; i++ {
			if c := b[i]; c < ' ' && c != '\t' || c == 0x7f {
				return false
			}
		}
		if b[i+1] != '\n' {
			return false
		}
		at = i + 2
		for i > int(f.value) && (b[i-1] == ' ' || b[i-1] == '\t') {
			i--
		}
		f.end = uint16(i)
	}
	if b[at+1] != '\n' || at+2 != len(b) {
		return false
	}
	text := unsafe.String(unsafe.SliceData(b), len(b)) // b is ours, and stays as it is from here on
	h.header, h.length = make(http.Header, n), -1
	values := make([]string, n)
	for i := range n {
		f := spans[i]
		name, value := text[f.name:f.colon], text[f.value:f.end]
		keep, ok := h.note(name, value)
		if !ok {
			return false
		}
		if !keep {
			continue
		}
		values[i] = value
		former := h.header[name]
		if former != nil {
			h.header[name] = append(former, value)
			continue
		}
		h.header[name] = values[i : i+1 : i+1]
	}
	return h.host != ""
}

// note takes notice of a field that says more than its value. keep is false for one that
// stands elsewhere, ok where it is not plain.
func (h *head) note(name, value string) (keep, ok bool) {
	switch name {
	case "Host":
		if h.host != "" || value == "" {
			return false, false
		}
		for i := range len(value) {
			if !hostBytes[value[i]] {
				return false, false
			}
		}
		h.host = value
		return false, true
	case "Content-Length":
		if h.length >= 0 || value == "" || len(value) > mostDigits || h.method != http.MethodPost {
			return false, false
		}
		n := int64(0)
		for i := range len(value) {
			c := value[i]
			if c < '0' || c > '9' {
				return false, false
			}
			n = n*10 + int64(c-'0')
		}
		h.length = n
	case "Connection":
		switch {
		case h.header[name] != nil:
			return false, false
		case value == "keep-alive", value == "Keep-Alive":
		case value == "close":
			h.close = true
		default:
			return false, false
		}
	case "Transfer-Encoding", "Trailer", "Te", "Expect", "Upgrade", "Http2-Settings", "Proxy-Connection", "Pragma":
		return false, false
	}
	return true, true
}
