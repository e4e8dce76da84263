// Package load sends requests to a proxy and measures the answers: a generator that
// costs little, because it shares the cores with what it measures. It speaks plain
// HTTP/1.1, to loopback addresses only, and every scenario ends by itself.
package load

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// A Target is an endpoint: host:port and path, and the key that its clients have.
type Target struct {
	Addr, Path string
	Key        string // "": the one that every target takes that asks for none
}

// benchKey is what clients send where no key is asked for.
const benchKey = "sk-bench-0123456789"

// errMalformed is an answer that is no HTTP.
var errMalformed = errors.New("malformed answer")

// errDial is that no connection came about.
var errDial = errors.New("no connection")

// dialTime bounds a dial.
const dialTime = 10 * time.Second

// Request renders a POST of body with further headers, as name, value, name, value.
func (t Target) Request(body []byte, header ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: understudy-bench\r\nAccept: */*\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n", t.Path, t.Addr, cmp.Or(t.Key, benchKey))
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
	b.Write(body)
	return b.Bytes()
}

// A conn is a client's connection, dialled when needed. It is for one goroutine.
type conn struct {
	to   Target
	c    net.Conn
	from *bufio.Reader
	keep bool // the answer lets the connection live
	when bool // the answer says when to come again
}

func (c *conn) dial() error {
	if c.c != nil {
		return nil
	}
	conn, err := net.DialTimeout("tcp", c.to.Addr, dialTime)
	if err != nil {
		return fmt.Errorf("%w: %w", errDial, err)
	}
	c.c = conn
	if c.from == nil {
		c.from = bufio.NewReaderSize(conn, 4<<10)
	} else {
		c.from.Reset(conn)
	}
	return nil
}

// drop closes the connection.
func (c *conn) drop() {
	if c.c != nil {
		c.c.Close()
		c.c = nil
	}
}

// do sends a request and returns the status; piece gets the pieces of the body as
// they come, valid for the call alone. A broken answer is an error, whatever came of it.
func (c *conn) do(request []byte, by time.Time, piece func([]byte)) (int, error) {
	if err := c.dial(); err != nil {
		return 0, err
	}
	if err := c.c.SetDeadline(by); err != nil {
		return 0, err
	}
	_, err := c.c.Write(request)
	status := 0
	if err == nil {
		status, err = c.read(piece)
	}
	if err != nil || !c.keep {
		c.drop()
	}
	return status, err
}

// read reads one answer.
func (c *conn) read(piece func([]byte)) (status int, err error) {
	length, chunked := -1, false
	for status < 200 {
		if status, length, chunked, err = c.head(); err != nil {
			return status, err
		}
	}
	if chunked {
		return status, c.chunks(piece)
	}
	if length < 0 { // to the connection's end
		c.keep = false
		for {
			if _, err := c.from.Peek(1); err != nil {
				if err == io.EOF {
					return status, nil
				}
				return status, err
			}
			if err := c.pass(c.from.Buffered(), piece); err != nil {
				return status, err
			}
		}
	}
	return status, c.pass(length, piece)
}

// head reads a status line and the headers that frame the body.
func (c *conn) head() (status, length int, chunked bool, err error) {
	line, err := c.line()
	if err != nil {
		return 0, 0, false, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, 0, false, errMalformed
	}
	c.keep = bytes.HasPrefix(line, []byte("HTTP/1.1"))
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, false, errMalformed
	}
	length, c.when = -1, false
	for {
		if line, err = c.line(); err != nil {
			return status, 0, false, err
		}
		if len(line) == 0 {
			return status, length, chunked, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return status, 0, false, errMalformed
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("retry-after")):
			c.when = true
		case bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(bytes.TrimSpace(value), []byte("close")):
			c.keep = false
		}
	}
}

// chunks reads a chunked body to its end.
func (c *conn) chunks(piece func([]byte)) error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(size), 16, 32)
		if err != nil {
			return errMalformed
		}
		if err := c.pass(int(n), piece); err != nil {
			return err
		}
		if end, err := c.line(); err != nil {
			return err
		} else if len(end) > 0 {
			return errMalformed
		}
		if n == 0 {
			return nil
		}
	}
}

// line returns the next line without its end.
func (c *conn) line() ([]byte, error) {
	line, err := c.from.ReadSlice('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// pass hands n bytes of the body on, as they come.
func (c *conn) pass(n int, piece func([]byte)) error {
	for n > 0 {
		if _, err := c.from.Peek(1); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		b, _ := c.from.Peek(min(c.from.Buffered(), n))
		if piece != nil {
			piece(b)
		}
		n -= len(b)
		if _, err := c.from.Discard(len(b)); err != nil {
			return err
		}
	}
	return nil
}
