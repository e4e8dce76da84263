package drill

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Framing says how the end of a body is told: a length in bytes (0 or more), or
// one of the two below.
type Framing int64

const (
	// Chunked sends every Chunk as one, and End the last one.
	Chunked Framing = -1
	// UntilClose announces nothing; the end of the connection ends the body.
	UntilClose Framing = -2
)

// Length returns the framing of a body of n bytes.
func Length(n int) Framing { return Framing(n) }

// Ending is a way for an answer to stop.
type Ending uint8

const (
	// Clean ends the body as its framing demands.
	Clean Ending = iota
	// FIN closes the connection where it stands.
	FIN
	// RST resets the connection where it stands.
	RST
	// Hang says nothing more until the peer leaves.
	Hang
)

func (e Ending) String() string {
	return [...]string{"clean end", "FIN", "RST", "silence"}[e]
}

// Wire is what a Script answers with: one connection, for the time of one answer.
// Every write goes out at once, as one write of its own. After the peer has left,
// or the Upstream was closed, all methods return at once and do nothing; Pause and
// its relatives say so, so that endless scripts end by looping on them. A Wire
// belongs to the goroutine its Script runs in.
type Wire struct {
	u  *Upstream
	c  net.Conn
	br *bufio.Reader

	head    bool // the request was a HEAD
	err     error
	begun   bool // Head was called
	raw     bool // Raw was called
	none    bool // the answer has no body
	ended   bool
	framing Framing
	sent    int64
	die     Ending // Clean: the connection lives on
	harm    *harming
	record  func([]byte)
	overrun bool // bytes of a next request were thrown away
}

// Head sends a status line, a Date, the given header names and values in turn, and
// what the framing needs. It panics on an odd number of strings.
func (w *Wire) Head(status int, framing Framing, header ...string) {
	w.harm.interims(w)
	framing, header = w.harm.framing(framing), w.harm.header(header)
	w.begun, w.framing = true, framing
	w.none = w.head || status == http.StatusNoContent || status == http.StatusNotModified
	w.write(headBytes(status, framing, header))
}

func headBytes(status int, framing Framing, header []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, reason(status))
	dated := false
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
		dated = dated || strings.EqualFold(header[i], "Date")
	}
	if !dated {
		fmt.Fprintf(&b, "Date: %s\r\n", time.Now().UTC().Format(http.TimeFormat))
	}
	switch {
	case status == http.StatusNoContent:
	case framing == Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case framing == UntilClose:
		b.WriteString("Connection: close\r\n")
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", framing)
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// reason returns the phrase of a status line; vendors use statuses that no
// registry has.
func reason(status int) string {
	if status == 529 {
		return "Overloaded"
	}
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Unknown"
}

// Interim sends a 1xx answer, which is no answer yet.
func (w *Wire) Interim(status int, header ...string) {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, reason(status))
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	b.WriteString("\r\n")
	w.write([]byte(b.String()))
}

// Chunk sends a piece of the body, as one chunk where the answer is chunked. An
// empty piece sends nothing.
func (w *Wire) Chunk(p []byte) {
	if len(p) == 0 || w.none {
		return
	}
	w.piece(w.harm.pack(p))
}

// piece sends a piece of the body as it is, framed.
func (w *Wire) piece(p []byte) {
	if len(p) == 0 {
		return
	}
	from := w.sent
	w.sent += int64(len(p))
	if w.framing == Chunked {
		p = fmt.Appendf(nil, "%s\r\n%s\r\n", w.harm.size(from, len(p)), p)
	}
	w.write(p)
}

// Raw sends bytes as they are, outside any framing. An answer sent by Raw alone
// leaves the connection open when the script returns.
func (w *Wire) Raw(p []byte) {
	w.raw = true
	w.write(p)
}

// End ends the body: with the last chunk, and the trailer given as names and
// values in turn, where the answer is chunked; with a FIN where the framing wants
// one or less was sent than announced.
func (w *Wire) End(trailer ...string) {
	if w.ended {
		return
	}
	switch {
	case w.none:
	case w.framing == Chunked:
		w.piece(w.harm.rest())
		var b strings.Builder
		b.WriteString("0\r\n")
		for i := 0; i < len(trailer); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", trailer[i], trailer[i+1])
		}
		b.WriteString("\r\n")
		w.write([]byte(b.String()))
		if w.harm.is(BadChunk) && w.harm.done {
			w.FIN()
		}
	case w.framing == UntilClose, w.sent < int64(w.framing):
		w.FIN()
	}
	w.ended = true
}

// JSON sends a whole JSON answer in one write.
func (w *Wire) JSON(status int, body []byte, header ...string) {
	w.whole(status, "application/json", body, header...)
}

// whole sends a whole answer of known length in one write.
func (w *Wire) whole(status int, contentType string, body []byte, header ...string) {
	header = append([]string{"Content-Type", contentType}, header...)
	if w.harm != nil {
		w.Head(status, Length(len(body)), header...)
		w.Chunk(body)
		w.End()
		return
	}
	w.begun, w.framing, w.sent = true, Length(len(body)), int64(len(body))
	out := headBytes(status, w.framing, header)
	if w.none = w.head; !w.none {
		out = append(out, body...)
	}
	w.write(out)
	w.End()
}

// SSE sends a whole chunked event stream: a frame per chunk, gap apart, and the
// end.
func (w *Wire) SSE(frames [][]byte, gap time.Duration) {
	w.Head(http.StatusOK, Chunked, "Content-Type", "text/event-stream")
	w.chunks(frames, gap)
	w.End()
}

// chunks sends a chunk per frame, gap apart.
func (w *Wire) chunks(frames [][]byte, gap time.Duration) {
	for i, f := range frames {
		if i > 0 && gap > 0 && !w.Pause(gap) {
			return
		}
		w.Chunk(f)
	}
}

// Stop ends the answer in the given way.
func (w *Wire) Stop(how Ending) {
	switch how {
	case Clean:
		w.End()
	case FIN:
		w.FIN()
	case RST:
		w.Reset()
	case Hang:
		w.Silence()
	}
}

// FIN closes the connection in good order: the peer reads what was sent, then the
// end.
func (w *Wire) FIN() {
	if half, ok := w.c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	w.hangUp()
}

// Reset closes the connection with a TCP RST: SO_LINGER 0 on a socket, the Reset
// method of a connection that has one, a plain close elsewhere. What the peer's
// system has not taken yet is lost.
func (w *Wire) Reset() {
	resetNext(w.c)
	w.hangUp()
}

// ResetConn closes c, a connection of an Upstream, with an RST.
func ResetConn(c net.Conn) {
	resetNext(c)
	c.Close()
}

// resetNext makes closing c an RST.
func resetNext(c net.Conn) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // a *tls.Conn
		c = t.NetConn()
	}
	switch c := c.(type) {
	case *net.TCPConn:
		c.SetLinger(0)
	case interface{ Reset() error }:
		c.Reset()
	}
}

func (w *Wire) hangUp() {
	if w.err == nil {
		w.err = net.ErrClosed
	}
	w.c.Close()
}

// DieNext makes the connection die unseen: it is kept open after this answer, and
// closed by FIN or RST when the next request comes on it, which no script gets and
// nobody records.
func (w *Wire) DieNext(how Ending) { w.die = how }

// Pause waits for d and reports whether the peer is still there.
func (w *Wire) Pause(d time.Duration) bool { return !w.Gone(d) }

// Gone waits until the peer leaves, at most for limit, and reports whether it did.
// It also reports true when the Upstream is closed. A peer that has closed only
// its sending side counts as gone.
func (w *Wire) Gone(limit time.Duration) bool {
	if w.err != nil {
		return true
	}
	w.c.SetReadDeadline(time.Now().Add(limit))
	defer w.c.SetReadDeadline(time.Time{})
	return !w.watch()
}

// Silence says nothing until the peer leaves or the Upstream is closed.
func (w *Wire) Silence() {
	if w.err == nil {
		w.watch()
	}
}

// Wait waits until ch is closed or has a value, and reports whether the peer is
// still there then. It returns early when the peer leaves.
func (w *Wire) Wait(ch <-chan struct{}) bool {
	if w.err != nil {
		return false
	}
	here := make(chan bool, 1)
	go func() { here <- w.watch() }()
	select {
	case ok := <-here:
		return ok
	case <-ch:
		w.c.SetReadDeadline(time.Unix(1, 0))
		defer w.c.SetReadDeadline(time.Time{})
		return <-here
	}
}

// watch waits for the peer to leave, until the read deadline; true if it is still
// there. Bytes that come are left for later reading.
func (w *Wire) watch() bool {
	for {
		_, err := w.br.Peek(w.br.Buffered() + 1)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true
		case errors.Is(err, bufio.ErrBufferFull):
			// The peer pipelines more than anybody will read; only its leaving matters.
			w.br.Discard(w.br.Buffered())
			w.overrun = true
		default:
			w.fail(err)
			return false
		}
	}
}

// Read reads what the peer sends after its request, for scripts that have answered
// with 101.
func (w *Wire) Read(p []byte) (int, error) { return w.br.Read(p) }

// Err returns why nothing can be sent any more, nil while it can.
func (w *Wire) Err() error { return w.err }

func (w *Wire) write(p []byte) {
	if w.err != nil {
		return
	}
	if w.harm != nil {
		if p = w.harm.strike(w, p); len(p) == 0 {
			return
		}
	}
	w.send(p)
}

// send sends bytes that have come to what harm they may.
func (w *Wire) send(p []byte) {
	if w.err != nil || len(p) == 0 {
		return
	}
	if w.record != nil {
		w.record(p)
	}
	if _, err := w.c.Write(p); err != nil {
		w.fail(err)
	}
}

// fail notes that the peer has left before the answer was done.
func (w *Wire) fail(err error) {
	if w.err == nil {
		w.err = err
		if !w.ended {
			w.u.lost()
		}
	}
}

// finish looks at what the script left, and reports whether the connection can
// carry another request.
func (w *Wire) finish(r Request) bool {
	if w.err != nil {
		return false
	}
	done := w.ended || w.none || w.begun && w.framing >= 0 && w.sent >= int64(w.framing)
	if !w.begun {
		done = w.raw
	}
	if !done || w.overrun || w.framing == UntilClose || strings.EqualFold(r.Get("Connection"), "close") {
		w.FIN()
		return false
	}
	if w.die == Clean {
		return true
	}
	// The peer believes the connection to be alive until it has used it.
	if w.die == FIN {
		// Read to the end: closing with bytes unread would be a reset.
		if _, err := readRequest(w.br, w.c); err == nil {
			w.FIN()
		}
		return false
	}
	if _, err := w.br.Peek(1); err == nil {
		w.Reset()
	}
	return false
}
