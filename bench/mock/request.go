package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 80 << 20

// errMalformed is a request that this upstream does not understand.
var errMalformed = errors.New("malformed request")

// A request is what the mock needs to know of one.
type request struct {
	method, path string
	stream       bool
	chunks       int
	gap          time.Duration
	previous     string // the previous_response_id, if the path is that of responses
}

// A reader reads the requests of a connection.
type reader struct {
	from *bufio.Reader
	body []byte // reused while small
	q    request
}

// next returns the next request, its body read. It is valid until the call after.
func (r *reader) next() (*request, error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	method, rest, ok := bytes.Cut(line, []byte(" "))
	path, _, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok || !ok2 {
		return nil, errMalformed
	}
	r.q = request{method: string(method), path: string(path), chunks: 100, gap: 10 * time.Millisecond}
	length, chunked := 0, false
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return nil, errMalformed
		}
		value = bytes.TrimSpace(value)
		switch len(name) { // cheaper than comparing each name
		case len("content-length"): // and X-Bench-Chunks, X-Bench-Gap-Us
			switch {
			case bytes.EqualFold(name, []byte("content-length")):
				length, err = strconv.Atoi(string(value))
			case bytes.EqualFold(name, []byte("x-bench-chunks")):
				r.q.chunks, err = strconv.Atoi(string(value))
			case bytes.EqualFold(name, []byte("x-bench-gap-us")):
				var us int
				us, err = strconv.Atoi(string(value))
				r.q.gap = time.Duration(us) * time.Microsecond
			}
		case len("transfer-encoding"):
			chunked = chunked || bytes.EqualFold(name, []byte("transfer-encoding"))
		}
		if err != nil {
			return nil, errMalformed
		}
	}
	if err := r.read(length, chunked); err != nil {
		return nil, err
	}
	r.q.stream = wantsStream(r.body)
	if strings.HasSuffix(r.q.path, "/responses") {
		r.q.previous = previousResponse(r.body)
	}
	return &r.q, nil
}

// line returns the next line without its end.
func (r *reader) line() ([]byte, error) {
	line, err := r.from.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// read reads the body.
func (r *reader) read(length int, chunked bool) error {
	if cap(r.body) > 64<<10 {
		r.body = nil
	}
	r.body = r.body[:0]
	if !chunked {
		return r.take(length)
	}
	for {
		line, err := r.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(line), 16, 32)
		if err != nil {
			return errMalformed
		}
		if err := r.take(int(n)); err != nil {
			return err
		}
		if end, err := r.line(); err != nil || len(end) > 0 {
			return errMalformed
		}
		if n == 0 {
			return nil
		}
	}
}

// take appends n bytes to the body.
func (r *reader) take(n int) error {
	old := len(r.body)
	if n < 0 || old+n > maxBody {
		return errMalformed
	}
	if cap(r.body)-old < n {
		r.body = append(make([]byte, 0, old+n), r.body...)
	}
	r.body = r.body[:old+n]
	_, err := io.ReadFull(r.from, r.body[old:])
	return err
}

// wantsStream looks for "stream":true near the body's beginning and end, where it
// stands in what the generator sends.
func wantsStream(body []byte) bool {
	const near = 2 << 10
	field := []byte(`"stream":true`)
	return bytes.Contains(body[:min(len(body), near)], field) || bytes.Contains(body[max(0, len(body)-near):], field)
}

// asked counts the requests under prefixes that make some fail.
var asked atomic.Int64

// due says whether this request is one of every so many, counted over all of them.
func due(every string) bool {
	n, err := strconv.ParseInt(every, 10, 32)
	return err == nil && n > 0 && asked.Add(1)%n == 0
}
