package proxy

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/drill"
)

// A piece of JSON text as a client may spell it, with a hole where its model stands.
const hole = "\x00MODEL\x00"

var (
	space  = rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t", "\r\n  ", "    "})
	number = rapid.OneOf(
		rapid.SampledFrom([]string{"0", "-0", "1.0", "1e-7", "1E+2", "-0.0", "9007199254740993", "123456789012345678901234567890", "0.1e1000", "1.7976931348623157e308", "5e-324"}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?`))
	stringPiece = rapid.OneOf(
		rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u003c`, `\u003C`, `\ud83d`, `\udE00`, `\ud83d\ude00`, `\u0000`, `<b> & c`, "\u2028", "渐🌍", "\x7f", "\xff", "\xc3", `{"model":"vm"}`[:1], `model`, `[DONE]`, `data: `}),
		rapid.StringMatching(`[a-zA-Z0-9 .,:;{}\[\]]{0,12}`))
	modelKey = rapid.SampledFrom([]string{`"model"`, `"model"`, `"mod\u0065l"`, `"\u006d\u006F\u0064\u0065\u006c"`})
	vmValue  = rapid.SampledFrom([]string{`"vm"`, `"vm"`, `"\u0076m"`, `" vm\t"`, `"v\u006D "`})
)

func jsonString(t *rapid.T) string {
	return `"` + strings.Join(rapid.SliceOfN(stringPiece, 0, 6).Draw(t, "string"), "") + `"`
}

// jsonValue is any value, its members never called model at the top.
func jsonValue(t *rapid.T, depth int) string {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	pad := func() string { return space.Draw(t, "space") }
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return number.Draw(t, "number")
	case 1, 2:
		return jsonString(t)
	case 3:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case 4:
		var items []string
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, pad()+jsonValue(t, depth-1)+pad())
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		key := jsonString(t)
		if rapid.IntRange(0, 5).Draw(t, "nested model") == 0 {
			key = `"model"`
		}
		members = append(members, pad()+key+pad()+":"+pad()+jsonValue(t, depth-1)+pad())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// requestBody is a request for vm, and the same with holes where every top-level
// model's value was.
func requestBody(t *rapid.T) (sent, holed string) {
	pad := func() string { return space.Draw(t, "space") }
	var out, holes []string
	add := func(key, value, inHole string) {
		a, b, c, d := pad(), pad(), pad(), pad()
		out = append(out, a+key+b+":"+c+value+d)
		holes = append(holes, a+key+b+":"+c+inHole+d)
	}
	others := func() {
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			key := jsonString(t)
			if plain := strings.ToLower(key); strings.Contains(plain, "model") || strings.Contains(plain, "stream") || strings.Contains(plain, `\u`) {
				key = `"messages"`
			}
			value := jsonValue(t, 3)
			add(key, value, value)
		}
	}
	others()
	for range rapid.IntRange(0, 2).Draw(t, "more models") {
		add(modelKey.Draw(t, "key"), jsonValue(t, 2), hole)
		others()
	}
	add(modelKey.Draw(t, "key"), vmValue.Draw(t, "value"), hole)
	others()
	a, b := pad(), pad()
	return a + "{" + strings.Join(out, ",") + "}" + b, a + "{" + strings.Join(holes, ",") + "}" + b
}

// Case 22: whatever JSON a client sends, every upstream gets it byte for byte but for
// its model, with the exact length, however the body came in.
func TestAnyBodyReachesTheUpstreamByteForByte(t *testing.T) {
	u1, u2 := play(t, refusal(500, `{"error":{"message":"oops"}}`)), play(t, page("application/json", `{"ok":true}`))
	r := newRig(t, fmt.Sprintf("server: {auto_hedge_threshold: 0}\nrules: []\nvirtual_models:\n  vm:\n    - {base_url: %q, api_key: sk-upstream-secret-1, model: 'm/\"é\\'}\n    - {base_url: %q, api_key: sk-upstream-secret-2, model: a-much-longer-name-than-vm}\n", u1.URL(), u2.URL()))
	models := []string{`"m/\"é\\"`, `"a-much-longer-name-than-vm"`}
	rapid.Check(t, func(t *rapid.T) {
		sent, holed := requestBody(t)
		n := u1.Count()
		got := r.send(drill.Query{Path: "/v1/embeddings", Body: []byte(sent), Chunked: rapid.Bool().Draw(t, "chunked"), Piece: rapid.IntRange(0, 40).Draw(t, "piece")})
		if got.Status != 200 || string(got.Body) != `{"ok":true}` {
			t.Fatalf("client got %d %s for %q", got.Status, got.Body, sent)
		}
		for i, u := range []*drill.Upstream{u1, u2} {
			q := u.Requests()[n]
			if want := strings.ReplaceAll(holed, hole, models[i]); string(q.Body) != want || q.Get("Content-Length") != strconv.Itoa(len(want)) || q.Get("Transfer-Encoding") != "" {
				t.Fatalf("u%d got %s bytes\n%q, want\n%q", i+1, q.Get("Content-Length"), q.Body, want)
			}
		}
	})
}

// Case 27: whatever form a client sends, every upstream gets it byte for byte but for
// the model's value.
func TestAnyFormReachesTheUpstreamByteForByte(t *testing.T) {
	u1, u2 := play(t, refusal(500, `{"error":{"message":"oops"}}`)), play(t, page("application/json", `{"ok":true}`))
	r := newRig(t, over("server: {auto_hedge_threshold: 0}\nrules: []", u1.URL(), u2.URL()))
	content := rapid.Custom(func(t *rapid.T) string {
		pieces := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"\r\n", "\n", "--", "\r\n--", "-", `name="model"`, "\x00", "vm", "Content-Disposition: form-data; name=model\r\n\r\nvm"}),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })), 0, 12).Draw(t, "pieces")
		return strings.Join(pieces, "")
	})
	rapid.Check(t, func(t *rapid.T) {
		boundary := rapid.StringMatching(`[0-9A-Za-z'()+_,./:=?-]{1,40}`).Draw(t, "boundary")
		var form strings.Builder
		part := func(header, body string) {
			fmt.Fprintf(&form, "--%s\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n", boundary, header, body)
		}
		others := func() {
			for range rapid.IntRange(0, 2).Draw(t, "parts") {
				body := content.Draw(t, "content")
				if strings.Contains(body, boundary) {
					body = "x" // what holds the boundary is no content
				}
				name := rapid.SampledFrom([]string{"file", "prompt", "models", "x-model", "language"}).Draw(t, "name")
				extra := rapid.SampledFrom([]string{"", `; filename="model"`, "; filename=a.wav\r\nContent-Type: audio/wav", "; filename*=UTF-8''%e2%82%ac"}).Draw(t, "extra")
				part(`name="`+name+`"`+extra, body)
			}
		}
		others()
		for range rapid.IntRange(1, 2).Draw(t, "models") {
			part(rapid.SampledFrom([]string{`name="model"`, "name=model", "name=\"model\"\r\nContent-Type: text/plain"}).Draw(t, "header"), hole)
			others()
		}
		fmt.Fprintf(&form, "--%s--\r\n", boundary)
		holed := form.String()
		n := u1.Count()
		got := r.send(drill.Query{Path: "/v1/audio/transcriptions", Body: []byte(strings.ReplaceAll(holed, hole, "vm")), Header: []string{"Content-Type", `multipart/form-data; boundary="` + boundary + `"`},
			Chunked: rapid.Bool().Draw(t, "chunked"), Piece: rapid.IntRange(0, 60).Draw(t, "piece")})
		if got.Status != 200 {
			t.Fatalf("client got %d %s for %q", got.Status, got.Body, holed)
		}
		for i, u := range []*drill.Upstream{u1, u2} {
			q := u.Requests()[n]
			if want := strings.ReplaceAll(holed, hole, fmt.Sprintf("m%d", i+1)); string(q.Body) != want || q.Get("Content-Length") != strconv.Itoa(len(want)) {
				t.Fatalf("u%d got\n%q, want\n%q", i+1, q.Body, want)
			}
		}
	})
}

// scripted is what an upstream answers: its type, its body, where the body is
// cut into writes, and how it is framed.
type scripted struct {
	contentType string
	body        []byte
	cuts        []int
	framing     drill.Framing
}

// text is a JSON string's content.
func text(t *rapid.T) string {
	s := jsonString(t)
	return s[1 : len(s)-1]
}

// eventStream is a healthy chat stream in any spelling.
func eventStream(t *rapid.T) string {
	eol := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end")
	var b strings.Builder
	if rapid.IntRange(0, 9).Draw(t, "mark") == 0 {
		b.WriteString("\ufeff")
	}
	noise := func() {
		for range rapid.IntRange(0, 2).Draw(t, "noise") {
			b.WriteString(rapid.SampledFrom([]string{": OPENROUTER PROCESSING" + eol + eol, ":" + eol, "id: 7" + eol, "retry: 10" + eol, "event: ping" + eol + "data: {}" + eol + eol, eol, "unknown: x" + eol + eol,
				`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}` + eol + eol}).Draw(t, "piece"))
		}
	}
	data := func(json string) {
		b.WriteString(rapid.SampledFrom([]string{"data: ", "data:"}).Draw(t, "field") + json + eol + eol)
	}
	noise()
	for range rapid.IntRange(1, 8).Draw(t, "events") {
		data(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text(t) + `x"},"finish_reason":null}],"n":` + number.Draw(t, "number") + `}`)
		noise()
	}
	data(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	noise()
	if rapid.Bool().Draw(t, "done") {
		data("[DONE]")
	}
	return b.String()
}

// ndjson is a healthy Ollama stream.
func ndjson(t *rapid.T) string {
	var b strings.Builder
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
	for range rapid.IntRange(1, 8).Draw(t, "lines") {
		b.WriteString(`{"model":"m","message":{"role":"assistant","content":"` + text(t) + `x"},"done":false,"n":` + number.Draw(t, "number") + `}` + eol)
	}
	return b.String() + `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + rapid.SampledFrom([]string{"", eol}).Draw(t, "end")
}

// geminiArrayBody is a healthy Gemini stream in one array.
func geminiArrayBody(t *rapid.T) string {
	pad := func() string { return space.Draw(t, "space") }
	var items []string
	for range rapid.IntRange(1, 6).Draw(t, "items") {
		items = append(items, pad()+geminiJSON(part(text(t)+"x"), "")+pad())
	}
	return pad() + "[" + strings.Join(append(items, pad()+geminiJSON(part(""), "STOP")), ",") + "]" + pad()
}

// Whatever a healthy upstream answers, in whatever pieces and framing, the client
// gets it byte for byte, once, with nothing added.
func TestAnyAnswerReachesTheClientByteForByte(t *testing.T) {
	var next atomic.Pointer[scripted]
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		s := next.Load()
		w.Head(200, s.framing, "Content-Type", s.contentType)
		from := 0
		for _, cut := range append(s.cuts, len(s.body)) {
			w.Chunk(s.body[from:cut])
			from = cut
		}
		w.End()
	})
	r := newRig(t, over("server: {default_model: vm}", u.URL()))
	kinds := map[string]struct {
		query       drill.Query
		contentType []string
		body        func(*rapid.T) string
	}{
		"events": {drill.Query{Path: chatPath, Body: []byte(`{"model":"vm","stream":true}`)}, []string{"text/event-stream", "text/event-stream; charset=utf-8", "application/json"}, eventStream},
		"lines":  {drill.Query{Path: ollamaPath, Body: []byte(`{"model":"vm"}`)}, []string{"application/x-ndjson", "application/json"}, ndjson},
		"array":  {drill.Query{Path: geminiArray, Body: []byte(`{}`)}, []string{"application/json; charset=UTF-8"}, geminiArrayBody},
		"chat": {drill.Query{Path: chatPath, Body: []byte(`{"model":"vm"}`)}, []string{"application/json", "text/plain"}, func(t *rapid.T) string {
			return space.Draw(t, "space") + `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + text(t) + `x"},"finish_reason":"stop"}],"x":` + jsonValue(t, 3) + `}` + space.Draw(t, "space")
		}},
		"embeddings": {drill.Query{Path: "/v1/embeddings", Body: []byte(`{"model":"vm"}`)}, []string{"application/json"}, func(t *rapid.T) string {
			return `{"data":` + jsonValue(t, 3) + `}`
		}},
		"sound": {drill.Query{Path: "/v1/audio/speech", Body: []byte(`{"model":"vm"}`)}, []string{"audio/mpeg", "application/octet-stream"}, func(t *rapid.T) string {
			return "\xff\xfb" + string(bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 400).Draw(t, "bytes"), rapid.IntRange(1, 200).Draw(t, "times")))
		}},
		"a file": {drill.Query{Path: "/v1/files/f/content"}, []string{"application/octet-stream", "text/plain", "application/jsonl"}, func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "bytes"))
		}},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := &scripted{contentType: rapid.SampledFrom(k.contentType).Draw(t, "type"), body: []byte(k.body(t))}
				s.framing = rapid.SampledFrom([]drill.Framing{drill.Chunked, drill.Length(len(s.body)), drill.UntilClose}).Draw(t, "framing")
				for at := 0; ; {
					at += rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(1, 2000)).Draw(t, "cut")
					if at >= len(s.body) || len(s.cuts) > 60 {
						break
					}
					s.cuts = append(s.cuts, at)
				}
				next.Store(s)
				got := r.send(k.query)
				if got.Status != 200 || !got.Clean || !bytes.Equal(got.Body, s.body) || got.Get("Content-Type") != s.contentType {
					t.Fatalf("client got %d %q, %d bytes, clean %v (%v)\n%q, want %d bytes\n%q\n%s", got.Status, got.Get("Content-Type"), len(got.Body), got.Clean, got.Err, brief(string(got.Body)), len(s.body), brief(string(s.body)), r.log.last())
				}
			})
		})
	}
}
