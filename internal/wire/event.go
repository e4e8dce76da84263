package wire

// An ending is how an event ends its answer.
type ending uint8

const (
	endNone      ending = iota
	endPlain            // a success, if there was content
	endExplained        // a success that explains why there may be no content
)

// event is what one event of an answer says, or a whole answer where whole is set.
// It is filled afresh for every event and taken over only if all of it was good.
type event struct {
	// Told to the dialect:
	name     []byte // the event's SSE name
	whole    bool   // it is the whole answer, not a part of a stream
	said     bool   // there was content before it
	released bool   // the answer is with the client already

	// Told by the dialect:
	chars    int    // content characters
	nontext  bool   // content that proves health without text
	ending   ending // see there
	reason   bool   // a finish reason or a completed status
	final    bool   // nothing belongs behind it
	partial  bool   // other choices of the answer are still open
	finished int    // choices that have ended
	piece    bool   // content that proves nothing by itself: a piece of a tool's arguments
	resumed  bool   // a choice that had ended goes on
	known    bool   // it belongs to the dialect
	neutral  bool   // it belongs to none, but is no sign of another dialect either
	failed   bool   // it is an error
	object   []byte // the error in it
	damage   string // what is wrong with the stream, where it is no error of the upstream's
	usage    Usage
	hasUsage bool

	flat, oddity bool // see common and settle

	text    []byte // the last text whose characters say counted
	texts   int    // how many those were
	padding []byte // a member that stands for nothing
}

// say counts a text's characters. Nothing else about the text may matter, nor where it
// stands but for the bytes around it.
func (ev *event) say(text []byte) {
	ev.chars += jsonRunes(text)
	ev.text = text
	ev.texts++
}

// A dialect knows one kind of endpoint's events.
type dialect interface {
	// read reads raw, one valid JSON value, into ev.
	read(raw []byte, ev *event)
}

func newDialect(k Kind) dialect {
	switch k {
	case Chat, Completions:
		return &chat{}
	case Responses:
		return &responses{}
	case Messages:
		return &messages{}
	case Generate:
		return &gemini{}
	case OllamaChat, OllamaGenerate:
		return ollama{}
	}
	return &media{}
}

// fail notes an error; the first one of an event stands.
func (ev *event) fail(object []byte) {
	if !ev.failed {
		ev.failed, ev.object = true, object
	}
}

func (ev *event) content() bool { return ev.chars > 0 || ev.nontext }

func (ev *event) end(e ending) { ev.ending = max(ev.ending, e) }

// common reads a member that means the same at the top level of every JSON API: the
// shapes that errors come in. Text that quotes an error is never looked at.
func (ev *event) common(c *jsonCursor) {
	switch string(c.key) {
	case `"error"`:
		if jsonTruthy(c.value) {
			ev.fail(c.value)
		}
	case `"type"`:
		switch string(c.value) {
		case `"error"`:
			ev.flat = true
		case `"ping"`, `"keepalive"`, `"keep-alive"`, `"heartbeat"`:
			ev.neutral = true
		}
	case `"object"`:
		ev.flat = ev.flat || string(c.value) == `"error"` // vLLM, Mistral
	case `"base_resp"`: // MiniMax
		if code, ok := jsonField(c.value, "status_code"); ok && jsonTruthy(code) {
			ev.fail(c.value)
		}
	case `"detail"`: // FastAPI
		ev.oddity = ev.oddity || jsonTruthy(c.value)
	case `"statusCode"`, `"status_code"`: // Azure API Management
		code, ok := jsonInt(c.value)
		ev.oddity = ev.oddity || ok && code >= 400
	case `"message"`, `"msg"`: // Cohere, Bedrock, relays
		ev.oddity = ev.oddity || ev.whole && jsonKind(c.value) == '"'
	}
}

// settle judges what common saw, after the last member of raw. Shapes without an
// error member count only where nothing else in the event belongs to the dialect.
func (ev *event) settle(raw []byte) {
	if ev.flat || ev.oddity && !ev.known {
		ev.fail(raw)
	}
}

// generic reads an event that is not the dialect's: for its error, if it is one.
func (ev *event) generic(raw []byte) {
	for c := jsonIn(raw); c.next(); {
		ev.common(&c)
	}
	ev.settle(raw)
}

// jsonTruthy says that a value is neither null, false, 0 nor empty.
func jsonTruthy(raw []byte) bool {
	switch jsonKind(raw) {
	case 0, 'n', 'f':
		return false
	case '"':
		return len(raw) > 2
	case '{', '[':
		return jsonSpace(raw, 1) < len(raw)-1
	case '0':
		n, ok := jsonInt(raw)
		return !ok || n != 0
	}
	return true
}

// jsonInner is the text of a raw string without its quotes, and without escapes where
// it needs none; nil where raw is no string. Names in JSON are compared so.
func jsonInner(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	raw = jsonPlain(raw)
	return raw[1 : len(raw)-1]
}

// jsonElements says that raw is a container with something in it.
func jsonElements(raw []byte) bool {
	k := jsonKind(raw)
	return (k == '{' || k == '[') && jsonTruthy(raw)
}
