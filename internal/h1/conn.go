package h1

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
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
	broken  error   // with which reading has ended, when nobody has been told yet
	seen    *[]byte // what has come while net/http reads it
	watch   Watcher // of the request that runs
	abort   func()  // closes the connection under whoever reads or writes

	liveness
}

// Read reads for the buffered reader: it bounds a head, and tells of its bytes.
func (k *conn) Read(p []byte) (int, error) {
	if !k.limited {
		return k.Conn.Read(p)
	}
	if err := k.broken; err != nil {
		k.broken = nil
		return 0, err
	}
	if k.room <= 0 {
		return 0, ErrHeadTooLarge
	}
	n, err := k.Conn.Read(p[:min(int64(len(p)), k.room)])
	k.room -= int64(n)
	if k.seen != nil {
		*k.seen = append(*k.seen, p[:n]...)
	}
	if n > 0 {
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

// seens are buffers for heads on the way in.
var seens = sync.Pool{New: func() any { return new([]byte) }}

// send writes the request, whose head is written already, and reads the answer's head.
func (k *conn) send(ctx context.Context, req *http.Request, w *writing, parts [][]byte, watch Watcher) (*http.Response, error) {
	b := &body{conn: k, ctx: ctx, stop: context.AfterFunc(ctx, k.abort)}
	k.watch = watch
	var err error
	if req.ContentLength >= writeAside {
		go func() { _ = k.write(w, parts, req.ContentLength, &b.sent, watch) }() // ends at the latest when the connection is closed
	} else {
		err = k.write(w, parts, req.ContentLength, &b.sent, watch)
	}
	// An upstream that refuses a request may close before it has read it all: what
	// it said counts for more than that it could not be written.
	resp, readErr := k.head(req, b)
	if readErr == nil {
		b.keep = Reusable(req) && !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols && !bodiless(resp)
		if resp.Body == http.NoBody {
			b.end()
		} else {
			resp.Body = b
		}
		return resp, nil
	}
	if err == nil {
		err = readErr
	}
	b.stop()
	k.Conn.Close()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return nil, err
}

// write writes head and body: in one system call where the system can, copied
// together where they are small.
func (k *conn) write(w *writing, body [][]byte, length int64, sent *atomic.Bool, watch Watcher) (err error) {
	defer watch.Freed()
	defer w.free()
	if length < joinBelow {
		for _, part := range body {
			w.text = append(w.text, part...)
		}
		_, err = k.Conn.Write(w.text)
	} else {
		parts := make(net.Buffers, 0, 1+len(body))
		parts = append(parts, w.text)
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

// head reads the answer's head: in place where it is a usual one, else with net/http.
func (k *conn) head(req *http.Request, b *body) (*http.Response, error) {
	k.limited, k.room = true, maxHead
	if req.Method != http.MethodHead && k.usual(b) {
		k.limited = false
		b.resp.Request = req
		return &b.resp, nil
	}
	return k.unusual(req, b)
}

// unusual reads answers until one that is final. Interim ones are signs of life, as
// many as there is room for.
func (k *conn) unusual(req *http.Request, b *body) (*http.Response, error) {
	k.seen = seens.Get().(*[]byte)
	defer k.forget()
	for {
		k.limited, *k.seen = true, (*k.seen)[:0]
		if n := k.in.Buffered(); n > 0 {
			before, _ := k.in.Peek(n) // what has come already
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
			b.from = resp.Body
			return resp, nil
		}
		k.watch.Heard()
	}
}

// usual reads the head of a usual answer. Of any other nothing is read, so that what has
// come of it is still in the buffer.
func (k *conn) usual(b *body) bool {
	h := usualHead{}
	for {
		n := k.in.Buffered()
		got, _ := k.in.Peek(n)
		switch h.scan(got) {
		case whole:
			h.fill(got, &b.resp)
			_, _ = k.in.Discard(h.line)
			b.chunked, b.left = h.chunked, h.length
			if !h.chunked && h.length == 0 {
				b.resp.Body = http.NoBody
			}
			return true
		case odd:
			return false
		}
		if n == k.in.Size() {
			return false
		}
		if _, k.broken = k.in.Peek(n + 1); k.broken != nil {
			return false
		}
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
