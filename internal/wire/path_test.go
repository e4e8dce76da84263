package wire

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Case 28 and the paths of every vendor this package reads.
func TestParseEndpoint(t *testing.T) {
	chat := Endpoint{Kind: Chat, Generation: true}
	completions := Endpoint{Kind: Completions, Generation: true}
	responses := Endpoint{Kind: Responses, Generation: true}
	messages := Endpoint{Kind: Messages, Dialect: Anthropic, Generation: true}
	anthropic := Endpoint{Dialect: Anthropic}
	ollama := Endpoint{Dialect: Ollama}
	gemini := func(model string) Endpoint { return Endpoint{Dialect: Gemini, Model: model} }
	generate := func(model string) Endpoint {
		return Endpoint{Kind: Generate, Dialect: Gemini, Generation: true, Model: model}
	}
	sse := func(e Endpoint) Endpoint { e.Stream = true; return e }
	array := func(e Endpoint) Endpoint { e.Stream, e.Array = true, true; return e }
	named := func(e Endpoint, model string) Endpoint { e.Model = model; return e }
	var other Endpoint

	for _, c := range []struct {
		request string // method, path and query
		want    Endpoint
	}{
		// OpenAI, behind every base path
		{"POST /v1/chat/completions", chat},
		{"POST /chat/completions", chat},
		{"POST /v1/chat/completions/", chat},
		{"POST //v1/chat/completions", chat},
		{"POST /api/v4/chat/completions", chat},
		{"POST /openai/v1/chat/completions", chat},
		{"POST /api/chat/completions", chat},
		{"POST /v1beta/openai/chat/completions", chat},
		{"POST /v1/%63hat/completions", chat},
		{"POST /inference/v1/chat/completions?api-version=1&x=%2F+", chat},
		{"POST /models/chat/completions?api-version=2024-05-01-preview", chat},
		{"POST /v1/fim/completions", chat},
		{"POST /v1/completions", completions},
		{"POST /beta/completions", completions},
		{"POST /completion", completions},
		{"POST /v1/responses", responses},
		{"POST /responses", responses},
		{"POST /backend-api/codex/responses", responses},
		{"POST /openai/responses?api-version=preview", responses},
		{"POST /v1/audio/transcriptions", Endpoint{Kind: Transcription}},
		{"POST /v1/audio/translations", Endpoint{Kind: Transcription}},
		{"POST /v1/audio/speech", Endpoint{Kind: Speech}},
		{"POST /v1/images/generations", Endpoint{Kind: Images}},
		{"POST /v1/images/edits", Endpoint{Kind: Images}},
		{"POST /v1/images/variations", Endpoint{Kind: Images}},
		{"POST /v1/embeddings", other},
		{"POST /v1/moderations", other},
		{"POST /v1/rerank", other},
		{"POST /v1/files", other},
		{"POST /v1/batches", other},
		{"POST /v1/whatever", other},
		{"POST /", other},
		{"GET /", other},
		{"POST ", other},
		{"HEAD /", other},

		// what lists, fetches, deletes or belongs to something generated
		{"GET /v1/chat/completions", other},
		{"GET /v1/chat/completions/chatcmpl-1", other},
		{"GET /v1/chat/completions/chatcmpl-1/messages", other},
		{"POST /v1/chat/completions/chatcmpl-1", other},
		{"GET /v1/responses", other},
		{"GET /v1/responses/resp_1", other},
		{"DELETE /v1/responses/resp_1", other},
		{"POST /v1/responses/resp_1/cancel", other},
		{"GET /v1/responses/resp_1/input_items", other},
		{"POST /v1/responses/compact", other},
		{"POST /v1/responses/input_tokens", other},
		{"POST /v1/threads/thread_1/messages", other},
		{"POST /v1/threads/thread_1/messages/msg_1", other},
		{"OPTIONS /v1/chat/completions", other},
		{"PUT /v1/chat/completions", other},

		// Anthropic
		{"POST /v1/messages", messages},
		{"POST /v1/messages?beta=true", messages},
		{"POST //v1/messages", messages},
		{"POST /anthropic/v1/messages/", messages},
		{"POST /v1/messages/count_tokens?beta=true", anthropic},
		{"POST /v1/messages/batches", anthropic},
		{"GET /v1/messages/batches/msgbatch_1/results", anthropic},
		{"POST /v1/messages/batches/msgbatch_1/cancel", anthropic},
		{"OPTIONS /v1/messages", anthropic},
		{"GET /v1/messages", anthropic},

		// Gemini
		{"POST /v1beta/models/gemini-2.5-pro:generateContent", generate("gemini-2.5-pro")},
		{"POST /v1/models/gemini-2.5-pro:generateContent", generate("gemini-2.5-pro")},
		{"POST /v1alpha/models/g:generateContent/", generate("g")},
		{"POST /gemini/v1beta/models/g:generateContent", generate("g")},
		{"POST /v1beta/models/g:streamGenerateContent", array(generate("g"))},
		{"POST /v1beta/models/g:streamGenerateContent?alt=json", array(generate("g"))},
		{"POST /v1beta/models/g:streamGenerateContent?alt=sse", sse(generate("g"))},
		{"POST /v1beta/models/g:streamGenerateContent?key=x&%24alt=sse", sse(generate("g"))},
		{"POST /v1beta/models/g:streamGenerateContent?alt=%73se", sse(generate("g"))},
		{"POST /v1beta/models/g:streamGenerateContent?xalt=sse&alt=ssee", array(generate("g"))},
		{"POST /v1beta/models/g:generateContent?alt=sse", sse(generate("g"))},
		{"POST /v1beta/models/g%3AstreamGenerateContent", array(generate("g"))},
		{"POST /v1beta/models/a%2Fb:generateContent", generate("a/b")},
		{"POST /v1beta/models/a/b:generateContent", generate("a/b")},
		{"POST /v1beta/models/models/g:generateContent", generate("models/g")},
		{"POST /v1beta/models/models%2Fg:generateContent", generate("models/g")},
		{"POST /v1beta/models/llama3:8b:generateContent", generate("llama3:8b")},
		{"POST /v1beta/models/llama3%3A8b:generateContent", generate("llama3:8b")},
		{"POST /v1beta/models/%e6%b8%90:generateContent", generate("渐")},
		{"POST /v1beta/models/bad%zz:generateContent", generate("bad%zz")},
		{"POST /v1beta/models/:generateContent", generate("")},
		{"POST /v1beta/tunedModels/t-1:generateContent", generate("t-1")},
		{"POST /v1/projects/p/locations/l/publishers/google/models/g:generateContent", generate("g")},
		{"POST /v1/projects/p/locations/l/endpoints/77:generateContent", generate("")},
		{"POST /v1internal:streamGenerateContent?alt=sse", sse(generate(""))},
		{"POST /v1internal:generateContent", generate("")},
		{"POST /v1internal:fetchSomethingNew", gemini("")},
		{"POST /v1beta/models/g:countTokens", gemini("g")},
		{"POST /v1beta/models/g:embedContent", gemini("g")},
		{"POST /v1beta/models/g:batchEmbedContents", gemini("g")},
		{"POST /v1beta/models/g:somethingNew", gemini("g")},
		{"POST /v1/publishers/anthropic/models/claude:streamRawPredict", gemini("claude")},
		{"OPTIONS /v1beta/models/g:generateContent", gemini("g")},
		{"GET /v1beta/models", gemini("")},
		{"GET /v1beta/models/", gemini("")},
		{"GET /v1beta/models/g", gemini("g")},
		{"GET /v1alpha/models/g", gemini("g")},
		{"POST /v1beta/cachedContents", gemini("")},
		{"GET /v1beta/files/f", gemini("")},
		{"POST /upload/v1beta/files", gemini("")},
		{"POST /v1beta/unheard/of", other},

		// models by name
		{"GET /v1/models", other},
		{"GET /v1/models/", other},
		{"GET /v1/models?limit=1", other},
		{"GET /v1/models/gpt-4o", named(other, "gpt-4o")},
		{"HEAD /v1/models/gpt-4o", named(other, "gpt-4o")},
		{"GET /models/gpt-4o", named(other, "gpt-4o")},
		{"GET /v1/models/gpt-4o/", named(other, "gpt-4o")},
		{"GET /api/v1/models/org%2Fname", named(other, "org/name")},
		{"GET /v1/models/org/name", named(other, "org/name")},
		{"GET /v1/models/llama3:8b", named(other, "llama3:8b")},
		{"GET /v1/models/ft:gpt-4o:acme::abc", named(other, "ft:gpt-4o:acme::abc")},
		{"GET /v1beta/openai/models/g", named(other, "g")},
		{"DELETE /v1/models/ft:gpt-4o:acme::abc", other},
		{"POST /v1/models/gpt-4o", other},
		{"GET /hub/models/org/name", other},
		{"GET /v1beta/tunedModels/t", gemini("")},

		// Azure
		{"POST /openai/deployments/my-gpt/chat/completions?api-version=2024-06-01", named(chat, "my-gpt")},
		{"POST /openai/deployments/a%2Fb/completions", named(completions, "a/b")},
		{"POST /openai/deployments/m/extensions/chat/completions", named(chat, "m")},
		{"POST /openai/deployments/m/embeddings", named(other, "m")},
		{"POST /openai/deployments/m/audio/transcriptions", named(Endpoint{Kind: Transcription}, "m")},
		{"POST /base/openai/deployments/m/images/generations", named(Endpoint{Kind: Images}, "m")},
		{"POST /openai/deployments/messages/chat/completions", named(chat, "messages")},
		{"GET /openai/deployments", other},
		{"GET /openai/deployments/m", named(other, "m")},
		{"POST /deployments/m/chat/completions", chat},
		{"GET /openai/models/gpt-4o?api-version=1", named(other, "gpt-4o")},

		{"POST /openai/deployments/messages", named(other, "messages")},
		{"POST /openai/deployments/chat/completions", named(completions, "chat")},
		{"GET /v1/models/messages", named(other, "messages")},

		// Ollama
		{"POST /api/chat", Endpoint{Kind: OllamaChat, Dialect: Ollama, Generation: true, StreamDefault: true}},
		{"POST /api/generate", Endpoint{Kind: OllamaGenerate, Dialect: Ollama, Generation: true, StreamDefault: true}},
		{"POST /ollama/api/chat/", Endpoint{Kind: OllamaChat, Dialect: Ollama, Generation: true, StreamDefault: true}},
		{"GET /api/tags", ollama},
		{"POST /api/show", ollama},
		{"POST /api/embed", ollama},
		{"POST /api/embeddings", ollama},
		{"GET /api/version", ollama},
		{"GET /api/ps", ollama},
		{"HEAD /api/blobs/sha256:29fd", ollama},
		{"GET /api/chat", ollama},
		{"POST /api/v1/chat", other},
		{"GET /chat", other},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		path, query, _ := strings.Cut(target, "?")
		if got := ParseEndpoint(method, path, query); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.request, got, c.want)
		}
	}
}

func TestDialectAndKindNames(t *testing.T) {
	for got, want := range map[string]string{OpenAI.String(): "openai", Anthropic.String(): "anthropic", Gemini.String(): "gemini",
		Ollama.String(): "ollama", Dialect(9).String(): "unknown", Other.String(): "other", OllamaGenerate.String(): "ollama generate",
		Images.String(): "images", Kind(99).String(): "unknown"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWithModelReplacesOneSegment(t *testing.T) {
	for _, c := range []struct{ request, model, want string }{
		{"POST /v1beta/models/auto:generateContent", "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent"},
		{"POST /v1beta/models/auto:generateContent/", "g", "/v1beta/models/g:generateContent/"},
		{"POST //v1/models/a%2Fb:streamGenerateContent", "org/m:8b", "//v1/models/org%2Fm%3A8b:streamGenerateContent"},
		{"POST /v1beta/models/a/b/c:countTokens", "x y", "/v1beta/models/x%20y:countTokens"},
		{"POST /v1beta/models/auto%3AgenerateContent", "g", "/v1beta/models/g%3AgenerateContent"},
		{"POST /v1beta/models/a:b:generateContent", "g", "/v1beta/models/g:generateContent"},
		{"POST /openai/deployments/auto/chat/completions", "渐?#%", "/openai/deployments/%E6%B8%90%3F%23%25/chat/completions"},
		{"POST /openai/deployments/chat/chat/completions", "m", "/openai/deployments/m/chat/completions"},
		{"GET /v1/models/auto", "m", "/v1/models/m"},
		{"GET /v1/models/llama3:8b", "m", "/v1/models/m"},
		{"GET /v1beta/models/a:generateContent", "m", "/v1beta/models/m:generateContent"},
		{"GET /v1/models/org/name/", "m", "/v1/models/m/"},
		{"GET /v1/models", "m", "/v1/models"},
		{"POST /v1/chat/completions", "m", "/v1/chat/completions"},
		{"POST /v1beta/models/:generateContent", "m", "/v1beta/models/:generateContent"},
		{"DELETE /v1/models/auto", "m", "/v1/models/auto"},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		if got := ParseEndpoint(method, path, "").WithModel(path, c.model); got != c.want {
			t.Errorf("%s with %q = %s, want %s", c.request, c.model, got, c.want)
		}
	}
	e := ParseEndpoint("POST", "/v1beta/models/auto:generateContent", "")
	if got := e.WithModel("/base/v1beta/models/auto:generateContent", "m"); got != "/base/v1beta/models/m:generateContent" {
		t.Errorf("behind another base path: %s", got)
	}
	if got := e.WithModel("/v1beta/models/else:generateContent", "m"); got != "/v1beta/models/else:generateContent" {
		t.Errorf("another model's path was changed: %s", got)
	}
}

// Whatever the path, nothing panics; and where a model is named, the path that
// WithModel gives names the new one and is otherwise the same endpoint.
func TestWithModelIsReadBack(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "/", "v1", "v1beta", "models", "tunedModels", "openai", "deployments", "m", "a%2Fb",
		"x:y", ":", "%3A", "generateContent", "streamGenerateContent", "chat", "completions", "api", "messages", "%", "%zz", "..", "v1internal"})
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + strings.Join(rapid.SliceOfN(piece, 0, 14).Draw(t, "path"), "")
		method := rapid.SampledFrom([]string{"GET", "POST", "DELETE"}).Draw(t, "method")
		model := rapid.StringN(1, 12, -1).Draw(t, "model")
		before := ParseEndpoint(method, path, "")
		changed := before.WithModel(path, model)
		if before.Model == "" {
			if changed != path {
				t.Fatalf("%s has no model and became %s", path, changed)
			}
			return
		}
		after := ParseEndpoint(method, changed, "")
		if after.Model != model {
			t.Fatalf("%s %s with %q became %s, which names %q", method, path, model, changed, after.Model)
		}
		if after.Model = before.Model; after != before {
			t.Fatalf("%s %s became another endpoint: %s", method, path, changed)
		}
		if u, err := url.ParseRequestURI(path); err == nil && u != nil {
			if _, err := url.ParseRequestURI(changed); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkParseEndpoint(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ParseEndpoint("POST", "/v1/chat/completions", "")
	}
}

func FuzzParseEndpoint(f *testing.F) {
	f.Add("POST", "/v1beta/models/a%2Fb:streamGenerateContent", "alt=sse", "m")
	f.Add("GET", "/v1/models/x:y", "", "渐")
	f.Add("POST", "/openai/deployments/m/chat/completions", "api-version=1", ":/")
	f.Fuzz(func(t *testing.T, method, path, query, model string) {
		e := ParseEndpoint(method, path, query)
		changed := e.WithModel(path, model)
		if e.Model == "" && changed != path {
			t.Fatalf("%q became %q", path, changed)
		}
	})
}
