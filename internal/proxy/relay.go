package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/internal/probe"
	"understudy/internal/wire"
)

// errClient marks a client that left or takes nothing more, apart from an upstream
// that breaks.
var errClient = errors.New("client takes nothing")

// heldPiece is how much of what was held has to be taken within write_idle_timeout.
const heldPiece = 16 << 10

// delivery is how an answer goes out.
type delivery struct {
	stall      time.Duration // relay_stall_timeout
	writeIdle  time.Duration // write_idle_timeout
	errorEvent bool          // broken_stream: error_event
	dialect    wire.Dialect
	kind       wire.Kind
	begun      bool     // the head has gone out already (delivery complete)
	shown      []string // what no header of the answer may hold
}

// relay sends a released answer: its head once, the held bytes, and the rest as it
// comes, each read flushed. It is the only function that writes an upstream's
// answer. The headers that are ours stand in w already. It returns how many body
// bytes were written, and errClient, what kept held bytes from being read back, or
// nil; how the answer itself ended is the Exchange's Ending. An error or a broken
// answer must be followed by an abort.
func relay(ctx context.Context, w http.ResponseWriter, x *probe.Exchange, d delivery) (n int64, err error) {
	x.Clock().Release(d.stall)
	if !d.begun {
		head(w.Header(), x, d.shown)
		w.WriteHeader(x.Status)
	}
	out := clientWriter{to: takerOf(w), idle: d.writeIdle}
	held := out.pieces
	if d.begun {
		held = unmarked(held)
	}
	err = x.SendHeld(held)
	if err == nil && (!x.Done() || x.Ending() == probe.Broken || len(x.Trailer()) > 0) {
		// Flushed, a body has no length that net/http would work out, and so room
		// for trailers.
		err = out.send(nil, true)
	}
	for err == nil && !x.Done() {
		b, end := x.Next()
		if len(b) > 0 {
			err = out.send(b, true)
		}
		if end == io.EOF {
			break
		}
		if err == nil && ctx.Err() != nil && !ended(x) {
			return out.n, errClient
		}
	}
	if err != nil {
		return out.n, err
	}
	if ctx.Err() != nil && x.Ending() == probe.Broken {
		return out.n, errClient
	}
	if x.Ending() == probe.Broken && d.errorEvent && appendable(w.Header(), x) {
		if event := wire.BrokenEvent(d.dialect, d.kind, x.Reader(), "the upstream's answer broke off"); len(event) > 0 {
			if err := out.send(event, true); err != nil {
				return out.n, err
			}
		}
	}
	if x.Ending() != probe.Broken {
		trailers(w.Header(), x.Trailer(), d.shown)
	}
	return out.n, nil
}

// A taker takes an answer, flushed when it is to go out, and within a time. Both
// servers' writers are one.
type taker interface {
	io.Writer
	FlushError() error
	SetWriteDeadline(time.Time) error
}

// takerOf is what stands behind a writer: http.ResponseController would look for it
// again with each piece.
func takerOf(w http.ResponseWriter) taker {
	if t, ok := w.(taker); ok {
		return t
	}
	return controlled{w, http.NewResponseController(w)}
}

// controlled is a writer that wraps another.
type controlled struct {
	io.Writer
	*http.ResponseController
}

// FlushError implements taker.
func (c controlled) FlushError() error { return c.Flush() }

// A clientWriter is the way to a client, which has to take something all the time.
type clientWriter struct {
	to   taker
	idle time.Duration // write_idle_timeout; 0 = none
	n    int64         // bytes that went out
}

// send writes, and has it go out at once where flush is set. Its errors are errClient.
func (o *clientWriter) send(b []byte, flush bool) error {
	if o.idle > 0 {
		// Not every writer can have a deadline; then the client is trusted.
		_ = o.to.SetWriteDeadline(time.Now().Add(o.idle))
	}
	m, err := o.to.Write(b)
	o.n += int64(m)
	if err == nil && flush {
		err = o.to.FlushError()
	}
	if err != nil {
		return errors.Join(errClient, err)
	}
	if o.idle > 0 && flush {
		// HTTP/2 resets a stream at its deadline although nobody writes.
		_ = o.to.SetWriteDeadline(time.Time{})
	}
	return nil
}

// pieces sends what was held, a piece at a time: a slow client takes something all the
// time, but not all at once.
func (o *clientWriter) pieces(b []byte) error {
	for len(b) > 0 {
		piece := b[:min(len(b), heldPiece)]
		if err := o.send(piece, false); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// unmarked sends what was held without the byte order mark at its beginning: behind a
// comment of ours it is no longer at the beginning of the stream.
func unmarked(to func([]byte) error) func([]byte) error {
	begun := false
	return func(b []byte) error {
		if !begun {
			begun = true
			b = bytes.TrimPrefix(b, []byte(wire.ByteOrderMark))
		}
		return to(b)
	}
}

// switchOver takes the client's connection out of HTTP, as the upstream's has been:
// it sends the upstream's 101 with the headers that are ours, and hands over the
// connection and what the client had sent too early.
func switchOver(w http.ResponseWriter, upstream http.Header, shown []string) (net.Conn, []byte, error) {
	h := http.Header{}
	returnable(h, upstream, shown)
	maps.Copy(h, w.Header())
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	for _, name := range []string{"Content-Type", "Content-Length"} {
		delete(h, name)
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // the server's own may stand on it
	_, err = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	if err == nil {
		err = h.Write(rw)
	}
	if err == nil {
		_, err = rw.WriteString("\r\n")
	}
	if err == nil {
		err = rw.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	return conn, early, nil
}

// ended says whether the event that ends an answer has been read, and so sent: who
// leaves after it has taken the whole answer.
func ended(x *probe.Exchange) bool { return x.Reader() != nil && x.Reader().Terminal() }

// appendable says whether an event of ours may follow what went out: not behind the
// upstream's own error, if clients can see that, within a coding, or beyond an
// announced length.
func appendable(sent http.Header, x *probe.Exchange) bool {
	if x.Reader() == nil || sent.Get("Content-Encoding") != "" || sent.Get("Content-Length") != "" {
		return false
	}
	own := x.Reader().Erred()
	return own == nil || own.Unframed
}

// abort ends an answer so that nobody takes it for a whole one: HTTP/1.1 misses the
// last chunk then, and HTTP/2 resets the stream. For HTTP/1.0, which nginx speaks
// unless it is told otherwise, the connection's end is the body's, so that only a
// reset tells them apart.
func abort(w http.ResponseWriter, q *request) {
	if q.http10 {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			for outer, ok := conn.(interface{ NetConn() net.Conn }); ok; outer, ok = conn.(interface{ NetConn() net.Conn }) {
				conn = outer.NetConn() // under TLS, and whatever else counts it
			}
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // a plain close is all there is otherwise
			}
			conn.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// head writes the upstream's headers beside ours.
func head(dst http.Header, x *probe.Exchange, shown []string) {
	returnable(dst, x.Header, shown)
	if x.Status/100 == 2 && (x.Stream || x.Format() == wire.SSE) {
		// People run nginx in front, which would collect a stream.
		if field(dst, "X-Accel-Buffering") == "" {
			dst["X-Accel-Buffering"] = []string{"no"}
		}
		if field(dst, "Cache-Control") == "" {
			dst["Cache-Control"] = []string{"no-cache"}
		}
	}
}

// headOnly says whether a header has no business behind a body, where whoever merges it
// into the head would read the answer, or where it came from, in another way (RFC 9110,
// 6.5.1).
func headOnly(name string) bool {
	switch name {
	case "Host", "Authorization", "Www-Authenticate", "Cache-Control", "Age", "Expires", "Date", "Location", "Retry-After", "Vary", "Warning", "Pragma":
		return true
	}
	return strings.HasPrefix(name, "Content-") && name != "Content-Digest"
}

// trailers passes on what came after the body, but for what stops here.
func trailers(dst, upstream http.Header, shown []string) {
	if len(upstream) == 0 {
		return
	}
	passed := http.Header{}
	returnable(passed, upstream, shown)
	for name, values := range passed {
		if len(values) > 0 && !headOnly(name) {
			dst[http.TrailerPrefix+name] = values
		}
	}
}

// passEmbedded sends the error that an upstream hid in a 2xx answer: with the
// status it carries, else 400, in the dialect's envelope.
func passEmbedded(w http.ResponseWriter, f *probe.Failure, d wire.Dialect) (int, int64) {
	status := f.Embedded
	if status == 0 {
		status = http.StatusBadRequest
	}
	body := wire.Envelope(d, f.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	n, _ := w.Write(body) // a client that has left cannot be told
	return status, int64(n)
}
