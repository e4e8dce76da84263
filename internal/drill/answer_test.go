package drill

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
)

// answers are what the tests let models say.
var answers = map[string]Answer{
	"default":   {},
	"unicode":   {Text: "渐🌍 says \"hi\"\n<&> {\"error\":{\"code\":429}}", Pieces: 4},
	"reasoning": {Text: "So it is noon.", Reasoning: "The sun is high.", Usage: Usage{Input: 40, Output: 30, Reasoning: 20}},
	"thoughts":  {Reasoning: "Only thinking, no word."},
	"tool":      {Tool: &Tool{Name: "read_tide", Arguments: `{"port":"Brest"}`}},
	"tool bare": {Text: "I look.", Tool: &Tool{Name: "read_tide"}},
	"silent":    {Usage: Usage{Input: -1}, Model: "other", ID: "x1"},
}

func TestHealthyAnswersAreWholeAndCorrect(t *testing.T) {
	for _, ask := range asks {
		for name, a := range answers {
			t.Run(ask.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					th := stageOn(t, Healthy(a))
					c := th.client(t)
					r := c.Ask(t.Context(), ask.query)
					if r.Status != 200 || !r.Clean {
						t.Fatalf("%+v", r)
					}
					if want := a.Body(ask.request()); !bytes.Equal(r.Body, want) {
						t.Errorf("the body is not the one Body tells:\n%s\n%s", r.Body, want)
					}
					if streamed := r.Get("Transfer-Encoding") == "chunked"; streamed != ask.streams() {
						t.Errorf("chunked: %v", streamed)
					}
					if n := len(a.Frames(ask.request())); len(r.Arrivals) != n {
						t.Errorf("%d arrivals of %d frames", len(r.Arrivals), n)
					}
					complete := a.complete(formOf(ask.request()))
					if got := Spoken(r.Body); got != complete.Text {
						t.Errorf("says %q, want %q", got, complete.Text)
					}
					checkJSON(t, r.Body)
					if again := c.Ask(t.Context(), ask.query); !bytes.Equal(again.Body, r.Body) {
						t.Error("the second answer differs")
					}
					text := string(r.Body)
					tool := a.Tool != nil && !strings.Contains(ask.name, "completions") && !strings.Contains(ask.name, "generate") && !strings.Contains(ask.name, "transcription")
					if strings.Contains(text, "read_tide") != tool {
						t.Errorf("tool call: %v, want %v", !tool, tool)
					}
					if a.Model == "other" && !strings.Contains(text, "other") && !strings.HasPrefix(ask.name, "transcription") {
						t.Error("the answer is not by the model it was told")
					}
				})
			})
		}
	}
}

// checkJSON fails the test where a value of the body is no JSON.
func checkJSON(t *testing.T, body []byte) {
	t.Helper()
	for _, v := range jsonValues(body) {
		if !json.Valid(v) && string(v) != "[DONE]" {
			t.Errorf("no JSON: %s", v)
		}
	}
}

func TestUsageIsReportedAsEachVendorDoes(t *testing.T) {
	a := Answer{Usage: Usage{Input: 100, Cached: 60, Output: 30, Reasoning: 10}}
	want := map[string][]string{
		"chat stream":        {`"usage":null`, `"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":60`},
		"chat":               {`"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130`, `"reasoning_tokens":10`},
		"completions":        {`"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130`},
		"responses stream":   {`"usage":null`, `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":130}`},
		"responses":          {`"total_tokens":130`},
		"messages stream":    {`"input_tokens":40,"cache_creation_input_tokens":0,"cache_read_input_tokens":60`, `"usage":{"output_tokens":30}`},
		"messages":           {`"input_tokens":40,"cache_creation_input_tokens":0,"cache_read_input_tokens":60`, `"output_tokens":30`},
		"gemini sse":         {`"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":130,"cachedContentTokenCount":60`, `"thoughtsTokenCount":10`},
		"gemini":             {`"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":130`},
		"ollama chat stream": {`"prompt_eval_count":100`, `"eval_count":30`},
		"transcription":      {`"usage":{"type":"tokens","input_tokens":100,"output_tokens":30,"total_tokens":130}`},
	}
	for _, ask := range asks {
		body := string(a.Body(ask.request()))
		for _, s := range want[ask.name] {
			if !strings.Contains(body, s) {
				t.Errorf("%s: no %s in\n%s", ask.name, s, body)
			}
		}
	}
	unasked := string(a.Body(NewRequest("POST", "/v1/chat/completions", []byte(`{"stream":true}`))))
	if strings.Contains(unasked, "usage") {
		t.Errorf("usage that nobody asked for:\n%s", unasked)
	}
}

// Events of a Responses stream are numbered without a gap and named twice.
func TestResponsesEventsAreNumberedAndNamed(t *testing.T) {
	for name, a := range answers {
		for i, frame := range a.Frames(asks[4].request()) {
			var e struct {
				Type string
				Seq  int `json:"sequence_number"`
			}
			event, data, _ := strings.Cut(string(frame), "\n")
			if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil || e.Seq != i || event != "event: "+e.Type {
				t.Errorf("%s: event %d is %q with number %d, under %q (%v)", name, i, e.Type, e.Seq, event, err)
			}
		}
	}
}

// Blocks of an Anthropic stream open and close in order.
func TestMessagesBlocksOpenAndClose(t *testing.T) {
	for name, a := range answers {
		open, next := -1, 0
		for _, v := range jsonValues(a.Body(asks[6].request())) {
			var e struct {
				Type  string
				Index int
			}
			if err := json.Unmarshal(v, &e); err != nil {
				t.Fatal(err)
			}
			switch e.Type {
			case "content_block_start":
				if open >= 0 || e.Index != next {
					t.Errorf("%s: block %d starts while %d is open and %d is next", name, e.Index, open, next)
				}
				open = e.Index
			case "content_block_delta":
				if e.Index != open {
					t.Errorf("%s: delta for block %d while %d is open", name, e.Index, open)
				}
			case "content_block_stop":
				if e.Index != open {
					t.Errorf("%s: block %d stops while %d is open", name, e.Index, open)
				}
				open, next = -1, next+1
			case "message_stop":
				if open >= 0 {
					t.Errorf("%s: stops with block %d open", name, open)
				}
			}
		}
	}
}

func TestOtherEndpoints(t *testing.T) {
	with := func(q Query, header ...string) Query { q.Header = append(q.Header, header...); return q }
	tests := []struct {
		name        string
		query       Query
		contentType string
		has         []string
	}{
		{"count_tokens", post("/v1/messages/count_tokens?beta=true", `{"model":"m1"}`), "application/json", []string{`{"input_tokens":21}`}},
		{"gemini countTokens", post("/v1beta/models/m1:countTokens", `{}`), "application/json", []string{`"totalTokens":21`}},
		{"embeddings", post("/v1/embeddings", `{"model":"m1","input":["a","b"]}`), "application/json", []string{`"index":1,"embedding":[0.125,-0.25,0.5]`, `"model":"m1"`}},
		{"embeddings base64", post("/v1/embeddings", `{"model":"m1","input":"a","encoding_format":"base64"}`), "application/json", []string{`"embedding":"AAAAPgAAgL4AAAA/"`}},
		{"embeddings of tokens", post("/v1/embeddings", `{"model":"m1","input":[1,2,3]}`), "application/json", []string{`"data":[{"object":"embedding","index":0,"embedding":[0.125,-0.25,0.5]}]`}},
		{"gemini embed", post("/v1beta/models/m1:embedContent", `{}`), "application/json", []string{`{"embedding":{"values":[`}},
		{"gemini batch embed", post("/v1beta/models/m1:batchEmbedContents", `{"requests":[{},{}]}`), "application/json", []string{`]},{"values":[`}},
		{"ollama embed", post("/api/embed", `{"model":"m1","input":["a","b"]}`), "application/json", []string{`"embeddings":[[0.125,-0.25,0.5],[0.125,-0.25,0.5]]`}},
		{"models", Query{Path: "/v1/models"}, "application/json", []string{`{"object":"list","data":[{"id":"drill-model","object":"model"`}},
		{"models Anthropic", with(Query{Path: "/v1/models"}, "anthropic-version", "2023-06-01"), "application/json", []string{`"type":"model"`, `"has_more":false`}},
		{"models Gemini", Query{Path: "/v1beta/models?pageSize=5"}, "application/json", []string{`{"models":[{"name":"models/drill-model"`}},
		{"models Ollama", Query{Path: "/api/tags"}, "application/json", []string{`{"models":[{"name":"drill-model"`}},
		{"one model", Query{Path: "/v1/models/gpt-x%2Fy"}, "application/json", []string{`{"id":"gpt-x/y"`}},
		{"one model Gemini", Query{Path: "/v1beta/models/gem"}, "application/json", []string{`{"name":"models/gem"`}},
		{"Azure", post("/openai/deployments/gpt%204/chat/completions?api-version=1", `{}`), "application/json", []string{`"model":"gpt 4"`}},
		{"other base path", post("/api/v4/chat/completions/", `{"model":"glm"}`), "application/json", []string{`"object":"chat.completion"`, `"model":"glm"`}},
		{"files", upload("/v1/files", "purpose", "batch"), "application/json", []string{`"object":"file","bytes":6`, `"filename":"speech.wav","purpose":"batch"`}},
		{"transcription as text", upload("/v1/audio/transcriptions", "response_format", "text"), "text/plain; charset=utf-8", []string{DefaultText}},
		{"speech", post("/v1/audio/speech", `{"model":"tts"}`), "audio/mpeg", []string{"\xff\xfb"}},
		{"speech as events", post("/v1/audio/speech", `{"model":"tts","stream_format":"sse"}`), "text/event-stream", []string{`"type":"speech.audio.delta"`, `"type":"speech.audio.done"`}},
		{"images", post("/v1/images/generations", `{"model":"img"}`), "application/json", []string{`"b64_json"`}},
		{"moderations", post("/v1/moderations", `{}`), "application/json", []string{`"flagged":false`}},
		{"unknown", post("/v1/whatever", `{}`), "application/json", []string{`"object":"drill"`}},
		{"no JSON", post("/v1/chat/completions", `nonsense`), "application/json", []string{`"model":"drill-model"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := stageOn(t, Healthy(Answer{}))
				r := th.ask(t, t.Context(), test.query)
				if r.Status != 200 || !r.Clean || r.Get("Content-Type") != test.contentType {
					t.Errorf("%+v", r)
				}
				for _, s := range test.has {
					if !bytes.Contains(r.Body, []byte(s)) {
						t.Errorf("no %s in\n%s", s, r.Body)
					}
				}
				if r.Get("Content-Type") == "application/json" && !json.Valid(r.Body) {
					t.Errorf("no JSON: %s", r.Body)
				}
			})
		})
	}
}

func TestSplitLosesNothing(t *testing.T) {
	for _, s := range []string{"", "a", " a", "a  b ", "one two three", "渐🌍 x", "  "} {
		for n := range 6 {
			parts := split(s, n)
			if strings.Join(parts, "") != s {
				t.Errorf("split(%q, %d) = %q", s, n, parts)
			}
			for _, p := range parts {
				if p == "" {
					t.Errorf("split(%q, %d) = %q has an empty piece", s, n, parts)
				}
			}
		}
	}
	if got := split("abcdef", 4); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func TestSpokenReadsWhatIsThere(t *testing.T) {
	for body, want := range map[string]string{
		"": "", "[DONE]": "", "<html>": "", `{"error":{"message":"no"}}`: "", `[`: "", `[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"cand`: "a",
		"data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choi":                                    "Hel",
		"data:{\"choices\":\rdata:[{\"text\":\"x\"}]}\r\r":                                                            "x",
		`{"type":"response.completed"}`:                                                                               "",
		"data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"only\"}]}]}}\n\n": "only",
	} {
		if got := Spoken([]byte(body)); got != want {
			t.Errorf("Spoken(%q) = %q, want %q", body, got, want)
		}
	}
}
