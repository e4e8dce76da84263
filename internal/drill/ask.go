package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Query is a request to Ask.
type Query struct {
	Method string   // "": POST with a body, GET without
	Path   string   // the request target as it is sent, query included; "": "/"
	Header []string // names and values in turn, sent as they are and in this order
	Body   []byte   // nil: none

	// Upload framing. A body is announced by Content-Length unless Chunked is set.
	// With Expect the body waits for a 100, and is not sent where a final answer
	// comes first. With Piece the body goes out in pieces of so many bytes, Gap
	// apart, each a chunk of its own where Chunked is set.
	Chunked bool
	Expect  bool
	Piece   int
	Gap     time.Duration

	// Watch is called with what has come so far, first after the head and then
	// after each piece of the body; it must not keep the Reply's slices. Returning
	// false leaves: the connection is closed as Leave says. A Watch that blocks is
	// a client that does not read.
	Watch func(Reply) bool
	Leave Ending // FIN where it is Clean or Hang
}

// Arrival is a piece of a body: at most one chunk of a chunked one.
type Arrival struct {
	At    time.Duration // since the request began to go out
	Bytes int
}

// Reply is what came back.
type Reply struct {
	Proto   string // "HTTP/1.1"
	Status  int    // 0: no head came
	Reason  string // the phrase after the status
	Interim []int  // the 1xx statuses before it
	Header  []Field
	Head    []byte // status line and header lines as they came, the blank line included
	Body    []byte // without chunk framing
	Trailer []Field

	// Clean says that the body ended as its framing demands: the last chunk came,
	// or as many bytes as announced, or the connection ended in good order where
	// nothing was announced. Everything else was cut, and Err says how:
	// io.ErrUnexpectedEOF for a connection that ended too early.
	Clean    bool
	Err      error
	HeadAt   time.Duration // when the head was whole, since the request began to go out
	Elapsed  time.Duration // when it was over
	Arrivals []Arrival
}

// Get returns the value of the first header line of that name, compared without
// case, or "".
func (r Reply) Get(name string) string { return get(r.Header, name) }

// Values returns the values of all header lines of that name, in order.
func (r Reply) Values(name string) []string { return values(r.Header, name) }

// ErrLeft is the Err of a Reply whose Watch had enough.
var ErrLeft = errors.New("left")

// Ask sends one request to addr ("host:port") on a connection of its own and reads
// the answer. When ctx ends the connection is closed, and Err is ctx's cause.
func Ask(ctx context.Context, addr string, q Query) Reply {
	c, err := Dial(ctx, addr)
	if err != nil {
		return Reply{Err: err}
	}
	defer c.Close()
	return c.Ask(ctx, q)
}

// Client is one HTTP/1.1 connection to a server, for several requests one after
// another. It is not safe for use by several goroutines, Close apart.
type Client struct {
	addr string
	c    net.Conn
	br   *bufio.Reader
	buf  []byte // what a piece of a body is read into
}

// Dial connects to addr over TCP.
func Dial(ctx context.Context, addr string) (*Client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewClient(c, addr), nil
}

// NewClient returns a client over c, which it then owns; addr goes into the Host
// header.
func NewClient(c net.Conn, addr string) *Client {
	return &Client{addr: addr, c: c, br: bufio.NewReaderSize(c, 16<<10)}
}

// Reset has the client go on over another connection, whatever was left to read on
// the one before, which it does not close.
func (c *Client) Reset(conn net.Conn) {
	c.c = conn
	c.br.Reset(conn)
}

// Conn returns the connection, for what Ask does not do.
func (c *Client) Conn() net.Conn { return c.c }

// Close closes the connection.
func (c *Client) Close() error { return c.c.Close() }

// Ask sends a request and reads the answer. The connection can be used again where
// the Reply is Clean and the server did not announce to close it.
func (c *Client) Ask(ctx context.Context, q Query) Reply {
	stop := context.AfterFunc(ctx, func() { c.c.Close() })
	defer stop()
	if q.Path == "" {
		q.Path = "/"
	}
	if q.Method == "" {
		q.Method = http.MethodGet
		if q.Body != nil {
			q.Method = http.MethodPost
		}
	}
	var r Reply
	start := time.Now()
	r.Err = c.exchange(q, &r, start)
	r.Elapsed = time.Since(start)
	r.Clean = r.Err == nil
	if errors.Is(r.Err, net.ErrClosed) && ctx.Err() != nil {
		r.Err = context.Cause(ctx)
	}
	return r
}

// exchange sends q and reads the answer into r.
func (c *Client) exchange(q Query, r *Reply, start time.Time) error {
	if q.Expect {
		if _, err := c.c.Write(q.head(c.addr)); err != nil {
			return err
		}
		if err := c.readHead(r, start, true); err != nil {
			return err
		}
		if r.Status != http.StatusContinue {
			return c.readBody(q, r, start)
		}
		r.Interim = append(r.Interim, r.Status)
		r.Status = 0
	}
	// The request goes out beside the reading, as servers may answer before they
	// have read all of it.
	halt, sent := make(chan struct{}), make(chan error, 1)
	go func() { sent <- c.send(q, halt) }()
	err := c.readHead(r, start, false)
	if err == nil {
		err = c.readBody(q, r, start)
	}
	if err == nil {
		// A server that goes on reading after its answer leaves the connection
		// usable; one that does not makes the sending fail.
		<-sent
		return nil
	}
	close(halt)
	c.c.SetWriteDeadline(time.Unix(1, 0))
	if sendErr := <-sent; sendErr != nil && r.Status == 0 {
		err = fmt.Errorf("%w, sending: %w", err, sendErr)
	}
	return err
}

// head returns the request's head.
func (q Query) head(addr string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", q.Method, q.Path)
	named := func(name string) bool {
		for i := 0; i < len(q.Header); i += 2 {
			if strings.EqualFold(q.Header[i], name) {
				return true
			}
		}
		return false
	}
	if !named("Host") {
		fmt.Fprintf(&b, "Host: %s\r\n", addr)
	}
	for i := 0; i < len(q.Header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", q.Header[i], q.Header[i+1])
	}
	if q.Body != nil && !named("Content-Type") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	switch {
	case q.Body == nil:
	case q.Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case !named("Content-Length"):
		b.WriteString("Content-Length: " + strconv.Itoa(len(q.Body)) + "\r\n")
	}
	if q.Expect {
		b.WriteString("Expect: 100-continue\r\n")
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// send writes the request, or only its body where the head went ahead, and stops
// between pieces once halt is closed.
func (c *Client) send(q Query, halt <-chan struct{}) error {
	var out []byte
	if !q.Expect {
		out = q.head(c.addr)
	}
	if q.Piece > 0 || q.Chunked && len(q.Body) > 0 {
		if _, err := c.c.Write(out); err != nil {
			return err
		}
		out = nil
		piece := q.Piece
		if piece <= 0 {
			piece = len(q.Body)
		}
		for i := 0; i < len(q.Body); i += piece {
			if i > 0 && q.Gap > 0 {
				select {
				case <-time.After(q.Gap):
				case <-halt:
					return nil
				}
			}
			p := q.Body[i:min(i+piece, len(q.Body))]
			if q.Chunked {
				p = fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p)
			}
			if _, err := c.c.Write(p); err != nil {
				return err
			}
		}
	} else {
		out = append(out, q.Body...)
	}
	if q.Chunked && q.Body != nil {
		out = append(out, "0\r\n\r\n"...)
	}
	_, err := c.c.Write(out)
	return err
}

// readHead reads heads until a final one, or any one where interim is set.
func (c *Client) readHead(r *Reply, start time.Time, interim bool) error {
	for {
		raw, lines, err := readHead(c.br)
		if err != nil {
			return cut(err)
		}
		proto, rest, _ := strings.Cut(lines[0], " ")
		code, reason, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(code)
		if err != nil || !strings.HasPrefix(proto, "HTTP/") {
			return fmt.Errorf("%w: status line %q", errMalformed, lines[0])
		}
		if status/100 == 1 && status != http.StatusSwitchingProtocols && !interim {
			r.Interim = append(r.Interim, status)
			continue
		}
		r.Proto, r.Status, r.Reason = proto, status, reason
		r.Head, r.Header, r.HeadAt = raw, fields(lines[1:]), time.Since(start)
		return nil
	}
}

// readBody reads what the head announced.
func (c *Client) readBody(q Query, r *Reply, start time.Time) error {
	if q.Watch != nil && !q.Watch(*r) {
		return c.leave(q)
	}
	switch length := r.Get("Content-Length"); {
	case q.Method == http.MethodHead, r.Status == http.StatusNoContent, r.Status == http.StatusNotModified, r.Status/100 == 1:
		return nil
	case chunked(r.Header):
		for {
			n, err := chunkSize(c.br)
			if err != nil {
				return err
			}
			if n == 0 {
				r.Trailer, err = readTrailer(c.br)
				return err
			}
			if err := c.take(q, r, start, n); err != nil {
				return err
			}
			if err := chunkEnd(c.br); err != nil {
				return err
			}
		}
	case length != "":
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%w: Content-Length %q", errMalformed, length)
		}
		return c.take(q, r, start, n)
	}
	if err := c.take(q, r, start, 1<<62); !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

// take reads n bytes of the body.
func (c *Client) take(q Query, r *Reply, start time.Time, n int64) error {
	if c.buf == nil {
		c.buf = make([]byte, 32<<10)
	}
	for n > 0 {
		k, err := c.br.Read(c.buf[:min(n, int64(len(c.buf)))])
		if k > 0 {
			n -= int64(k)
			r.Body = append(r.Body, c.buf[:k]...)
			r.Arrivals = append(r.Arrivals, Arrival{At: time.Since(start), Bytes: k})
			if q.Watch != nil && !q.Watch(*r) {
				return c.leave(q)
			}
		}
		if err != nil {
			return cut(err)
		}
	}
	return nil
}

// leave closes the connection because Watch had enough.
func (c *Client) leave(q Query) error {
	if q.Leave == RST {
		switch c := c.c.(type) {
		case *net.TCPConn:
			c.SetLinger(0)
		case interface{ Reset() error }:
			c.Reset()
		}
	}
	c.c.Close()
	return ErrLeft
}
