package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// byDefault serves requests that name no model by vm.
const byDefault = "server: {default_model: vm}"

// smallForm is a multipart form with these fields.
func smallForm(fields ...string) (contentType, body string) {
	for i := 0; i+1 < len(fields); i += 2 {
		body += "--XX\r\nContent-Disposition: form-data; name=\"" + fields[i] + "\"\r\n\r\n" + fields[i+1] + "\r\n"
	}
	return "multipart/form-data; boundary=XX", body + "--XX--\r\n"
}

// What an answer's status says: 2xx and 304 are judged by their body, if they have
// one, and everything else is a failure of that status.
func TestStatusesSayWhatTheySay(t *testing.T) {
	bare := func(status int, header ...string) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(status, drill.Length(0), header...)
			w.End()
		}
	}
	for _, c := range []struct {
		name, method string
		script       drill.Script
		status       int
	}{
		{"204", "POST", bare(204), 204},
		{"205", "POST", bare(205), 205},
		{"304", "GET", bare(304, "Etag", `"x"`), 304},
		{"204 to a GET", "GET", bare(204), 204},
		{"HEAD", "HEAD", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Length(321), "Content-Type", jsonType)
			w.End()
		}, 200},
		{"HEAD of a coded page", "HEAD", bare(200, "Content-Type", "text/html", "Content-Encoding", "dcb"), 200},
		{"201", "POST", func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(201, []byte(okChat)) }, 201},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, byDefault, c.script, frames(okSSE))
			sent := ""
			if c.method == "POST" {
				sent = requestFor(chatPath, true)
			}
			got := s.ask(c.method, chatPath, sent)
			if got.status != c.status || s.up[1].Count() != 0 || got.err != nil {
				t.Errorf("client got %d %q, %v; u2 was called %d times\n%s", got.status, got.body, got.err, s.up[1].Count(), s.log)
			}
			if c.name == "HEAD" && got.header.Get("Content-Length") != "321" {
				t.Errorf("headers %v", got.header)
			}
			if r := s.record(); r.Ending != stats.Success {
				t.Errorf("booked as %v", r.Ending)
			}
		})
	}
	for _, status := range []int{300, 301, 302, 303, 307, 308, 404, 418, 500, 529, 599} {
		inBubble(t, fmt.Sprint(status), func(t *testing.T) {
			s := newStage(t, "rules: []", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(status, drill.Length(len(okChat)), "Content-Type", jsonType, "Location", "http://u3/v1/chat/completions")
				w.Chunk([]byte(okChat))
				w.End()
			}, frames(okSSE))
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
			if want := fmt.Sprintf("failed %d, ok", status); s.verdicts() != want {
				t.Errorf("verdicts %q, want %q", s.verdicts(), want)
			}
			if n := s.net.Dials("u3:80"); n != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// An upstream that switches protocols unasked is passed over at once: its bytes have
// no end that could be waited for.
func TestAProtocolNobodyAskedFor(t *testing.T) {
	for _, stream := range []bool{false, true} {
		inBubble(t, fmt.Sprint("stream ", stream), func(t *testing.T) {
			s := newStage(t, "rules: []", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Raw([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"))
				w.Silence()
			}, page(jsonType, okChat))
			sent := requestFor(chatPath, stream)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{1, 1}, ending: stats.Success})
			if s.up[0].Open() != 0 {
				t.Error("the connection is still open")
			}
		})
	}
}

// Generation endpoints are told by the end of their path, whatever stands before it;
// their sub-resources are none.
func TestWhichEndpointsAreJudged(t *testing.T) {
	empty := `{"choices":[],"output":[],"content":[]}`
	for path, judged := range map[string]bool{
		"/v1/chat/completions":                          true,
		"/chat/completions":                             true,
		"/api/v4/chat/completions":                      true,
		"/v1/chat/completions/":                         true,
		"/proxy/openai/v1/responses":                    true,
		"/anthropic/v1/messages?beta=true":              true,
		"/v1/completions":                               true,
		"/openai/deployments/vm/chat/completions?api=1": true,
		"/v1beta/models/vm:generateContent":             true,
		"/api/generate":                                 true,
		"/v1/messages/count_tokens":                     false,
		"/v1/messages/batches":                          false,
		"/v1/responses/compact":                         false,
		"/v1/responses/resp_1/cancel":                   false,
		"/v1/embeddings":                                false,
		"/v1/moderations":                               false,
		"/v1/images/generations":                        false,
		"/v1/rerank":                                    false,
		"/v1beta/models/vm:countTokens":                 false,
		"/v1beta/models/vm:embedContent":                false,
		"/api/embed":                                    false,
		"/api/show":                                     false,
		"/v1/something/new":                             false,
	} {
		inBubble(t, strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
			s := newStage(t, byDefault, page(jsonType, empty), page(jsonType, okChat))
			got := s.ask("POST", path, `{"model":"vm","input":"x","stream":false}`)
			if failed := s.up[1].Count() > 0; failed != judged || !judged && (got.status != 200 || got.body != empty) {
				t.Errorf("%s: %d %q, judged %v, want %v\n%s", path, got.status, got.body, failed, judged, s.log)
			}
		})
	}
}

// Who asks for a path that there is not, as a client with a wrong base URL does, gets the
// web page of whoever has none, or a page with 404, 405 or 501: nobody is to blame, unless
// a rule of the file's says so.
func TestAWrongPathFreezesNobody(t *testing.T) {
	strange := func(w *drill.Wire, q drill.Request, n int) {
		switch {
		case q.Method == "PURGE":
			refusal(501, `{"error":{"message":"Unsupported method"}}`)(w, q, n)
		case strings.HasSuffix(q.Target, "/files"), strings.HasSuffix(q.Target, "/compact"):
			w.Head(404+len(q.Target)%2, drill.Length(len(challenge)), "Content-Type", "text/html")
			w.Chunk([]byte(challenge))
		case strings.HasSuffix(q.Target, "/chat/completions"):
			page("application/json", okChat)(w, q, n)
		default:
			page("text/html", challenge)(w, q, n)
		}
	}
	for _, cfg := range []func(string, ...string) string{over, pool} {
		a, b := play(t, strange), play(t, strange)
		r := newRig(t, cfg("rules: []", a.URL(), b.URL()))
		for range 6 {
			r.fails(r.post("/v1/whatever", `{"model":"vm"}`), 502, "HTML")
			r.post("/v1/files", `{"model":"vm"}`)
			r.post("/v1/responses/compact", `{"model":"vm"}`)
			r.send(drill.Query{Method: "PURGE", Path: "/v1/whatever", Body: []byte(`{"model":"vm"}`)}) // the pool passes 501 on
		}
		if a.Count() < 6 || b.Count() < 6 || a.Count()+b.Count() < 18 || r.frozen() != 0 {
			t.Errorf("%d and %d calls, %d frozen", a.Count(), b.Count(), r.frozen())
		}
		r.is(r.post("/v1/chat/completions", `{"model":"vm"}`), 200, okChat)
		// Where it is a model that is asked, a page is a failure like any other.
		for range 6 {
			r.post("/v1/embeddings", `{"model":"vm"}`)
		}
		if r.frozen() == 0 {
			t.Error("nobody is frozen for a page in the place of embeddings")
		}
	}
	u := play(t, strange)
	r := newRig(t, over("", u.URL())) // by the built-in rules it goes back to the client, as it came and at once
	r.is(r.post("/v1/responses/compact", `{"model":"vm"}`), 404+len("/v1/responses/compact")%2, challenge)
	r.is(r.send(drill.Query{Method: "PURGE", Path: "/v1/whatever", Body: []byte(`{"model":"vm"}`)}), 501, `{"error":{"message":"Unsupported method"}}`)
	equal(t, "calls", u.Count(), 2)
	r = newRig(t, over("rules: [{match: {status: [404, 405]}, action: freeze}]", u.URL()))
	if r.post("/v1/files", `{"model":"vm"}`); r.frozen() != 1 {
		t.Error("a rule of the file's freezes nobody")
	}
}

// All other endpoints are judged by their status, by HTML where JSON was due and, for
// POST, by a top-level error; never by what they lack.
func TestOtherEndpointsAreNotJudgedByWhatTheyLack(t *testing.T) {
	failure := `{"error":{"message":"boom","code":"x"}}`
	for _, c := range []struct {
		name, method, path, kind, body string
		fails                          bool
	}{
		{"embeddings", "POST", "/v1/embeddings", jsonType, `{"object":"list","data":[{"embedding":[0.1],"index":0}]}`, false},
		{"embeddings that failed", "POST", "/v1/embeddings", jsonType, failure, true},
		{"embeddings, a string", "POST", "/v1/embeddings", jsonType, `{"error":"model is loading"}`, true},
		{"embeddings with error null", "POST", "/v1/embeddings", jsonType, `{"error":null,"data":[]}`, false},
		{"embeddings with an empty error", "POST", "/v1/embeddings", jsonType, `{"error":{},"data":[]}`, false},
		{"embeddings without data", "POST", "/v1/embeddings", jsonType, `{}`, false},
		{"no body", "POST", "/v1/embeddings", jsonType, ``, false},
		{"an empty list", "POST", "/v1/embeddings", jsonType, `[]`, false},
		{"a page", "POST", "/v1/embeddings", "text/html", challenge, true},
		{"a page that calls itself JSON", "POST", "/v1/embeddings", jsonType, challenge, true},
		{"a page without a type", "POST", "/v1/moderations", "", challenge, true},
		{"moderations", "POST", "/v1/moderations", jsonType, `{"results":[{"flagged":false}]}`, false},
		{"moderations that failed", "POST", "/v1/moderations", jsonType, failure, true},
		{"images", "POST", "/v1/images/generations", jsonType, `{"data":[{"b64_json":"AAAA"}]}`, false},
		{"images that failed", "POST", "/v1/images/generations", jsonType, failure, true},
		{"images, streamed", "POST", "/v1/images/generations", sseType, event("image_generation.completed", `{"type":"image_generation.completed","b64_json":"AAAA"}`), false},
		{"images, streamed, that failed", "POST", "/v1/images/generations", sseType, event("error", `{"type":"error","error":{"message":"boom"}}`), true},
		{"speech", "POST", "/v1/audio/speech", "audio/mpeg", "\xff\xfb\x90<html>", false},
		{"speech that failed", "POST", "/v1/audio/speech", jsonType, failure, true},
		{"a transcription", "POST", "/v1/audio/transcriptions", jsonType, `{"text":""}`, false},
		{"a transcription as text", "POST", "/v1/audio/transcriptions", "text/plain; charset=utf-8", "error: this is what was said\n", false},
		{"subtitles", "POST", "/v1/audio/transcriptions", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\n<v Bob>hi\n", false},
		{"subtitles that begin with markup", "POST", "/v1/audio/transcriptions", "text/plain", "<v Bob>hi", false},
		{"a transcription, streamed", "POST", "/v1/audio/transcriptions", sseType, event("transcript.text.done", `{"type":"transcript.text.done","text":""}`), false},
		{"an unknown one", "POST", "/v1/something/new", "application/octet-stream", "\x00\x01", false},
		{"an unknown one that failed", "POST", "/v1/something/new", jsonType, failure, true},
		{"an unknown one that streams an error", "POST", "/v1/something/new", sseType, data(failure), true},
		{"XML", "POST", "/v1/something/new", "application/xml", `<?xml version="1.0"?><html/>`, false},
		// For GET and DELETE an error is data, and a page a file.
		{"a job that failed", "GET", "/v1/batches/batch_1", jsonType, `{"id":"batch_1","status":"failed","error":{"message":"boom"}}`, false},
		{"a response that failed", "GET", "/v1/responses/resp_1", jsonType, `{"object":"response","status":"failed","error":{"code":"server_error","message":"boom"}}`, false},
		{"what was deleted", "DELETE", "/v1/files/file_1", jsonType, failure, false},
		{"a file that is a page", "GET", "/v1/files/file_1/content", "text/html", challenge, false},
		{"a file", "GET", "/v1/files/file_1/content", "application/octet-stream", "\x1f\x8b\x00", false},
		{"lines", "GET", "/v1/files/file_1/content", "application/jsonl", failure + "\n" + failure + "\n", false},
		{"PUT", "PUT", "/v1/something/new", jsonType, failure, false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, byDefault, page(c.kind, c.body), page(jsonType, okChat))
			sent := ""
			if c.method == "POST" {
				sent = `{"model":"vm","input":"x"}`
			}
			want := outcome{body: c.body, winner: 1, calls: []int{1, 0}, ending: stats.Success}
			if c.fails {
				want = outcome{body: okChat, winner: 2, calls: []int{1, 1}, ending: stats.Success}
			}
			got := s.ask(c.method, c.path, sent)
			s.expect(sent, got, want)
			if kind := got.header.Get("Content-Type"); !c.fails && kind != c.kind {
				t.Errorf("type %q, want %q", kind, c.kind)
			}
		})
	}
}

// A body that is no JSON goes out with its first byte; one that is waits for its end.
func TestWhatIsNoJSONGoesOutAtOnce(t *testing.T) {
	for _, c := range []struct {
		name, method, path, kind, body string
		first                          time.Duration
	}{
		{"speech", "POST", "/v1/audio/speech", "audio/mpeg", "\xff\xfb\x90\x00 sound", 0},
		{"a file", "GET", "/v1/files/file_1/content", "application/pdf", "%PDF-1.7", 0},
		{"text", "POST", "/v1/audio/transcriptions", "text/plain", "one two", 0},
		{"an image", "POST", "/v1/images/raw", "image/png", "\x89PNG\r\n", 0},
		{"JSON", "POST", "/v1/embeddings", jsonType, `{"data":[]}`, 5 * time.Second},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, byDefault, halves(c.kind, c.body[:1], c.body[1:]), frames(okSSE))
			sent := ""
			if c.method == "POST" {
				sent = `{"model":"vm","input":"x"}`
			}
			got := s.ask(c.method, c.path, sent)
			s.expect(sent, got, outcome{body: c.body, winner: 1, calls: []int{1, 0}, took: 5 * time.Second, ending: stats.Success})
			if got.at[0] != c.first {
				t.Errorf("the first bytes came after %v, want %v", got.at[0], c.first)
			}
		})
	}
}

// Requests ask to stream in their own ways; only those that do have a stall clock.
func TestWhatAsksForAStream(t *testing.T) {
	kind, streamed := smallForm("model", "vm", "stream", "true")
	_, whole := smallForm("model", "vm", "stream", "false")
	for _, c := range []struct {
		name, path, kind, body string
		stream                 bool
	}{
		{"stream true", chatPath, jsonType, `{"model":"vm","stream":true}`, true},
		{"stream false", chatPath, jsonType, `{"model":"vm","stream":false}`, false},
		{"nothing said", chatPath, jsonType, `{"model":"vm"}`, false},
		{"stream, a string", chatPath, jsonType, `{"model":"vm","stream":"true"}`, false},
		{"stream further down", chatPath, jsonType, `{"model":"vm","options":{"stream":true}}`, false},
		{"stream twice", chatPath, jsonType, `{"stream":true,"model":"vm","stream":false}`, false},
		{"stream escaped", chatPath, jsonType, `{"model":"vm","str\u0065am":true}`, true},
		{"a form that streams", "/v1/audio/transcriptions", kind, streamed, true},
		{"a form that does not", "/v1/audio/transcriptions", kind, whole, false},
		{"speech as events", "/v1/audio/speech", jsonType, `{"model":"vm","stream_format":"sse"}`, true},
		{"speech as sound", "/v1/audio/speech", jsonType, `{"model":"vm","stream_format":"audio"}`, false},
		{"gemini streams", geminiArray, jsonType, `{}`, true},
		{"gemini streams events", geminiPath, jsonType, `{}`, true},
		{"gemini", geminiWhole, jsonType, `{}`, false},
		{"gemini with alt=sse", geminiWhole + "?alt=sse", jsonType, `{}`, true},
		{"ollama by default", ollamaPath, jsonType, `{"model":"vm"}`, true},
		{"ollama generate by default", "/api/generate", jsonType, `{"model":"vm"}`, true},
		{"ollama that is told not to", ollamaPath, jsonType, `{"model":"vm","stream":false}`, false},
		{"ollama's embeddings", "/api/embed", jsonType, `{"model":"vm"}`, false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "server: {stall_timeout: 20, nonstream_timeout: 90}", mute)
			got := s.ask("POST", c.path, c.body, "Content-Type", c.kind)
			want := 90 * time.Second
			if c.stream {
				want = 20 * time.Second
			}
			if r := s.record(); got.status != 502 || got.took != want || r.Stream != c.stream {
				t.Errorf("%d after %v, booked as a stream: %v; want after %v", got.status, got.took, r.Stream, want)
			}
		})
	}
}

// min_content_chars is how many characters a stream must show, summed over its
// events, in characters and not in bytes; a shorter answer goes out when it ends.
func TestHowManyCharactersReleaseAStream(t *testing.T) {
	for _, c := range []struct {
		chars int
		words []string
		at    int // the event that releases; the last one is the end
	}{
		{1, []string{"a", "b", "c"}, 0},
		{10, []string{"渐", "渐渐渐渐", "渐渐渐渐", "渐", "x"}, 3},
		{10, []string{"one", "two", "three"}, 2},
		{10, []string{"one", "two"}, 2},
		{50, []string{strings.Repeat("x", 49), "y", "z"}, 1},
	} {
		inBubble(t, fmt.Sprintf("%d of %v", c.chars, c.words), func(t *testing.T) {
			s := newStage(t, fmt.Sprintf("server: {min_content_chars: %d}", c.chars), func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				for _, word := range c.words {
					w.Chunk([]byte(said(word)))
					w.Pause(time.Second)
				}
				w.Chunk([]byte(finish("stop") + done))
				w.End()
			})
			body := ""
			for _, word := range c.words {
				body += said(word)
			}
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent)
			s.expect(sent, got, outcome{body: body + finish("stop") + done, winner: 1, calls: []int{1}, took: time.Duration(len(c.words)) * time.Second, ending: stats.Success})
			if want := time.Duration(c.at) * time.Second; got.at[0] != want {
				t.Errorf("released after %v, want %v", got.at[0], want)
			}
		})
	}
}

// hold_bytes bounds what is held of an answer, decoded: then it goes out, whatever
// may come of it.
func TestWhatIsHeldIsBounded(t *testing.T) {
	comment := ":" + strings.Repeat("x", 1022) + "\n"
	spaces := strings.Repeat(" ", 1024)
	for name, c := range map[string]struct {
		kind, piece, end string
		stream           bool
	}{
		"a stream of comments": {sseType, comment, okSSE, true},
		"a whole answer":       {jsonType, spaces, okChat, false},
		"one long event":       {sseType, "data: " + spaces[6:], "\n" + okSSE, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "server: {hold_bytes: 65536}", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", c.kind)
				for i := range 100 {
					if i > 0 && c.piece[0] == 'd' {
						w.Chunk([]byte(spaces))
					} else {
						w.Chunk([]byte(c.piece))
					}
					w.Pause(time.Second)
				}
				w.Chunk([]byte(c.end))
				w.End()
			}, page(c.kind, okSSE))
			sent := requestFor(chatPath, c.stream)
			got := s.ask("POST", chatPath, sent)
			body := strings.Repeat(c.piece, 100)
			if c.piece[0] == 'd' {
				body = c.piece + strings.Repeat(spaces, 99)
			}
			s.expect(sent, got, outcome{body: body + c.end, winner: 1, calls: []int{1, 0}, took: 100 * time.Second, ending: stats.Success})
			if got.at[0] < 63*time.Second || got.at[0] > 64*time.Second {
				t.Errorf("released after %v, want with the 64th KiB", got.at[0])
			}
		})
	}
	inBubble(t, "decoded", func(t *testing.T) {
		s := newStage(t, "server: {hold_bytes: 65536}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", "gzip")
			w.Chunk(pack(t, "gzip", strings.Repeat(comment, 70)))
			w.Pause(time.Second)
			w.Chunk(pack(t, "gzip", okSSE))
			w.End()
		})
		got := s.ask("POST", chatPath, requestFor(chatPath, true))
		if got.body != strings.Repeat(comment, 70)+okSSE || got.err != nil || got.at[0] != 0 {
			t.Errorf("client got %d bytes at %v, %v", len(got.body), got.at, got.err)
		}
	})
	inBubble(t, "an error beyond it", func(t *testing.T) {
		early, late := `{"padding":"`+strings.Repeat("x", 70<<10), `","error":{"message":"boom"}}`
		s := newStage(t, "server: {hold_bytes: 65536}", halves(jsonType, early, late), page(jsonType, okChat))
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: early + late, winner: 1, calls: []int{1, 0}, took: 5 * time.Second, ending: stats.Broken})
	})
}

// How events are framed does not matter, to the judge or to what the client gets.
func TestFramingsOfEvents(t *testing.T) {
	for name, body := range map[string]string{
		"CRLF":                   strings.ReplaceAll(okSSE, "\n", "\r\n"),
		"CR":                     strings.ReplaceAll(okSSE, "\n", "\r"),
		"no space":               strings.ReplaceAll(okSSE, "data: ", "data:"),
		"ids and retries":        "retry: 10\nid: 1\n" + okSSE,
		"several data lines":     "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"PONG\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n",
		"a byte order mark":      "\xef\xbb\xbf" + okSSE,
		"unknown fields":         "x-trace: abc\n" + okSSE,
		"no line end at the end": strings.TrimRight(okSSE, "\n"),
		"blank lines in between": strings.ReplaceAll(okSSE, "\n\n", "\n\n\n\n"),
		"DONE without its space": strings.Replace(okSSE, "data: [DONE]", "data:[DONE]", 1),
		"an event name":          strings.ReplaceAll(okSSE, "data: {", "event: message\ndata: {"),
		"garbage behind a word":  said("one two three") + "data: {oops\n\n" + finish("stop") + done,
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", frames(body), frames("data: [DONE]\n\n"))
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: body, winner: 1, calls: []int{1, 0}, ending: stats.Success})
		})
	}
	inBubble(t, "garbage before a word", func(t *testing.T) {
		s := newStage(t, "", frames("data: {oops\n\n"+okSSE), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
	})
	inBubble(t, "messages without event lines", func(t *testing.T) {
		body := ""
		for l := range strings.Lines(okAM) {
			if !strings.HasPrefix(l, "event:") {
				body += l
			}
		}
		s := newStage(t, "", frames(body), frames(okAM))
		sent := requestFor(messagesPath, true)
		s.expect(sent, s.ask("POST", messagesPath, sent), outcome{body: body, winner: 1, calls: []int{1, 0}, ending: stats.Success})
	})
}
