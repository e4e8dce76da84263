package h1server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writeSize is how much of an answer is collected for one write.
	writeSize = 4 << 10
	// unframedSize is how much of a body is held whose length might still be known when
	// the handler is done.
	unframedSize = 2 << 10
	// sniffed is how much of a body tells its type.
	sniffed = 512
	// moment is how much too early a deadline may stand in any case. Whoever meets it waits
	// for the rest.
	moment = 100 * time.Millisecond
	// frameRoom is what a chunk needs beside its bytes: its length and two line ends.
	frameRoom = 16 + 4
)

var writeBuffers = sync.Pool{New: func() any { return new([writeSize]byte) }}

// errOver is what becomes of writes after the handler has returned.
var errOver = errors.New("h1server: the answer is over")

// A response is an answer on its way out: the http.ResponseWriter of one request.
type response struct {
	conn   *Conn
	url    url.URL
	body   body // the request's
	header http.Header

	status  int
	framed  bool  // the head is complete: it is known where the body ends
	chunked bool  // and that is where its last chunk does
	closing bool  // the connection ends with this answer
	bare    bool  // the status has no body
	trails  bool  // there will be trailers
	typed   bool  // the handler said what the body is, or that nobody shall guess
	dated   bool  // the handler said when
	length  int64 // of the body; -1 where nobody said
	written int64

	buffer   *[writeSize]byte // nil while nothing is in it
	n        int              // how much
	unframed []byte           // of the body, while framed is false
	parts    [3][]byte        // of one large write
	bufs     net.Buffers      // parts, as they go out
	by       time.Time        // the deadline for writes; zero = none
	err      error            // of a write; there is none after it
}

// Header implements http.ResponseWriter.
func (x *response) Header() http.Header { return x.header }

// WriteHeader implements http.ResponseWriter. A status of 1xx is sent at once, and
// another may follow it.
func (x *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("invalid WriteHeader code " + strconv.Itoa(status)) // as net/http does
	}
	if x.status != 0 {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		x.statusLine(status)
		x.fields()
		x.add("\r\n")
		x.flush()
		return
	}
	x.status = status
	x.bare = status == http.StatusSwitchingProtocols || status == http.StatusNoContent || status == http.StatusNotModified
	if values := x.header["Content-Length"]; len(values) > 0 {
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || len(values) > 1 || values[0][0] < '0' { // a sign
			delete(x.header, "Content-Length")
		} else {
			x.length = n
		}
	}
	_, x.typed = x.header["Content-Type"]
	_, x.dated = x.header["Date"]
	for _, v := range x.header["Connection"] {
		if hasClose(v) {
			x.closing = true
		}
	}
	if coding := x.header["Content-Encoding"]; len(coding) > 0 && coding[0] != "" {
		x.typed = true
	}
	x.statusLine(status)
	x.fields()
}

// hasClose says whether a Connection field has the option "close".
func hasClose(value string) bool {
	for option := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.TrimSpace(option), "close") {
			return true
		}
	}
	return false
}

func (x *response) statusLine(status int) {
	x.add("HTTP/1.1 ")
	var digits [3]byte
	x.add(string(strconv.AppendInt(digits[:0], int64(status), 10)))
	x.add(" ")
	if text := http.StatusText(status); text != "" {
		x.add(text)
	} else {
		x.add("status code ")
		x.add(strconv.Itoa(status))
	}
	x.add("\r\n")
}

// fields writes the handler's fields, names in order. How the body is framed, and what
// becomes of the connection, is ours to say.
func (x *response) fields() {
	var room [24]string
	names := room[:0]
	for name := range x.header {
		switch name {
		case "Transfer-Encoding", "Connection", "Trailer":
			continue
		case "Content-Length":
			if x.bare || x.status == 0 {
				continue
			}
		case "Content-Type":
			if x.status == http.StatusNotModified {
				continue
			}
		}
		if strings.HasPrefix(name, http.TrailerPrefix) {
			x.trails = true
			continue
		}
		if !token(name) {
			continue
		}
		at := len(names)
		names = append(names, name)
		for ; at > 0 && names[at-1] > name; at-- {
			names[at] = names[at-1]
		}
		names[at] = name
	}
	for _, name := range names {
		for _, value := range x.header[name] {
			x.field(name, value)
		}
	}
}

func (x *response) field(name, value string) {
	x.add(name)
	x.add(": ")
	x.add(oneLine(value))
	x.add("\r\n")
}

// token says whether a name may be a field's.
func token(name string) bool {
	for i := range len(name) {
		if wordRest[name[i]] == 0 {
			return false
		}
	}
	return name != ""
}

// oneLine is a value without what would end its line, and without space around it.
func oneLine(value string) string {
	plain := true
	for i := range len(value) {
		if c := value[i]; c == '\r' || c == '\n' {
			plain = false
			break
		}
	}
	if !plain {
		value = lineEnds.Replace(value)
	}
	if value == "" || value[0] > ' ' && value[len(value)-1] > ' ' {
		return value
	}
	return strings.Trim(value, " \t")
}

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ")

// frame completes the head: p is what the body begins with, all of it where whole is
// set.
func (x *response) frame(p []byte, whole bool) {
	x.framed = true
	if !x.closing && !x.body.discard() {
		x.closing = true
	}
	if !x.typed && !x.bare && len(p) > 0 {
		x.field("Content-Type", http.DetectContentType(p))
	}
	if !x.dated {
		x.add(date())
	}
	if x.closing || x.conn.server.going.Load() {
		x.closing = true
		x.add("Connection: close\r\n")
	}
	switch {
	case x.bare || x.length >= 0:
	case whole && !x.trails:
		x.length = int64(len(p))
		x.add("Content-Length: ")
		x.number(x.length, 10)
		x.add("\r\n")
	default:
		x.chunked = true
		x.add("Transfer-Encoding: chunked\r\n")
	}
	x.add("\r\n")
}

// A second is its Date field.
type second struct {
	unix int64
	line string
}

var lastSecond atomic.Pointer[second]

// date is the field for now.
func date() string {
	now := time.Now()
	if s := lastSecond.Load(); s != nil && s.unix == now.Unix() {
		return s.line
	}
	s := &second{now.Unix(), "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
	lastSecond.Store(s)
	return s.line
}

// Write implements http.ResponseWriter. Small pieces are collected until Flush.
func (x *response) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	switch {
	case x.err != nil:
		return 0, x.err
	case len(p) == 0:
		return 0, nil
	case x.bare:
		return 0, http.ErrBodyNotAllowed
	}
	if x.written += int64(len(p)); x.length >= 0 && x.written > x.length {
		return 0, http.ErrContentLength // and the answer is broken, whatever follows
	}
	if !x.framed && (x.length < 0 || !x.typed) && len(x.unframed)+len(p) <= unframedSize {
		x.unframed = append(x.unframed, p...)
		return len(p), nil
	}
	x.release(p)
	x.piece(p)
	if x.err != nil {
		return 0, x.err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (x *response) WriteString(s string) (int, error) { return x.Write([]byte(s)) }

// ReadFrom implements io.ReaderFrom, so that nobody thinks it has to make a buffer.
func (x *response) ReadFrom(r io.Reader) (n int64, err error) {
	b := writeBuffers.Get().(*[writeSize]byte)
	defer writeBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{x}, r, b[:])
}

// release frames a body that goes on, and sends on what was held of it.
func (x *response) release(next []byte) {
	if x.framed {
		return
	}
	held := x.unframed
	x.unframed = nil
	if len(held) > 0 && !x.typed {
		next = append(held, next[:min(len(next), sniffed)]...)
	}
	x.frame(next, false)
	if len(held) > 0 {
		x.piece(held)
	}
}

// piece adds a piece of the body.
func (x *response) piece(p []byte) {
	if len(p)+frameRoom <= writeSize-x.n {
		if x.chunked {
			x.number(int64(len(p)), 16)
			x.add("\r\n")
		}
		x.n += copy(x.room()[x.n:], p)
		if x.chunked {
			x.add("\r\n")
		}
		return
	}
	if x.chunked {
		x.number(int64(len(p)), 16)
		x.add("\r\n")
	}
	// One write for what was collected and what is too large to be.
	parts := append(x.parts[:0], x.room()[:x.n], p)
	if x.chunked {
		parts = append(parts, headEnd[:2])
	}
	x.n = 0
	if x.err == nil {
		x.bufs = parts
		x.bound()
		_, err := x.bufs.WriteTo(x.conn.out)
		if early(err, x.by) {
			x.within(x.by)
			_, err = x.bufs.WriteTo(x.conn.out)
		}
		x.failed(err)
	}
	clear(x.parts[:])
	x.giveBack()
}

// number adds a number.
func (x *response) number(n int64, base int) {
	if x.n+frameRoom > writeSize {
		x.flush()
	}
	b := x.room()
	x.n = len(strconv.AppendInt(b[:x.n], n, base))
}

// add adds a text, and sends what was collected where there is no room for it.
func (x *response) add(s string) {
	for {
		n := copy(x.room()[x.n:], s)
		x.n += n
		if s = s[n:]; s == "" {
			return
		}
		x.flush()
	}
}

// room is the buffer.
func (x *response) room() *[writeSize]byte {
	if x.buffer == nil {
		x.buffer = writeBuffers.Get().(*[writeSize]byte)
	}
	return x.buffer
}

func (x *response) giveBack() {
	if x.buffer != nil {
		writeBuffers.Put(x.buffer)
		x.buffer = nil
	}
}

// flush sends what was collected.
func (x *response) flush() {
	if x.n > 0 && x.err == nil {
		x.bound()
		n, err := x.conn.Conn.Write(x.buffer[:x.n])
		if early(err, x.by) {
			x.within(x.by)
			_, err = x.conn.Conn.Write(x.buffer[n:x.n])
		}
		x.failed(err)
	}
	x.n = 0
	x.giveBack()
}

// failed notes the end of a connection that takes nothing any more.
func (x *response) failed(err error) {
	if err == nil {
		return
	}
	x.err = err
	x.conn.mu.Lock()
	cancel := x.conn.cancel
	x.conn.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// Flush implements http.Flusher.
func (x *response) Flush() { _ = x.FlushError() }

// FlushError is what http.ResponseController calls.
func (x *response) FlushError() error {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.release(nil)
	x.flush()
	return x.err
}

// SetReadDeadline is what http.ResponseController calls.
func (x *response) SetReadDeadline(t time.Time) error {
	x.body.until(t)
	return nil
}

// SetWriteDeadline is what http.ResponseController calls. It takes hold with the next
// write, since most are set and taken away around one that never waits.
func (x *response) SetWriteDeadline(t time.Time) error {
	x.by = t
	return nil
}

// bound sees to the deadline of a write that is about to begin.
func (x *response) bound() {
	if early := x.by.Sub(x.conn.within); early >= 0 && early < moment {
		return // as good as there; or there is none, nor any wanted
	}
	patience := time.Duration(0)
	if !x.by.IsZero() {
		patience = time.Until(x.by)
	}
	if !near(x.conn.within, x.by, patience) {
		x.within(x.by)
	}
}

// within moves the deadline of writes.
func (x *response) within(t time.Time) {
	x.conn.within = t
	_ = x.conn.Conn.SetWriteDeadline(t)
}

// finish sends what is left of the answer, and says whether all of it went out and the
// connection tells where it ends.
func (x *response) finish() (whole bool) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if !x.framed {
		held := x.unframed
		x.unframed = nil
		x.frame(held, true)
		if len(held) > 0 {
			x.piece(held)
		}
	}
	if x.chunked {
		x.add("0\r\n")
		x.trailers()
		x.add("\r\n")
	}
	x.flush()
	return x.err == nil && (x.bare || x.length < 0 || x.written == x.length)
}

// trailers writes the fields that the handler has named with http.TrailerPrefix.
func (x *response) trailers() {
	for name, values := range x.header {
		name, is := strings.CutPrefix(name, http.TrailerPrefix)
		if !is || !token(name) {
			continue
		}
		for _, value := range values {
			x.field(http.CanonicalHeaderKey(name), value)
		}
	}
}
