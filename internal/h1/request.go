package h1

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
)

// A writing is what writing a request's head takes.
type writing struct {
	text   []byte
	fields []field
	order  []place // of the fields, by name
}

// A field is one of the header's.
type field struct {
	name   string
	values []string
}

// A place says where a field is, with the first bytes of its name as a number that is
// compared at once.
type place struct {
	first uint64
	at    int
}

var writings = sync.Pool{New: func() any { return new(writing) }}

// maxKept is how large a buffer for heads may be that is kept for another request.
const maxKept = 16 << 10

// free gives the memory back.
func (w *writing) free() {
	if cap(w.text) <= maxKept {
		writings.Put(w)
	}
}

// head writes request line and header, names in order; ErrUnsendable where the line would
// not be one.
func (w *writing) head(req *http.Request) error {
	target := req.URL.RequestURI()
	if !sendable(req, target) {
		return ErrUnsendable
	}
	b := append(w.text[:0], req.Method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, req.Host...)
	b = append(b, "\r\n"...)
	w.sort(req.Header)
	for _, p := range w.order {
		f := &w.fields[p.at]
		for _, value := range f.values {
			b = append(b, f.name...)
			b = append(b, ": "...)
			b = append(b, oneLine(value)...)
			b = append(b, "\r\n"...)
		}
	}
	clear(w.fields) // which hold credentials
	if req.ContentLength > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, req.ContentLength, 10)
		b = append(b, "\r\n"...)
	}
	w.text = append(b, "\r\n"...)
	return nil
}

// sort notes the fields that go out, in the order of their names. There are few, so that
// putting each into its place is the quickest.
func (w *writing) sort(header http.Header) {
	w.fields, w.order = w.fields[:0], w.order[:0]
	for name, values := range header {
		if name == "User-Agent" && len(values) > 0 && values[0] == "" {
			continue // net/http's sign for "none"
		}
		if !isToken(name) {
			continue // as net/http does: a name that is none would begin something else
		}
		p := place{firstOf(name), len(w.fields)}
		w.fields = append(w.fields, field{name, values})
		w.order = append(w.order, p)
		i := p.at
		for ; i > 0 && (p.first < w.order[i-1].first || p.first == w.order[i-1].first && name < w.fields[w.order[i-1].at].name); i-- {
			w.order[i] = w.order[i-1]
		}
		w.order[i] = p
	}
}

// firstOf is a name's first eight bytes, ordered as the name is.
func firstOf(name string) (first uint64) {
	if len(name) >= 8 {
		return uint64(name[0])<<56 | uint64(name[1])<<48 | uint64(name[2])<<40 | uint64(name[3])<<32 |
			uint64(name[4])<<24 | uint64(name[5])<<16 | uint64(name[6])<<8 | uint64(name[7])
	}
	for i := range len(name) {
		first |= uint64(name[i]) << (56 - 8*i)
	}
	return first
}

// isToken says whether a text may be a field's name. Those that nearly every request has
// need not be looked at.
func isToken(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Authorization", "Content-Type",
		"User-Agent", "X-Api-Key", "X-Stainless-Arch", "X-Stainless-Async", "X-Stainless-Lang", "X-Stainless-Os",
		"X-Stainless-Package-Version", "X-Stainless-Read-Timeout", "X-Stainless-Retry-Count", "X-Stainless-Runtime",
		"X-Stainless-Runtime-Version", "X-Stainless-Timeout":
		return true
	}
	for i := range len(name) {
		if lower[name[i]] == 0 {
			return false
		}
	}
	return name != ""
}

// oneLine is a value as it goes out: without space around it, and without line breaks,
// which would begin another field.
func oneLine(value string) string {
	if value == "" || value[0] > ' ' && value[len(value)-1] > ' ' && strings.IndexByte(value, '\n') < 0 && strings.IndexByte(value, '\r') < 0 {
		return value
	}
	return textproto.TrimString(lineBreaks.Replace(value))
}

var lineBreaks = strings.NewReplacer("\n", " ", "\r", " ")
