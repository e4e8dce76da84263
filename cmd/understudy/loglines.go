package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// A lineHandler writes the log as lines for people: the time, the level in three
// letters, the message, and attributes as key=value, in colour on a terminal. Every
// request ends in such a line, so it is made to cost little; and no byte that could
// move a cursor or colour a terminal passes it, whoever wrote it.
type lineHandler struct {
	level  slog.Level
	colour bool
	fixed  []byte // attributes that stand in every line, ready to write
	group  string // what the keys begin with
	out    *lockedOutput
}

// lockedOutput is shared by the handlers that come from one another.
type lockedOutput struct {
	mu sync.Mutex
	w  io.Writer
}

func newLineHandler(w io.Writer, level slog.Level, colour bool) *lineHandler {
	return &lineHandler{level: level, colour: colour, out: &lockedOutput{w: w}}
}

// The colours, as terminals take them (ECMA-48, SGR).
const (
	faint  = "\x1b[2m"
	green  = "\x1b[92m"
	yellow = "\x1b[93m"
	red    = "\x1b[91m"
	reset  = "\x1b[0m"
)

var lines = sync.Pool{New: func() any { return new([]byte) }}

// Enabled is slog.Handler's.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle is slog.Handler's.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	kept := lines.Get().(*[]byte)
	defer lines.Put(kept)
	b := (*kept)[:0]
	if !r.Time.IsZero() {
		b = h.paint(b, faint, func(b []byte) []byte { return appendClock(b, r.Time) })
		b = append(b, ' ')
	}
	name, colour := levelOf(r.Level)
	b = h.paint(b, colour, func(b []byte) []byte { return append(b, name...) })
	b = append(b, ' ')
	b = appendPlain(b, r.Message)
	b = append(b, h.fixed...)
	r.Attrs(func(a slog.Attr) bool {
		b = h.attr(b, h.group, a)
		return true
	})
	b = append(b, '\n')
	*kept = b
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(b)
	return err
}

// levelOf is a level in three letters, and its colour.
func levelOf(l slog.Level) (name, colour string) {
	switch {
	case l < slog.LevelInfo:
		return "DBG", faint
	case l < slog.LevelWarn:
		return "INF", green
	case l < slog.LevelError:
		return "WRN", yellow
	}
	return "ERR", red
}

// WithAttrs is slog.Handler's.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.fixed = append([]byte(nil), h.fixed...)
	for _, a := range attrs {
		more.fixed = h.attr(more.fixed, h.group, a)
	}
	return &more
}

// WithGroup is slog.Handler's.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	more := *h
	more.group += name + "."
	return &more
}

// paint appends what write does, in a colour on a terminal.
func (h *lineHandler) paint(b []byte, colour string, write func([]byte) []byte) []byte {
	if !h.colour {
		return write(b)
	}
	return append(write(append(b, colour...)), reset...)
}

// attr appends one attribute and the blank before it.
func (h *lineHandler) attr(b []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			b = h.attr(b, group, inner)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	b = append(b, ' ')
	b = h.paint(b, faint, func(b []byte) []byte { return append(appendPlain(append(b, group...), a.Key), '=') })
	switch v.Kind() {
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindFloat64:
		return strconv.AppendFloat(b, v.Float64(), 'g', -1, 64)
	case slog.KindBool:
		return strconv.AppendBool(b, v.Bool())
	case slog.KindTime:
		return v.Time().AppendFormat(b, time.RFC3339)
	case slog.KindAny:
		return appendText(b, fmt.Sprintf("%+v", v.Any()))
	}
	return appendText(b, v.String()) // strings, and spans as Go writes them
}

// appendClock appends the time of day, to the second.
func appendClock(b []byte, t time.Time) []byte {
	two := func(n int) { b = append(b, byte('0'+n/10), byte('0'+n%10)) }
	hour, minute, second := t.Clock()
	two(hour)
	b = append(b, ':')
	two(minute)
	b = append(b, ':')
	two(second)
	return b
}

// appendPlain appends a text with what is not printable escaped.
func appendPlain(b []byte, text string) []byte {
	if printable(text, false) {
		return append(b, text...)
	}
	quoted := strconv.AppendQuote(nil, text)
	return append(b, quoted[1:len(quoted)-1]...)
}

// appendText appends a value, in quotes where it would not end at the next blank.
func appendText(b []byte, text string) []byte {
	if text != "" && printable(text, true) {
		return append(b, text...)
	}
	return strconv.AppendQuote(b, text)
}

// What a byte stops: a text that is written as it is, or one that is one word too.
const stopsText, stopsWord byte = 1, 2

// ascii says of each byte what it stops. What is no ASCII has to be looked at closer.
var ascii = func() (t [256]byte) {
	for c := range t {
		switch {
		case c < ' ', c >= 0x7f, c == '"':
			t[c] = stopsText
		case c == ' ', c == '=':
			t[c] = stopsWord
		}
	}
	return t
}()

// printable says whether a text can be written as it is; as one word, if that is
// asked for.
func printable(text string, word bool) bool {
	stops := stopsText
	if word {
		stops |= stopsWord
	}
	i := 0
	for i < len(text) && ascii[text[i]]&stops == 0 {
		i++
	}
	if i == len(text) {
		return true
	}
	text = text[i:]
	for i, c := range text {
		switch {
		case c < ' ', c == 0x7f, c == '"', word && (c == ' ' || c == '='):
			return false
		case c >= utf8.RuneSelf && (!unicode.IsPrint(c) || c == utf8.RuneError && !validAt(text[i:])):
			return false
		}
	}
	return true
}

// validAt says that a text begins with a character, be it U+FFFD, and not with
// bytes that are none.
func validAt(text string) bool {
	_, size := utf8.DecodeRuneInString(text)
	return size > 1
}
