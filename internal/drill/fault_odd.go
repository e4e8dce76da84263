package drill

import (
	"bytes"
	"compress/gzip"
	"strings"
)

// codingFaults compress what was asked for plain.
func codingFaults() []Fault {
	return []Fault{
		{Name: "gzip", Healthy: true, Says: "answers well, in gzip that nobody asked for, flushed event by event", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.header = append(p.header, "Content-Encoding", "gzip")
				frames := zip(p.frames())
				if p.format == whole {
					w.whole(200, p.contentType, bytes.Join(frames, nil), p.header...)
					return
				}
				p.begin(w)
				w.chunks(frames, a.Gap)
				w.End()
			}
		}},
		{Name: "gzip-broken", Says: "announces gzip and sends one whose data is damaged from the start", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.header = append(p.header, "Content-Encoding", "gzip")
				body := bytes.Join(zip(p.frames()), nil)
				for i := 10; i < len(body); i++ { // the ten bytes before are gzip's header
					body[i] = 0xff
				}
				p.begin(w)
				w.Chunk(body)
				w.End()
			}
		}},
		{Name: "gzip-unlabelled", Says: "sends gzip and does not say so", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.begin(w)
				w.chunks(zip(p.frames()), a.Gap)
				w.End()
			}
		}},
	}
}

// zip compresses frames so that each can be decoded as soon as it is there. The
// last one holds the end.
func zip(frames [][]byte) [][]byte {
	var out [][]byte
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	take := func() {
		out = append(out, bytes.Clone(b.Bytes()))
		b.Reset()
	}
	for _, f := range frames {
		// Writing to a bytes.Buffer cannot fail.
		_, _ = z.Write(f)
		_ = z.Flush()
		take()
	}
	_ = z.Close()
	take()
	return out
}

// oddities are whole and right answers that look strange.
func oddities() []Fault {
	return []Fault{
		{Name: "large-headers", Healthy: true, Says: "answers well, with 60 KiB of header lines", Script: headed(func() []string {
			var h []string
			for range 15 {
				h = append(h, "x-filler", strings.Repeat("f", 4<<10))
			}
			return h
		}()...)},
		{Name: "interim-storm", Healthy: true, Says: "sends fifty 1xx answers and then answers well", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				for i := range 50 {
					w.Interim(102+i%2, "Link", "</drill.css>; rel=preload")
				}
				Healthy(a)(w, r, n)
			}
		}},
		{Name: "idle-close", Healthy: true, Says: "answers well, promises to keep the connection and closes it at once", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				Healthy(a)(w, r, n)
				w.FIN()
			}
		}},
		{Name: "idle-fin", Healthy: true, Says: "answers well, keeps the connection, and closes it when the next request comes on it", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				Healthy(a)(w, r, n)
				w.DieNext(FIN)
			}
		}},
		{Name: "idle-reset", Healthy: true, Says: "answers well, keeps the connection, and resets it when the next request comes on it", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				Healthy(a)(w, r, n)
				w.DieNext(RST)
			}
		}},
		{Name: "reset-after-terminal", Healthy: true, Says: "says it all, the event that ends the stream too, and resets the connection", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				if p.format == whole {
					p.perform(w, 0)
					w.Reset()
					return
				}
				p.begin(w)
				w.chunks(p.frames(), a.Gap)
				w.Reset()
			}
		}},
		{Name: "no-done", Healthy: true, Says: "ends with a finish reason and without [DONE], where the dialect has it", Script: edited(func(p *play) {
			if i := len(p.close) - 1; i > 0 && p.close[i].data == "[DONE]" {
				p.close = p.close[:i]
			}
		})},
		{Name: "length-empty", Healthy: true, Says: "spends its whole budget on thoughts nobody sees and stops for length, without a word", Script: explained(outOfTokens)},
		{Name: "filter-empty", Healthy: true, Says: "stops for its content filter (a refusal, SAFETY), without a word", Script: explained(stoppedByFilter)},
		{Name: "json-for-sse", Healthy: true, Says: "answers a request for a stream with one whole JSON answer", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				f := formOf(r)
				f.stream, f.array = false, false
				a.play(f).perform(w, 0)
			}
		}},
		{Name: "label-swapped", Healthy: true, Says: "answers well, JSON labelled as events and events as JSON", Script: edited(func(p *play) {
			if p.format == sse || p.format == sseWin {
				p.contentType = "application/json"
			} else {
				p.contentType = eventsType
			}
		})},
		{Name: "label-plain", Healthy: true, Says: "answers well, labelled as plain text", Script: edited(func(p *play) { p.contentType = "text/plain; charset=utf-8" })},
		{Name: "label-missing", Healthy: true, Says: "answers well, without a Content-Type", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				w.Head(200, Chunked, p.header...)
				w.chunks(p.frames(), a.Gap)
				w.End()
			}
		}},
		{Name: "sse-crlf", Healthy: true, Says: "ends the lines of its events with CRLF", Script: respelt(strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n").Replace)},
		{Name: "sse-lf", Healthy: true, Says: "ends the lines of its events with LF", Script: respelt(strings.NewReplacer("\r\n", "\n").Replace)},
		{Name: "sse-cr", Healthy: true, Says: "ends the lines of its events with CR", Script: respelt(strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace)},
		{Name: "sse-no-space", Healthy: true, Says: "sends no space after the colon", Script: respelt(strings.NewReplacer("data: ", "data:", "event: ", "event:").Replace)},
		{Name: "sse-fields", Healthy: true, Says: "numbers its events and tells how to reconnect, with comments between", Script: respelt(func(s string) string {
			return ": still here\n\nid: 7\nretry: 3000\nx-unknown: field\n" + s
		})},
		{Name: "sse-multiline", Healthy: true, Says: "spreads the JSON of an event over several data lines", Script: respelt(func(s string) string {
			head, data, ok := strings.Cut(s, `data: {`)
			if !ok {
				return s
			}
			end := data[len(strings.TrimRight(data, "\r\n")):]
			return head + "data: {" + end[:len(end)/2] + "data: " + data
		})},
		{Name: "sse-bom", Healthy: true, Says: "begins with a byte order mark", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				frames := p.frames()
				if p.format == sse || p.format == sseWin {
					frames[0] = append([]byte("\ufeff"), frames[0]...)
				}
				p.send(w, frames, a)
			}
		}},
		{Name: "split-runes", Healthy: true, Says: "cuts its writes in the middle of characters and line ends", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				var frames [][]byte
				for body := bytes.Join(p.frames(), nil); len(body) > 0; {
					cut := min(len(body), 7)
					if i := bytes.IndexFunc(body[:cut], func(r rune) bool { return r > 0x7f }); i >= 0 {
						cut = i + 1
					}
					frames, body = append(frames, body[:cut]), body[cut:]
				}
				p.send(w, frames, a)
			}
		}},
		{Name: "one-write", Healthy: true, Says: "sends all events in one piece", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.send(w, [][]byte{bytes.Join(p.frames(), nil)}, a)
			}
		}},
		{Name: "long-line", Healthy: true, Says: "says 2 MiB in one event", Script: func(a Answer) Script {
			a.Text, a.Pieces = strings.Repeat("The line is long. ", 2<<20/18), 1
			return Healthy(a)
		}},
	}
}

// explained returns an answer without a word whose end says why.
func explained(end func(string) string) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			p := a.wordless(formOf(r))
			for i := range p.close {
				p.close[i].data = end(p.close[i].data)
				if p.close[i].name == "response.completed" {
					p.close[i].name = "response.incomplete"
				}
			}
			p.body = []byte(end(string(p.body)))
			p.perform(w, a.Gap)
		}
	}
}

// stoppedByFilter rewrites how an answer without content ends.
var stoppedByFilter = strings.NewReplacer(
	`"finish_reason":"stop"`, `"finish_reason":"content_filter"`,
	`"stop_reason":"end_turn"`, `"stop_reason":"refusal"`,
	`"finishReason":"STOP"`, `"finishReason":"SAFETY"`,
	`"done_reason":"stop"`, `"done_reason":"length"`, // Ollama filters nothing
	`"type":"response.completed"`, `"type":"response.incomplete"`,
	`"status":"completed","background"`, `"status":"incomplete","background"`,
	`"incomplete_details":null`, `"incomplete_details":{"reason":"content_filter"}`,
).Replace

// outOfTokens rewrites how an answer without content ends.
var outOfTokens = strings.NewReplacer(
	`"finish_reason":"stop"`, `"finish_reason":"length"`,
	`"stop_reason":"end_turn"`, `"stop_reason":"max_tokens"`,
	`"finishReason":"STOP"`, `"finishReason":"MAX_TOKENS"`,
	`"done_reason":"stop"`, `"done_reason":"length"`,
	`"type":"response.completed"`, `"type":"response.incomplete"`,
	`"status":"completed","background"`, `"status":"incomplete","background"`,
	`"incomplete_details":null`, `"incomplete_details":{"reason":"max_output_tokens"}`,
).Replace

// send sends frames under the play's head, chunked where it is a stream.
func (p play) send(w *Wire, frames [][]byte, a Answer) {
	p.begin(w)
	w.chunks(frames, a.Gap)
	w.End()
}

// headed returns a healthy answer with more header lines.
func headed(header ...string) func(Answer) Script {
	return edited(func(p *play) { p.header = append(p.header, header...) })
}

// edited returns a healthy answer that was changed before framing.
func edited(edit func(*play)) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			p := a.play(formOf(r))
			edit(&p)
			p.perform(w, a.Gap)
		}
	}
}

// respelt returns a healthy answer whose events are spelt otherwise; answers that
// are no event stream stay as they are.
func respelt(spell func(string) string) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			p := a.play(formOf(r))
			frames := p.frames()
			if p.format == sse || p.format == sseWin {
				for i, f := range frames {
					frames[i] = []byte(spell(string(f)))
				}
			}
			p.send(w, frames, a)
		}
	}
}
