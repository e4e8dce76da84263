package wire

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Explain reads an error answer. status is the answer's status, header its header
// (names in any case), body its decoded body or the data of an error event; both
// may be empty. now is used where the header has no Date to measure times against.
func Explain(status int, header map[string][]string, body []byte, now time.Time) Failed {
	h := newHeaders(header)
	if date, ok := h.date("date"); ok {
		now = date
	}
	c := complaint{header: h}
	c.read(body)
	for _, s := range c.quoted {
		if c.message == "" {
			c.message = s
		} else if !strings.Contains(c.message, s) {
			c.message += ": " + s
		}
	}
	f := Failed{Status: status, Code: c.code, Type: c.kind, Message: c.message}
	if c.status != 0 && (status < 300 || status == 304) {
		f.Status = c.status
	}
	f.Fault = c.fault(f.Status)
	f.RetryAfter, f.HasRetryAfter = c.wait(now)
	return f
}

// maxPlain bounds how much of a plain text counts as its message, and how much many
// texts make together; maxText how much of each is searched, maxTexts how many are.
const maxPlain, maxText, maxTexts = 4 << 10, 16 << 10, 32

// maxNested bounds how deeply an error may quote another one.
const maxNested = 3

// complaint is an error as far as it was understood.
type complaint struct {
	header  headers // with those the body quotes
	html    bool
	status  int // 400 to 599 in the body, else 0
	code    string
	kind    string
	message string

	words   []string // codes, types and reasons, the quoted errors' too
	texts   []string // messages, the quoted errors' too
	minimax int64    // base_resp.status_code
	flagged bool     // OpenRouter: the input was refused by a moderator
	perDay  bool     // Google: the exhausted quota is a daily one
	waits   []wait   // what the body states in its own fields
	delays  []string // Google: RetryInfo
	quoted  []string // of a provider behind the upstream, for the message
	depth   int      // of quoting
}

// read reads a body: a document, one that others follow, an array of documents, a
// stream's lines, or text.
func (c *complaint) read(body []byte) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte(ByteOrderMark)))
	if len(body) == 0 {
		return
	}
	if body[0] == '<' {
		c.html = true
		return
	}
	if raw := firstJSON(body); raw != nil {
		switch raw[0] {
		case '[':
			c.array(raw)
			return
		case '{':
			c.document(raw)
			return
		case '"':
			c.text(raw)
			return
		}
	}
	if bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) {
		for line := range bytes.Lines(body) {
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
			if raw := firstJSON(bytes.TrimSpace(data)); ok && raw != nil && raw[0] == '{' && locate(raw) != nil {
				c.document(raw)
				return
			}
		}
	}
	c.say(strings.ToValidUTF8(string(body[:min(len(body), maxPlain)]), "\ufffd"))
}

// firstJSON is the JSON value that b begins with, nil if there is none.
func firstJSON(b []byte) []byte {
	var stack jsonStack
	i := jsonSpace(b, 0)
	end, bad := jsonEnd(b, i, 0, &stack)
	if bad != "" {
		return nil
	}
	return b[i:end]
}

// array reads Google's array of one error.
func (c *complaint) array(raw []byte) {
	for e := jsonIn(raw); e.next(); {
		if jsonKind(e.value) == '{' && locate(e.value) != nil {
			c.document(e.value)
			return
		}
	}
}

// text reads a JSON string, which may hold another error's JSON.
func (c *complaint) text(raw []byte) {
	if s, ok := jsonText(raw); ok {
		c.say(s)
	}
}

// document reads a JSON object that is or carries an error.
func (c *complaint) document(raw []byte) {
	object := locate(raw)
	if object == nil {
		object = raw
	}
	c.setStatus(embeddedStatus(raw, object))
	if quoted, ok := jsonField(raw, "headers"); ok { // Codex quotes those of the answer that the event stands for
		c.header.quote(quoted, true)
	}
	switch jsonKind(object) {
	case '"':
		// The rest of the error, if there is more, stands beside it.
		if !bytes.Contains(object, []byte(" ")) {
			c.word(object)
		}
		c.object(raw)
	case '[':
		c.details(object)
	default:
		c.object(object)
	}
}

// locate returns the error within a document or event, nil if none is to be seen.
func locate(raw []byte) (object []byte) {
	var flat, listed []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"error"`:
			if jsonTruthy(c.value) {
				return c.value
			}
		case `"response"`, `"x_groq"`:
			if e, _ := jsonField(c.value, "error"); jsonTruthy(e) {
				object = e
			}
		case `"choices"`:
			for e := jsonIn(c.value); e.next() && object == nil; {
				if e, _ := jsonField(e.value, "error"); jsonTruthy(e) {
					object = e
				}
			}
		case `"base_resp"`:
			if code, _ := jsonField(c.value, "status_code"); jsonTruthy(code) {
				object = c.value
			}
		case `"errors"`: // Cloudflare
			for e := jsonIn(c.value); e.next() && listed == nil; {
				listed = e.value
			}
		case `"detail"`: // FastAPI
			if jsonTruthy(c.value) {
				listed = c.value
			}
		case `"message"`, `"code"`, `"msg"`, `"statusCode"`:
			flat = raw
		}
	}
	switch {
	case object != nil:
		return object
	case listed != nil:
		return listed
	}
	return flat
}

// object reads an error object.
func (c *complaint) object(raw []byte) {
	var quoted []byte
	var message, plain, status string
	var in, at wait
	for m := jsonIn(raw); m.next(); {
		switch string(m.key) {
		case `"message"`, `"status_msg"`, `"msg"`, `"error_msg"`, `"detail"`, `"error_message"`, `"errorMessage"`:
			if s, ok := jsonText(m.value); ok && message == "" {
				message = s
			} else if !ok && jsonKind(m.value) == '{' {
				quoted = m.value
			}
		case `"code"`:
			c.code = first(c.code, scalar(m.value))
			c.word(m.value)
		case `"type"`:
			c.kind = first(c.kind, scalar(m.value))
			c.word(m.value)
		case `"status"`, `"reason"`, `"__type"`:
			c.word(m.value)
			if jsonKind(m.value) == '"' {
				status = first(status, scalar(m.value))
			}
		case `"status_code"`:
			c.minimax, _ = jsonInt(m.value)
			c.code = first(c.code, scalar(m.value))
		case `"innererror"`: // Azure
			code, _ := jsonField(m.value, "code")
			c.word(code)
		case `"details"`:
			c.details(m.value)
		case `"metadata"`:
			c.metadata(m.value)
		case `"error"`: // relays wrap errors in errors
			if jsonKind(m.value) == '{' {
				quoted = m.value
			} else if s, ok := jsonText(m.value); ok {
				plain = s
			}
		case `"resets_in_seconds"`: // Codex
			in = waitNumber(m.value)
		case `"resets_at"`:
			at = waitNumber(m.value)
			at.at = true
		case `"headers"`:
			c.header.quote(m.value, true)
		}
	}
	if in.ok {
		c.waits = append(c.waits, in) // a wrong clock does not matter to it
	} else if at.ok {
		c.waits = append(c.waits, at)
	}
	c.kind = first(c.kind, status) // Google's name of the error
	c.say(first(message, plain))
	if quoted != nil && c.depth < maxNested {
		c.depth++
		c.object(quoted)
		c.depth--
	}
}

// details reads what explains an error further: Anthropic's object, Google's list
// (google.rpc), FastAPI's list.
func (c *complaint) details(raw []byte) {
	if jsonKind(raw) == '{' {
		code, _ := jsonField(raw, "error_code")
		c.word(code)
		return
	}
	for e := jsonIn(raw); e.next(); {
		for m := jsonIn(e.value); m.next(); {
			switch string(m.key) {
			case `"reason"`:
				c.word(m.value)
			case `"msg"`:
				c.text(m.value)
			case `"retryDelay"`:
				if s, ok := jsonText(m.value); ok {
					c.delays = append(c.delays, s)
				}
			case `"metadata"`:
				if v, ok := jsonField(m.value, "quotaResetDelay"); ok {
					s, _ := jsonText(v)
					c.waits = append(c.waits, waitDuration(s))
				}
			case `"violations"`:
				for v := jsonIn(m.value); v.next(); {
					id, _ := jsonField(v.value, "quotaId")
					c.perDay = c.perDay || bytes.Contains(id, []byte("PerDay")) || bytes.Contains(id, []byte("Daily"))
				}
			}
		}
	}
}

// metadata reads what OpenRouter says of the provider behind it.
func (c *complaint) metadata(raw []byte) {
	for m := jsonIn(raw); m.next(); {
		switch string(m.key) {
		case `"flagged_input"`:
			c.flagged = c.flagged || jsonTruthy(m.value)
		case `"raw"`:
			switch jsonKind(m.value) {
			case '"':
				if s, ok := jsonText(m.value); ok {
					c.quote(s, true)
				}
			case '{':
				c.quote(string(m.value), true)
			}
		case `"error_type"`:
			c.word(m.value)
		case `"headers"`:
			c.waits = append(c.waits, quotedReset(m.value)...)
			c.header.quote(m.value, false)
		}
	}
}

// say takes an error's text, and the error that it may quote as JSON.
func (c *complaint) say(s string) {
	if s = strings.TrimSpace(s); s == "" {
		return
	}
	if len(c.texts) < maxTexts {
		c.texts = append(c.texts, s[:min(len(s), maxText)])
	}
	if c.message == "" {
		c.message = s
	} else if c.depth == 0 && len(c.message)+len(s) < maxPlain && !strings.Contains(c.message, s) {
		c.message += "; " + s
	}
	if i := strings.IndexByte(s, '{'); i >= 0 {
		c.quote(s[i:], false)
	}
}

// quote reads an error that another one quotes. whole says that s is a body, not
// the JSON within a sentence: then its text is part of the message.
func (c *complaint) quote(s string, whole bool) {
	if c.depth == maxNested {
		return
	}
	inner := complaint{depth: c.depth + 1, header: headers{}}
	if raw := firstJSON([]byte(s)); raw != nil && raw[0] == '{' {
		inner.document(raw)
	} else if raw != nil && raw[0] == '[' {
		inner.array(raw)
	} else if whole {
		inner.texts = append(inner.texts, strings.TrimSpace(s[:min(len(s), maxPlain)]))
	}
	c.words = append(c.words, inner.words...)
	c.texts = append(c.texts, inner.texts[:min(len(inner.texts), maxTexts)]...)
	c.waits = append(c.waits, inner.waits...)
	c.delays = append(c.delays, inner.delays...)
	c.perDay = c.perDay || inner.perDay
	c.flagged = c.flagged || inner.flagged
	if whole && len(inner.texts) > 0 && c.depth == 0 {
		c.quoted = append(c.quoted, inner.texts[0])
	}
}

func (c *complaint) setStatus(status int) {
	if c.status == 0 {
		c.status = status
	}
}

// word takes a name that tells what kind of error it is.
func (c *complaint) word(raw []byte) {
	if s, ok := jsonText(raw); ok && s != "" {
		c.words = append(c.words, s)
	}
}

// scalar is a string's text, or a number as it is written.
func scalar(raw []byte) string {
	if jsonKind(raw) == '0' {
		return string(raw)
	}
	s, _ := jsonText(raw)
	return s
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// embeddedStatus is the HTTP status that an error carries, which lies within raw at
// object, or 0. The inner one counts before the outer one.
func embeddedStatus(raw, object []byte) int {
	for _, o := range [2][]byte{object, raw} {
		for c := jsonIn(o); c.next(); {
			switch string(c.key) {
			case `"code"`, `"status"`, `"status_code"`, `"statusCode"`, `"http_status"`:
				if n := httpStatus(c.value); n != 0 {
					return n
				}
			}
		}
	}
	return 0
}

// httpStatus is the status that a number, or a string of digits, is; else 0.
func httpStatus(raw []byte) int {
	n, ok := jsonInt(raw)
	if !ok {
		i, err := strconv.Atoi(string(jsonInner(raw)))
		n, ok = int64(i), err == nil
	}
	if !ok || n < 400 || n > 599 {
		return 0
	}
	return int(n)
}

// errorSays says that an error has a text.
func errorSays(object []byte) bool {
	if jsonKind(object) == '"' {
		return true
	}
	for c := jsonIn(object); c.next(); {
		switch string(c.key) {
		case `"message"`, `"status_msg"`, `"msg"`, `"detail"`:
			if jsonTruthy(c.value) {
				return true
			}
		}
	}
	return false
}
