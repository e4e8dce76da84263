package wire

import "bytes"

const (
	// echoLongest is the length of the longest event that is remembered.
	echoLongest = 1 << 10
	// echoMisses is after how many events that were no echo nobody looks for one any more.
	echoMisses = 8
)

// An echo is an event of a stream that says what the one before it said, in the same
// bytes, but for one text. Nearly all of a stream is that, and it need not be read anew:
// what was told of the one holds for the other, with the length of its text.
type echo struct {
	last     []byte // the event that was read; nil where none is remembered
	name     []byte // its SSE name
	from, to int    // where its text is, with its quotes
	ev       event  // what was told of it
	misses   int    // events since that were none
}

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
	// Both are parts of one buffer, so that what is left of it behind each tells where.
	from := cap(data) - cap(ev.text)
	if from < 0 || from+len(ev.text) > len(data) || &data[from] != &ev.text[0] {
		return
	}
	e.last, e.name = append(e.last, data...), append(e.name[:0], name...)
	e.from, e.to = from, from+len(ev.text)
	e.ev = *ev
	e.ev.name, e.ev.text, e.ev.object = nil, nil, nil
}

// hear says whether an event is an echo of the one that is remembered, and tells what
// that one told. said and released are what a dialect would be told.
func (e *echo) hear(name, data []byte, said, released bool, ev *event) bool {
	if len(e.last) == 0 || said != e.ev.said || released != e.ev.released || len(data) <= e.from ||
		!bytes.Equal(data[:e.from+1], e.last[:e.from+1]) || !bytes.Equal(name, e.name) {
		return false
	}
	to, bad := jsonStringEnd(data, e.from)
	if bad != "" || !bytes.Equal(data[to:], e.last[e.to:]) {
		return false
	}
	chars := jsonRunes(data[e.from:to])
	if chars == 0 {
		return false
	}
	*ev = e.ev
	ev.name, ev.chars = name, chars
	e.misses = 0
	return true
}
