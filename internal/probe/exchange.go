package probe

import (
	"io"
	"net/http"
	"strings"
	"time"

	"understudy/internal/held"
	"understudy/internal/wire"
)

// Ending is how a released answer ended.
type Ending uint8

// The endings of a released answer.
const (
	// Open: it has not ended yet.
	Open Ending = iota
	// Whole: every byte that belongs to it was read.
	Whole
	// UpstreamError: the upstream's own error came after release; what it sent is
	// complete and is passed on as it is.
	UpstreamError
	// Broken: it was cut, fell silent or ended without its terminal event; it must
	// never reach the client as if it were whole.
	Broken
)

// An Exchange is an answer that may be released: its head and the bytes held so
// far, and the rest that is still on the wire. It owns the response body; whoever
// holds the Exchange closes it.
type Exchange struct {
	// Status and Header are the upstream's, the header without Content-Encoding
	// and Content-Length where the client gets decoded bytes, and without the length
	// where the end of the answer is still to be judged.
	Status int
	Header http.Header
	// Stream says that the client asked for a stream and gets one.
	Stream bool
	// FirstByte and FirstContent are when the body's first byte and its first
	// content were read; zero = never.
	FirstByte, FirstContent time.Time

	clock   *Clock
	resp    *http.Response
	src     *source
	reader  *wire.Reader // nil where the body is not read, only passed on
	held    spool
	full    bool   // the disk takes no more of it, or the memory
	text    []byte // what is held, decoded, where the client gets it coded
	size    int64  // decoded bytes read
	pending error  // what the last read before release said besides its bytes
	ending  Ending
	err     error
	closed  bool
	cut     func() bool   // Ask.Cut
	behind  time.Duration // for which nothing but bytes without an event came behind the terminal one
	useless bool          // in a coding that neither the client nor anybody here reads

	share   *held.Share // where what is held counts
	counted int64       // bytes of it
	windows int64       // bytes that undoing its codings may take

	progress *Progress // nil = nobody wants to know
	kept     *Kept     // nil = nobody wants the body

	proved, announced bool      // delivery complete: it is good; the holding was told
	events            int       // delivery complete: so many have come
	spoke             time.Time // and the last one of them then
}

// SendHeld gives the bytes to send first, in order, and forgets them. They are
// valid during the call only. An error is the receiver's, or the disk's.
func (x *Exchange) SendHeld(to func([]byte) error) error {
	err := x.held.send(to)
	x.held.drop()
	x.count()
	return err
}

// ShowHeld gives the bytes that SendHeld will send, and forgets none of them.
func (x *Exchange) ShowHeld(to func([]byte) error) error { return x.held.send(to) }

// HeldBytes is how many bytes SendHeld would give.
func (x *Exchange) HeldBytes() int64 { return x.held.len() }

// Done says that what is held is all there is: nothing is left to read.
func (x *Exchange) Done() bool { return x.ending != Open }

// Ending says how the answer ended; Open while it has not.
func (x *Exchange) Ending() Ending { return x.ending }

// Err says what broke the answer; nil unless Ending is Broken.
func (x *Exchange) Err() error { return x.err }

// Clock runs the attempt's budgets.
func (x *Exchange) Clock() *Clock { return x.clock }

// Usage is what the answer reported so far.
func (x *Exchange) Usage() wire.Usage {
	if x.reader == nil {
		return wire.NoUsage()
	}
	return x.reader.Usage()
}

// Format is how the answer's bytes are framed, as far as they were read.
func (x *Exchange) Format() wire.Format {
	if x.reader == nil {
		return wire.Opaque
	}
	return x.reader.Open().Format
}

// Reader is the dialect's reader of this answer; nil where nobody reads it.
func (x *Exchange) Reader() *wire.Reader { return x.reader }

// Trailer are the trailers that came after the body; empty before its end.
func (x *Exchange) Trailer() http.Header { return x.resp.Trailer }

// Next returns the next bytes for the client, valid until the following call. At
// the end it returns io.EOF, and Ending says which end it was.
func (x *Exchange) Next() ([]byte, error) {
	if x.ending != Open {
		return nil, io.EOF
	}
	if x.pending != nil {
		return nil, x.finish(x.pending)
	}
	behind := x.reader != nil && x.reader.Finished()
	var began time.Time
	if behind {
		began = time.Now()
	}
	x.clock.Heard()
	out, plain, err := x.src.next()
	x.clock.Rest()
	x.take(plain)
	if behind && err == nil && x.lingers(time.Since(began)) {
		err = ErrStalled
	}
	if err != nil {
		// The bytes that came with the error go out first.
		if len(out) > 0 {
			x.pending = err
			return out, nil
		}
		return nil, x.finish(err)
	}
	return out, nil
}

// lingers says that an upstream has gone on for too long, behind what may end its answer,
// with what is no event: for as long, in all, as it may be silent. Pings would keep the
// client for ever. Some say in every event that it ends, which is not the end then. Where
// the time is up in the middle of a ping, that may end first.
func (x *Exchange) lingers(more time.Duration) bool {
	if n := x.reader.Events(); n != x.events {
		x.events, x.behind = n, 0
		return false
	}
	x.behind += more
	idle := x.clock.idle()
	return idle > 0 && (x.behind > idle && x.reader.Terminal() || x.behind > 2*idle)
}

// take lets the reader see decoded bytes.
func (x *Exchange) take(plain []byte) {
	if len(plain) == 0 {
		return
	}
	x.size += int64(len(plain))
	if x.FirstByte.IsZero() {
		x.FirstByte = time.Now()
	}
	if x.kept != nil {
		x.kept.add(plain)
	}
	if x.reader == nil {
		return
	}
	x.reader.Feed(plain)
	x.count()
	if x.FirstContent.IsZero() && x.reader.Started() {
		x.FirstContent = time.Now()
		x.clock.Said()
	}
	if x.progress != nil {
		x.progress.note(x.reader, time.Now())
	}
}

// finish decides how the answer ended, after err ended its body. It returns io.EOF.
func (x *Exchange) finish(err error) error {
	x.ending = x.judgeEnd(err)
	if x.ending == Broken && x.err == nil {
		x.err = err
	}
	return io.EOF
}

func (x *Exchange) judgeEnd(err error) Ending {
	if err != io.EOF {
		// What breaks behind the end takes nothing away, unless the client was told a
		// length and would wait for it.
		if x.reader != nil && x.reader.Terminal() && x.Header.Get("Content-Length") == "" {
			return Whole
		}
		return Broken
	}
	if x.reader == nil {
		if x.truncated() {
			x.err = errTruncated
			return Broken
		}
		return Whole
	}
	last := x.reader.Finished() && !x.reader.Over()
	x.reader.End()
	switch {
	case x.cutInside():
		x.err = unfinished("the connection ended inside of a JSON document")
		return Broken
	case last && x.reader.Cut() && x.untilClose():
		x.err = unfinished("the connection ended inside of an event")
		return Broken
	}
	switch {
	case x.reader.Verdict() != wire.Erred && x.truncated() && !x.reader.Terminal():
		x.err = errTruncated
		return Broken
	case x.reader.Verdict() != wire.Erred:
		return Whole
	case x.reader.Erred() != nil && !x.reader.Erred().Unframed:
		return UpstreamError
	}
	x.err = unfinished(x.reader.Why())
	return Broken
}

// untilClose says whether the connection's end is all that ends this body: HTTP/1
// without a length and without chunks.
func (x *Exchange) untilClose() bool {
	r := x.resp
	return r.ContentLength < 0 && len(r.TransferEncoding) == 0 && r.ProtoMajor == 1 && !r.Uncompressed
}

// truncated says whether that end was one that anybody on the way could have made,
// though TLS is to tell (RFC 8446, 6.1; RFC 9112, 9.8). A content coding has an end of
// its own.
func (x *Exchange) truncated() bool {
	return x.cut != nil && x.untilClose() && x.src.coding == "" && x.cut()
}

// cutInside says whether the connection's end, which is all that ends this body, came
// inside of its JSON: whoever is not judged by content is judged by that.
func (x *Exchange) cutInside() bool {
	if !x.untilClose() {
		return false
	}
	open := x.reader.Open()
	types := x.resp.Header["Content-Type"]
	if open.Format != wire.JSON || !open.Inside || len(types) == 0 {
		return false
	}
	media, _, _ := strings.Cut(strings.ToLower(types[0]), ";")
	media = strings.TrimSpace(media)
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

const errTruncated = unfinished("the TLS connection was cut: it ended without a close_notify")

// unfinished is a body that ended in good order, but not by what ends an answer.
type unfinished string

func (u unfinished) Error() string { return string(u) }

// Close gives the connection back, or ends it where the body was not read to its
// end. It may be called more than once; what is held is gone after it.
func (x *Exchange) Close() {
	if x.closed {
		return
	}
	x.closed = true
	x.held.drop()
	x.share.Give(x.counted)
	x.counted = 0
	x.src.close()
	x.clock.Cancel(nil)
}
