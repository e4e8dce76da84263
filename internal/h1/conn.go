package h1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is one connection, used by one request at a time.
type conn struct {
	net.Conn
	client *Client
	addr   string
	in     *bufio.Reader
	since  time.Time // idle since

	limited bool    // while a head is read
	room    int64   // bytes that may still come for it
	seen    *[]byte // what has come while it is read
	watch   Watcher // of the request that runs

	liveness
}

// Read reads for the buffered reader: it bounds a head, and tells of its bytes.
func (k *conn) Read(p []byte) (int, error) {
	if k.limited {
		if k.room <= 0 {
			return 0, ErrHeadTooLarge
		}
		p = p[:min(int64(len(p)), k.room)]
	}
	n, err := k.Conn.Read(p)
	if k.limited {
		k.room -= int64(n)
		*k.seen = append(*k.seen, p[:n]...)
	}
	if n > 0 && k.limited {
		k.watch.Heard()
	}
	return n, err
}

// writeAside is the size from which a body is written by a goroutine of its own: an
// upstream may answer before it has read so much.
const writeAside = 64 << 10

// joinBelow is the size up to which a body is copied behind the head, to go out with
// it in one write.
const joinBelow = 8 << 10

// Buffers for heads, on the way out and on the way in.
var (
	heads = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	seens = sync.Pool{New: func() any { return new([]byte) }}
)

// send writes the request and reads the answer's head.
func (k *conn) send(ctx context.Context, req *http.Request, body [][]byte, watch Watcher) (*http.Response, error) {
	stop := context.AfterFunc(ctx, k.shut)
	k.watch = watch
	head := heads.Get().(*bytes.Buffer)
	writeHead(head, req)
	sent := new(atomic.Bool)
	var err error
	if req.ContentLength >= writeAside {
		go func() { _ = k.write(head, body, req.ContentLength, sent, watch) }() // ends at the latest when the connection is closed
	} else {
		err = k.write(head, body, req.ContentLength, sent, watch)
	}
	// An upstream that refuses a request may close before it has read it all: what
	// it said counts for more than that it could not be written.
	resp, readErr := k.head(req)
	if readErr == nil {
		resp = k.answer(ctx, resp, Reusable(req), sent, stop)
		return resp, nil
	}
	if err == nil {
		err = readErr
	}
	stop()
	k.Conn.Close()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return nil, err
}

// shut closes the connection under whoever reads or writes.
func (k *conn) shut() { k.Conn.Close() }

// write writes head and body: in one system call where the system can, copied
// together where they are small.
func (k *conn) write(head *bytes.Buffer, body [][]byte, length int64, sent *atomic.Bool, watch Watcher) (err error) {
	defer watch.Freed()
	defer heads.Put(head)
	if length < joinBelow {
		for _, part := range body {
			head.Write(part)
		}
		_, err = k.Conn.Write(head.Bytes())
	} else {
		parts := make(net.Buffers, 0, 1+len(body))
		parts = append(parts, head.Bytes())
		for _, part := range body {
			if len(part) > 0 {
				parts = append(parts, part)
			}
		}
		_, err = parts.WriteTo(k.Conn)
	}
	if err != nil {
		return err
	}
	sent.Store(true)
	watch.Sent()
	return nil
}

// writeHead writes request line and header, names in order.
func writeHead(b *bytes.Buffer, req *http.Request) {
	b.Reset()
	b.WriteString(req.Method)
	b.WriteByte(' ')
	b.WriteString(req.URL.RequestURI())
	b.WriteString(" HTTP/1.1\r\nHost: ")
	b.WriteString(req.Host)
	b.WriteString("\r\n")
	if ua, ok := req.Header["User-Agent"]; ok && len(ua) > 0 && ua[0] == "" {
		delete(req.Header, "User-Agent") // net/http's sign for "none"
	}
	_ = req.Header.Write(b) // a buffer takes everything
	if req.ContentLength > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b.WriteString("Content-Length: ")
		b.Write(strconv.AppendInt(b.AvailableBuffer(), req.ContentLength, 10))
		b.WriteString("\r\n")
	}
	b.WriteString("\r\n")
}

// head reads answers until one that is final. Interim ones are signs of life, as
// many as there is room for.
func (k *conn) head(req *http.Request) (*http.Response, error) {
	k.room = maxHead
	k.seen = seens.Get().(*[]byte)
	defer k.forget()
	for {
		k.limited, *k.seen = true, (*k.seen)[:0]
		if n := k.in.Buffered(); n > 0 {
			before, _ := k.in.Peek(n) // the rest of what came with a 1xx
			*k.seen = append(*k.seen, before...)
		}
		resp, err := http.ReadResponse(k.in, req)
		k.limited = false
		if err != nil {
			return nil, malformed(err)
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			if resp.Close {
				// net/http drops the header where it says "close", and with it the
				// names of the headers that end with the connection.
				resp.Header["Connection"] = connectionLines(*k.seen)
			}
			return resp, nil
		}
		k.watch.Heard()
	}
}

// Reusable says whether a connection may carry another request after this one. Where
// servers disagree about what belongs to a request or to its answer, what is left over
// would be taken for the answer to the next: some read the body of a GET as a request of
// its own, some send a body after a HEAD.
func Reusable(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return true
	case http.MethodHead:
		return false
	}
	return req.ContentLength == 0
}

// bodiless says whether an answer that has no body announces one all the same, which
// may then follow.
func bodiless(resp *http.Response) bool {
	if resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusNotModified {
		return false
	}
	length := resp.Header.Get("Content-Length")
	return length != "" && length != "0" || len(resp.TransferEncoding) > 0 || resp.Header["Transfer-Encoding"] != nil
}

// forget gives back what has been seen of a head, unless that was a large one.
func (k *conn) forget() {
	if cap(*k.seen) <= 8<<10 {
		seens.Put(k.seen)
	}
	k.seen = nil
}

// answer gives the body a life of its own: read to its end, it gives the connection
// back, where that may carry another request.
func (k *conn) answer(ctx context.Context, resp *http.Response, reusable bool, sent *atomic.Bool, stop func() bool) *http.Response {
	keep := reusable && !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols && !bodiless(resp)
	b := &body{from: resp.Body, conn: k, ctx: ctx, stop: stop, sent: sent, keep: keep}
	resp.Body = b
	if b.from == http.NoBody {
		b.end()
		resp.Body = http.NoBody
	}
	return resp
}

// body is an answer's body.
type body struct {
	from io.ReadCloser
	conn *conn
	ctx  context.Context
	stop func() bool
	sent *atomic.Bool
	keep bool
	// done says that the connection has been given back, or closed: by whoever reads to
	// the end, or by whoever closes, perhaps while another still reads.
	done atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.done.Load() {
		return 0, io.EOF
	}
	n, err := b.from.Read(p)
	switch {
	case err == io.EOF:
		b.end()
	case err != nil && b.ctx.Err() != nil:
		err = context.Cause(b.ctx)
	}
	return n, err
}

// end gives the connection back after a clean end.
func (b *body) end() {
	if !b.done.CompareAndSwap(false, true) {
		return
	}
	// Whoever cancels from here on must not close a connection that serves another.
	if b.stop() && b.keep && b.sent.Load() && b.conn.in.Buffered() == 0 {
		b.conn.client.put(b.conn)
		return
	}
	b.conn.Conn.Close()
}

// Close ends the connection unless the body was read to its end.
func (b *body) Close() error {
	if !b.done.CompareAndSwap(false, true) {
		return nil
	}
	b.stop()
	return b.conn.Conn.Close()
}

// connectionLines are the values of a raw head's Connection lines.
func connectionLines(head []byte) (values []string) {
	const name = "connection:"
	for line := range bytes.Lines(head) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return values
		}
		if len(line) >= len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			values = append(values, string(bytes.TrimSpace(line[len(name):])))
		}
	}
	return values
}
