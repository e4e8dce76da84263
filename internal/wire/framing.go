package wire

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

// String returns the format's name in lower case.
func (f Format) String() string {
	names := [...]string{"unread", "sse", "ndjson", "array", "json", "html", "opaque"}
	if int(f) < len(names) {
		return names[f]
	}
	return "unknown"
}

// A Framing says what the bytes read so far are in the middle of.
type Framing struct {
	Format Format
	// Inside says that an event, line or element has begun and not ended.
	Inside bool
	// Appendable says that an event may be appended, after Close. It is false inside
	// an array's element and behind the array's end, and always for JSON, HTML and
	// opaque bytes.
	Appendable bool
	// Close is what ends that which is open: what is missing of a blank line (SSE),
	// LF (NDJSON), a comma (array); "" where nothing is needed.
	Close string
}

// An ErrorBody is an error that was found inside an answer.
type ErrorBody struct {
	// Raw is a copy of the document or event data that carries the error, at most
	// 1 MiB.
	Raw []byte
	// Object is the error itself: a JSON object or string, or all of Raw where its
	// fields stand at the top level; nil where it is no more than a finish reason or
	// plain text.
	Object []byte
	// Status is the HTTP status, 400 to 599, that the error carries, else 0.
	Status int
	// Truncated says that Raw is not all there was: long strings in it are cut, or,
	// if the error itself was short enough, Raw is {"error": Object}.
	Truncated bool
	// Unframed says that it stood outside of the stream's framing, where the
	// dialect's clients pass over it: to them the stream just ended.
	Unframed bool
}

// maxErrorBody bounds what is kept of an error.
const maxErrorBody = 1 << 20

// newErrorBody copies an error; object lies within raw.
func newErrorBody(raw, object []byte) *ErrorBody {
	e := &ErrorBody{Status: embeddedStatus(raw, object)}
	if len(object) <= maxErrorBody {
		e.Object = append([]byte(nil), object...)
	}
	switch {
	case len(raw) <= maxErrorBody:
		e.Raw = append([]byte(nil), raw...)
	case len(e.Object) > 0 && len(e.Object) < maxErrorBody-16:
		e.Raw, e.Truncated = append(append([]byte(`{"error":`), e.Object...), '}'), true
	default:
		e.Raw, e.Truncated = append([]byte(nil), raw[:maxErrorBody]...), true
	}
	return e
}
