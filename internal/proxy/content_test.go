package proxy

import (
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// halves sends one part of an answer, and the other five seconds later.
func halves(contentType, early, late string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", contentType)
		w.Chunk([]byte(early))
		w.Pause(5 * time.Second)
		w.Chunk([]byte(late))
		w.End()
	}
}

// aNoArgumentTool never sends a fragment of arguments.
const aNoArgumentTool = `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"list_tasks","arguments":""}}]}`

// Cases 4, 5 and section 6's list: what proves health without text, and text of any
// kind, releases the answer there and then, by one call, and freezes nobody.
func TestWhatCountsAsContent(t *testing.T) {
	toolUse := blockStart(`{"type":"tool_use","id":"toolu_1","name":"list_tasks","input":{}}`)
	call := event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"list_tasks","arguments":""}}`)
	for _, c := range []struct{ name, path, kind, early, late string }{
		// Case 4.
		{"chat: a tool call without arguments", chatPath, sseType, delta(aNoArgumentTool), finish("tool_calls") + done},
		{"chat: a function call", chatPath, sseType, delta(`{"role":"assistant","function_call":{"name":"f","arguments":""}}`), finish("function_call") + done},
		{"messages: a tool", messagesPath, sseType, messageStart + toolUse, blockDelta(`{"type":"input_json_delta","partial_json":""}`) + blockStop + messageEnd("tool_use")},
		{"responses: a function call", responsesPath, sseType, created + call, completed},
		{"gemini: a function call", geminiPath, sseType, gemini(`{"functionCall":{"name":"list_tasks","args":{}}}`, ""), gemini(part(""), "STOP")},
		{"ollama: a tool call", ollamaPath, "application/x-ndjson", `{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"list_tasks","arguments":{}}}]},"done":false}` + "\n", ollamaLine("", "stop")},
		// Case 5.
		{"chat: reasoning_content", chatPath, sseType, role + delta(`{"reasoning_content":"let me think"}`), finish("stop") + done},
		{"chat: reasoning", chatPath, sseType, role + delta(`{"reasoning":"let me think"}`), finish("stop") + done},
		{"messages: thinking, then its signature", messagesPath, sseType, messageStart + blockStart(`{"type":"thinking","thinking":"","signature":""}`) + blockDelta(`{"type":"thinking_delta","thinking":"let me think"}`), blockDelta(`{"type":"signature_delta","signature":"c2ln"}`) + blockStop + messageEnd("end_turn")},
		{"messages: redacted thinking", messagesPath, sseType, messageStart + blockStart(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`), blockStop + messageEnd("end_turn")},
		{"responses: a summary of reasoning", responsesPath, sseType, created + rsDelta("response.reasoning_summary_text.delta", "let me think"), completed},
		{"responses: encrypted reasoning", responsesPath, sseType, created + event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}}`), completed},
		{"gemini: thoughts", geminiPath, sseType, gemini(`{"text":"let me think","thought":true}`, ""), gemini(part(""), "STOP")},
		{"ollama: thinking", ollamaPath, "application/x-ndjson", `{"message":{"role":"assistant","content":"","thinking":"let me think"},"done":false}` + "\n", ollamaLine("", "stop")},
		// The rest of section 6's second line.
		{"chat: an audio part", chatPath, sseType, delta(`{"audio":{"id":"audio_1","data":"AAAA"}}`), finish("stop") + done},
		{"chat: an image", chatPath, sseType, delta(`{"images":[{"type":"image_url","image_url":{"url":"data:"}}]}`), finish("stop") + done},
		{"chat: a refusal", chatPath, sseType, delta(`{"refusal":"I cannot help"}`), finish("stop") + done},
		{"responses: a partial image", responsesPath, sseType, created + event("response.image_generation_call.partial_image", `{"type":"response.image_generation_call.partial_image","partial_image_b64":"AAAA","partial_image_index":0}`), completed},
		{"gemini: an image", geminiPath, sseType, gemini(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, ""), gemini(part(""), "STOP")},
		{"a dialect nobody knows", chatPath, sseType, data(`{"tokens":["a"],"step":1}`), data(`{"tokens":["b"],"step":2}`)},
		{"text that quotes an error", chatPath, sseType, said(`{\"error\":{\"code\":429,\"message\":\"rate limit\"}} RESOURCE_EXHAUSTED status 503 <html> [DONE]`), finish("stop") + done},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", halves(c.kind, c.early, c.late), page(sseType, okSSE))
			sent := requestFor(c.path, true)
			got := s.ask("POST", c.path, sent)
			s.expect(sent, got, outcome{body: c.early + c.late, winner: 1, calls: []int{1, 0}, took: 5 * time.Second, ending: stats.Success})
			if len(got.at) == 0 || got.at[0] != 0 {
				t.Errorf("the first bytes came at %v, want at once", got.at)
			}
			s.unfrozen()
		})
	}
}

// Cases 4 and 5 for whole answers: a tool call alone, or reasoning alone, passes.
func TestWhatCountsAsContentInAWholeAnswer(t *testing.T) {
	for _, c := range []struct{ name, path, body string }{
		{"chat: a tool call", chatPath, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"list_tasks","arguments":""}}]},"finish_reason":"tool_calls"}]}`},
		{"chat: (d) reasoning_content", chatPath, `{"choices":[{"message":{"role":"assistant","content":"","reasoning_content":"step…"},"finish_reason":"stop"}]}`},
		{"chat: reasoning", chatPath, `{"choices":[{"message":{"role":"assistant","content":"","reasoning":"step…"},"finish_reason":"stop"}]}`},
		{"messages: a tool", messagesPath, `{"type":"message","content":[{"type":"tool_use","id":"toolu_1","name":"list_tasks","input":{}}],"stop_reason":"tool_use"}`},
		{"messages: redacted thinking", messagesPath, `{"type":"message","content":[{"type":"redacted_thinking","data":"ZGF0YQ=="}],"stop_reason":"end_turn"}`},
		{"responses: a function call", responsesPath, `{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"call_1","name":"list_tasks","arguments":""}]}`},
		{"responses: a summary of reasoning", responsesPath, `{"object":"response","status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"step"}]}]}`},
		{"gemini: a function call", geminiWhole, geminiJSON(`{"functionCall":{"name":"f","args":{}}}`, "STOP")},
		{"gemini: thoughts", geminiWhole, geminiJSON(`{"text":"step","thought":true}`, "STOP")},
		{"ollama: thinking", ollamaPath, `{"message":{"role":"assistant","content":"","thinking":"step"},"done":true,"done_reason":"stop"}`},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", page(jsonType, c.body), page(jsonType, okChat))
			sent := requestFor(c.path, false)
			s.expect(sent, s.ask("POST", c.path, sent), outcome{body: c.body, winner: 1, calls: []int{1, 0}, ending: stats.Success})
			s.unfrozen()
		})
	}
}

// Case 5 (a): reasoning satisfies the limit on the first content, however long the
// first word of the answer itself takes.
func TestReasoningSatisfiesTheContentLimit(t *testing.T) {
	for _, field := range []string{"reasoning_content", "reasoning"} {
		inBubble(t, field, func(t *testing.T) {
			want := role + strings.Repeat(delta(`{"`+field+`":"…"}`), 20) + said("PONG") + finish("stop") + done
			s := newStage(t, "server: {content_timeout: 1}", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(role))
				for range 20 {
					w.Pause(150 * time.Millisecond)
					w.Chunk([]byte(delta(`{"` + field + `":"…"}`)))
				}
				w.Chunk([]byte(said("PONG") + finish("stop") + done))
				w.End()
			}, frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent)
			s.expect(sent, got, outcome{body: want, winner: 1, calls: []int{1, 0}, took: 3 * time.Second, ending: stats.Success})
			if got.at[0] != 1500*time.Millisecond {
				t.Errorf("released after %v, want with the tenth character", got.at[0])
			}
			if r := s.record(); r.FirstContent != 150*time.Millisecond {
				t.Errorf("first content after %v", r.FirstContent)
			}
		})
	}
}

// Case 6: the meanings of a frame without choices.
func TestFramesWithoutChoices(t *testing.T) {
	filters := data(`{"id":"","object":"","model":"","created":0,"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`)
	usage := data(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	bare := data(`{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	answer := said("PONG PONG PONG") + finish("stop")
	for _, c := range []struct {
		name, early, late string
		released          time.Duration
		tokens            int64
	}{
		{"(a) filter results first", filters, answer + done, 5 * time.Second, -1},
		{"(b) usage last", answer, usage + done, 0, 7},
		{"(b) usage first", usage, answer + done, 5 * time.Second, 7},
		{"(f) usage alone, last", answer, bare + done, 0, 7},
		{"(f) usage alone, first", bare, answer + done, 5 * time.Second, 7},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", halves(sseType, c.early, c.late), frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent)
			s.expect(sent, got, outcome{body: c.early + c.late, winner: 1, calls: []int{1, 0}, took: 5 * time.Second, ending: stats.Success})
			if got.at[0] != c.released {
				t.Errorf("released after %v, want %v", got.at[0], c.released)
			}
			if r := s.record(); r.Usage.Total != c.tokens {
				t.Errorf("usage %+v", r.Usage)
			}
			s.unfrozen()
		})
	}
}

// Case 6 (c) to (e): an error in such a frame is one, and its status is what the
// rules see: a prompt that is too long is asked of everybody once, and goes back to
// the client with that status when all refuse it.
func TestErrorsInFramesWithoutChoices(t *testing.T) {
	gone := data(`{"id":"x","choices":[],"error":{"code":502,"message":"provider unavailable"}}`)
	ended := data(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"gone"}}`)
	tooLong := data(`{"id":"x","choices":[],"error":{"code":400,"message":"prompt is too long"}}`)
	for _, c := range []struct {
		name, body string
		class      string
	}{
		{"(c) a number for a code", gone, "bad_stream"},
		{"(c) behind a role", role + gone, "bad_stream"},
		{"(d) with a finish reason", ended, "bad_stream"},
		{"(d) behind three characters", role + hel + ended + done, "bad_stream"},
		{"(e) a prompt that is too long", tooLong, "bad_stream"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", frames(c.body), frames(okSSE))
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
			s.unfrozen()
		})
	}
	inBubble(t, "(e) refused by all", func(t *testing.T) {
		s := newStage(t, "", frames(tooLong), frames(tooLong))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 400, winner: 2, calls: []int{1, 1}, ending: stats.PassedThrough,
			body: `{"id":"x","choices":[],"error":{"code":400,"message":"prompt is too long"}}`})
		s.unfrozen()
		if s.streak(1) != 0 || s.streak(2) != 0 {
			t.Error("the client's mistake counts against an upstream")
		}
	})
	inBubble(t, "(e) by a rule for 400", func(t *testing.T) {
		s := newStage(t, "rules: [{match: {status: 400}, action: passthrough}]", frames(tooLong), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 400, winner: 1, calls: []int{1, 0}, ending: stats.PassedThrough,
			body: `{"id":"x","choices":[],"error":{"code":400,"message":"prompt is too long"}}`})
	})
	inBubble(t, "(c) by a rule for bad_stream", func(t *testing.T) {
		s := newStage(t, "rules: [{match: {status: bad_stream}, action: freeze, freeze_seconds: 20}]", frames(gone), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
		if f := s.handler.Board().Freezes(time.Now()); len(f) != 1 || f[0].Length != 20*time.Second {
			t.Errorf("freezes %+v", f)
		}
	})
}
