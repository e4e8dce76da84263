package probe

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/internal/held"
	"understudy/internal/wire"
)

// rulesBody is how much of a body rules may look into.
const rulesBody = 1 << 20

// An Ask is what the client asked for, as far as judging the answer depends on it.
type Ask struct {
	// Want is handed to the dialect's reader.
	Want wire.Want
	// Method is the request's.
	Method string
	// AcceptEncoding is the client's own header: a coding it allows is passed on
	// as it came.
	AcceptEncoding []string
	// Delivery is how long a healthy stream is held beyond the proof that it is.
	Delivery Delivery
	// Progress is told what the answer says; nil = nobody wants to know.
	Progress *Progress
	// Share is where what is held of the answer counts; where it may not grow the
	// answer is released as soon as it may be, as at the bound on what is held.
	Share *held.Share
	// Cut says, once the answer's connection has ended, that it did so without the word
	// that TLS has for it, so that somebody on the way may have cut it; nil = nobody can
	// tell.
	Cut func() bool
	// Keep collects the body, as far as anybody here can read it; nil = nobody wants it.
	Keep *Kept
}

// A Delivery holds a stream for longer than it takes to prove good. The zero
// Delivery holds it no longer.
type Delivery struct {
	// Complete holds it until its terminal event, or its end.
	Complete bool
	// Mute is how long a stream that proved good may show no event and be held on:
	// comments and pings alone keep it alive for ever. 0 = no bound.
	Mute time.Duration
	// Window holds it for that long after it proved good.
	Window time.Duration
	// Memory is how many of the held bytes stay in memory, Limit how many are held
	// at all; beyond it the stream is released.
	Memory, Limit int64
	// Holding is called once when bytes of an event stream begin to be held; nil =
	// nobody wants to know.
	Holding func()
	// Proved is called once when the answer has shown to be good and is held all the
	// same; nil = nobody wants to know.
	Proved func()
}

// Judge reads an answer until it may be released or has failed; exactly one of
// its results is not nil. It owns resp.Body from here on: closing the Exchange, or
// the Failure, closes it. A failed attempt's context is cancelled unless the
// failure holds its answer.
func Judge(clock *Clock, resp *http.Response, ask *Ask, budget *Budget) (*Exchange, *Failure) {
	clock.Heard()
	x := open(clock, resp, ask)
	delivery := &ask.Delivery
	if !ask.Want.Stream || !ask.Want.Judged {
		delivery = new(Delivery)
	}
	x.held.memory = delivery.Memory
	if resp.StatusCode < http.StatusOK {
		// Nobody asked for another protocol: its bytes have no end, and net/http
		// lets no clock end the reading of them. Below 100 there is no status that
		// could be passed on.
		x.Close()
		return nil, &Failure{Kind: Status, Phase: Header, Status: x.Status, Fault: wire.FaultServer, Text: strings.TrimSpace(strconv.Itoa(x.Status)+" "+http.StatusText(x.Status)) + ", which was not asked for"}
	}
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified {
		return nil, x.timed(x.refused(budget))
	}
	if bodyless(resp.StatusCode, ask.Method) {
		x.reader, x.ending = nil, Whole
		if resp.StatusCode == http.StatusResetContent {
			x.Header.Del("Content-Length") // a client would wait for a body that does not go out
		}
		return x, nil
	}
	if x.useless {
		x.Close()
		return nil, &Failure{Kind: BadStream, Phase: Probe, Status: x.Status, Fault: wire.FaultServer, Text: "a content coding that was not asked for and that nobody here can undo"}
	}
	for {
		if failure, done := x.read(budget.Hold, delivery); failure != nil {
			return nil, x.timed(failure)
		} else if done {
			if ask.Want.Judged {
				x.unmeasured()
			}
			return x, nil
		}
	}
}

// timed notes in a failure how far its answer had come.
func (x *Exchange) timed(f *Failure) *Failure {
	f.FirstByte, f.FirstContent = x.FirstByte, x.FirstContent
	return f
}

// unmeasured drops the announced length of an answer whose end may still be found
// wanting: once all of those bytes were there, nothing could tell a client that they
// are not the whole answer.
func (x *Exchange) unmeasured() {
	if x.reader != nil && x.ending != Whole && x.Format() != wire.Opaque {
		x.Header.Del("Content-Length")
	}
}

// open prepares the reading of an answer.
func open(clock *Clock, resp *http.Response, ask *Ask) *Exchange {
	x := &Exchange{Status: resp.StatusCode, Header: resp.Header, Stream: ask.Want.Stream, clock: clock, resp: resp, progress: ask.Progress, kept: ask.Keep, share: ask.Share, cut: ask.Cut}
	codings := codingsOf(resp.Header["Content-Encoding"])
	allowed := allows(ask.AcceptEncoding, codings)
	if !decodable(codings) {
		// Nobody here can read it, so it is passed on unread: what is not
		// understood is never failed, unless it is of no use to the client either.
		x.src = newSource(resp.Body, "", true, clock.Stirred)
		x.useless, x.kept = !allowed && ask.Want.Judged, nil
		return x
	}
	coding := strings.Join(codings, ",")
	plain := coding == "" || !allowed
	if coding != "" && plain {
		x.Header = resp.Header.Clone()
		x.Header.Del("Content-Encoding")
		x.Header.Del("Content-Length")
	}
	x.src = newSource(resp.Body, coding, plain, clock.Stirred)
	for _, name := range codings {
		if name == "br" || name == "zstd" {
			x.windows += wire.MaxWindow
		}
	}
	want := ask.Want
	if types := resp.Header["Content-Type"]; len(types) > 0 {
		want.ContentType = types[0]
	}
	x.reader = wire.NewReader(want)
	return x
}

// read reads once and judges, with so many bytes held at most before release; 0 = no
// bound: a failure, or done when the answer may be released.
func (x *Exchange) read(hold int64, d *Delivery) (_ *Failure, done bool) {
	out, plain, err := x.src.next()
	x.hold(out, plain)
	x.take(plain)
	if err != nil && x.clock.Context().Err() != nil && (x.reader == nil || !x.reader.Terminal()) {
		// Its time was up, or it was given up, while nobody had seen a byte. A decoder
		// gives what it had withheld along with the news, and that proves nothing.
		return x.broke(err), false
	}
	if x.reader == nil {
		// Unreadable bytes are released with the first one.
		if len(out) > 0 || err == io.EOF {
			return nil, x.release(err)
		}
		return nil, false
	}
	if d.Complete && !x.full {
		return x.complete(out, err, d)
	}
	if _, ok := x.reader.Release(); ok {
		if d.Window > 0 && err == nil && !x.reader.Over() && x.reader.Verdict() != wire.Erred {
			return x.window(d)
		}
		return nil, x.release(err)
	}
	switch {
	case x.reader.Verdict() == wire.Erred:
		return x.sick(), false
	case err == io.EOF:
		return x.ended()
	case err != nil:
		return x.broke(err), false
	case x.full || hold > 0 && x.size >= hold:
		return nil, x.release(nil)
	}
	return nil, false
}

// release lets the answer go; err is what came along with its last bytes.
func (x *Exchange) release(err error) bool {
	x.pending = err
	if err == io.EOF {
		x.finish(err)
		x.pending = nil
	}
	return true
}

// ended judges an answer that was read to a clean end without being released.
func (x *Exchange) ended() (*Failure, bool) {
	x.finish(io.EOF)
	if x.reader.Verdict() == wire.Erred {
		return x.sick(), false
	}
	if x.ending == Broken {
		f := &Failure{Kind: BadStream, Phase: Probe, Status: x.Status, Fault: wire.FaultServer, Text: x.err.Error(), Body: x.readable(), Usage: x.usage()}
		x.Close()
		return f, false
	}
	if _, ok := x.reader.Release(); ok || x.reader.Verdict() == wire.Healthy {
		return nil, true
	}
	if x.reader.Verdict() == wire.Empty {
		f := &Failure{Kind: BadStream, Phase: Probe, Status: x.Status, Fault: wire.FaultServer, Text: x.reader.Why(),
			Empty: true, WellFormed: x.reader.WellFormed(), Body: x.readable(), Usage: x.usage()}
		if f.WellFormed {
			x.ending = Whole
			f.Held = x
		} else {
			x.Close()
		}
		return f, false
	}
	return x.sick(), false
}

// sick makes the failure of a 2xx answer that proved bad.
func (x *Exchange) sick() *Failure {
	f := &Failure{Kind: BadStream, Phase: Probe, Status: x.Status, Fault: wire.FaultServer, Text: x.reader.Why(), Usage: x.usage()}
	if e := x.reader.Erred(); e != nil {
		f.Body, f.Errored = e.Raw, true
		f.explain(x.Status, x.resp.Header, time.Now())
		if f.Embedded = e.Status; f.Embedded == 0 && f.Status >= 400 {
			f.Embedded = f.Status
		}
		f.Status = x.Status
	} else {
		if x.reader.Open().Format == wire.HTML {
			f.Page = true
			x.readPage()
		}
		f.Body = x.readable()
	}
	x.Close()
	return f
}

// pageTime bounds how long the rest of a page is waited for.
const pageTime = time.Second

// readPage reads the rest of a page of HTML, so that what rules find in it does not
// depend on where its packets end. The verdict stands already.
func (x *Exchange) readPage() {
	late := time.AfterFunc(pageTime, func() { x.clock.Cancel(nil) })
	defer late.Stop()
	for x.held.len() < rulesBody {
		out, plain, err := x.src.next()
		if x.hold(out, plain); err != nil {
			return
		}
	}
}

// broke makes the failure of an answer whose body could not be read.
func (x *Exchange) broke(err error) *Failure {
	f := Classify(x.clock.Context(), Probe, err)
	f.Status, f.Usage = 0, x.usage()
	x.Close()
	return f
}

// usage is what a failed answer reported, nil without a report.
func (x *Exchange) usage() *wire.Usage {
	if x.reader == nil {
		return nil
	}
	u := x.reader.Usage()
	if u == wire.NoUsage() {
		return nil
	}
	return &u
}

// refused reads the body of an answer whose status says failure, and makes the
// failure. A body that cannot be read whole leaves nothing to pass on, but the
// status stands.
func (x *Exchange) refused(budget *Budget) *Failure {
	x.reader = nil
	var err error
	for err == nil && !x.full && (budget.Hold <= 0 || x.size < budget.Hold) {
		var out, plain []byte
		out, plain, err = x.src.next()
		x.hold(out, plain)
		x.take(plain)
	}
	f := &Failure{Kind: Status, Phase: Header, Status: x.Status, Body: x.readable(),
		Text: strings.TrimSpace(strconv.Itoa(x.Status) + " " + http.StatusText(x.Status))}
	f.explain(x.Status, x.resp.Header, time.Now())
	f.Status = x.Status
	if err != nil && err != io.EOF || err == io.EOF && x.truncated() && !wire.WholeJSON(f.Body) {
		x.Close()
		return f
	}
	if err == io.EOF {
		x.cut = nil // it is whole
		x.finish(err)
	}
	x.clock.Release(budget.Stall)
	f.Held = x
	return f
}

// explain takes over what the wire says of an error.
func (f *Failure) explain(status int, header http.Header, now time.Time) {
	e := wire.Explain(status, header, f.Body, now)
	f.Status, f.Fault, f.Message = e.Status, e.Fault, e.Message
	f.RetryAfter, f.HasRetryAfter = e.RetryAfter, e.HasRetryAfter
	if f.Code = e.Code; f.Code == "" {
		f.Code = e.Type
	}
}

// bodyless says whether an answer has no body by HTTP's own rules (RFC 9110).
func bodyless(status int, method string) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusResetContent || status == http.StatusNotModified
}

// hold keeps bytes for the client, and where those are coded their text for rules.
// Where the disk takes no more the answer is held no longer than it must be.
func (x *Exchange) hold(out, plain []byte) {
	if len(out) > 0 {
		x.clock.Heard()
	}
	if room := rulesBody - len(x.text); x.src.asCoded() && room > 0 {
		x.text = append(x.text, plain[:min(room, len(plain))]...)
	}
	x.full = x.held.add(out) != nil || x.full
	x.count()
}

// heldStep is how coarsely the bytes of an answer are counted; what is less is not.
const heldStep = 32 << 10

// count takes what the answer has come to hold, in memory, out of what all requests
// may, or gives back what it holds no more.
func (x *Exchange) count() {
	n := int64(len(x.held.mem)+len(x.held.tail)+len(x.text)) + x.windows
	if x.reader != nil {
		n += int64(x.reader.Kept())
	}
	switch {
	case n > x.counted+heldStep:
		if x.share.Grow(n - x.counted) {
			x.counted = n
			return
		}
		// Held no longer than it must be, and an event is read no further.
		x.full = true
		if x.reader != nil {
			x.reader.PassOver()
		}
	case n < x.counted-heldStep:
		x.share.Give(x.counted - n)
		x.counted = n
	}
}

// readable is what rules may look into: held bytes, decoded.
func (x *Exchange) readable() []byte {
	if x.src.asCoded() {
		return x.text
	}
	return append([]byte(nil), x.held.mem[:min(len(x.held.mem), rulesBody)]...)
}
