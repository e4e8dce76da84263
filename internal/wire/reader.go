package wire

// Want is what the client asked for, as far as reading the answer depends on it.
type Want struct {
	// Kind is the endpoint's kind; it chooses the dialect.
	Kind Kind
	// Stream says that the client asked for a stream; Array that it is Gemini's
	// stream in the form of one JSON array.
	Stream, Array bool
	// MinChars is how many content characters a stream must show before it may be
	// released; less than 1 counts as 1.
	MinChars int
	// TerminalOptional makes a clean end after content healthy, terminal event or not.
	TerminalOptional bool
	// Judged is true for generation endpoints. The answers of others fail only by
	// HTML where JSON was due and, where ErrorIsFailure, by a top-level error.
	Judged bool
	// ErrorIsFailure is false where an error field is data: GET, DELETE and HEAD.
	ErrorIsFailure bool
	// ContentType is the answer's, advisory: it lies both ways.
	ContentType string
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

func (v Verdict) String() string {
	return [...]string{"pending", "healthy", "erred", "empty"}[v&3]
}

// An ErrorBody is an error that was found inside an answer.
type ErrorBody struct {
	// Raw is a copy of the body or event data that carries the error, at most 1 MiB.
	Raw []byte
	// Object is the error itself within Raw: a JSON object or string, or the event
	// where its fields stand at the top level; nil where it is no more than a
	// finish reason.
	Object []byte
	// Status is the HTTP status, 400 to 599, that the error carries, else 0.
	Status int
	// Truncated says that Raw is not all there was.
	Truncated bool
}

// A Format is how an answer's bytes are framed.
type Format uint8

// The formats.
const (
	Unread Format = iota // nothing but blanks yet
	SSE
	NDJSON
	Array // one JSON array that arrives element by element
	JSON  // one JSON document
	HTML
	Opaque // anything else
)

func (f Format) String() string {
	return [...]string{"unread", "sse", "ndjson", "array", "json", "html", "opaque"}[f%7]
}

// A Framing says what the bytes read so far are in the middle of.
type Framing struct {
	Format Format
	// Inside says that an event, line or element has begun and not ended.
	Inside bool
	// Close is what ends it, so that an event may be appended: a blank line or a
	// rest of one (SSE), LF (NDJSON), a comma (array); "" where nothing is needed.
	Close string
	// Appendable is false where nothing can be appended any more, or ever: inside
	// an array's element, behind its end, in JSON, HTML and opaque bytes.
	Appendable bool
}

// A Reader reads one answer's decoded body as it comes and tells what it is. It
// keeps the bytes of one event at most, and does not keep those it is given. It is
// not safe for concurrent use.
type Reader struct{}

// NewReader returns the reader of one answer.
func NewReader(w Want) *Reader { return &Reader{} }

// Feed reads the next bytes. It does not keep p.
func (r *Reader) Feed(p []byte) {}

// End tells that the body ended cleanly. After it the verdict is never Pending.
func (r *Reader) End() {}

// Release returns the offset in the body from which on the answer may go out: that
// of the first moment at which it might. It is false as long as it may not. It does
// not depend on how the bytes were split.
func (r *Reader) Release() (int64, bool) { return 0, false }

// Verdict is what the answer proved to be so far.
func (r *Reader) Verdict() Verdict { return Pending }

// WellFormed says of an Empty answer that it had a finish reason or a completed
// status, and so may be passed on when there is nothing better.
func (r *Reader) WellFormed() bool { return false }

// Terminal says that the dialect's success terminal was read, or a JSON document to
// its end: a break behind it takes nothing away.
func (r *Reader) Terminal() bool { return false }

// Started says that there was content.
func (r *Reader) Started() bool { return false }

// Unknown says that the answer's dialect is not known, so that it has no terminal.
func (r *Reader) Unknown() bool { return false }

// Erred is the error found in the answer, nil if there was none. Erred answers
// without one are cut, garbage, or not what was due; see Why.
func (r *Reader) Erred() *ErrorBody { return nil }

// Usage is what the answer reported so far.
func (r *Reader) Usage() Usage { return NoUsage() }

// Open says what the bytes read so far are in the middle of.
func (r *Reader) Open() Framing { return Framing{} }

// Why says in a few words what is wrong with an answer that is not healthy, "" for
// others. It quotes nothing of the answer.
func (r *Reader) Why() string { return "" }
