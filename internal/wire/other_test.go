package wire

import (
	"strings"
	"testing"
)

// Section 1.7, and spec section 6: endpoints that are judged by status, HTML and a
// top-level error alone.
func TestAnswersThatAreNotJudged(t *testing.T) {
	with := func(w Want, contentType string) Want {
		w.ContentType = contentType
		return w
	}
	kind := func(k Kind, stream bool, contentType string) Want {
		return Want{Kind: k, Stream: stream, ErrorIsFailure: true, ContentType: contentType}
	}
	const page = "<!DOCTYPE html><html><head><title>Just a moment...</title>"
	runAnswers(t, []answer{
		{"embeddings", post, `{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, Healthy, "all", used(8, 0, -1, -1, -1)},
		{"never for what they lack", post, `{}`, Healthy, "all", nil},
		{"nothing", post, ``, Healthy, "all", nil},
		{"cut", post, `{"data":[`, Healthy, "all", nil},
		{"error", post, `{"error":{"message":"m","code":429}}`, Erred, "-", erred(429, `{"error":{"message":"m","code":429}}`)},
		{"error, a string", post, `{"error":"m"}`, Erred, "-", nil},
		{"null error", post, `{"error":null}`, Healthy, "all", nil},
		{"empty error", post, `{"error":{}}`, Healthy, "all", nil},
		{"error below the top", post, `{"data":{"error":{"message":"m"}}}`, Healthy, "all", nil},
		{"a failed job is data", get, `{"id":"batch_1","status":"failed","error":{"message":"m"}}`, Healthy, "all", nil},
		{"a failed job in an event is data", with(get, "text/event-stream"), sseOf(`{"error":{"message":"m"}}`), Healthy, sseOf(`{"error":{"message":"m"}}`), nil},
		{"type error is no top-level error", post, `{"type":"error","message":"m"}`, Erred, "-", nil},
		{"HTML for a POST", with(post, "text/html; charset=utf-8"), page, Erred, "-", why("HTML where JSON was due")},
		{"HTML labelled as JSON", with(post, "application/json"), "\n" + page, Erred, "-", nil},
		{"HTML labelled as JSON for a GET", with(get, "application/json"), page, Erred, "-", nil},
		{"HTML labelled as an event stream", with(post, "text/event-stream"), strings.ToUpper(page), Erred, "-", nil},
		{"a page that was fetched", with(get, "text/html"), page, Healthy, "<", nil},
		{"XML", with(post, "text/xml"), "<?xml version", Healthy, "<?x", nil},
		{"one bracket", post, "<", Healthy, "all", nil},
		{"a file that is a page", with(get, "application/octet-stream"), page, Healthy, "<", nil},
		{"a file of JSON lines", with(get, "application/octet-stream"), `{"error":{"message":"m"}}`, Healthy, "{", nil},
		{"speech", kind(Speech, false, "audio/mpeg"), "\xff\xfb\x90", Healthy, "\xff", nil},
		{"speech that is compressed by chance", kind(Speech, false, "audio/mpeg"), "\x1f\x8b\x90", Healthy, "\x1f", nil},
		{"speech without its type", kind(Speech, false, ""), "\xff\xfb\x90", Healthy, "\xff", nil},
		{"gzip where text was due", kind(Other, false, "application/json"), "\x1f\x8b\x90", Erred, "-", nil},
		{"speech, an error", kind(Speech, false, "application/json"), `{"error":{"message":"m"}}`, Erred, "-", nil},
		{"speech, events", kind(Speech, true, "text/event-stream"), sseOf(`{"type":"speech.audio.delta","audio":"AA"}`, `{"type":"speech.audio.done","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`), Healthy, sseOf(`{"type":"speech.audio.delta","audio":"AA"}`), used(3, 4, -1, -1, -1)},
		{"transcript, text", kind(Transcription, false, "text/plain"), "drink water", Healthy, "d", nil},
		{"transcript, srt", kind(Transcription, false, "text/plain"), "1\n00:00:00,000", Healthy, "1", nil},
		{"transcript in brackets", kind(Transcription, false, "text/plain"), "(music)", Healthy, "(m", nil},
		{"transcript, JSON", kind(Transcription, false, "application/json"), `{"text":"","usage":{"type":"tokens","input_tokens":9,"output_tokens":2,"input_token_details":{"text_tokens":0,"audio_tokens":9}}}`, Healthy, "all", used(9, 2, -1, -1, -1)},
		{"transcript by duration", kind(Transcription, false, "application/json"), `{"text":"a","usage":{"type":"duration","seconds":9}}`, Healthy, "all", used(-1, -1, -1, -1, -1)},
		{"transcript, events", kind(Transcription, true, "text/event-stream"), sseOf(`{"type":"transcript.text.delta","delta":"a"}`, `{"type":"transcript.text.done","text":"a","usage":{"input_tokens":9,"output_tokens":2}}`), Healthy, sseOf(`{"type":"transcript.text.delta","delta":"a"}`), used(9, 2, -1, -1, -1)},
		{"transcript, segments", kind(Transcription, true, ""), sseOf(`{"type":"transcript.text.segment","text":"a"}`), Healthy, "all", nil},
		{"silence", kind(Transcription, true, "text/event-stream"), sseOf(`{"type":"transcript.text.done","text":""}`), Healthy, "all", nil},
		{"images, events", kind(Images, true, "text/event-stream"), sseOf(`{"type":"image_generation.partial_image","b64_json":"AA","partial_image_index":0}`, `{"type":"image_generation.completed","b64_json":"AA","usage":{"input_tokens":5,"output_tokens":6}}`), Healthy, sseOf(`{"type":"image_generation.partial_image","b64_json":"AA","partial_image_index":0}`), used(5, 6, -1, -1, -1)},
		{"images, error event", kind(Images, true, "text/event-stream"), sseOf(`{"type":"error","code":"server_error","message":"m"}`), Erred, "-", nil},
		{"images, error event after release", kind(Images, true, "text/event-stream"), sseOf(`{"type":"image_edit.partial_image","b64_json":"AA"}`, `{"error":{"message":"m"}}`), Erred, sseOf(`{"type":"image_edit.partial_image","b64_json":"AA"}`), nil},
		{"images, whole", kind(Images, false, "application/json"), `{"created":1,"data":[{"b64_json":"AA"}],"usage":{"input_tokens":5,"output_tokens":6}}`, Healthy, "all", used(5, 6, -1, -1, -1)},
		{"garbage in events", kind(Other, true, "text/event-stream"), sseOf("hello"), Healthy, sseOf("hello"), nil},
		{"comments and nothing more", kind(Other, true, "text/event-stream"), ": hi\n\n", Healthy, "all", nil},
		{"Ollama's pull", kind(Other, true, "application/x-ndjson"), `{"status":"pulling"}` + "\n" + `{"status":"success"}` + "\n", Healthy, `{"status":"pulling"}` + "\n", nil},
		{"Ollama's pull, an error", kind(Other, true, "application/x-ndjson"), `{"error":"no such model"}` + "\n", Erred, "-", nil},
		{"lines nobody announced", post, `{"status":"pulling"}` + "\n" + `{"status":"success"}` + "\n", Healthy, "", nil},
	})
}

// Spec section 6, streaming 4: what is not understood is never failed.
func TestEventsOfADialectNobodyKnows(t *testing.T) {
	unknown := func(t *testing.T, o outcome) {
		t.Helper()
		if !o.Unknown || o.Terminal {
			t.Errorf("unknown %v, terminal %v", o.Unknown, o.Terminal)
		}
	}
	known := func(t *testing.T, o outcome) {
		t.Helper()
		if o.Unknown {
			t.Error("unknown")
		}
	}
	runAnswers(t, []answer{
		{"chat", chatStream, sseOf(`{"foo":"bar"}`, `{"foo":"baz"}`), Healthy, sseOf(`{"foo":"bar"}`), unknown},
		{"chat, behind comments", chatStream, ": hi\n\n" + sseOf(`{"foo":"bar"}`), Healthy, "", unknown},
		{"chat, one event without its end", chatStream, "data: {\"foo\":1}", Healthy, "all", unknown},
		{"chat, another dialect", chatStream, sseOf(`{"type":"message_start","message":{}}`), Healthy, "all", unknown},
		{"chat, scalars", chatStream, sseOf(`"a"`, `"b"`), Healthy, sseOf(`"a"`), unknown},
		{"gemini", geminiStream, sseOf(`{"foo":"bar"}`), Healthy, "all", unknown},
		{"ollama", ollamaStream, `{"foo":"bar"}` + "\n", Healthy, "all", unknown},
		{"an error", chatStream, sseOf(`{"foo":"bar","error":"x"}`), Erred, "-", nil},
		{"an error of FastAPI", chatStream, sseOf(`{"detail":"Not Found"}`), Erred, "-", nil},
		{"nothing is no dialect", chatStream, sseOf(`{}`, `null`, `[]`, `{ }`), Empty, "-", known},
		{"nothing, and then an error", chatStream, sseOf(`{}`, `{"error":{"message":"gone"}}`), Erred, "-", known},
		{"nothing, and then an answer", chatStream, sseOf(`{}`, say(long)) + sseOf(chunkOf("{}", `"stop"`)), Healthy, sseOf(`{}`, say(long)), known},
		{"gemini, nothing", geminiStream, sseOf(`{}`), Empty, "-", known},
		{"ollama, nothing", ollamaStream, "{}\n[]\n", Empty, "-", known},
		{"a ping is no dialect", chatStream, sseOf(`{"type":"ping"}`), Empty, "-", known},
		{"with [DONE]", chatStream, sseOf(`{"foo":"bar"}`, "[DONE]"), Healthy, sseOf(`{"foo":"bar"}`), nil},
		{"unfamiliar among familiar", chatStream, sseOf(chunkOf(role, "null"), `{"foo":"bar"}`), Empty, "-", known},
		{"unfamiliar before familiar", chatStream, sseOf(`{"foo":"bar"}`, say(long)), Erred, sseOf(`{"foo":"bar"}`), known},
		{"Bedrock's frames", Want{Kind: Messages, Stream: true, Judged: true, ContentType: "application/vnd.amazon.eventstream"}, "\x00\x00\x01\x02", Healthy, "\x00", unknown},
	})
}

func TestOpenSaysWhatHasToBeClosed(t *testing.T) {
	open := func(format Format, inside bool, end string) Framing {
		return Framing{Format: format, Inside: inside, Appendable: true, Close: end}
	}
	stuck := func(format Format, inside bool) Framing { return Framing{Format: format, Inside: inside} }
	element := `{"candidates":[{"content":{"parts":[{"text":"a]}"}]}}]}`
	for _, tc := range []struct {
		name string
		want Want
		body string
		open Framing
	}{
		{"nothing", chatStream, "", stuck(Unread, false)},
		{"between events", chatStream, sseOf(say("a")), open(SSE, false, "")},
		{"in a line", chatStream, "data: {", open(SSE, true, "\n\n")},
		{"in a field name", chatStream, sseOf(say("a")) + "dat", open(SSE, true, "\n\n")},
		{"behind a line", chatStream, "data: " + say("a") + "\n", open(SSE, true, "\n")},
		{"behind a line with CR", chatStream, "data: " + say("a") + "\r", open(SSE, true, "\n\n")},
		{"behind an event line", chatStream, "event: x\n", open(SSE, true, "\n")},
		{"between events with CR", chatStream, "data: " + say("a") + "\r\n\r", open(SSE, false, "")},
		{"in a comment", chatStream, ": pi", open(SSE, true, "\n\n")},
		{"behind a comment", chatStream, ": ping\n", open(SSE, false, "")},
		{"in bare JSON", chatStream, sseOf(say("a")) + "{\n", open(SSE, true, "\n")},
		{"between lines", ollamaStream, "{}\n", open(NDJSON, false, "")},
		{"inside a line", ollamaStream, "{}\n{", open(NDJSON, true, "\n")},
		{"array, first", geminiArray, "[", open(Array, false, "")},
		{"array, behind an element", geminiArray, "[" + element, open(Array, false, ",")},
		{"array, behind blanks", geminiArray, "[" + element + "\r\n", open(Array, false, ",")},
		{"array, behind a comma", geminiArray, "[" + element + "\r\n,\r\n", open(Array, false, "")},
		{"array, inside an element", geminiArray, "[" + element + `,{"a":"`, stuck(Array, true)},
		{"array, closed", geminiArray, "[" + element + "]", stuck(Array, false)},
		{"document", chatWhole, `{"a":`, stuck(JSON, true)},
		{"document, whole", chatWhole, `{"a":1}`, stuck(JSON, false)},
		{"HTML", chatStream, "<html>", stuck(HTML, false)},
		{"opaque", post, "\xff\xff", stuck(Opaque, false)},
	} {
		r := NewReader(tc.want)
		r.Feed([]byte(tc.body))
		if got := r.Open(); got != tc.open {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.open)
		}
	}
}

// What is known before the body ends must not wait for it: the connection may stay
// open for ever.
func TestVerdictsThatNeedNoEnd(t *testing.T) {
	for _, tc := range []struct {
		name    string
		want    Want
		body    string
		verdict Verdict
	}{
		{"nothing yet", chatStream, ": ping\n\n", Pending},
		{"short text", chatStream, sseOf(say("hi")), Pending},
		{"release", chatStream, sseOf(say(long)), Healthy},
		{"release at a CR", chatStream, "data: " + say(long) + "\r\r", Healthy},
		{"[DONE] of nothing", chatStream, sseOf("[DONE]"), Empty},
		{"message_stop of nothing", messageStream, sseOf(`{"type":"message_stop"}`), Empty},
		{"completed of nothing", responseStream, sseOf(`{"type":"response.completed","response":{"status":"completed","output":[]}}`), Empty},
		{"done of nothing", ollamaStream, `{"message":{"content":""},"done":true}` + "\n", Empty},
		{"stop of nothing may go on", chatStream, sseOf(chunkOf("{}", `"stop"`)), Pending},
		{"bare error", chatStream, `{"error":{"message":"m"}}`, Erred},
		{"bare error behind events", chatStream, sseOf(say("hi")) + `{"error":{"message":"m"}}`, Erred},
		{"error field", chatStream, "error: {\"message\":\"m\"}\n", Erred},
		{"error, whole", chatWhole, `{"error":{"message":"m"}}`, Erred},
		{"whole, healthy", chatWhole, `{"choices":[{"message":{"content":"hi"}}]}`, Pending},
		{"HTML", chatWhole, " <", Erred},
		{"healthy SSE where JSON was asked for", chatWhole, sseOf(say(long), "[DONE]"), Erred},
		{"error in an array", geminiArray, `[{"error":{"message":"m"}}`, Erred},
	} {
		r := NewReader(tc.want)
		r.Feed([]byte(tc.body))
		if r.Verdict() != tc.verdict {
			t.Errorf("%s: %v, want %v", tc.name, r.Verdict(), tc.verdict)
		}
	}
}

func TestTerminal(t *testing.T) {
	for _, tc := range []struct {
		name string
		want Want
		body string
		ok   bool
	}{
		{"text", chatStream, sseOf(say(long)), false},
		{"finish reason", chatStream, sseOf(say(long), chunkOf("{}", `"stop"`)), true},
		{"one of two choices", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"x"}}]}`, chunkOf("{}", `"stop"`)), false},
		{"[DONE]", chatStream, sseOf(say(long), "[DONE]"), true},
		{"error", chatStream, sseOf(say(long), "[DONE]", `{"error":"x"}`), false},
		{"array, open", geminiArray, `[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`, false},
		{"array, closed", geminiArray, `[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}]`, true},
		{"document, open", chatWhole, `{"choices":[]`, false},
		{"document", chatWhole, `{"choices":[]}`, true},
		{"document nobody judges", get, `{"data":[]}`, true},
		{"completed", responseStream, sseOf(`{"type":"response.completed","response":{"status":"completed"}}`), true},
		{"done", ollamaStream, `{"done":true}` + "\n", true},
	} {
		r := NewReader(tc.want)
		r.Feed([]byte(tc.body))
		if r.Terminal() != tc.ok {
			t.Errorf("%s: terminal %v", tc.name, r.Terminal())
		}
	}
}

// Section 2: the vendors' usage in one normal form.
func TestUsage(t *testing.T) {
	whole := func(usage string) string {
		return `{"choices":[{"message":{"content":"hi"}}],"usage":` + usage + `}`
	}
	runAnswers(t, []answer{
		{"OpenAI", chatWhole, whole(`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":7},"completion_tokens_details":{"reasoning_tokens":9}}`), Healthy, "", used(100, 20, 64, 7, 9)},
		{"null details", chatWhole, whole(`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":null}`), Healthy, "", used(100, 20, -1, -1, -1)},
		{"DeepSeek", chatWhole, whole(`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_cache_hit_tokens":30,"prompt_cache_miss_tokens":70}`), Healthy, "", used(100, 20, 30, -1, -1)},
		{"xAI, reasoning outside", chatWhole, whole(`{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}`), Healthy, "", used(12, 291, -1, -1, 290)},
		{"xAI, cached outside", chatWhole, whole(`{"prompt_tokens":4142,"completion_tokens":254,"total_tokens":8724,"prompt_tokens_details":{"cached_tokens":4328}}`), Healthy, "", used(8470, 254, 4328, -1, -1)},
		{"both outside", chatWhole, whole(`{"prompt_tokens":10,"completion_tokens":1,"total_tokens":36,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":20}}`), Healthy, "", used(15, 21, 5, -1, 20)},
		{"a sum that fits nothing", chatWhole, whole(`{"prompt_tokens":10,"completion_tokens":1,"total_tokens":50}`), Healthy, "", used(10, 40, -1, -1, -1)},
		{"a total that is too small", chatWhole, whole(`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}`), Healthy, "", used(10, 5, -1, -1, -1)},
		{"Moonshot", chatWhole, whole(`{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11,"cached_tokens":8}`), Healthy, "", used(10, 1, 8, -1, -1)},
		{"Moonshot's choice", chatStream, sseOf(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}]}`), Healthy, "", used(3, 4, -1, -1, -1)},
		{"Groq", chatStream, sseOf(say("hi"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}}`), Healthy, "", used(3, 4, -1, -1, -1)},
		{"the last one wins", chatStream, sseOf(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, say("hi"), `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, "[DONE]"), Healthy, "", used(5, 6, -1, -1, -1)},
		{"null afterwards says nothing", chatStream, sseOf(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, say("hi"), `{"choices":[],"usage":null}`, "[DONE]"), Healthy, "", used(1, 1, -1, -1, -1)},
		{"with an error", chatStream, sseOf(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"error":{"message":"m"}}`), Erred, "", used(1, 2, -1, -1, -1)},
		{"numbers with a fraction", chatWhole, whole(`{"prompt_tokens":10.0,"completion_tokens":1e1}`), Healthy, "", used(10, 10, -1, -1, -1)},
		{"nonsense", chatWhole, whole(`{"prompt_tokens":-4,"completion_tokens":1}`), Healthy, "", used(-1, 1, -1, -1, -1)},
		{"more nonsense", chatWhole, whole(`{"prompt_tokens":1e300,"completion_tokens":"x"}`), Healthy, "", used(-1, -1, -1, -1, -1)},
		{"more cached than read", chatWhole, whole(`{"prompt_tokens":4,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}`), Healthy, "", used(4, 1, 4, -1, -1)},
		{"Gemini leaves out zeros", geminiWhole, `{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":4}}`, Healthy, "", used(4, 0, 0, -1, 0)},
		{"Ollama without counts", ollamaWhole, `{"message":{"content":"hi"},"done":true}`, Healthy, "", used(-1, -1, -1, -1, -1)},
		{"Realtime's spelling", responseStream, sseOf(`{"type":"response.done","response":{"status":"completed","output":[{"type":"function_call"}],"usage":{"input_tokens":5,"output_tokens":6,"input_token_details":{"cached_tokens":2}}}}`), Healthy, "", used(5, 6, 2, -1, -1)},
		{"of a failed response", responseStream, sseOf(`{"type":"response.failed","response":{"status":"failed","error":{"message":"m"},"usage":{"input_tokens":5,"output_tokens":6}}}`), Erred, "", used(5, 6, -1, -1, -1)},
	})
}

// An error's own bytes are kept, but not without bound.
func TestErrorBodiesAreBounded(t *testing.T) {
	big := longText(2 << 20)
	r := NewReader(responseStream)
	r.Feed([]byte(sseOf(`{"type":"response.failed","response":{"status":"failed","output":["` + big + `"],"error":{"code":429,"message":"m"}}}`)))
	e := r.Erred()
	if e == nil || !e.Truncated || len(e.Raw) > 1<<20 || !jsonValid(e.Raw) || string(e.Object) != `{"code":429,"message":"m"}` || e.Status != 429 {
		t.Errorf("%.200s", e.Raw)
	}
	r = NewReader(responseStream)
	r.Feed([]byte(sseOf(`{"type":"response.failed","response":{"status":"failed","output":[` + strings.Repeat("1,", 1<<20) + `1],"error":{"code":429,"message":"m"}}}`)))
	if e := r.Erred(); e == nil || !e.Truncated || string(e.Raw) != `{"error":{"code":429,"message":"m"}}` || string(e.Object) != `{"code":429,"message":"m"}` || e.Status != 429 {
		t.Errorf("%.200s", e.Raw)
	}
	r = NewReader(chatWhole)
	r.Feed([]byte(`{"error":"` + big + `"}`))
	if e := r.Erred(); e == nil || !e.Truncated || len(e.Raw) > 1<<20 || len(e.Raw) < maxString {
		t.Errorf("%v bytes kept", len(e.Raw))
	}
}

// Feeding goes on after the end of anything without harm.
func TestReaderSurvivesMisuse(t *testing.T) {
	r := NewReader(Want{})
	r.Feed(nil)
	r.End()
	r.Feed([]byte("more"))
	r.End()
	if r.Verdict() != Healthy {
		t.Error(r.Verdict())
	}
	for v := range Verdict(6) {
		_ = v.String()
	}
	for f := range Format(9) {
		_ = f.String()
	}
}

// What is too long to be read still shows that the upstream is talking; it neither
// fails nor fills the memory.
func TestEventsTooLongToBeRead(t *testing.T) {
	text := longText(5000)
	element := `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}]}}]}`
	for _, tc := range []struct {
		name    string
		want    Want
		body    string
		release int
	}{
		{"event", chatStream, sseOf(say(text)) + sseOf(chunkOf("{}", `"stop"`)), len(sseOf(say(text)))},
		{"line", ollamaStream, `{"message":{"content":"` + text + `"}}` + "\n" + `{"done":true}` + "\n", len(text) + 27},
		{"element", geminiArray, "[" + element + `,{"candidates":[{"finishReason":"STOP"}]}]`, 1 + len(element)},
		{"document", chatWhole, `{"choices":[{"message":{"content":"` + text + `"}}]}`, len(text) + 40},
		{"document nobody judges", post, `{"error":"` + text + `"}`, len(text) + 12},
		{"bare JSON", chatStream, sseOf(say(long)) + `{"error":"` + text + `"}` + "\n\n" + sseOf("[DONE]"), len(sseOf(say(long)))},
	} {
		body := []byte(tc.body)
		for _, cuts := range [][]int{nil, everyByte(len(body))} {
			r := NewReader(tc.want)
			r.limit(1000)
			at := 0
			for _, cut := range append(cuts, len(body)) {
				r.Feed(body[at:cut])
				at = cut
			}
			r.End()
			release, ok := r.Release()
			if r.Verdict() != Healthy || !ok || int(release) < tc.release-1 || int(release) > tc.release {
				t.Errorf("%s: %v %s, released at %d, want %d", tc.name, r.Verdict(), r.Why(), release, tc.release)
			}
			if n := cap(r.sse.data) + cap(r.sse.bare) + cap(r.lines.line) + cap(r.doc.body) + cap(r.array.element); n > 4000 {
				t.Errorf("%s: %d bytes kept", tc.name, n)
			}
		}
	}
}
