package proxy

import (
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

const challenge = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body></html>"

// Case 7: a page of HTML is no answer, whatever it is labelled, to a stream request
// and to any other.
func TestHTMLIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct{ kind, body string }{
		"as HTML":                  {"text/html; charset=utf-8", challenge},
		"as JSON":                  {jsonType, challenge},
		"as an event stream":       {sseType, challenge},
		"without a type":           {"", challenge},
		"behind white space":       {"text/html", " \r\n\t\n" + challenge},
		"behind a byte order mark": {"text/html", "\xef\xbb\xbf" + challenge},
		"without a doctype":        {"text/html", "<html><body>502</body></html>"},
		"in small letters":         {jsonType, "<!doctype html><p>hi"},
		"a comment first":          {jsonType, "<!-- edge --><html></html>"},
	} {
		for _, ask := range []struct {
			name, ok, okBody string
			stream           bool
		}{{"streaming", sseType, okSSE, true}, {"whole", jsonType, okChat, false}} {
			inBubble(t, name+", "+ask.name, func(t *testing.T) {
				s := newStage(t, "", page(c.kind, c.body), page(ask.ok, ask.okBody))
				sent := requestFor(chatPath, ask.stream)
				s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: ask.okBody, winner: 2, calls: []int{1, 1}, ending: stats.Success})
				if got := s.verdicts(); got != "failed bad_stream, ok" {
					t.Errorf("verdicts %q", got)
				}
				first := s.handler.Snapshot().Routes.Chains()[0].Tiers[0][0]
				if n := s.handler.Ledger().Candidate(string(first.ID), time.Now()); n.Successes != 0 || n.Failures != 1 {
					t.Errorf("u1 is credited with %d successes and %d failures", n.Successes, n.Failures)
				}
			})
			inBubble(t, name+", "+ask.name+", nobody left", func(t *testing.T) {
				s := newStage(t, "", page(c.kind, c.body))
				sent := requestFor(chatPath, ask.stream)
				s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 502, own: "upstream_all_failed", calls: []int{1}, ending: stats.Exhausted})
			})
		}
	}
}

// Case 7: a rule sees all of the page, not only what the first packet held.
func TestRulesSeeAllOfAPage(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, `rules: [{match: {status: bad_stream, body_regex: "Enable JavaScript"}, action: freeze, freeze_seconds: 20}]`,
			func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Length(len(challenge)), "Content-Type", "text/html")
				w.Chunk([]byte(challenge[:30]))
				w.Pause(20 * time.Millisecond)
				w.Chunk([]byte(challenge[30:]))
				w.End()
			}, frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, took: 20 * time.Millisecond, ending: stats.Success})
		if f := s.handler.Board().Freezes(time.Now()); len(f) != 1 {
			t.Errorf("freezes %+v", f)
		}
	})
}

// Case 8: an error of status 200 is a failure in whatever shape it comes.
func TestAnErrorInA200IsAFailure(t *testing.T) {
	for _, c := range []struct{ name, path, body string }{
		{"(a) a status inside", chatPath, `{"error":{"message":"ResourceExhausted: worker limit","code":502}}`},
		{"(b) MiniMax", chatPath, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`},
		{"(c) success false", chatPath, `{"success":false,"error":{"code":"X"}}`},
		{"a string", chatPath, `{"error":"upstream exploded"}`},
		{"an object that calls itself error", chatPath, `{"object":"error","message":"boom","type":"internal","code":500}`},
		{"within a choice", chatPath, `{"choices":[{"index":0,"error":{"message":"gone","code":502},"message":{"role":"assistant","content":""}}]}`},
		{"beside content", chatPath, `{"error":{"message":"boom"},"choices":[{"message":{"role":"assistant","content":"half an ans"},"finish_reason":"stop"}]}`},
		{"FastAPI", chatPath, `{"detail":"Internal Server Error"}`},
		{"responses: failed", responsesPath, `{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}`},
		{"messages", messagesPath, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{"gemini", geminiWhole, `{"error":{"code":503,"message":"high demand","status":"UNAVAILABLE"}}`},
		{"ollama", ollamaPath, `{"error":"llama runner process has terminated"}`},
		{"no JSON at all", chatPath, "upstream connect error or disconnect/reset before headers"},
		{"JSON and a rest", chatPath, okChat + "trailing"},
		{"a number", chatPath, "42"},
	} {
		for _, stream := range []bool{false, true} {
			name := c.name
			if stream {
				name += ", to a stream request"
			}
			if stream && c.path == geminiWhole {
				continue // whether it streams stands in its path
			}
			inBubble(t, name, func(t *testing.T) {
				s := newStage(t, "", page(jsonType, c.body), page(jsonType, okChat), page(jsonType, okChat))
				sent := requestFor(c.path, stream)
				got := s.ask("POST", c.path, sent)
				if c.path != chatPath {
					// Only that the next one was asked matters here.
					if len(s.up[0].Requests()) != 1 || len(s.up[1].Requests()) != 1 {
						t.Errorf("%d and %d calls", s.up[0].Count(), s.up[1].Count())
					}
					return
				}
				s.expect(sent, got, outcome{body: okChat, winner: 2, calls: []int{1, 1, 0}, ending: stats.Success})
			})
		}
	}
}

// Case 8 (d) to (g): what looks like an error and is none passes untouched.
func TestWhatOnlyLooksLikeAnErrorPasses(t *testing.T) {
	quoted := `{\"error\":{\"code\":429,\"message\":\"rate limit\"}} RESOURCE_EXHAUSTED status 503`
	for _, c := range []struct {
		name, path string
		stream     bool
		kind, body string
	}{
		{"(d) error null", chatPath, false, jsonType, strings.Replace(okChat, `{"id"`, `{"error":null,"id"`, 1)},
		{"error empty", chatPath, false, jsonType, strings.Replace(okChat, `{"id"`, `{"error":"","id"`, 1)},
		{"error an empty object", chatPath, false, jsonType, strings.Replace(okChat, `{"id"`, `{"error":{},"id"`, 1)},
		{"(e) text that quotes one", chatPath, false, jsonType, strings.Replace(okChat, "PONG", quoted, 1)},
		{"(f) deltas that quote one", chatPath, true, sseType, said(quoted) + said(quoted) + finish("stop") + done},
		{"(f) a whole delta of one", chatPath, true, sseType, said(`data: {\"error\":{}}\n\n`) + finish("stop") + done},
		{"(g) a response's nulls", responsesPath, false, jsonType, okResponse},
		{"(g) a stream's nulls", responsesPath, true, sseType, okRS},
		{"chunks with error null", chatPath, true, sseType, strings.ReplaceAll(okSSE, `{"id"`, `{"error":null,"id"`)},
		{"MiniMax that is well", chatPath, false, jsonType, strings.Replace(okChat, `{"id"`, `{"base_resp":{"status_code":0,"status_msg":""},"id"`, 1)},
		{"an event named like a moderation", chatPath, true, sseType, data(`{"choices":[],"moderation":{"type":"error"}}`) + okSSE},
		{"blank lines first", chatPath, false, jsonType, "\n\n\n" + okChat},
		{"a byte order mark first", chatPath, true, sseType, "\xef\xbb\xbf" + okSSE},
		{"SSE labelled JSON", chatPath, true, jsonType, okSSE},
		{"SSE without a label", chatPath, true, "", okSSE},
		{"JSON where a stream was asked for", chatPath, true, jsonType, okChat},
		{"JSON labelled as a stream, where one was asked for", chatPath, true, sseType, okChat},
		{"JSON labelled text", chatPath, false, "text/plain", okChat},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", page(c.kind, c.body), page(sseType, okSSE))
			sent := requestFor(c.path, c.stream)
			got := s.ask("POST", c.path, sent)
			s.expect(sent, got, outcome{body: c.body, winner: 1, calls: []int{1, 0}, ending: stats.Success})
			if kind := got.header.Get("Content-Type"); kind != c.kind {
				t.Errorf("type %q, want %q", kind, c.kind)
			}
			s.unfrozen()
		})
	}
}

// A stream of events where JSON was asked for is judged by its events: an error in
// it is that error, and a healthy one is of no use to the client.
func TestEventsWhereJSONWasAskedFor(t *testing.T) {
	failed := created + event("response.failed", `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}}`)
	for name, c := range map[string]struct {
		path, body, fault string
		took              time.Duration
	}{
		"a healthy one":            {chatPath, okSSE, "server", 0},
		"a failed one":             {responsesPath, failed, "quota", 0},
		"a healthy one of another": {messagesPath, okAM, "server", 0},
		"an empty one":             {chatPath, ": ping\n\n", "server", 0},
		"lines":                    {ollamaPath, okOllama, "server", 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", frames(c.body), page(jsonType, okChat))
			sent := requestFor(c.path, false)
			_ = s.ask("POST", c.path, sent)
			r := s.record()
			if len(r.Tries) < 1 || r.Tries[0].Class != "bad_stream" || r.Tries[0].Fault != c.fault || s.up[1].Count() != 1 {
				t.Errorf("tries %+v, and u2 was called %d times", r.Tries, s.up[1].Count())
			}
		})
	}
}

// Case 15: an error outside of the framing of events.
func TestABareErrorInAnEventStream(t *testing.T) {
	bare := `{"error":{"code":503,"message":"high demand","status":"UNAVAILABLE"}}`
	for path, ok := range map[string]string{chatPath: okSSE, geminiPath: okGemini} {
		inBubble(t, "(a) alone, "+path, func(t *testing.T) {
			s := newStage(t, "", frames(bare), frames(ok))
			sent := requestFor(path, true)
			s.expect(sent, s.ask("POST", path, sent), outcome{body: ok, winner: 2, calls: []int{1, 1}, ending: stats.Success})
		})
	}
	inBubble(t, "(a) alone, spread over lines", func(t *testing.T) {
		s := newStage(t, "", frames("{\n  \"error\": {\n    \"code\": 503,\n", "    \"message\": \"high demand\"\n  }\n}"), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
	})
	for _, c := range []struct{ name, path, before, appended string }{
		{"chat", chatPath, said("one, two") + said("three") + said("four"), "\n\n" + `data: {"error":{"code":"upstream_broke_off","message":"` + brokeOff + `","param":null,"type":"upstream_broke_off"}}` + "\n\n"},
		{"gemini", geminiPath, gemini(part("one, two"), "") + gemini(part("three"), "") + gemini(part("four"), ""), ""},
	} {
		for _, setting := range []string{"abort", "error_event"} {
			inBubble(t, "(b) behind events, "+c.name+", "+setting, func(t *testing.T) {
				s := newStage(t, "server: {broken_stream: "+setting+"}", halves(sseType, c.before, bare), frames(okSSE))
				sent := requestFor(c.path, true)
				want := outcome{body: c.before + bare, winner: 1, calls: []int{1, 0}, took: 5 * time.Second, ending: stats.Broken}
				if c.path == chatPath {
					// Only Google's clients look for such an error. To all others the
					// stream just ended, so that it must not end like a whole one.
					if want.cut = true; setting == "error_event" {
						want.body += c.appended
					}
				}
				s.expect(sent, s.ask("POST", c.path, sent), want)
				if got := s.verdicts(); got != "failed bad_stream" {
					t.Errorf("verdicts %q", got)
				}
				if s.streak(1) != 1 {
					t.Error("the failure is not booked against u1")
				}
			})
		}
	}
}

// An error inside a 200 that a rule passes through keeps its status, or becomes a 400,
// and comes as the body of an error in the client's dialect.
func TestAnErrorInA200PassesThroughInTheDialect(t *testing.T) {
	for _, c := range []struct {
		name, path string
		stream     bool
		kind, body string
		status     int
		want       string
	}{
		{"chat JSON", chatPath, false, jsonType, `{"error":{"message":"no","code":"content_policy_violation"}}`, 400, `{"error":{"message":"no","code":"content_policy_violation"}}`},
		{"chat JSON with a status", chatPath, false, jsonType, `{"error":{"message":"no","code":422}}`, 422, `{"error":{"message":"no","code":422}}`},
		{"chat event", chatPath, true, sseType, role + data(`{"error":{"message":"no","code":"content_policy_violation"}}`), 400, `{"error":{"message":"no","code":"content_policy_violation"}}`},
		{"chat event with a status", chatPath, true, sseType, role + data(`{"error":{"message":"no","code":"403"}}`), 403, `{"error":{"message":"no","code":"403"}}`},
		{"chat event in vLLM's older shape", chatPath, true, sseType, data(`{"object":"error","message":"no","code":400}`), 400, `{"error":{"object":"error","message":"no","code":400}}`},
		{"within a choice", chatPath, true, sseType, data(`{"choices":[{"index":0,"error":{"message":"no","code":400}}]}`), 400, `{"error":{"message":"no","code":400}}`},
		{"bare in a stream", chatPath, true, sseType, `{"error":{"message":"no","code":400}}`, 400, `{"error":{"message":"no","code":400}}`},
		{"responses, flat", responsesPath, true, sseType, created + event("error", `{"type":"error","code":"invalid_prompt","message":"no","param":null}`), 400, `{"error":{"type":"error","code":"invalid_prompt","message":"no","param":null}}`},
		{"responses, failed", responsesPath, true, sseType, created + event("response.failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}`), 400, `{"error":{"code":"invalid_prompt","message":"no"}}`},
		{"responses JSON, failed", responsesPath, false, jsonType, `{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"no"}}`, 400, `{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"no"}}`},
		{"messages", messagesPath, true, sseType, messageStart + event("error", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), 400, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`},
		{"gemini", geminiPath, true, sseType, data(`{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`), 400, `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`},
		{"gemini array", geminiArray, true, jsonType, `[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]`, 400, `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`},
		{"ollama", ollamaPath, true, "application/x-ndjson", `{"error":"no"}` + "\n", 400, `{"error":"no"}`},
		{"ollama with another's error", ollamaPath, true, "application/x-ndjson", `{"object":"error","message":"no"}` + "\n", 400, `{"error":"no"}`},
		{"plain text in an error event", chatPath, true, sseType, event("error", `it "broke"`), 400, `{"error":{"message":"it \"broke\""}}`},
		{"llama.cpp's field", chatPath, true, sseType, `error: {"code":400,"message":"no","type":"invalid_request_error"}` + "\n\n", 400, `{"error":{"code":400,"message":"no","type":"invalid_request_error"}}`},
		{"MiniMax", chatPath, false, jsonType, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`, 400, `{"error":{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}}`},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "rules: [{match: {status: bad_stream}, action: passthrough}]", page(c.kind, c.body), frames(okSSE))
			sent := requestFor(c.path, c.stream)
			got := s.ask("POST", c.path, sent)
			s.expect(sent, got, outcome{status: c.status, body: c.want, winner: 1, calls: []int{1, 0}, ending: stats.PassedThrough})
			if kind := got.header.Get("Content-Type"); kind != jsonType {
				t.Errorf("type %q", kind)
			}
		})
	}
}
