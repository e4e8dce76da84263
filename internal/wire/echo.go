package wire

import "bytes"

const (
	// echoLongest is the length of the longest event that is remembered.
	echoLongest = 1 << 10
	// echoMisses is after how many events that were no echo nobody looks for one any more.
	echoMisses = 8
)

// An echo is an event of a stream that says what the one before it said, in the same
// bytes, but for one text, and for the padding with which OpenAI hides how long that is.
// Nearly all of a stream is that, and it need not be read anew: what was told of the one
// holds for the other, with the length of its text.
type echo struct {
	last   []byte // the event that was read; empty where none is remembered
	name   []byte // its SSE name
	holes  [2]hole
	n      int   // how many of them there are
	text   int   // which one is the text
	ev     event // what was told of it
	misses int   // events since that were none
}

// A hole is where the one event may differ from the other: a string, with its quotes.
type hole struct{ from, to int }

// forget has the next event read anew.
func (e *echo) forget() { e.last = e.last[:0] }

// remember keeps an event that was read, if it told of one text and of nothing else. A
// dialect's state after such an event is its state before the next: reading it again
// changes nothing.
func (e *echo) remember(name, data []byte, ev *event) {
	if e.misses >= echoMisses {
		return
	}
	e.misses++
	e.last = e.last[:0]
	if ev.texts != 1 || ev.chars == 0 || ev.chars != jsonRunes(ev.text) || len(data) > echoLongest || data[0] != '{' ||
		ev.nontext || ev.ending != endNone || ev.reason || ev.final || !ev.known || ev.neutral || ev.failed || ev.damage != "" ||
		ev.hasUsage || ev.flat || ev.oddity || ev.whole {
		return
	}
	text, ok := holeOf(data, ev.text)
	if !ok {
		return
	}
	e.holes, e.n, e.text = [2]hole{text}, 1, 0
	if padding, ok := holeOf(data, ev.padding); ok && padding.from >= text.to {
		e.holes[1], e.n = padding, 2
	} else if ok && padding.to <= text.from {
		e.holes, e.n, e.text = [2]hole{padding, text}, 2, 1
	}
	e.last, e.name = append(e.last, data...), append(e.name[:0], name...)
	e.ev = *ev
	e.ev.name, e.ev.text, e.ev.padding, e.ev.object = nil, nil, nil, nil
}

// holeOf says where in data one of its strings is. Both are parts of one buffer, so that
// what is left of it behind each tells.
func holeOf(data, value []byte) (h hole, ok bool) {
	if jsonKind(value) != '"' {
		return h, false
	}
	h.from = cap(data) - cap(value)
	h.to = h.from + len(value)
	return h, h.from >= 0 && h.to <= len(data) && &data[h.from] == &value[0]
}

// hear says whether an event is an echo of the one that is remembered, and tells what
// that one told. said and released are what a dialect would be told.
func (e *echo) hear(name, data []byte, said, released bool, ev *event) bool {
	if len(e.last) == 0 || said != e.ev.said || released != e.ev.released || !bytes.Equal(name, e.name) {
		return false
	}
	rest, last, at, chars := data, e.last, 0, 0
	for i, h := range e.holes[:e.n] {
		n := h.from - at
		if len(rest) <= n || !bytes.Equal(rest[:n+1], last[:n+1]) { // the quote with it
			return false
		}
		end, bad := jsonStringEnd(rest, n)
		if bad != "" {
			return false
		}
		if i == e.text {
			if chars = jsonRunes(rest[n:end]); chars == 0 {
				return false
			}
		}
		rest, last, at = rest[end:], last[h.to-at:], h.to
	}
	if !bytes.Equal(rest, last) {
		return false
	}
	*ev = e.ev
	ev.name, ev.chars = name, chars
	e.misses = 0
	return true
}
