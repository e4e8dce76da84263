//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"understudy/internal/drill"
)

// kind is how an answer to a call is judged.
type kind uint8

const (
	stream kind = iota // a generation, streamed
	whole              // a generation, in one piece
	plain              // no generation: judged by its status and by what is no answer at all
)

// call is one call of one SDK.
type call struct {
	name   string // as client.mjs knows it: sdk/call
	kind   kind
	target string // the path it goes to
	auth   string // how the vendor takes a key: the auth_style of its candidates
	finish string // the finish reason of a whole answer, "" where the SDK shows none
	usage  bool   // the SDK shows the usage
	tool   bool   // the answer calls a tool
}

// calls are the calls that say which model they want.
var calls = []call{
	{name: "openai/chat", kind: whole, target: "/v1/chat/completions", auth: "bearer", finish: "stop", usage: true},
	{name: "openai/chat-stream", kind: stream, target: "/v1/chat/completions", auth: "bearer", finish: "stop", usage: true},
	{name: "openai/chat-tool-stream", kind: stream, target: "/v1/chat/completions", auth: "bearer", finish: "tool_calls", tool: true},
	{name: "openai/responses", kind: whole, target: "/v1/responses", auth: "bearer", finish: "completed", usage: true},
	{name: "openai/responses-stream", kind: stream, target: "/v1/responses", auth: "bearer", finish: "completed", usage: true},
	{name: "openai/transcription", kind: plain, target: "/v1/audio/transcriptions", auth: "bearer"},
	{name: "anthropic/messages", kind: whole, target: "/v1/messages", auth: "x-api-key", finish: "end_turn", usage: true},
	{name: "anthropic/messages-stream", kind: stream, target: "/v1/messages", auth: "x-api-key", finish: "end_turn", usage: true},
	{name: "anthropic/messages-events", kind: stream, target: "/v1/messages", auth: "x-api-key", finish: "end_turn", usage: true},
	{name: "anthropic/tool-stream", kind: stream, target: "/v1/messages", auth: "x-api-key", finish: "tool_use", usage: true, tool: true},
	{name: "anthropic/count-tokens", kind: plain, target: "/v1/messages/count_tokens", auth: "x-api-key"},
	{name: "genai/generate", kind: whole, target: "/v1beta/models/m:generateContent", auth: "x-goog-api-key", finish: "STOP", usage: true},
	{name: "genai/generate-stream", kind: stream, target: "/v1beta/models/m:streamGenerateContent?alt=sse", auth: "x-goog-api-key", finish: "STOP", usage: true},
	{name: "ollama/chat", kind: whole, target: "/api/chat", auth: "bearer", finish: "stop", usage: true},
	{name: "ollama/chat-stream", kind: stream, target: "/api/chat", auth: "bearer", finish: "stop", usage: true},
	{name: "ollama/generate-stream", kind: stream, target: "/api/generate", auth: "bearer", finish: "stop", usage: true},
	{name: "ai/chat", kind: whole, target: "/v1/chat/completions", auth: "bearer", finish: "stop", usage: true},
	{name: "ai/chat-stream", kind: stream, target: "/v1/chat/completions", auth: "bearer", finish: "stop", usage: true},
	{name: "ai/responses", kind: whole, target: "/v1/responses", auth: "bearer", finish: "stop", usage: true},
	{name: "ai/responses-stream", kind: stream, target: "/v1/responses", auth: "bearer", finish: "stop", usage: true},
}

// upload carries a file and no model, so that it goes where server.default_model says.
var upload = call{name: "openai/file", kind: plain, target: "/v1/files", auth: "bearer"}

// The two upstreams say different things, so that nothing of the first can hide in what came from the second.
const (
	firstText  = "Words of the first upstream, which failed and must not be taken for an answer."
	secondText = "The tide turns at nine — 潮は九時に変わる — and the harbour stays calm until noon."
	fileID     = "file-e2e"
)

var reported = drill.Usage{Input: 40, Output: 11}

// says is the answer of an upstream to the call.
func (c call) says(text string) drill.Answer {
	a := drill.Answer{Text: text, ID: "e2e", Usage: reported}
	if c.tool {
		a.Tool = &drill.Tool{Name: "get_weather", Arguments: `{"city":"Tromsø"}`}
	}
	return a
}

// meets reports whether the fault shows in the answer to such a call.
func (c call) meets(f drill.Fault) bool {
	body := `{"stream":false}`
	if c.kind == stream {
		body = `{"stream":true}`
	}
	return f.Applies(drill.NewRequest("POST", c.target, []byte(body)))
}

// checkWhole fails the test unless r is the whole answer that an upstream gave by saying text.
func (c call) checkWhole(t *testing.T, r result, text string) {
	t.Helper()
	if !r.OK {
		t.Fatalf("%s raised %v after %q; want a whole answer", c.name, r.Error, r.Text)
	}
	switch c.name {
	case upload.name:
		text = fileID
	case "anthropic/count-tokens":
		text = ""
		r.checkTokens(t, "input", int64(reported.Input))
	}
	if r.Text != text {
		t.Errorf("text = %q, want %q", r.Text, text)
	}
	if r.Finish != c.finish {
		t.Errorf("finish reason = %q, want %q", r.Finish, c.finish)
	}
	if c.tool && (r.Tool == nil || r.Tool.Name != "get_weather" || string(r.Tool.Arguments) != `{"city":"Tromsø"}`) {
		t.Errorf("tool call = %+v, want get_weather in Tromsø", r.Tool)
	}
	if c.usage {
		r.checkTokens(t, "input", int64(reported.Input))
		r.checkTokens(t, "output", int64(reported.Output))
	}
}

// checkTokens fails the test unless the SDK shows that many tokens of the direction.
func (r result) checkTokens(t *testing.T, direction string, want int64) {
	t.Helper()
	if got, ok := r.Usage[direction]; !ok || got != want {
		t.Errorf("usage = %v, want %d %s tokens", r.Usage, want, direction)
	}
}

// checkOneRequest fails the test unless the SDK made one HTTP request, and returns how it was answered.
func checkOneRequest(t *testing.T, r result) exchange {
	t.Helper()
	if len(r.HTTP) != 1 {
		t.Fatalf("the SDK made %d HTTP requests, want 1: %+v", len(r.HTTP), r.HTTP)
	}
	return r.HTTP[0]
}

// checkRaised fails the test unless the SDK raised an error, whatever it had handed over before.
func (c call) checkRaised(t *testing.T, r result) {
	t.Helper()
	if r.OK {
		t.Fatalf("%s took a cut stream for an answer: %q, finish reason %q", c.name, r.Text, r.Finish)
	}
	if r.Error.Name == "Hung" {
		t.Fatalf("%s: %v", c.name, r.Error)
	}
}

// checkRequest fails the test unless what reached an upstream is the client's request with the candidate's model and
// credential, and with no credential of the client's.
func (c call) checkRequest(t *testing.T, r drill.Request, by candidate) {
	t.Helper()
	if c.name != upload.name && r.Model() != by.model {
		t.Errorf("%s was asked for the model %q, want %q", by.name, r.Model(), by.model)
	}
	header, value := "Authorization", "Bearer "+by.key
	if by.authStyle != "bearer" {
		header, value = by.authStyle, by.key
	}
	if got := r.Get(header); got != value {
		t.Errorf("%s got the credential %s: %q, want %q", by.name, header, got, value)
	}
	if strings.Contains(string(r.Head), "sk-client") {
		t.Errorf("%s got the client's credential:\n%s", by.name, r.Head)
	}
}
