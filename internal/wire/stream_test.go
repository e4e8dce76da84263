package wire

import (
	"fmt"
	"strings"
	"testing"
)

// sseOf is a stream of events whose data is given.
func sseOf(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// chunk is a chat chunk with that delta and finish_reason.
func chunkOf(delta, finish string) string {
	return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// say is a chat chunk with that text.
func say(text string) string { return chunkOf(`{"content":"`+text+`"}`, "null") }

const (
	role  = `{"role":"assistant","content":""}`
	long  = "twelve chars"
	never = int64(-1)
)

var (
	chatStream     = Want{Kind: Chat, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	chatWhole      = Want{Kind: Chat, MinChars: 10, Judged: true, ErrorIsFailure: true}
	responseStream = Want{Kind: Responses, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	responseWhole  = Want{Kind: Responses, MinChars: 10, Judged: true, ErrorIsFailure: true}
	messageStream  = Want{Kind: Messages, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	messageWhole   = Want{Kind: Messages, MinChars: 10, Judged: true, ErrorIsFailure: true}
	geminiStream   = Want{Kind: Generate, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	geminiArray    = Want{Kind: Generate, Stream: true, Array: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	geminiWhole    = Want{Kind: Generate, MinChars: 10, Judged: true, ErrorIsFailure: true}
	ollamaStream   = Want{Kind: OllamaChat, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}
	ollamaWhole    = Want{Kind: OllamaChat, MinChars: 10, Judged: true, ErrorIsFailure: true}
	post           = Want{Kind: Other, ErrorIsFailure: true}
	get            = Want{Kind: Other}
)

// answer is a body and what it is.
type answer struct {
	name    string
	want    Want
	body    string
	verdict Verdict
	// release is a prefix of body: the answer may go out at its end, or up to two
	// bytes before. "-" = never, "" = do not look, "all" = the whole body.
	release string
	// also looks at more.
	also func(t *testing.T, o outcome)
}

// runAnswers reads every body whole, byte by byte and in random pieces.
func runAnswers(t *testing.T, answers []answer) {
	t.Helper()
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			t.Helper()
			body := []byte(a.body)
			whole := readAll(a.want, body, nil)
			splits := [][]int{everyByte(len(body))}
			for seed := range uint64(20) {
				splits = append(splits, randomCuts(seed, len(body)))
			}
			for _, cuts := range splits {
				if o := readAll(a.want, body, cuts); o != whole {
					t.Fatalf("depends on the split %v:\n%+v\n%+v", cuts, whole, o)
				}
			}
			if whole.Verdict != a.verdict {
				t.Errorf("verdict %v (%s), want %v", whole.Verdict, whole.Why, a.verdict)
			}
			if (whole.Verdict == Healthy) != (whole.Why == "") {
				t.Errorf("verdict %v with why %q", whole.Verdict, whole.Why)
			}
			at := int64(len(a.release))
			switch {
			case a.release == "":
			case a.release == "-":
				if whole.Release != never {
					t.Errorf("released at %d, want never", whole.Release)
				}
			default:
				if a.release == "all" {
					at = int64(len(body))
				} else if !strings.HasPrefix(a.body, a.release) {
					t.Fatalf("release is no prefix of the body")
				}
				if whole.Release < at-2 || whole.Release > at {
					t.Errorf("released at %d, want %d", whole.Release, at)
				}
			}
			if a.also != nil {
				a.also(t, whole)
			}
		})
	}
}

func wellFormed(want bool) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		t.Helper()
		if o.WellFormed != want {
			t.Errorf("well-formed %v", o.WellFormed)
		}
	}
}

func why(want string) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		t.Helper()
		if o.Why != want {
			t.Errorf("why %q, want %q", o.Why, want)
		}
	}
}

func erred(status int, raw string) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		t.Helper()
		if o.Status != status || o.Err != raw {
			t.Errorf("error %d %s, want %d %s", o.Status, o.Err, status, raw)
		}
	}
}

func used(input, output, cached, write, reasoning int64) func(*testing.T, outcome) {
	return func(t *testing.T, o outcome) {
		t.Helper()
		want := Usage{input, output, cached, write, reasoning, input + output}
		if input < 0 || output < 0 {
			want.Total = -1
		}
		if o.Usage != want {
			t.Errorf("usage %+v, want %+v", o.Usage, want)
		}
	}
}

func TestFraming(t *testing.T) {
	done := sseOf(chunkOf("{}", `"stop"`), "[DONE]")
	healthy := sseOf(say(long))
	big := strings.Repeat("x", 3<<20)
	crlf := strings.ReplaceAll(healthy, "\n", "\r\n")
	cr := strings.ReplaceAll(healthy, "\n", "\r")
	runAnswers(t, []answer{
		{"LF", chatStream, healthy + done, Healthy, healthy, nil},
		{"CRLF", chatStream, crlf + strings.ReplaceAll(done, "\n", "\r\n"), Healthy, crlf, nil},
		{"CR", chatStream, cr + strings.ReplaceAll(done, "\n", "\r"), Healthy, cr, nil},
		{"mixed line ends", chatStream, "data: " + say(long) + "\r\n\n" + done, Healthy, "data: " + say(long) + "\r\n\n", nil},
		{"byte order mark", chatStream, "\ufeff" + healthy + done, Healthy, "\ufeff" + healthy, nil},
		{"byte order mark only", chatStream, "\ufeff", Empty, "-", wellFormed(false)},
		{"blank lines first", chatStream, "\n\r\n\n" + healthy + done, Healthy, "\n\r\n\n" + healthy, nil},
		{"no space after the colon", chatStream, "data:" + say(long) + "\n\n" + done, Healthy, "data:" + say(long) + "\n\n", nil},
		{"two spaces", chatStream, "data:  " + say(long) + "\n\n" + done, Healthy, "", nil},
		{"several data lines", chatStream, "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"" + long + "\"}}]}\n\n" + done, Healthy, "", nil},
		{"data field without a colon adds a line", chatStream, "data: " + say(long) + "\ndata\n\n" + done, Healthy, "", nil},
		{"unknown fields", chatStream, "id: 7\nretry: 100\nfoo: bar\nlongerthananyfield: x\ndata: " + say(long) + "\n\n" + done, Healthy, "", nil},
		{"comment inside an event", chatStream, "data: " + say(long) + "\n: hm\n\n" + done, Healthy, "", nil},
		{"a comment that quotes an event", chatStream, ": data: " + `{"error":{"message":"x"}}` + "\n\n" + healthy + done, Healthy, "", nil},
		{"last event without a blank line", chatStream, sseOf(say(long)) + "data: " + chunkOf("{}", `"stop"`), Healthy, "", nil},
		{"last event without a blank line, released by it", chatStream, sseOf(say("hi")) + "data: " + chunkOf("{}", `"stop"`), Healthy, "all", nil},
		{"[DONE] without a line end", chatStream, sseOf(say("hi")) + "data: [DONE]", Healthy, "all", nil},
		{"[DONE] cut", chatStream, sseOf(say("hi")) + "data: [DO", Erred, "-", why("the stream ended after 2 characters without a terminal event")},
		{"last event cut", chatStream, sseOf(say("h")) + "data: " + `{"choices":[{"delta":{},"finish_reason":"stop"`, Erred, "-", why("the stream ended after 1 character without a terminal event")},
		{"last event cut in a line end", chatStream, sseOf(say("hi")) + "data: " + chunkOf("{}", `"stop"`) + "\r", Healthy, "all", nil},
		{"empty data", chatStream, "data:\n\ndata: \n\n" + healthy + done, Healthy, "", nil},
		// Case 18: lines of several MiB, and runes cut by packets.
		{"runes", chatStream, sseOf(say("渐🌍渐🌍渐🌍渐🌍渐🌍")) + done, Healthy, sseOf(say("渐🌍渐🌍渐🌍渐🌍渐🌍")), nil},
		{"garbage before release", chatStream, sseOf(say("hi"), `{"choices": [{"del`) + done, Erred, "-", why("unreadable data in the stream")},
		{"words before release", chatStream, sseOf("upstream gone"), Erred, "-", nil},
		{"garbage after release", chatStream, healthy + sseOf(`{"choices": [{"del`) + done, Healthy, healthy, nil},
		{"raw control character in a string", chatStream, sseOf("{\"choices\":[{\"delta\":{\"content\":\"a\x01\"}}]}"), Erred, "-", nil},
		{"two values in one event", chatStream, sseOf(say("hi") + say("hi")), Erred, "-", nil},
		{"[DONE] and more", chatStream, sseOf(say("hi"), "[DONE] bye"), Healthy, "", nil},
		// Case 15: errors outside of SSE framing.
		{"bare error", chatStream, `{"error":{"code":503,"message":"high demand","status":"UNAVAILABLE"}}`, Erred, "-", erred(503, `{"error":{"code":503,"message":"high demand","status":"UNAVAILABLE"}}`)},
		{"bare error after events", chatStream, sseOf(say("hi")) + `{"error":{"code":503,"message":"m"}}`, Erred, "-", erred(503, `{"error":{"code":503,"message":"m"}}`)},
		{"bare error after release", chatStream, healthy + `{"error":{"code":503,"message":"m"}}`, Erred, healthy, erred(503, `{"error":{"code":503,"message":"m"}}`)},
		{"bare error on several lines", chatStream, ": ok\n\n{\n\"error\":\n{\n\"message\"\n:\"m\"}\n}\n", Erred, "-", nil},
		{"bare JSON that is no error", chatStream, healthy + `{"note":1}` + "\n" + done, Healthy, healthy, nil},
		{"bare JSON cut before release", chatStream, sseOf(say("hi")) + `{"error":{"mess`, Erred, "-", why("unreadable data in the stream")},
		{"bare JSON cut after release", chatStream, healthy + done + `{"error":{"mess`, Healthy, healthy, nil},
		{"bare JSON with a raw line end in a string", chatStream, sseOf(say("hi")) + "{\"error\":\"a\nb\"}\n\n", Erred, "-", nil},
		{"bare JSON cut by a blank line", chatStream, sseOf(say("hi")) + "{\"error\":\n\n" + done, Erred, "-", nil},
		{"bare JSON that is none", chatStream, sseOf(say("hi")) + "{\"error\":}\n\n" + done, Erred, "-", nil},
		{"bare JSON behind data of the same event", chatStream, "data: " + say(long) + "\n" + `{"note":1}` + "\n\n" + done, Healthy, "", nil},
		{"error field", chatStream, `error: {"code":500,"message":"m"}` + "\n\n", Erred, "-", erred(500, `{"code":500,"message":"m"}`)},
		{"error field without a line end", chatStream, `error: {"code":500,"message":"m"}`, Erred, "-", erred(500, `{"code":500,"message":"m"}`)},
		{"error field of text", chatStream, "error: no slot\n\n", Erred, "-", erred(0, "no slot")},
		{"error field of null", chatStream, "error: null\n\n" + healthy + done, Healthy, "", nil},
		{"error event of text", chatStream, "event: error\ndata: upstream timed out\n\n", Erred, "-", erred(0, "upstream timed out")},
		{"error event, LM Studio", chatStream, "event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n", Erred, "-", erred(0, `{"error":{"message":"m"}}`)},
		{"error event, flat", chatStream, "event: error\ndata: {\"message\":\"m\",\"code\":429}\n\n", Erred, "-", erred(429, `{"message":"m","code":429}`)},
		{"event named error, cut", chatStream, sseOf(say("hi")) + "event: error\ndata: {\"mess", Erred, "-", nil},
		{"event name is forgotten at the blank line", chatStream, "event: error\n\n" + healthy + done, Healthy, "", nil},
		// Case 7: HTML in place of a stream.
		{"HTML", chatStream, "<!DOCTYPE html><title>Just a moment...</title>", Erred, "-", why("HTML where a stream was due")},
		{"HTML behind blanks and a mark", chatStream, "\ufeff \r\n\t<html>", Erred, "-", nil},
		{"HTML for JSON", chatWhole, "\n<html>", Erred, "-", why("HTML where JSON was due")},
		{"plain text", chatStream, "upstream connect error or disconnect/reset before headers", Erred, "-", why("plain text where a stream was due")},
		{"plain text that looks like a field", chatStream, "data is not available", Erred, "-", why("plain text where a stream was due")},
		{"gzip without its header", chatStream, "\x1f\x8b\x08\x00\x00", Erred, "-", why("compressed bytes without their Content-Encoding")},
		{"zstd without its header", chatWhole, "\x28\xb5\x2f\xfd\x00", Erred, "-", why("compressed bytes without their Content-Encoding")},
		{"a bracket is no zstd", chatWhole, "(nothing)", Erred, "-", why("plain text where JSON was due")},
		{"one byte of gzip", chatWhole, "\x1f", Erred, "-", nil},
		{"half a mark", chatWhole, "\xef\xbbX", Erred, "-", nil},
	})
	// Case 18(a), without the many splits: a line of several MiB, first and later.
	for _, body := range []string{sseOf(say(big)) + done, healthy + sseOf(say(big)) + done} {
		o := readAll(chatStream, []byte(body), randomCuts(1, len(body)))
		if o.Verdict != Healthy || o.Release < 0 {
			t.Errorf("long line: %+v", o.Verdict)
		}
	}
}

// Case 1: an answer of 200 without content.
func TestAnswersThatSayNothing(t *testing.T) {
	created := `{"type":"response.created","response":{"status":"in_progress","error":null,"output":[],"usage":null}}`
	runAnswers(t, []answer{
		{"nothing at all", chatStream, "", Empty, "-", why("the answer has no body")},
		{"nothing for JSON", chatWhole, "", Empty, "-", wellFormed(false)},
		{"blank lines", chatWhole, "\n\n\n", Empty, "-", nil},
		{"[DONE]", chatStream, sseOf("[DONE]"), Empty, "-", wellFormed(false)},
		{"ping", chatStream, ": ping\n\n", Empty, "-", wellFormed(false)},
		{"role", chatStream, sseOf(chunkOf(role, "null")), Empty, "-", wellFormed(false)},
		{"role and [DONE]", chatStream, sseOf(chunkOf(role, "null"), "[DONE]"), Empty, "-", wellFormed(false)},
		{"role, stop, [DONE]", chatStream, sseOf(chunkOf(role, "null"), chunkOf("{}", `"stop"`), "[DONE]"), Empty, "-", wellFormed(true)},
		{"created, completed", responseStream, sseOf(created, `{"type":"response.completed","response":{"status":"completed","output":[],"usage":null}}`), Empty, "-", wellFormed(true)},
		{"created", responseStream, sseOf(created), Empty, "-", why("the stream ended without a word")},
		{"message_start, message_stop", messageStream, sseOf(`{"type":"message_start","message":{}}`, `{"type":"message_stop"}`), Empty, "-", wellFormed(false)},
		{"end_turn", messageStream, sseOf(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`), Empty, "-", wellFormed(true)},
		{"STOP", geminiStream, sseOf(`{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}`), Empty, "-", wellFormed(true)},
		{"an array without elements", geminiArray, "[]", Empty, "-", wellFormed(false)},
		{"an array that never began", geminiArray, "[", Empty, "-", nil},
		{"done", ollamaStream, `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n", Empty, "-", wellFormed(true)},
		{"not done", ollamaStream, `{"message":{"role":"assistant","content":""},"done":false}` + "\n", Empty, "-", wellFormed(false)},
		{"no choices", chatWhole, `{"id":"x","object":"chat.completion","choices":[]}`, Empty, "-", why("the answer says nothing")},
		{"null choices", chatWhole, `{"choices":null}`, Empty, "-", wellFormed(false)},
		{"null content", chatWhole, `{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}`, Empty, "-", wellFormed(true)},
		{"empty object", chatWhole, `{}`, Empty, "-", nil},
		{"a number", chatWhole, `12`, Empty, "-", nil},
		{"null", chatWhole, `null`, Empty, "-", nil},
		{"completed without output", responseWhole, `{"object":"response","status":"completed","output":[],"error":null}`, Empty, "-", wellFormed(true)},
		{"no content", messageWhole, `{"type":"message","content":[],"stop_reason":"end_turn"}`, Empty, "-", wellFormed(true)},
		{"no candidates", geminiWhole, `{"usageMetadata":{}}`, Empty, "-", nil},
		{"done, whole", ollamaWhole, `{"message":{"content":""},"done":true}`, Empty, "-", wellFormed(true)},
	})
}

// Cases 4, 5 and 6, and section 1.1 of the vendors' shapes.
func TestChat(t *testing.T) {
	stop := sseOf(chunkOf("{}", `"stop"`), "[DONE]")
	released := func(name, delta string) answer {
		return answer{name, chatStream, sseOf(chunkOf(delta, "null")) + stop, Healthy, sseOf(chunkOf(delta, "null")), nil}
	}
	held := func(name, delta string) answer {
		return answer{name, chatStream, sseOf(chunkOf(delta, "null"), say(long)) + stop, Healthy, sseOf(chunkOf(delta, "null"), say(long)), nil}
	}
	finished := func(reason string, v Verdict, release string) answer {
		return answer{"finish " + reason, chatStream, sseOf(chunkOf(role, "null"), chunkOf("{}", `"`+reason+`"`)), v, release, nil}
	}
	var reasoning []string
	for range 20 {
		reasoning = append(reasoning, chunkOf(`{"reasoning":"h"}`, "null"))
	}
	runAnswers(t, []answer{
		released("tool call", `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"list_tasks","arguments":""}}]}`),
		released("tool call with a name only", `{"tool_calls":[{"function":{"name":"f"}}]}`),
		released("custom tool", `{"tool_calls":[{"custom":{"name":"f"}}]}`),
		released("function call", `{"function_call":{"name":"f","arguments":""}}`),
		released("audio", `{"audio":{"data":"AAAA"}}`),
		released("image", `{"images":[{"type":"image_url"}]}`),
		released("encrypted reasoning", `{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA"}]}`),
		released("refusal", `{"refusal":"I can not do that."}`),
		released("reasoning_content", `{"reasoning_content":"ten letters"}`),
		released("reasoning", `{"reasoning":"ten letters"}`),
		released("text parts", `{"content":[{"type":"text","text":"ten letters"}]}`),
		released("thinking parts", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ten letters"}]}]}`),
		released("thinking parts of plain text", `{"content":[{"type":"thinking","thinking":"ten letters"}]}`),
		released("image part", `{"content":[{"type":"image_url","image_url":{}}]}`),
		released("needless escapes", `{"\u0063ontent":"0123456789"}`),
		released("exactly ten", `{"content":"0123456789"}`),
		released("escapes count as what they mean", `{"content":"\u00e9\ud83c\udf0d\n\n\t\"\\/\u0000\ud83c"}`),
		held("nine", `{"content":"012345678"}`),
		held("no tool calls", `{"tool_calls":[]}`),
		held("null tool calls", `{"tool_calls":null}`),
		held("arguments alone", `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`),
		held("empty name", `{"tool_calls":[{"index":0,"id":"","function":{"name":null}}]}`),
		held("audio without data", `{"audio":{"id":"a","transcript":""}}`),
		held("annotations", `{"annotations":[{"type":"url_citation"}],"content":""}`),
		held("reasoning details of text", `{"reasoning_details":[{"type":"reasoning.text","text":"long enough text"}]}`),
		held("null delta", `null`),
		finished("stop", Empty, "-"), finished("tool_calls", Empty, "-"), finished("eos", Empty, "-"), finished("COMPLETE", Empty, "-"),
		finished("length", Healthy, "all"), finished("content_filter", Healthy, "all"), finished("model_length", Healthy, "all"), finished("sensitive", Healthy, "all"),
		finished("error", Erred, "-"), finished("insufficient_system_resource", Erred, "-"), finished("network_error", Erred, "-"), finished("abort", Erred, "-"),
		finished("", Empty, "-"),
		{"empty finish reason is null", chatStream, sseOf(chunkOf(`{"content":"hi"}`, `""`)), Erred, "-", nil},
		{"finish error after content", chatStream, sseOf(say(long), chunkOf("{}", `"error"`)), Erred, sseOf(say(long)), erred(0, chunkOf("{}", `"error"`))},
		{"finish reason on a chunk of text", chatStream, sseOf(chunkOf(`{"content":"hi"}`, `"stop"`)), Healthy, "all", nil},
		{"many reasoning deltas", chatStream, sseOf(reasoning...) + stop, Healthy, sseOf(reasoning[:10]...), nil},
		{"reasoning only, whole", chatWhole, `{"choices":[{"message":{"role":"assistant","content":"","reasoning_content":"step"},"finish_reason":"stop"}]}`, Healthy, "all", nil},
		{"whole without a finish reason", chatWhole, `{"choices":[{"message":{"content":"hi"}}]}`, Healthy, "all", nil},
		{"whole where a stream was asked for", chatStream, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}` + "\n", Healthy, "all", nil},
		{"whole, cut", chatWhole, `{"choices":[{"message":{"content":"hi"`, Erred, "-", why("the JSON document is cut")},
		{"whole, followed by more", chatWhole, `{"choices":[{"message":{"content":"hi"}}]} x`, Erred, "-", why("the answer is no valid JSON")},
		{"whole, broken", chatWhole, `{"choices":[{"message":{"content":"hi"},}]}`, Erred, "-", nil},
		// Case 6: frames without choices.
		{"Azure's preamble", chatStream, sseOf(`{"id":"","object":"","model":"","created":0,"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, say(long)) + stop, Healthy, "", nil},
		{"usage frame", chatStream, sseOf(say(long), chunkOf("{}", `"stop"`), `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, "[DONE]"), Healthy, sseOf(say(long)), used(5, 2, -1, -1, -1)},
		{"usage frame without choices", chatStream, sseOf(`{"usage":{"prompt_tokens":5,"completion_tokens":2}}`, say("hi")) + stop, Healthy, sseOf(`{"usage":{"prompt_tokens":5,"completion_tokens":2}}`, say("hi"), chunkOf("{}", `"stop"`)), used(5, 2, -1, -1, -1)},
		{"error without choices", chatStream, sseOf(`{"id":"x","choices":[],"error":{"code":502,"message":"provider unavailable"}}`), Erred, "-", erred(502, `{"id":"x","choices":[],"error":{"code":502,"message":"provider unavailable"}}`)},
		{"error and finish error", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"gone"}}`), Erred, "-", nil},
		{"error inside the choice", chatStream, sseOf(`{"choices":[{"error":{"code":"429","message":"slow"},"delta":{}}]}`), Erred, "-", erred(429, `{"choices":[{"error":{"code":"429","message":"slow"},"delta":{}}]}`)},
		{"x_groq error", chatStream, sseOf(`{"choices":[],"x_groq":{"id":"r","error":"over"}}`), Erred, "-", nil},
		{"object error", chatStream, sseOf(`{"object":"error","message":"m","type":"e","code":400}`, "[DONE]"), Erred, "-", erred(400, `{"object":"error","message":"m","type":"e","code":400}`)},
		{"asynchronous filter", chatStream, sseOf(say("hi"), `{"choices":[{"index":0,"content_filter_offsets":{},"content_filter_results":{}}]}`) + stop, Healthy, "", nil},
		{"null error", chatStream, sseOf(`{"error":null,"choices":[]}`, `{"error":"","choices":[]}`, `{"error":{},"choices":[]}`, say(long)) + stop, Healthy, "", nil},
		{"an error without a message, then one with", chatStream, sseOf(chunkOf("{}", `"error"`), `{"error":{"message":"why","code":503}}`), Erred, "-", erred(503, `{"error":{"message":"why","code":503}}`)},
		{"an error, then another", chatStream, sseOf(`{"error":{"message":"first"}}`, `{"error":{"message":"second"}}`), Erred, "-", erred(0, `{"error":{"message":"first"}}`)},
		{"Google's errors in an array", chatStream, `[{"error":{"code":400,"message":"m"}}]`, Erred, "-", erred(400, `{"error":{"code":400,"message":"m"}}`)},
		{"Google's errors in an array, whole", chatWhole, `[{"error":{"code":400,"message":"m"}}]`, Erred, "-", nil},
		{"detail only", chatWhole, `{"detail":"Not authenticated"}`, Erred, "-", nil},
		{"statusCode only", chatWhole, `{"statusCode":429,"message":"Rate limit is exceeded. Try again in 26 seconds."}`, Erred, "-", erred(429, `{"statusCode":429,"message":"Rate limit is exceeded. Try again in 26 seconds."}`)},
		{"code and msg", chatWhole, `{"code":401,"msg":"invalid token","data":null}`, Erred, "-", nil},
		{"message only", chatWhole, `{"message":"no healthy upstream"}`, Erred, "-", nil},
		{"error after [DONE] of nothing", chatStream, sseOf("[DONE]", `{"error":{"message":"m"}}`), Erred, "-", nil},
		{"two choices, one cut", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":"twelve chars"}},{"index":1,"delta":{"content":"x"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), Erred, "", nil},
		{"two choices", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":"twelve chars"}},{"index":1,"delta":{"content":"x"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`), Healthy, "", nil},
		{"two choices and [DONE]", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":"twelve chars"}},{"index":1,"delta":{"content":"x"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"), Healthy, "", nil},
		// Case 8: errors at 200, and what only looks like one.
		{"error, whole", chatWhole, `{"error":{"message":"ResourceExhausted: worker limit","code":502}}`, Erred, "-", erred(502, `{"error":{"message":"ResourceExhausted: worker limit","code":502}}`)},
		{"MiniMax", chatWhole, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`, Erred, "-", nil},
		{"success false", chatWhole, `{"success":false,"error":{"code":"X"}}`, Erred, "-", nil},
		{"null error, whole", chatWhole, `{"error":null,"choices":[{"message":{"content":"hi"}}]}`, Healthy, "all", nil},
		{"text that quotes an error", chatWhole, `{"choices":[{"message":{"content":"{\"error\":{\"code\":429,\"message\":\"rate limit\"}} RESOURCE_EXHAUSTED status 503"}}]}`, Healthy, "all", nil},
		{"deltas that quote an error", chatStream, sseOf(say(`{\"error\":{\"code\":429}} <html> data: [DONE]`)) + stop, Healthy, "", nil},
		// Cases 10 to 13: endings.
		{"cut after release", chatStream, sseOf(say(long)), Erred, sseOf(say(long)), why("the stream ended after 12 characters without a terminal event")},
		{"cut in a tool's arguments", chatStream, sseOf(chunkOf(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a"}}]}`, "null")), Erred, "", why("the stream ended without a terminal event")},
		{"no [DONE]", chatStream, sseOf(say(long), chunkOf("{}", `"stop"`)), Healthy, "", nil},
		{"no finish reason", chatStream, sseOf(say("hi"), "[DONE]"), Healthy, "all", nil},
		{"terminal optional", withOptional(chatStream), sseOf(say("hi")), Healthy, "all", nil},
		{"terminal optional says not that nothing will do", withOptional(chatStream), sseOf(chunkOf(role, "null")), Empty, "-", nil},
		{"SSE where JSON was asked for", chatWhole, sseOf(say(long)) + stop, Erred, "-", why("an event stream where JSON was asked for")},
		{"SSE of an error where JSON was asked for", chatWhole, sseOf(`{"error":{"code":503,"message":"m"}}`), Erred, "-", erred(503, `{"error":{"code":503,"message":"m"}}`)},
		{"SSE of nothing where JSON was asked for", chatWhole, ": ping\n\n", Erred, "-", nil},
		{"NDJSON of a chat", chatStream, say(long) + "\n" + chunkOf("{}", `"stop"`) + "\n", Healthy, "", nil},
		{"NDJSON where JSON was asked for", chatWhole, say(long) + "\n" + chunkOf("{}", `"stop"`) + "\n", Erred, "-", why("several JSON documents where one was asked for")},
		// llama.cpp's own completion.
		{"llama.cpp", Want{Kind: Completions, Stream: true, MinChars: 10, Judged: true}, sseOf(`{"content":"Hi","stop":false}`, `{"content":"","stop":true,"timings":{"cache_n":3,"prompt_n":4,"predicted_n":5}}`), Healthy, "all", used(7, 5, 3, -1, -1)},
		{"llama.cpp, limit", Want{Kind: Completions, Stream: true, MinChars: 10, Judged: true}, sseOf(`{"content":"","stop":true,"stop_type":"limit"}`), Healthy, "all", nil},
	})
}

func withOptional(w Want) Want {
	w.TerminalOptional = true
	return w
}

// The same in the form of one array: its closing bracket ends no candidate.
func TestAnArrayEndsWithItsLastCandidate(t *testing.T) {
	const one, both = `[{"candidates":[{"content":{"parts":[{"text":"two"}]}},{"index":1,"content":{"parts":[{"text":"words"}]}}]},{"candidates":[{"finishReason":"STOP"}]}`,
		`,{"candidates":[{"index":1,"finishReason":"STOP"}]}`
	for body, terminal := range map[string]bool{one: false, one + "]": false, one + both: false, one + both + "]": true} {
		r := NewReader(Want{Kind: Generate, Stream: true, Array: true, Judged: true})
		r.Feed([]byte(body))
		if r.Terminal() != terminal {
			t.Errorf("%s: terminal %v", body, r.Terminal())
		}
		if r.End(); (r.Verdict() == Healthy) != terminal {
			t.Errorf("%s: %v", body, r.Verdict())
		}
	}
}

// An answer of several choices ends with the last of them: cut before that it is not
// whole, whichever of them have ended.
func TestSeveralChoicesEndWithTheLast(t *testing.T) {
	chat := func(index int, member string) string {
		return fmt.Sprintf(`data: {"object":"chat.completion.chunk","choices":[{"index":%d,%s}]}`+"\n\n", index, member)
	}
	gemini := func(index int, member string) string {
		if index == 0 { // Google leaves it out
			return `data: {"candidates":[{` + member + `}]}` + "\n\n"
		}
		return fmt.Sprintf(`data: {"candidates":[{%s,"index":%d}]}`+"\n\n", member, index)
	}
	const words, stop = `"delta":{"content":"two words"},"finish_reason":null`, `"delta":{},"finish_reason":"stop"`
	const parts, end, cut = `"content":{"parts":[{"text":"two words"}]}`, `"finishReason":"STOP"`, `"finishReason":"MAX_TOKENS"`
	for name, c := range map[string]struct {
		kind     Kind
		body     string
		terminal bool
	}{
		"chat, one of two":               {Chat, chat(0, words) + chat(1, words) + chat(0, stop), false},
		"chat, both":                     {Chat, chat(0, words) + chat(1, words) + chat(0, stop) + chat(1, stop), true},
		"Gemini, one of two":             {Generate, gemini(0, parts) + gemini(1, parts) + gemini(0, end), false},
		"Gemini, the other of two":       {Generate, gemini(0, parts) + gemini(1, parts) + gemini(1, cut), false},
		"Gemini, both":                   {Generate, gemini(0, parts) + gemini(1, parts) + gemini(1, end) + gemini(0, end), true},
		"Gemini, both in one event":      {Generate, gemini(0, parts) + gemini(1, parts) + `data: {"candidates":[{"finishReason":"STOP"},{"finishReason":"STOP","index":1}]}` + "\n\n", true},
		"Gemini, one whose end is early": {Generate, gemini(0, end) + gemini(0, parts) + gemini(0, parts+","+end), true},
	} {
		r := NewReader(Want{Kind: c.kind, Stream: true, Judged: true})
		r.Feed([]byte(c.body))
		if r.Terminal() != c.terminal {
			t.Errorf("%s: terminal %v", name, r.Terminal())
		}
		if r.End(); (r.Verdict() == Healthy) != c.terminal {
			t.Errorf("%s: %v", name, r.Verdict())
		}
	}
}
