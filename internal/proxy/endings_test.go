package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// released is an answer that has gone out when the upstream does something to it:
// the pieces before it, each dialect's own.
type released struct {
	name, path, kind, body string
	event                  string // what broken_stream: error_event appends
}

const brokeOff = "the upstream's answer broke off"

// releasedAnswers are unfinished answers with enough content to be out.
func releasedAnswers() []released {
	openai := `data: {"error":{"code":"upstream_broke_off","message":"` + brokeOff + `","param":null,"type":"upstream_broke_off"}}` + "\n\n"
	return []released{
		{"chat", chatPath, sseType, role + said("one two three") + said("four"), openai},
		{"completions", "/v1/completions", sseType, data(`{"object":"text_completion","choices":[{"index":0,"text":"one two three","finish_reason":null}]}`), openai},
		{"responses", responsesPath, sseType, created + rsDelta("response.output_text.delta", "one two three"),
			"event: error\n" + `data: {"code":"server_error","message":"` + brokeOff + `","param":null,"type":"error"}` + "\n\n"},
		{"messages", messagesPath, sseType, messageStart + blockStart(`{"type":"text","text":""}`) + textDelta("one two three"),
			"event: error\n" + `data: {"error":{"message":"` + brokeOff + `","type":"api_error"},"type":"error"}` + "\n\n"},
		{"gemini", geminiPath, sseType, gemini(part("one two three"), ""), `data: {"error":{"code":502,"message":"` + brokeOff + `","status":"UNAVAILABLE"}}` + "\n\n"},
		{"gemini array", geminiArray, jsonType, "[" + geminiJSON(part("one two three"), ""), `,{"error":{"code":502,"message":"` + brokeOff + `","status":"UNAVAILABLE"}}`},
		{"gemini array, behind its comma", geminiArray, jsonType, "[" + geminiJSON(part("one two three"), "") + "\r\n,\r\n", `{"error":{"code":502,"message":"` + brokeOff + `","status":"UNAVAILABLE"}}`},
		{"gemini array, within an element", geminiArray, jsonType, "[" + geminiJSON(part("one two three"), "") + `,{"candi`, ""},
		{"ollama chat", ollamaPath, "application/x-ndjson", ollamaLine("one two three", ""), `{"error":"` + brokeOff + `"}` + "\n"},
		{"ollama generate", "/api/generate", "application/x-ndjson", `{"response":"one two three","done":false}` + "\n", `{"error":"` + brokeOff + `"}` + "\n"},
		{"ollama, within a line", ollamaPath, "application/x-ndjson", ollamaLine("one two three", "") + `{"model"`, "\n" + `{"error":"` + brokeOff + `"}` + "\n"},
		{"chat, within an event", chatPath, sseType, said("one two three") + "data: {\"id\":", "\n\n" + openai},
		{"chat, behind a line", chatPath, sseType, said("one two three") + "data: {\"id\":1}\n", "\n" + openai},
		{"chat, within CRLF", chatPath, sseType, strings.ReplaceAll(said("one two three"), "\n", "\r\n") + "data: {\"id\":1}\r", "\n\n" + openai},
		{"chat, within a tool's arguments", chatPath, sseType, delta(aNoArgumentTool) + delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"ci"}}]}`), openai},
		{"chat, within a comment", chatPath, sseType, said("one two three") + ": keep", "\n\n" + openai},
	}
}

// breaks are the ways in which a released answer can stop too early.
var breaks = map[string]func(*drill.Wire){
	"reset":     func(w *drill.Wire) { w.Reset() },
	"cut":       func(w *drill.Wire) { w.FIN() },
	"clean end": func(w *drill.Wire) { w.End() },
	"cut chunk": func(w *drill.Wire) { w.Raw([]byte("40\r\ndata: ")); w.FIN() },
	"no chunk":  func(w *drill.Wire) { w.Raw([]byte("zz\r\n")); w.FIN() },
	"silence":   func(w *drill.Wire) { w.Silence() },
}

// broken sends an answer's pieces and breaks it off a moment later.
func broken(kind, body string, how func(*drill.Wire)) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", kind)
		w.Chunk([]byte(body))
		w.Pause(time.Second)
		how(w)
	}
}

// Cases 10 and 11: a stream that breaks after release, in whatever way, never looks
// whole: nothing is made up, nobody else is called, the upstream is charged.
func TestABrokenStreamNeverLooksWhole(t *testing.T) {
	for _, c := range releasedAnswers() {
		for how, end := range breaks {
			for _, setting := range []string{"abort", "error_event"} {
				inBubble(t, c.name+", "+how+", "+setting, func(t *testing.T) {
					s := newStage(t, "server: {relay_stall_timeout: 9, broken_stream: "+setting+"}", broken(c.kind, c.body, end), frames(okSSE))
					sent := requestFor(c.path, true)
					want := outcome{body: c.body, winner: 1, calls: []int{1, 0}, took: time.Second, cut: true, ending: stats.Broken}
					switch how {
					case "silence":
						want.took = 9 * time.Second
					case "cut chunk":
						want.body += "data: "
					}
					got := s.ask("POST", c.path, sent)
					if setting == "error_event" && how == "cut chunk" {
						// What is open then differs; that it is closed is told below.
						if c.event != "" && !strings.Contains(got.body, brokeOff) {
							t.Errorf("no error event: %q", got.body)
						}
						want.body = got.body
					} else if setting == "error_event" {
						want.body += c.event
					}
					s.expect(sent, got, want)
					if s.streak(1) != 1 {
						t.Error("the break is not booked against u1")
					}
					class := map[string]string{"silence": "stalled_stream", "clean end": "bad_stream"}[how]
					if class == "" {
						class = "network"
					}
					if got := s.verdicts(); got != "failed "+class {
						t.Errorf("verdicts %q, want %s", got, class)
					}
				})
			}
		}
	}
}

// An upstream's own error event after release goes to the client as it came, its end
// too: nothing is appended, whatever the setting, and the upstream is charged.
func TestAnUpstreamsOwnErrorEventIsRelayed(t *testing.T) {
	for _, c := range []released{
		{"chat", chatPath, sseType, said("one two three") + data(`{"error":{"message":"overloaded","code":503}}`), ""},
		{"chat, with DONE", chatPath, sseType, said("one two three") + data(`{"error":{"message":"overloaded","code":503}}`) + done, ""},
		{"responses", responsesPath, sseType, created + rsDelta("response.output_text.delta", "one two three") + event("response.failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`), ""},
		{"messages", messagesPath, sseType, messageStart + textDelta("one two three") + event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), ""},
		{"gemini", geminiPath, sseType, gemini(part("one two three"), "") + `data: {"error":{"code":503,"status":"UNAVAILABLE"}}` + "\r\n\r\n", ""},
		{"gemini array", geminiArray, jsonType, "[" + geminiJSON(part("one two three"), "") + `,{"error":{"code":503,"status":"UNAVAILABLE"}}]`, ""},
		{"ollama", ollamaPath, "application/x-ndjson", ollamaLine("one two three", "") + `{"error":"runner died"}` + "\n", ""},
	} {
		for how, end := range breaks {
			if strings.Contains(how, "chunk") {
				continue
			}
			inBubble(t, c.name+", "+how, func(t *testing.T) {
				s := newStage(t, "server: {relay_stall_timeout: 9, broken_stream: error_event}", broken(c.kind, c.body, end), frames(okSSE))
				sent := requestFor(c.path, true)
				want := outcome{body: c.body, winner: 1, calls: []int{1, 0}, took: time.Second, cut: how != "clean end", ending: stats.Broken}
				if how == "silence" {
					want.took = 9 * time.Second
				}
				s.expect(sent, s.ask("POST", c.path, sent), want)
				if s.streak(1) != 1 {
					t.Error("the error is not booked against u1")
				}
			})
		}
	}
}

// A stream that announces its length, ends there in good order, and still lacks its
// terminal event is as broken as any other: told the length, a client would take it
// for whole.
func TestAnAnnouncedLengthMakesNoBrokenStreamWhole(t *testing.T) {
	for _, c := range releasedAnswers() {
		for name, announced := range map[string]int{"ends at its length": len(c.body), "is cut before it": len(c.body) + 1000} {
			for wait, pause := range map[string]time.Duration{"later": time.Second, "at once": 0} {
				for _, setting := range []string{"abort", "error_event"} {
					inBubble(t, c.name+" "+name+" "+wait+", "+setting, func(t *testing.T) {
						s := newStage(t, "server: {broken_stream: "+setting+"}", func(w *drill.Wire, _ drill.Request, _ int) {
							w.Head(200, drill.Length(announced), "Content-Type", c.kind)
							// Where the pause is 0 the end comes along with the last bytes.
							half := len(c.body) - 1
							w.Chunk([]byte(c.body[:half]))
							w.Pause(pause)
							w.Chunk([]byte(c.body[half:]))
							w.FIN()
						}, frames(okSSE))
						want := outcome{body: c.body, winner: 1, calls: []int{1, 0}, took: pause, cut: true, ending: stats.Broken}
						if setting == "error_event" {
							want.body += c.event
						}
						sent := requestFor(c.path, true)
						got := s.ask("POST", c.path, sent)
						s.expect(sent, got, want)
						if length := got.header.Get("Content-Length"); length != "" {
							t.Errorf("the client was told the length %s", length)
						}
					})
				}
			}
		}
	}
}

// Where nothing may be appended, an answer is broken off without an event: to bytes
// in a coding that only the client undoes, and to a document.
func TestNoErrorEventWhereNoneFits(t *testing.T) {
	body := said("one two three")
	inBubble(t, "a coding", func(t *testing.T) {
		coded := pack(t, "gzip", body)
		s := newStage(t, "server: {broken_stream: error_event}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", "gzip")
			w.Chunk(coded)
			w.Pause(time.Second)
			w.FIN()
		})
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent, "Accept-Encoding", "gzip"), outcome{body: string(coded), winner: 1, calls: []int{1}, took: time.Second, cut: true, ending: stats.Broken})
	})
	inBubble(t, "a JSON document", func(t *testing.T) {
		body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("x", 70<<10)
		s := newStage(t, "server: {broken_stream: error_event, hold_bytes: 65536}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", jsonType)
			w.Chunk([]byte(body))
			w.Pause(time.Second)
			w.FIN()
		})
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: body, winner: 1, calls: []int{1}, took: time.Second, cut: true, ending: stats.Broken})
	})
}

// Streams of endpoints that are not judged have no terminal event to miss: a clean end
// is theirs. A cut is a cut there too, with an event where they are made of events.
func TestOtherStreamsThatBreak(t *testing.T) {
	openai := `data: {"error":{"code":"upstream_broke_off","message":"` + brokeOff + `","param":null,"type":"upstream_broke_off"}}` + "\n\n"
	for _, c := range []released{
		{"a transcription", "/v1/audio/transcriptions", sseType, event("transcript.text.delta", `{"type":"transcript.text.delta","delta":"one two three"}`), openai},
		{"speech as events", "/v1/audio/speech", sseType, event("speech.audio.delta", `{"type":"speech.audio.delta","audio":"AAAA"}`), openai},
		{"speech", "/v1/audio/speech", "audio/mpeg", "\xff\xfb\x90\x00", ""},
		{"an image", "/v1/images/generations", sseType, event("image_generation.partial_image", `{"type":"image_generation.partial_image","b64_json":"AAAA","partial_image_index":0}`), openai},
		{"an unknown one", "/v1/unheard/of", sseType, data(`{"n":1}`), openai},
		{"lines", "/v1/unheard/of", "application/x-ndjson", `{"n":1}` + "\n", `{"error":"` + brokeOff + `"}` + "\n"},
		{"a dialect nobody knows", chatPath, sseType, data(`{"n":1}`) + data(`{"n":2}`), openai},
	} {
		for how, end := range breaks {
			if how == "silence" || strings.Contains(how, "chunk") {
				continue
			}
			inBubble(t, c.name+", "+how, func(t *testing.T) {
				s := newStage(t, "server: {broken_stream: error_event}", broken(c.kind, c.body, end), frames(okSSE))
				sent := requestFor(c.path, true)
				want := outcome{body: c.body + c.event, winner: 1, calls: []int{1, 0}, took: time.Second, cut: true, ending: stats.Broken}
				if how == "clean end" {
					want.body, want.cut, want.ending = c.body, false, stats.Success
				}
				s.expect(sent, s.ask("POST", c.path, sent), want)
			})
		}
	}
}

// Case 12: after the first byte nobody else is called; before it the next one is, and
// the client sees its answer only.
func TestNobodyIsCalledTwiceForOneAnswer(t *testing.T) {
	reset := broken(sseType, role+hel, func(w *drill.Wire) { w.Reset() })
	inBubble(t, "three letters were released", func(t *testing.T) {
		s := newStage(t, "server: {min_content_chars: 1}", reset, frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: role + hel, winner: 1, calls: []int{1, 0}, took: time.Second, cut: true, ending: stats.Broken})
	})
	for name, c := range map[string]struct {
		first drill.Script
		calls []int
		took  time.Duration
	}{
		"three letters were held":        {reset, []int{2, 1}, 3500 * time.Millisecond},
		"a role was held":                {broken(sseType, role, func(w *drill.Wire) { w.Reset() }), []int{2, 1}, 3500 * time.Millisecond},
		"three letters, and a clean end": {broken(sseType, role+hel, func(w *drill.Wire) { w.End() }), []int{1, 1}, time.Second},
		"nine letters, and an error":     {broken(sseType, said("ninechars")+data(`{"error":{"message":"gone"}}`), func(w *drill.Wire) { w.End() }), []int{1, 1}, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", c.first, frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent)
			s.expect(sent, got, outcome{body: okSSE, winner: 2, calls: c.calls, took: c.took, ending: stats.Success})
			if n := strings.Count(got.body, `"role"`); n != 1 {
				t.Errorf("%d role deltas", n)
			}
		})
	}
}

// Case 13: a stream that ends by its dialect's terminal event is whole, without
// [DONE], and whatever breaks behind it.
func TestAStreamIsWholeAtItsTerminalEvent(t *testing.T) {
	usage := data(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	answer := said("one two three")
	for _, c := range []released{
		{"chat without DONE", chatPath, sseType, answer + finish("stop") + usage, ""},
		{"chat without DONE, without usage", chatPath, sseType, answer + finish("stop"), ""},
		{"chat without DONE, a short one", chatPath, sseType, said("Hi") + finish("stop"), ""},
		{"chat with DONE only", chatPath, sseType, answer + done, ""},
		{"chat without the last blank line", chatPath, sseType, answer + strings.TrimRight(finish("stop"), "\n"), ""},
		{"chat with null as the finish_reason before", chatPath, sseType, answer + finish("length"), ""},
		{"responses", responsesPath, sseType, okRS, ""},
		{"responses with DONE", responsesPath, sseType, okRS + done, ""},
		{"messages", messagesPath, sseType, okAM, ""},
		{"messages that end with the reason", messagesPath, sseType, strings.TrimSuffix(okAM, messageStop), ""},
		{"gemini", geminiPath, sseType, okGemini, ""},
		{"gemini array", geminiArray, jsonType, "[" + geminiJSON(part("PONG"), "") + ",\r\n" + geminiJSON(part(""), "STOP") + "]", ""},
		{"ollama", ollamaPath, "application/x-ndjson", okOllama, ""},
		{"ollama without the last line end", ollamaPath, "application/x-ndjson", strings.TrimRight(okOllama, "\n"), ""},
	} {
		for how, end := range breaks {
			if how == "cut chunk" || how == "silence" {
				continue
			}
			if strings.HasSuffix(c.name, "line") || strings.HasSuffix(c.name, "line end") {
				// Only the clean end tells that such a stream is whole.
				if how != "clean end" {
					continue
				}
			}
			inBubble(t, c.name+", "+how, func(t *testing.T) {
				s := newStage(t, "server: {broken_stream: error_event}", broken(c.kind, c.body, end), frames(okSSE))
				sent := requestFor(c.path, true)
				s.expect(sent, s.ask("POST", c.path, sent), outcome{body: c.body, winner: 1, calls: []int{1, 0}, took: time.Second, ending: stats.Success})
				s.unfrozen()
				if s.streak(1) != 0 {
					t.Error("a whole answer is booked against u1")
				}
			})
		}
	}
}

// terminal: optional takes a clean end after content for the end of a whole answer;
// a cut stays a cut, and an empty answer stays empty.
func TestATerminalEventMayBeOptional(t *testing.T) {
	long, short := said("one two three")+said("four"), role+hel
	for name, c := range map[string]struct {
		body string
		how  string
		want outcome
	}{
		"a clean end after release":  {long, "clean end", outcome{body: long, winner: 1, calls: []int{1, 0}, ending: stats.Success}},
		"a clean end before release": {short, "clean end", outcome{body: short, winner: 1, calls: []int{1, 0}, ending: stats.Success}},
		"a clean end of nothing":     {role, "clean end", outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success}},
		"a cut after release":        {long, "cut", outcome{body: long, winner: 1, calls: []int{1, 0}, cut: true, ending: stats.Broken}},
		"a cut before release":       {short, "cut", outcome{body: okSSE, winner: 2, calls: []int{2, 1}, took: 2500 * time.Millisecond, ending: stats.Success}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", broken(sseType, c.body, breaks[c.how]), frames(okSSE))
			cfg := strings.Replace(chain(2, ""), "model: m1}", "model: m1, terminal: optional}", 1)
			s.handler.Swap(compile(t, cfg))
			sent := requestFor(chatPath, true)
			c.want.took += time.Second
			s.expect(sent, s.ask("POST", chatPath, sent), c.want)
		})
	}
}

// A whole answer that is cut before it is whole is a failure of the network, and
// the next candidate is asked.
func TestAWholeAnswerThatIsCut(t *testing.T) {
	half := okChat[:60]
	for name, script := range map[string]drill.Script{
		"an announced length": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Length(len(okChat)), "Content-Type", jsonType)
			w.Chunk([]byte(half))
			w.FIN()
		},
		"a cut chunk": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", jsonType)
			w.Raw([]byte("100\r\n" + half))
			w.FIN()
		},
		"no last chunk": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", jsonType)
			w.Chunk([]byte(okChat))
			w.FIN()
		},
		"a reset": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Length(len(okChat)), "Content-Type", jsonType)
			w.Chunk([]byte(half))
			w.Reset()
		},
		"a cut head": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 200 OK\r\nContent-Ty"))
			w.FIN()
		},
		"no head": func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() },
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", script, page(jsonType, okChat))
			sent := requestFor(chatPath, false)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{2, 1}, took: 1500 * time.Millisecond, ending: stats.Success})
			if got := s.verdicts(); got != "failed network, failed network, ok" {
				t.Errorf("verdicts %q", got)
			}
		})
	}
	inBubble(t, "a clean end in the middle", func(t *testing.T) {
		s := newStage(t, "", page(jsonType, half), page(jsonType, okChat))
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{1, 1}, ending: stats.Success})
		if got := s.verdicts(); got != "failed bad_stream, ok" {
			t.Errorf("verdicts %q", got)
		}
	})
}

// A body whose end is the connection's, as HTTP/1.0 servers send it, is read to it.
func TestABodyUntilTheConnectionEnds(t *testing.T) {
	for kind, body := range map[string]string{sseType: okSSE, jsonType: okChat} {
		inBubble(t, kind, func(t *testing.T) {
			s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.UntilClose, "Content-Type", kind)
				w.Chunk([]byte(body))
				w.End()
			})
			sent := requestFor(chatPath, kind == sseType)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: body, winner: 1, calls: []int{1}, ending: stats.Success})
		})
	}
	inBubble(t, "a reset in its middle", func(t *testing.T) {
		s := newStage(t, "", func(w *drill.Wire, _ drill.Request, n int) {
			w.Head(200, drill.UntilClose, "Content-Type", sseType)
			w.Chunk([]byte(said("one two three")))
			w.Pause(time.Second)
			w.Reset()
		})
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: said("one two three"), winner: 1, calls: []int{1}, took: time.Second, cut: true, ending: stats.Broken})
	})
}

// Trailers that come behind an answer go to the client, but for what stops here.
func TestTrailersPass(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body string
		stream     bool
	}{"a stream": {sseType, okSSE, true}, "a whole answer": {jsonType, okChat, false}} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", c.kind, "Trailer", "X-Checksum")
				w.Chunk([]byte(c.body))
				w.End("X-Checksum", "abc", "X-Late", "1", "Set-Cookie", "a=b", "X-Understudy-Attempts", "9")
			})
			conn, err := s.net.DialContext(t.Context(), "tcp", "127.0.0.1:8787")
			if err != nil {
				t.Fatal(err)
			}
			client := drill.NewClient(conn, "127.0.0.1:8787")
			defer client.Close()
			r := client.Ask(t.Context(), drill.Query{Path: chatPath, Body: []byte(requestFor(chatPath, c.stream))})
			got := map[string]string{}
			for _, f := range r.Trailer {
				got[f.Name] = f.Value
			}
			if want := map[string]string{"X-Checksum": "abc", "X-Late": "1"}; !r.Clean || string(r.Body) != c.body || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("client got %q with %v, clean %v, %v", r.Body, got, r.Clean, r.Err)
			}
		})
	}
}

// Of two answers that were asked for at once, the second is lost where the stream breaks
// behind the end of the first: the client must see that, and delivery complete asks
// somebody else.
func TestAStreamThatLosesAChoiceIsBroken(t *testing.T) {
	first := `data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	second := `data: {"choices":[{"index":1,"delta":{"content":"there"},"finish_reason":"stop"}]}` + "\n\n"
	for _, delivery := range []string{"stream", "complete"} {
		for name, end := range map[string]func(w *drill.Wire){"FIN": (*drill.Wire).FIN, "reset": (*drill.Wire).Reset} {
			cut := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(first))
				end(w)
			})
			well := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(first + second))
				w.End()
			})
			r := newRig(t, fmt.Sprintf("rules: []\nvirtual_models: {vm: {delivery: %s, candidates: [{name: u1, base_url: %q, auth_style: none, model: m}, {name: u2, base_url: %q, auth_style: none, model: m}]}}", delivery, cut.URL(), well.URL()))
			got := r.post(chatPath, `{"model":"vm","stream":true,"n":2,"messages":[]}`)
			if whole := delivery == "complete"; got.Clean != whole || whole && string(got.Body) != first+second {
				t.Errorf("%s, %s: clean %v, %s", delivery, name, got.Clean, got.Body)
			}
			// Nobody asked for two: what comes behind the end takes nothing away.
			if got := r.post(chatPath, `{"model":"vm","stream":true,"messages":[]}`); !got.Clean {
				t.Errorf("%s, %s: one answer: %v", delivery, name, got.Err)
			}
		}
	}
}
