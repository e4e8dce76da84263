package drill

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field is one header line, its name spelt as it was sent.
type Field struct{ Name, Value string }

// Request is a request as it arrived.
type Request struct {
	Method string
	Target string  // as on the request line, query included
	Header []Field // in the order of the lines, repeated ones apart, values trimmed
	Head   []byte  // request line and header lines as they came, the blank line included
	Body   []byte  // without chunk framing
	At     time.Time
	Conn   int // number of its connection, from 1
	Nth    int // its number on that connection, from 1
}

// NewRequest returns a request that came over no connection, for asking what an
// Answer would be to it.
func NewRequest(method, target string, body []byte) Request {
	return Request{Method: method, Target: target, Body: body}
}

// Path returns the target without its query, escapes kept.
func (r Request) Path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// Query returns the target's query without the question mark, escapes kept.
func (r Request) Query() string {
	_, query, _ := strings.Cut(r.Target, "?")
	return query
}

// Get returns the value of the first header line of that name, compared without
// case, or "".
func (r Request) Get(name string) string { return get(r.Header, name) }

// Values returns the values of all header lines of that name, in order.
func (r Request) Values(name string) []string { return values(r.Header, name) }

func (r Request) clone() Request {
	r.Header = slices.Clone(r.Header)
	r.Head = bytes.Clone(r.Head)
	r.Body = bytes.Clone(r.Body)
	return r
}

func get(fields []Field, name string) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

func values(fields []Field, name string) []string {
	var out []string
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			out = append(out, f.Value)
		}
	}
	return out
}

// errMalformed is what a peer sent that is no HTTP/1.1.
var errMalformed = errors.New("malformed HTTP")

// readRequest reads one whole request. It answers Expect: 100-continue on w, as
// every script is called only when the body is there.
func readRequest(br *bufio.Reader, w io.Writer) (Request, error) {
	head, lines, err := readHead(br)
	if err != nil {
		return Request{}, err
	}
	line := strings.Fields(lines[0])
	if len(line) != 3 {
		return Request{}, fmt.Errorf("%w: request line %q", errMalformed, lines[0])
	}
	r := Request{Method: line[0], Target: line[1], Head: head, Header: fields(lines[1:])}
	if strings.EqualFold(r.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return Request{}, err
		}
	}
	switch {
	case chunked(r.Header):
		var body bytes.Buffer
		for {
			p, last, _, err := readChunk(br)
			if err != nil {
				return Request{}, err
			}
			if body.Write(p); last {
				break
			}
		}
		r.Body = body.Bytes()
	case r.Get("Content-Length") != "":
		n, err := strconv.Atoi(r.Get("Content-Length"))
		if err != nil || n < 0 {
			return Request{}, fmt.Errorf("%w: Content-Length %q", errMalformed, r.Get("Content-Length"))
		}
		r.Body = make([]byte, n)
		if _, err := io.ReadFull(br, r.Body); err != nil {
			return Request{}, err
		}
	}
	return r, nil
}

// readHead reads up to and including the blank line. It returns the bytes as they
// came, and the lines without their ends and without the blank one.
func readHead(br *bufio.Reader) (raw []byte, lines []string, err error) {
	for {
		line, err := br.ReadBytes('\n')
		raw = append(raw, line...)
		if err != nil {
			if len(raw) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return raw, lines, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 && len(lines) > 0 {
			return raw, lines, nil
		}
		if len(line) > 0 { // blank lines before the first are passed over, as RFC 9112 wants
			lines = append(lines, string(line))
		}
	}
}

// fields splits header lines.
func fields(lines []string) []Field {
	var out []Field
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		out = append(out, Field{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return out
}

// chunked reports whether a message of these header lines is chunked.
func chunked(header []Field) bool {
	return strings.Contains(strings.ToLower(get(header, "Transfer-Encoding")), "chunked")
}

// readChunk reads one chunk whole; the last one is empty and brings the trailer.
func readChunk(br *bufio.Reader) (p []byte, last bool, trailer []Field, err error) {
	n, err := chunkSize(br)
	if err != nil {
		return nil, false, nil, err
	}
	if n == 0 {
		trailer, err := readTrailer(br)
		return nil, true, trailer, err
	}
	p = make([]byte, n)
	if _, err := io.ReadFull(br, p); err != nil {
		return nil, false, nil, cut(err)
	}
	return p, false, nil, chunkEnd(br)
}

// chunkSize reads a chunk's size line.
func chunkSize(br *bufio.Reader) (int64, error) {
	line, err := br.ReadString('\n')
	if err != nil {
		return 0, cut(err)
	}
	size, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ";")
	n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
	if err != nil {
		return 0, fmt.Errorf("%w: chunk size %q", errMalformed, line)
	}
	return int64(n), nil
}

// chunkEnd reads the line end after a chunk's bytes.
func chunkEnd(br *bufio.Reader) error {
	var end [2]byte
	if _, err := io.ReadFull(br, end[:]); err != nil {
		return cut(err)
	}
	if string(end[:]) != "\r\n" {
		return fmt.Errorf("%w: %q after a chunk", errMalformed, end)
	}
	return nil
}

// readTrailer reads what follows the last chunk.
func readTrailer(br *bufio.Reader) ([]Field, error) {
	var lines []string
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return nil, cut(err)
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return fields(lines), nil
		}
		lines = append(lines, line)
	}
}

// cut turns the end of a connection inside a message into the error it is.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
