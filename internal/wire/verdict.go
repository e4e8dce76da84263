package wire

import (
	"bytes"
	"fmt"
)

// This file is how a Reader comes to its verdict: what one event does to it, and
// what the end of the body does.

// keepsDocument says that somebody will want to read the whole document.
func (r *Reader) keepsDocument() bool {
	return r.want.Judged || r.want.ErrorIsFailure || r.want.Seen != nil
}

// errors says that an error in the answer is a failure.
func (r *Reader) errors() bool { return r.want.Judged || r.want.ErrorIsFailure }

// event judges one event's data, which ends at offset at of the body; dispatched is
// false where the body ended before the event did.
func (r *Reader) event(name, data []byte, at int64, dispatched bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		r.ev = event{ending: endPlain, final: true, neutral: true}
		r.take(data, at)
		return
	}
	if !r.parse(name, data, false) {
		switch {
		case string(name) == "error" && r.errors():
			r.fail("an error event in the stream", r.errorBody(data, nil), true)
		case !dispatched:
			r.cut = true
		case r.want.Judged:
			r.garbage()
		default:
			r.let(at)
		}
		return
	}
	r.take(data, at)
}

// parse reads data into r.ev and reports whether it is JSON.
func (r *Reader) parse(name, data []byte, whole bool) bool {
	if !whole && r.echo.hear(name, data, r.Started(), r.released, &r.ev) {
		return true
	}
	i, end := jsonSpace(data, 0), len(data)
	if !whole || !r.doc.valid {
		var bad string
		if end, bad = jsonEnd(data, i, 0, &r.stack); bad != "" || jsonSpace(data, end) != len(data) {
			return false
		}
	}
	r.ev = event{name: name, whole: whole, said: r.Started(), released: r.released, usage: NoUsage()}
	if data[i] == '[' {
		for c := jsonIn(data); c.next(); {
			r.dialect.read(c.value, &r.ev)
		}
	} else {
		r.dialect.read(data, &r.ev)
	}
	if string(name) == "error" {
		r.ev.fail(data)
	}
	switch jsonKind(data[i:]) {
	case 'n', '{', '[':
		// Some relays keep a stream alive with events that hold nothing.
		r.ev.neutral = r.ev.neutral || !jsonTruthy(data[i:end])
	}
	if !whole {
		r.echo.remember(name, data, &r.ev)
	}
	return true
}

// take lets the event in r.ev, read from data and ending at offset at, count.
func (r *Reader) take(data []byte, at int64) {
	ev := &r.ev
	r.unread = false
	if ev.hasUsage {
		r.usage = ev.usage
	}
	if ev.failed && r.errors() {
		why := "an error event in the stream"
		if ev.whole {
			why = "an error in the answer"
		} else if r.released {
			why = "an error event after release"
		}
		body := r.errorBody(data, ev.object)
		r.fail(why, body, errorSays(ev.object))
		return
	}
	if ev.damage != "" {
		r.fail(ev.damage, nil, false)
		return
	}
	if r.want.Seen != nil && !ev.whole {
		r.want.Seen(data)
	}
	r.known = r.known || ev.known
	if !ev.neutral {
		r.events++
	}
	if !ev.known && !ev.neutral {
		r.strangers++
	}
	if ev.content() || ev.piece {
		r.goOn(ev.resumed)
	}
	r.chars += ev.chars
	r.nontext = r.nontext || ev.nontext
	if ev.ending != endNone {
		r.ended = true
		r.echo.forget() // what it tells of choices is no longer so
	}
	r.partial, r.finished = ev.partial, max(r.finished, ev.finished)
	r.all = r.all || ev.final
	r.explained = r.explained || ev.ending == endExplained
	r.reason = r.reason || ev.reason
	if ev.whole {
		return // judged at the end of the body
	}
	switch {
	case r.failed:
	case !r.want.Judged:
		r.let(at)
	case r.unasked:
		if ev.final {
			r.fail(r.whyUnasked(), nil, false)
		}
	case r.chars >= r.want.MinChars, r.nontext,
		ev.ending != endNone && (r.Started() || r.explained),
		r.strange():
		r.let(at)
	case ev.final && !r.released:
		r.verdict, r.why = Empty, r.silence()
	}
}

// goOn notes content, or what may be some; again says that it is of a choice that had
// ended. Behind an end it shows that the end was none.
func (r *Reader) goOn(again bool) {
	if again || r.all || r.ended && !r.partial && r.choicesEnded() {
		r.resumed, r.all = true, false
	}
}

// strange says that the events are of a dialect nobody knows. Where events carry
// their type, one of an unfamiliar type may be a relay's preamble; two are not.
func (r *Reader) strange() bool {
	if r.known {
		return false
	}
	if r.want.Kind == Responses || r.want.Kind == Messages {
		return r.strangers > 1
	}
	return r.strangers > 0
}

// document is told that the JSON document is complete. It is read at once, so that
// an error is known before the body's end, but otherwise counts only there.
func (r *Reader) document(body []byte, over bool) {
	if over || !r.keepsDocument() {
		return
	}
	if r.docRead = r.parse(nil, body, true); r.docRead && r.ev.failed {
		r.take(body, 0)
	}
	if r.want.Seen != nil && !r.failed {
		r.want.Seen(body)
	}
}

// bareJSON judges JSON that stands outside of SSE framing: clients pass over it,
// unless it is an error, which some look for.
func (r *Reader) bareJSON(doc []byte, over bool) {
	if over {
		return
	}
	if !jsonValid(doc) {
		r.garbage()
		return
	}
	r.ev = event{}
	r.ev.generic(doc)
	if r.ev.failed && r.errors() {
		body := r.errorBody(doc, r.ev.object)
		// Google's SDKs look for exactly this; everybody else's pass over it.
		body.Unframed = r.want.Kind != Generate
		r.fail("an error outside of the stream's framing", body, errorSays(r.ev.object))
	}
}

// errorField judges the value of an SSE field named error.
func (r *Reader) errorField(value []byte) {
	if value = bytes.TrimSpace(value); len(value) == 0 || !r.errors() {
		return
	}
	if !jsonValid(value) {
		r.fail("an error field in the stream", r.errorBody(value, nil), true)
	} else if jsonTruthy(value) {
		r.fail("an error field in the stream", r.errorBody(value, value), true)
	}
}

// garbage is event data that nobody can read. Clients pass over it after release.
func (r *Reader) garbage() {
	if !r.released && r.want.Judged {
		r.fail("unreadable data in the stream", nil, false)
	}
}

// overlong is an event too long to be read, which ends at offset at: it proves at
// least that the upstream is talking.
func (r *Reader) overlong(at int64) {
	r.goOn(false)
	r.nontext, r.unread = true, true
	if !r.failed && !r.unasked {
		r.let(at)
	}
}

// let releases the answer at offset at, unless it was already.
func (r *Reader) let(at int64) {
	if !r.released && !r.failed {
		r.released, r.release, r.verdict, r.why = true, at, Healthy, ""
	}
}

// fail makes the answer a failure. The first reason stands; the first error stands
// too, unless a later one says more.
func (r *Reader) fail(why string, body *ErrorBody, says bool) {
	if !r.failed {
		r.failed, r.verdict, r.why = true, Erred, why
	}
	if body != nil && (r.err == nil || says && !r.errSays) {
		r.err, r.errSays = body, says
	}
}

// errorBody copies an error out of the event that is being read.
func (r *Reader) errorBody(raw, object []byte) *ErrorBody {
	e := newErrorBody(raw, object)
	e.Truncated = e.Truncated || r.sse.short.on || r.lines.short.on || r.doc.short.on || r.array.short.on
	return e
}

// whyUnasked says what came where one JSON document was asked for.
func (r *Reader) whyUnasked() string {
	if r.format == NDJSON {
		return "several JSON documents where one was asked for"
	}
	return "an event stream where JSON was asked for"
}

// conclude decides at the clean end of the body.
func (r *Reader) conclude() {
	if r.failed {
		return
	}
	if !r.want.Judged {
		if r.docRead {
			r.take(r.doc.body, r.at)
		}
		if !r.failed {
			r.let(r.at)
		}
		return
	}
	// An event that was too long to be read may have been the terminal one.
	complete := (r.ended || r.unread) && !r.partial
	switch r.format {
	case Opaque:
		r.let(r.at)
		return
	case JSON:
		if r.concludeDocument(); r.failed || r.released {
			return
		}
		complete = true
	case Array:
		complete = complete && r.array.closed
	case SSE:
		if !r.sse.fields {
			r.fail("plain text where "+r.due()+" was due", nil, false)
			return
		}
	}
	if r.unasked {
		r.fail(r.whyUnasked(), nil, false)
		return
	}
	enough := complete || r.want.TerminalOptional && (r.format != Array || r.array.closed)
	switch {
	case (r.Started() || r.released || r.explained) && enough,
		r.strangers > 0 && !r.known && r.format != JSON:
		r.let(r.at)
	case r.Started(), r.released:
		r.fail(r.truncation(), nil, false)
	default:
		r.verdict, r.why = Empty, r.silence()
	}
}

// concludeDocument takes the document over at its end, or fails the answer.
func (r *Reader) concludeDocument() {
	switch d := &r.doc; {
	case d.over:
		r.let(r.at)
	case d.scalar:
		if !jsonValid(d.body) {
			r.fail("plain text where "+r.due()+" was due", nil, false)
		}
	case d.end == 0:
		r.fail("the JSON document is cut", nil, false)
	case d.trailed, !r.docRead:
		r.fail("the answer is no valid JSON", nil, false)
	default:
		r.take(d.body, r.at)
	}
}

// due is what the client asked for, in a word.
func (r *Reader) due() string {
	if r.want.Stream {
		return "a stream"
	}
	return "JSON"
}

func (r *Reader) silence() string {
	switch {
	case r.format == Unread:
		return "the answer has no body"
	case r.format == JSON:
		return "the answer says nothing"
	}
	return "the stream ended without a word"
}

func (r *Reader) truncation() string {
	switch {
	case r.format == Array && !r.array.closed:
		return "the array ended without its closing bracket"
	case r.nontext || r.chars == 0:
		return "the stream ended without a terminal event"
	case r.chars == 1:
		return "the stream ended after 1 character without a terminal event"
	}
	return fmt.Sprintf("the stream ended after %d characters without a terminal event", r.chars)
}
