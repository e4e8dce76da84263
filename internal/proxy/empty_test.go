package proxy

import (
	"testing"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// emptyAnswer is an answer of status 200 that says nothing.
type emptyAnswer struct {
	name, path string
	stream     bool
	script     drill.Script
	body       string // what it sends
	ok, okBody string // content type and body of the healthy answer beside it
	wellFormed bool   // it may go to the client when nobody is left
}

const (
	sseType  = "text/event-stream"
	jsonType = "application/json"
)

// emptyAnswers are those of case 1, and their kin in the other dialects and forms.
func emptyAnswers() []emptyAnswer {
	chat := func(name, body string, wellFormed bool) emptyAnswer {
		return emptyAnswer{"chat: " + name, chatPath, true, frames(body), body, sseType, okSSE, wellFormed}
	}
	rs := func(name, body string, wellFormed bool) emptyAnswer {
		return emptyAnswer{"responses: " + name, responsesPath, true, frames(body), body, sseType, okRS, wellFormed}
	}
	am := func(name, body string, wellFormed bool) emptyAnswer {
		return emptyAnswer{"messages: " + name, messagesPath, true, frames(body), body, sseType, okAM, wellFormed}
	}
	json := func(name, path, body, okBody string, wellFormed bool) emptyAnswer {
		return emptyAnswer{name, path, false, page(jsonType, body), body, jsonType, okBody, wellFormed}
	}
	usage := data(`{"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":5}}`)
	return []emptyAnswer{
		chat("(a) zero bytes", "", false),
		chat("(b) only DONE", done, false),
		chat("(c) a ping", ": ping\n\n", false),
		chat("(d) a role", role, false),
		chat("(f) a role and stop", role+finish("stop")+done, true),
		chat("(f) a role and stop, usage", role+finish("stop")+usage+done, true),
		chat("(f) without the last blank line", role+`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, true),
		chat("no choices but usage", usage+done, false),
		chat("an empty event", "data:\n\n", false),
		chat("blank lines", "\n\r\n\n", false),
		rs("(a) zero bytes", "", false),
		rs("(b) only DONE", done, false),
		rs("(c) a ping", ": ping\n\n", false),
		rs("(d) created", created, false),
		rs("(e) created and completed", created+completed, true),
		am("(a) zero bytes", "", false),
		am("(c) pings", messageStart+ping+ping, false),
		am("(d) an empty block", messageStart+blockStart(`{"type":"text","text":""}`), false),
		am("(f) end_turn without a block", messageStart+messageEnd("end_turn"), true),
		{"gemini: zero bytes", geminiPath, true, frames(""), "", sseType, okGemini, false},
		{"gemini: usage only", geminiPath, true, frames(data(`{"usageMetadata":{"promptTokenCount":5}}`)), data(`{"usageMetadata":{"promptTokenCount":5}}`), sseType, okGemini, false},
		{"gemini: STOP without a word", geminiPath, true, frames(gemini(part(""), "STOP")), gemini(part(""), "STOP"), sseType, okGemini, true},
		{"gemini array: nothing in it", geminiArray, true, page(jsonType, "[]"), "[]", jsonType, "[" + geminiJSON(part("PONG"), "STOP") + "]", false},
		{"ollama: zero bytes", ollamaPath, true, page("application/x-ndjson", ""), "", "application/x-ndjson", okOllama, false},
		{"ollama: done without a word", ollamaPath, true, page("application/x-ndjson", ollamaLine("", "stop")), ollamaLine("", "stop"), "application/x-ndjson", okOllama, true},

		json("chat JSON: (a) zero bytes", chatPath, "", okChat, false),
		json("chat JSON: blanks", chatPath, " \r\n\n", okChat, false),
		json("chat JSON: no choices", chatPath, `{"id":"c1","object":"chat.completion","choices":[],"usage":{"prompt_tokens":5}}`, okChat, false),
		json("chat JSON: choices null", chatPath, `{"id":"c1","object":"chat.completion","choices":null}`, okChat, false),
		json("chat JSON: (d) a role", chatPath, `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":null}]}`, okChat, false),
		json("chat JSON: (f) a role and stop", chatPath, `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, okChat, true),
		json("responses JSON: (e) completed", responsesPath, emptyResponse, okResponse, true),
		json("messages JSON: (f) end_turn", messagesPath, `{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":25,"output_tokens":1}}`, okMessage, true),
		json("gemini JSON: STOP", geminiWhole, geminiJSON(part(""), "STOP"), geminiJSON(part("PONG"), "STOP"), true),
		json("ollama JSON: done", ollamaPath, ollamaLine("", "stop"), ollamaLine("PONG", "stop"), true),
	}
}

// Case 1: an answer of status 200 that says nothing is no success: the next
// candidate is asked at once, and the client sees only its answer.
func TestAnEmptyAnswerGoesToTheNextCandidate(t *testing.T) {
	for _, c := range emptyAnswers() {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", c.script, page(c.ok, c.okBody))
			sent := requestFor(c.path, c.stream)
			s.expect(sent, s.ask("POST", c.path, sent), outcome{body: c.okBody, winner: 2, calls: []int{1, 1}, ending: stats.Success})
			s.unfrozen()
			want := "failed bad_stream, ok"
			if c.wellFormed {
				want = "empty bad_stream, ok"
			}
			if got := s.verdicts(); got != want {
				t.Errorf("verdicts %q, want %q", got, want)
			}
		})
	}
}

// Case 1: where nobody is left, an empty answer that is well-formed goes to the
// client as it came, and every other one becomes a real error, never an empty 200.
func TestAnEmptyAnswerWhenNobodyIsLeft(t *testing.T) {
	for _, c := range emptyAnswers() {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", c.script)
			sent := requestFor(c.path, c.stream)
			got := s.ask("POST", c.path, sent)
			if c.wellFormed {
				s.expect(sent, got, outcome{body: c.body, winner: 1, calls: []int{1}, ending: stats.EmptyPassed})
				if n := s.streak(1); n != 0 {
					t.Errorf("%d failures in a row: an empty answer is none", n)
				}
				return
			}
			s.expect(sent, got, outcome{status: 502, own: "upstream_all_failed", calls: []int{1}, ending: stats.Exhausted})
			if n := s.streak(1); n != 1 {
				t.Errorf("%d failures in a row, want 1", n)
			}
		})
	}
}

// The first well-formed empty answer is the one that is passed on, whatever the
// others did, before and after it.
func TestTheFirstEmptyAnswerIsKept(t *testing.T) {
	first, second := role+finish("stop")+done, finish("stop")
	for name, c := range map[string]struct {
		scripts []drill.Script
		body    string
		winner  int
		calls   []int
	}{
		"two empty ones":            {[]drill.Script{frames(first), frames(second)}, first, 1, []int{1, 1}},
		"a refusal before it":       {[]drill.Script{refusal(401, `{"error":{"message":"no"}}`), frames(second)}, second, 2, []int{1, 1}},
		"a refusal behind it":       {[]drill.Script{frames(first), refusal(401, `{"error":{"message":"no"}}`)}, first, 1, []int{1, 1}},
		"a prompt too long, behind": {[]drill.Script{frames(first), refusal(400, `{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}`)}, first, 1, []int{1, 1}},
		"an ill-formed one before":  {[]drill.Script{frames(role), frames(second), frames(done)}, second, 2, []int{1, 1, 1}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", c.scripts...)
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: c.body, winner: c.winner, calls: c.calls, ending: stats.EmptyPassed})
		})
	}
}

// The empty answer that is passed on keeps its headers, and ends target mode.
func TestAnEmptyAnswerEndsTargetMode(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", "text/event-stream; charset=utf-8", "X-Ratelimit-Remaining-Requests", "3")
			w.Chunk([]byte(role + finish("stop") + done))
			w.End()
		})
		s.handler.Target().Set(true)
		sent := requestFor(chatPath, true)
		got := s.ask("POST", chatPath, sent)
		s.expect(sent, got, outcome{body: role + finish("stop") + done, winner: 1, calls: []int{1}, ending: stats.EmptyPassed})
		if got.header.Get("X-Ratelimit-Remaining-Requests") != "3" || got.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Errorf("headers %v", got.header)
		}
	})
}

// What ends without a word but says why is an answer.
func TestAnExplainedSilenceIsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name, path string
		stream     bool
		kind, body string
	}{
		{"chat: length", chatPath, true, sseType, role + finish("length") + done},
		{"chat: content_filter", chatPath, true, sseType, role + finish("content_filter") + done},
		{"chat: refusal", chatPath, true, sseType, role + delta(`{"refusal":"I cannot help with that."}`) + finish("stop") + done},
		{"responses: incomplete", responsesPath, true, sseType, created + event("response.incomplete", `{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`)},
		{"messages: refusal", messagesPath, true, sseType, messageStart + messageEnd("refusal")},
		{"messages: max_tokens", messagesPath, true, sseType, messageStart + messageEnd("max_tokens")},
		{"gemini: SAFETY", geminiPath, true, sseType, "data: " + `{"candidates":[{"finishReason":"SAFETY","index":0}]}` + "\r\n\r\n"},
		{"gemini: MAX_TOKENS", geminiPath, true, sseType, gemini(part(""), "MAX_TOKENS")},
		{"gemini: a blocked prompt", geminiPath, true, sseType, "data: " + `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}` + "\r\n\r\n"},
		{"ollama: load", ollamaPath, true, "application/x-ndjson", ollamaLine("", "load")},
		{"chat JSON: length", chatPath, false, jsonType, `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}]}`},
		{"chat JSON: content_filter", chatPath, false, jsonType, `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}]}`},
		{"messages JSON: refusal", messagesPath, false, jsonType, `{"type":"message","content":[],"stop_reason":"refusal"}`},
		{"gemini JSON: a blocked prompt", geminiWhole, false, jsonType, `{"promptFeedback":{"blockReason":"SAFETY"}}`},
		{"responses JSON: incomplete", responsesPath, false, jsonType, `{"object":"response","status":"incomplete","output":[]}`},
		{"responses JSON: queued", responsesPath, false, jsonType, `{"object":"response","status":"queued","output":[]}`},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", page(c.kind, c.body), page(sseType, okSSE))
			sent := requestFor(c.path, c.stream)
			s.expect(sent, s.ask("POST", c.path, sent), outcome{body: c.body, winner: 1, calls: []int{1, 0}, ending: stats.Success})
			s.unfrozen()
		})
	}
}
