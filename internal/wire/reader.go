package wire

// Want is what the client asked for, as far as reading the answer depends on it.
type Want struct {
	// Kind is the endpoint's kind; it chooses the dialect.
	Kind Kind
	// Stream says that the client asked for a stream; Array that it is Gemini's
	// stream in the form of one JSON array. What the body is like, it tells itself.
	Stream, Array bool
	// MinChars is how many content characters a stream must show before it may be
	// released; less than 1 counts as 1.
	MinChars int
	// Choices is how many answers were asked for at once; less than 2 is one.
	Choices int
	// TerminalOptional makes a clean end after content healthy, terminal event or not.
	TerminalOptional bool
	// Judged is true for generation endpoints. The answers of others fail only by
	// HTML where JSON was due and, where ErrorIsFailure, by a top-level error.
	Judged bool
	// ErrorIsFailure is false where an error field is data: GET, DELETE and HEAD. It
	// does not matter where Judged is true.
	ErrorIsFailure bool
	// ContentType is the answer's, advisory: it lies both ways.
	ContentType string
	// Seen is called with every event's data and with a whole document that is no
	// error, in order; nil = nobody looks. It must not keep or change the bytes.
	Seen func(data []byte)
}

// A Verdict is what an answer proved to be.
type Verdict uint8

// The verdicts.
const (
	// Pending: not known yet; never after End.
	Pending Verdict = iota
	// Healthy: it may be released, or was read whole and found good.
	Healthy
	// Erred: it is or ended in an error, is cut, or is not what was due.
	Erred
	// Empty: it said nothing, and nothing in it explains why.
	Empty
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{"pending", "healthy", "erred", "empty"}[v&3]
}

// A Reader reads one answer's decoded body as it comes and tells what it is. It
// keeps the bytes of one event at most, and none of those it is given. It is not
// safe for concurrent use.
type Reader struct {
	want    Want
	dialect dialect
	at      int64 // offset in the body of the bytes being read
	format  Format
	start   start
	unasked bool // events where one JSON document was asked for

	sse   sse
	lines lines
	doc   document
	array array

	ev      event // the event being read
	echo    echo
	docRead bool // ev is the document's, read and not taken over yet
	stack   jsonStack

	chars     int
	nontext   bool
	ended     bool // a success terminal was read
	unread    bool // the last event was too long to be read
	partial   bool // but other choices are still open
	finished  int  // choices that have ended
	all       bool // nothing belongs behind what was read
	resumed   bool // it went on behind an end
	cut       bool // the body ended inside of an event that nobody can read
	explained bool
	reason    bool
	known     bool // an event of the dialect was read
	strangers int  // events of no dialect we know, while not known
	events    int  // events that say something, or might

	verdict   Verdict
	failed    bool
	released  bool
	concluded bool
	left      Framing // what was open at the end
	release   int64
	why       string
	err       *ErrorBody
	errSays   bool // err has a message
	usage     Usage
}

// NewReader returns the reader of one answer.
func NewReader(w Want) *Reader {
	w.MinChars = max(w.MinChars, 1)
	r := &Reader{want: w, dialect: newDialect(w.Kind), usage: NoUsage(), start: start{text: textDue(w), due: jsonDue(w)}}
	r.limit(maxEvent)
	return r
}

// limit sets how much is kept of one event.
func (r *Reader) limit(n int) { r.sse.limit, r.lines.limit, r.doc.limit, r.array.limit = n, n, n, n }

// Feed reads the next bytes. It does not keep p.
func (r *Reader) Feed(p []byte) {
	if r.concluded {
		return
	}
	if r.format == Unread {
		n := r.begin(p)
		r.at += int64(n)
		p = p[n:]
	}
	for len(p) > 0 {
		n := r.read(p)
		r.at += int64(n)
		p = p[n:]
	}
}

// Kept is how many bytes of the event being read are kept.
func (r *Reader) Kept() int {
	return len(r.sse.data) + len(r.sse.bare) + len(r.sse.value) + len(r.lines.line) + len(r.doc.body) + len(r.array.element)
}

// PassOver has the event being read passed over, if it is a long one, as those are
// that are longer than any may be: for when there is no memory to keep it.
func (r *Reader) PassOver() {
	if r.Kept() < passOverFrom || r.docRead {
		return
	}
	switch r.format {
	case SSE:
		r.sse.data, r.sse.bare, r.sse.value, r.sse.over = nil, nil, nil, true
	case NDJSON:
		r.lines.line, r.lines.over = nil, true
	case JSON:
		r.doc.body, r.doc.over = nil, r.doc.end == 0
	case Array:
		r.array.element, r.array.over = nil, r.array.nesting.depth > 1
	}
}

// passOverFrom is the length from which an event counts as a long one: what is less
// is not worth losing.
const passOverFrom = 64 << 10

// read hands p to the format's reader and returns how much was read: less than all
// where the bytes turn out to be of another format.
func (r *Reader) read(p []byte) int {
	switch r.format {
	case SSE:
		r.sse.feed(r, p)
	case NDJSON:
		head, n := r.lines.feed(r, p)
		if n < len(p) {
			r.format = JSON
			r.doc.feed(r, head)
			r.lines.line = nil
		}
		return n
	case JSON:
		rest := r.doc.feed(r, p)
		if len(rest) == 0 {
			break
		}
		n := len(p) - len(rest)
		if rest[0] != '{' || !r.docRead || r.doc.trailed {
			r.doc.trailed = true
			break
		}
		// A second document: these are lines, whatever was announced.
		r.format, r.unasked = NDJSON, r.want.Judged && !r.want.Stream
		r.ev.whole, r.docRead, r.lines.begun = false, false, true
		r.take(r.doc.body, r.at+int64(n)+1)
		r.doc.body = nil
		return n
	case Array:
		r.array.feed(r, p)
	}
	return len(p)
}

// End tells that the body ended cleanly. After it the verdict is never Pending.
func (r *Reader) End() {
	if r.concluded {
		return
	}
	r.left = r.Open()
	switch r.format {
	case Unread:
		r.endBegin()
	case SSE:
		r.sse.end(r, r.at)
	case NDJSON:
		r.lines.end(r, r.at)
	}
	r.conclude()
	r.concluded = true
}

// Release returns the offset in the body from which on the answer may go out: that
// of the first moment at which it might. It is false as long as it may not. The
// offset does not depend on how the bytes were split; it lies at the end of the
// event that decides, at most two bytes (a line end) before it.
func (r *Reader) Release() (int64, bool) { return r.release, r.released }

// Verdict is what the answer proved to be so far. It can still change: a released
// answer may end in an error. Empty may be known, and told, before End.
func (r *Reader) Verdict() Verdict { return r.verdict }

// WellFormed says of an Empty answer that it had a finish reason or a completed
// status, and so may be passed on when there is nothing better.
func (r *Reader) WellFormed() bool { return r.reason }

// Terminal says that the answer is finished and no event has begun behind its end, or
// nothing belongs there: a break takes nothing away.
func (r *Reader) Terminal() bool {
	return r.Finished() && (r.Over() || !r.inside())
}

// Finished says that the dialect's success terminal was read, or a JSON document to its
// end. Of several answers that were asked for at once, all have ended. A finish reason
// counts as long as the upstream never went on behind one: some say in every event that
// it is the last.
func (r *Reader) Finished() bool {
	return r.Over() || r.inEvents() && r.ended && !r.partial && !r.resumed && r.choicesEnded() && !r.failed
}

// Over says that the answer has ended by what nothing belongs behind: not by a finish
// reason, but by the dialect's last event, or the end of the document or array.
func (r *Reader) Over() bool {
	switch r.format {
	case JSON:
		return r.doc.end != 0 && !r.failed
	case Array:
		return r.ended && !r.partial && r.array.closed && !r.failed
	}
	return r.ended && !r.partial && r.all && !r.failed
}

// Cut says that the body ended, cleanly, inside of an event that nobody can read.
func (r *Reader) Cut() bool { return r.cut }

// inEvents says that the body's own end is no part of the answer.
func (r *Reader) inEvents() bool { return r.format != JSON && r.format != Array }

// choicesEnded says that as many answers have ended as were asked for.
func (r *Reader) choicesEnded() bool {
	return r.want.Choices < 2 || r.finished >= r.want.Choices
}

// inside says that an event has begun and not ended; a comment is none.
func (r *Reader) inside() bool {
	switch {
	case r.concluded:
		return false
	case r.format == SSE:
		return r.sse.inside()
	case r.format == NDJSON:
		return r.lines.inside()
	}
	return false
}

// Started says that there was content.
func (r *Reader) Started() bool { return r.chars > 0 || r.nontext }

// Said is how much content there was: characters of text, and whether there was
// something else, such as a tool call, which is not counted.
func (r *Reader) Said() (chars int, other bool) { return r.chars, r.nontext }

// Events is how many events have been read; pings and comments are none.
func (r *Reader) Events() int { return r.events }

// Unknown says that the answer's dialect is not known, so that it has no terminal:
// events that match nothing, opaque bytes, and endpoints that are not judged.
func (r *Reader) Unknown() bool {
	return !r.want.Judged || r.format == Opaque || r.strangers > 0 && !r.known
}

// Erred is the error found in the answer, nil if there was none. Erred answers
// without one are cut, garbage, or not what was due; see Why.
func (r *Reader) Erred() *ErrorBody { return r.err }

// Usage is what the answer reported so far; the last report counts.
func (r *Reader) Usage() Usage { return r.usage }

// Open says what the bytes read so far are in the middle of; behind End, what they
// ended in the middle of.
func (r *Reader) Open() Framing {
	if r.concluded {
		return r.left
	}
	switch r.format {
	case SSE:
		return r.sse.framing()
	case NDJSON:
		return r.lines.framing()
	case Array:
		return r.array.framing()
	case JSON:
		return Framing{Format: JSON, Inside: r.doc.end == 0}
	}
	return Framing{Format: r.format}
}

// Why says in a few words what is wrong with an answer that is not healthy, "" for
// others. It quotes nothing of the answer.
func (r *Reader) Why() string { return r.why }
