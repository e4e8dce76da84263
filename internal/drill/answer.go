package drill

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultText is what an Answer says that was given nothing to say.
const DefaultText = "Calm weather proves nothing about the ship and the crew."

// Answer is what a model says, whatever the dialect it is asked in. The zero
// Answer says DefaultText.
type Answer struct {
	Text      string // "" with a Tool or Reasoning: no text
	Reasoning string // said before the text
	Tool      *Tool  // called after the text
	Model     string // the model that claims to answer; "": the one asked for
	ID        string // part of every id in the answer; "": "drill0001"
	Pieces    int    // how many deltas the text comes in; 0: one per word
	Usage     Usage  // zero: DefaultUsage

	// Gap is the time between two events of a stream, and the interval of faults
	// that repeat something. Wait is the time of faults that come late. RetryAfter
	// is what faults about limits ask for, in whole seconds. Zero means nothing for
	// a healthy answer and for each fault what its description says.
	Gap, Wait, RetryAfter time.Duration
}

// Tool is a call of a tool.
type Tool struct {
	Name      string
	Arguments string // a JSON object; "": {}
}

// Usage is what an answer reports to have cost, in tokens. Cached is part of
// Input, Reasoning part of Output. A negative Input means that nothing is reported.
type Usage struct{ Input, Cached, Output, Reasoning int }

// DefaultUsage is what an Answer reports that was given no Usage.
var DefaultUsage = Usage{Input: 21, Cached: 8, Output: 13}

// created is when all answers claim to have been made: equal answers are equal
// bytes.
const created = "1767225610"

// Frames returns the body of the answer to r, split where a vendor's server would
// flush: an event per frame, or one frame where r does not ask for a stream.
func (a Answer) Frames(r Request) [][]byte { return a.play(formOf(r)).frames() }

// Header returns the header of the answer to r, names and values in turn.
func (a Answer) Header(r Request) []string {
	p := a.play(formOf(r))
	return append([]string{"Content-Type", p.contentType}, p.header...)
}

// Body returns the body of the answer to r.
func (a Answer) Body(r Request) []byte { return bytes.Join(a.Frames(r), nil) }

// Healthy answers every request as the vendor would, in the request's dialect and
// as a stream where it asks for one.
func Healthy(a Answer) Script {
	return func(w *Wire, r Request, n int) { a.play(formOf(r)).perform(w, a.Gap) }
}

// event is one event of a stream before framing.
type event struct{ name, data string }

// format is how a body carries events.
type format uint8

const (
	whole  format = iota // no stream
	sse                  // with LF
	sseWin               // with CRLF, as Google sends it
	ndjson
	array
)

// play is an answer before framing: the events before any content, those with it
// and those that end it, or, for format whole, the body.
type play struct {
	format      format
	contentType string
	header      []string // names and values in turn
	lead        []event
	content     []event
	close       []event
	body        []byte
	blank       event  // says nothing and means nothing
	keepalive   []byte // framed; says only that somebody is there
}

// complete returns a with its defaults filled in, for a request of form f.
func (a Answer) complete(f form) Answer {
	if a.Model == "" {
		a.Model = f.model
	}
	if a.Model == "" {
		a.Model = "drill-model"
	}
	if a.ID == "" {
		a.ID = "drill0001"
	}
	if a.Usage == (Usage{}) {
		a.Usage = DefaultUsage
	}
	tools := f.shape == chat || f.shape == responses || f.shape == messages || f.shape == generate || f.shape == ollamaChat
	if a.Text == "" && (a.Tool == nil && a.Reasoning == "" || !tools) {
		a.Text = DefaultText
	}
	return a
}

// play returns the healthy answer to a request of form f.
func (a Answer) play(f form) play {
	a = a.complete(f)
	p := play{contentType: "application/json"}
	switch f.shape {
	case chat:
		p = a.chat(f)
	case completions:
		p = a.completions(f)
	case responses:
		p = a.responses(f)
	case messages:
		p = a.messages(f)
	case generate:
		p = a.generate(f)
	case ollamaChat, ollamaGenerate:
		p = a.ollama(f)
	default:
		p = a.other(f)
	}
	if p.keepalive == nil {
		p.keepalive = []byte("\n")
		if p.format == sse || p.format == sseWin {
			p.keepalive = []byte(": keep-alive\n\n")
		}
	}
	switch f.dialect {
	case openAI:
		p.header = []string{"x-request-id", "req_" + a.ID, "x-ratelimit-remaining-requests", "499"}
	case anthropic:
		p.header = []string{"request-id", "req_" + a.ID, "anthropic-ratelimit-requests-remaining", "49"}
	}
	if f.stream {
		p.header = append(p.header, "Cache-Control", "no-cache")
	}
	return p
}

// events returns all events in order.
func (p play) events() []event {
	out := append([]event(nil), p.lead...)
	return append(append(out, p.content...), p.close...)
}

// frames returns the whole body.
func (p play) frames() [][]byte {
	if p.format == whole {
		return [][]byte{p.body}
	}
	return append(p.encode(0, p.events()), p.tail()...)
}

// encode frames events, the first of which is the body's event number from.
func (p play) encode(from int, events []event) [][]byte {
	out := make([][]byte, 0, len(events))
	for i, e := range events {
		var s string
		switch p.format {
		case ndjson:
			s = e.data + "\n"
		case array:
			s = ",\r\n" + e.data
			if from+i == 0 {
				s = "[" + e.data
			}
		case sseWin:
			s = "data: " + e.data + "\r\n\r\n"
		default:
			if e.name != "" {
				s = "event: " + e.name + "\n"
			}
			s += "data: " + e.data + "\n\n"
		}
		out = append(out, []byte(s))
	}
	return out
}

// tail returns what ends a body after its last event.
func (p play) tail() [][]byte {
	if p.format == array {
		return [][]byte{[]byte("]")}
	}
	return nil
}

// perform sends the answer: a stream chunk by chunk, anything else in one write.
func (p play) perform(w *Wire, gap time.Duration) {
	if p.format == whole {
		w.whole(http.StatusOK, p.contentType, p.body, p.header...)
		return
	}
	p.begin(w)
	w.chunks(p.frames(), gap)
	w.End()
}

// begin sends the head of a chunked answer.
func (p play) begin(w *Wire) {
	w.Head(http.StatusOK, Chunked, append([]string{"Content-Type", p.contentType}, p.header...)...)
}

// split cuts s into n pieces of about the same number of characters, or into words
// with the space before them where n is 0.
func split(s string, n int) []string {
	if s == "" {
		return nil
	}
	var out []string
	if n <= 0 {
		for len(s) > 0 {
			end := strings.IndexByte(s[1:], ' ') + 1
			if end == 0 {
				end = len(s)
			}
			out = append(out, s[:end])
			s = s[end:]
		}
		return out
	}
	runes := []rune(s)
	n = min(n, len(runes))
	for i := range n {
		out = append(out, string(runes[i*len(runes)/n:(i+1)*len(runes)/n]))
	}
	return out
}

// lengthen returns a with a text that is surely longer than what a proxy holds
// back, for faults that come after the release.
func (a Answer) lengthen() Answer {
	if a.Text == "" {
		a.Text = DefaultText
	}
	if n := utf8.RuneCountInString(a.Text); n < 40 {
		a.Text += strings.Repeat(" and so on", (49-n)/10)
	}
	a.Tool = nil
	return a
}

// arguments returns the tool's arguments as JSON text.
func (t *Tool) arguments() string {
	if t.Arguments == "" {
		return "{}"
	}
	return t.Arguments
}

// quote returns s as a JSON string.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("drill: quote: " + err.Error()) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func num(n int) string { return strconv.Itoa(n) }
