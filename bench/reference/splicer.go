package main

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 20

// realModel is the name that takes the place of the client's model.
const realModel = "m-real"

// tailSize is how much of an answer's end is kept to look for the usage in.
const tailSize = 1 << 10

// A splicer is the least that a failover proxy does on net/http.
type splicer struct {
	transport http.RoundTripper
	upstream  *url.URL
	buffers   sync.Pool
	usage     atomic.Int64 // answers in which one was found
}

// ServeHTTP sends the request on with the model replaced, and the answer back.
func (s *splicer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(0, min(r.ContentLength, maxBody)))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, "the body is not whole", http.StatusBadRequest)
		return
	}
	from, to, ok := modelSpan(body)
	if !ok {
		http.Error(w, "the body names no model", http.StatusBadRequest)
		return
	}
	u := *r.URL
	u.Scheme, u.Host = s.upstream.Scheme, s.upstream.Host
	// Not an io.MultiReader: the transport's last look for bytes past the length
	// would call its WriteTo, which makes a buffer of 32 KiB.
	out := (&http.Request{Method: r.Method, URL: &u, Host: u.Host, Header: r.Header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &pieces{body[:from], []byte(realModel), body[to:]}, ContentLength: int64(len(body) - (to - from) + len(realModel))}).WithContext(r.Context())
	out.Header.Del("Connection")
	resp, err := s.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	header := w.Header()
	for name, values := range resp.Header {
		header[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	s.relay(w, resp)
}

// relay writes the answer read by read; streams are flushed each time.
func (s *splicer) relay(w http.ResponseWriter, resp *http.Response) {
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	flusher, _ := w.(http.Flusher)
	buffer, _ := s.buffers.Get().(*[4 << 10]byte)
	if buffer == nil {
		buffer = new([4 << 10]byte)
	}
	defer s.buffers.Put(buffer)
	var tail [tailSize]byte
	kept := 0
	for {
		n, err := resp.Body.Read(buffer[:])
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			if stream {
				flusher.Flush()
			}
			kept = keep(&tail, kept, buffer[:n])
		}
		if err != nil {
			break
		}
	}
	if bytes.Contains(tail[:kept], []byte(`"usage":{`)) {
		s.usage.Add(1)
	}
}

// keep appends b to the tail, of which the last tailSize bytes stay.
func keep(tail *[tailSize]byte, n int, b []byte) int {
	if len(b) >= tailSize {
		return copy(tail[:], b[len(b)-tailSize:])
	}
	old := min(n, tailSize-len(b))
	copy(tail[:], tail[n-old:n])
	return old + copy(tail[old:], b)
}

// pieces is a body in three parts that are not copied.
type pieces [3][]byte

// Read reads the parts one after the other.
func (p *pieces) Read(b []byte) (n int, err error) {
	for i := range p {
		k := copy(b[n:], p[i])
		p[i] = p[i][k:]
		n += k
	}
	if n == 0 && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// Close does nothing: the parts belong to the request.
func (p *pieces) Close() error { return nil }

// modelSpan finds the bytes between the quotes of the top-level model. Strings are
// skipped by their quotes, so that not every byte of an image is looked at.
func modelSpan(b []byte) (from, to int, ok bool) {
	depth, key := 0, false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
			key = b[i] == '{'
		case '}', ']':
			depth--
		case ',':
			key = true
		case '"':
			end := stringEnd(b, i+1)
			if end < 0 {
				return 0, 0, false
			}
			if depth == 1 && key && string(b[i+1:end]) == "model" {
				v := end + 1
				for v < len(b) && bytes.IndexByte([]byte(": \t\r\n"), b[v]) >= 0 {
					v++
				}
				if v == len(b) || b[v] != '"' {
					return 0, 0, false
				}
				to = stringEnd(b, v+1)
				return v + 1, to, to >= 0
			}
			key = false
			i = end
		}
	}
	return 0, 0, false
}

// stringEnd returns where the quote stands that ends the string beginning at i, or -1.
func stringEnd(b []byte, i int) int {
	for {
		k := bytes.IndexByte(b[i:], '"')
		if k < 0 {
			return -1
		}
		i += k
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
		i++
	}
}
