package route

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"understudy/internal/config"
)

// find looks strings up in a JSON body as the scanned request does.
func find(body string) func(path ...string) (string, bool) {
	return func(path ...string) (string, bool) {
		r := gjson.Get(body, strings.Join(path, "."))
		return r.Str, r.Type == gjson.String
	}
}

// header builds a header as net/http reads it from "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

func TestSessionKeyOfKnownClients(t *testing.T) {
	const (
		thread  = "0198c2f4-6d3e-7b52-9b61-0d6b9e3c2a11"
		session = "7f9c3d52-4a0e-4b8a-8f60-9f5f2f1f5b11"
	)
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   string
	}{
		{"Codex CLI", header("session-id: "+session, "thread-id: "+thread, "x-client-request-id: "+thread,
			"x-codex-window-id: "+thread+":3", `x-codex-turn-metadata: {"session_id":"s","turn_id":"t"}`),
			`{"prompt_cache_key":"` + thread + `"}`, session},
		{"Codex CLI, thread only", header("thread-id: " + thread), `{}`, thread},
		{"Codex CLI, window only", header("x-codex-window-id: "+thread+":12", "x-client-request-id: r"), `{}`, thread},
		{"Codex CLI, window without generation", header("x-codex-window-id: " + thread), `{}`, thread},
		{"Codex before May 2026", header("session_id: "+session, "conversation_id: "+session), `{"prompt_cache_key":"p"}`, session},
		{"Codex behind nginx, which drops underscores", header("x-client-request-id: r"), `{"prompt_cache_key":"` + thread + `"}`, thread},
		{"Claude Code", header("X-Claude-Code-Session-Id: "+session, "x-claude-code-agent-id: a"), `{"metadata":{"user_id":"user_x_session_y"}}`, session},
		{"Claude Code, body only", nil, `{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"` + session + `\"}"}}`, session},
		{"Claude Code, older", nil, `{"metadata":{"user_id":"user_0a1b_account_5e6f_session_` + session + `"}}`, session},
		{"opencode", header("x-session-affinity: a", "X-Session-Id: "+session, "x-parent-session-id: p"), `{}`, session},
		{"opencode, affinity only", header("x-session-affinity: a"), `{}`, "a"},
		{"opencode, own provider", header("x-opencode-session: ses_1", "x-opencode-request: r", "x-opencode-project: p", "x-opencode-client: cli"), `{}`, "ses_1"},
		{"Cline", header("X-Task-ID: 17"), `{}`, "17"},
		{"Cline, Codex provider", header("session_id: "+session, "originator: cline"), `{}`, session},
		{"Cline, OpenRouter", nil, `{"session_id":"17"}`, "17"},
		{"Roo Code", header("X-Roo-Task-ID: 18"), `{}`, "18"},
		{"Gemini CLI", header("x-gemini-api-privileged-user-id: installation"), `{"contents":[]}`, ""},
		{"Amp", header("x-amp-thread-id: T-1", "x-amp-message-id: m"), `{}`, "T-1"},
		{"Qwen Code", header("X-Qwen-Code-Session-Id: q"), `{}`, "q"},
		{"pi", header("session-id: "+session, "x-client-request-id: r"), `{"prompt_cache_key":"p"}`, session},
		{"OpenAI SDK", header("x-client-request-id: r", "X-Request-Id: r", "Idempotency-Key: i"), `{"user":"u","safety_identifier":"s"}`, ""},
		{"OpenAI SDK with a cache key", header("x-client-request-id: r"), `{"prompt_cache_key":"p","user":"u"}`, "p"},
		{"curl", header("User-Agent: curl/8", "Accept: */*"), `{"messages":[]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SessionKey(tt.header, find(tt.body), config.DefaultStickyKeys); got != tt.want {
				t.Errorf("key = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSessionKeyOrderAndValues(t *testing.T) {
	long := strings.Repeat("k", MaxSessionKey)
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   string
	}{
		{"the list's order, not the header's", header("x-task-id: late", "thread_id: early"), "", "early"},
		{"header before body", header("x-qwen-code-session-id: h"), `{"prompt_cache_key":"b"}`, "h"},
		{"body in order", nil, `{"conversation":"c","metadata":{"session_id":"m"},"conversation_id":"i"}`, "i"},
		{"metadata.session_id", nil, `{"conversation":"c","metadata":{"session_id":"m"}}`, "m"},
		{"conversation", nil, `{"conversation":"c"}`, "c"},
		{"conversation.id", nil, `{"conversation":{"id":"c"}}`, "c"},
		{"conversation of numbers", nil, `{"conversation":{"id":7}}`, ""},
		{"any case, any underscore", http.Header{"X_SESSION-id": {"s"}}, "", "s"},
		{"two spellings", http.Header{"Session_id": {"underscore"}, "Session-Id": {"hyphen"}}, "", "hyphen"},
		{"two spellings, one empty", http.Header{"Session_id": {"underscore"}, "Session-Id": {""}}, "", "underscore"},
		{"empty header", header("session_id: ", "thread_id: t"), "", "t"},
		{"blank header", http.Header{"Session_id": {" \t "}}, `{"prompt_cache_key":"p"}`, "p"},
		{"second line of a header", http.Header{"Session_id": {"", "s"}}, "", "s"},
		{"header without lines", http.Header{"Session_id": nil}, "", ""},
		{"empty body value", nil, `{"prompt_cache_key":"","session_id":"s"}`, "s"},
		{"number", nil, `{"prompt_cache_key":7,"session_id":null,"conversation_id":["x"]}`, ""},
		{"4 KiB", header("session_id: " + long), "", long},
		{"longer than 4 KiB", header("session_id: "+long+"k", "thread_id: t"), "", "t"},
		{"longer in the body", nil, `{"prompt_cache_key":"` + long + `k","session_id":"s"}`, "s"},
		{"generation alone", header("x-codex-window-id: :3"), "", ":3"},
		{"user_id of a person", nil, `{"metadata":{"user_id":"user-17"}}`, ""},
		{"user_id, session empty", nil, `{"metadata":{"user_id":"user_1_account__session_"}}`, ""},
		{"user_id, JSON without session", nil, `{"metadata":{"user_id":"{\"device_id\":\"d\"}"},"conversation":"c"}`, "c"},
		{"user_id, session no string", nil, `{"metadata":{"user_id":"{\"session_id\":7}"}}`, ""},
		{"user_id, broken JSON", nil, `{"metadata":{"user_id":"{\"session_id\":\"s\""}}`, ""},
		{"user_id, endless", nil, `{"metadata":{"user_id":"` + strings.Repeat("u", 70_000) + `_session_s"}}`, ""},
		{"user_id, two marks", nil, `{"metadata":{"user_id":"user_a_session_b_session_c"}}`, "c"},
		{"a prefix of a name", header("session: s", "session_id_2: s", "x-session: s"), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 20 { // maps have no order
				if got := SessionKey(tt.header, find(tt.body), config.DefaultStickyKeys); got != tt.want {
					t.Fatalf("key = %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestSessionKeyFromOwnList(t *testing.T) {
	keys := []config.StickyKey{{Body: []string{"meta", "chat"}}, {Header: "X-Chat"}, {Body: []string{"user"}}}
	tests := []struct {
		header http.Header
		body   string
		want   string
	}{
		{header("x_chat: h"), `{"meta":{"chat":"b"}}`, "b"},
		{header("x_chat: h"), `{"user":"u"}`, "h"},
		{header("session_id: s"), `{"user":"u"}`, "u"},
		{header("session_id: s"), `{}`, ""},
	}
	for _, tt := range tests {
		if got := SessionKey(tt.header, find(tt.body), keys); got != tt.want {
			t.Errorf("%v %s: %q, want %q", tt.header, tt.body, got, tt.want)
		}
	}
	if got := SessionKey(header("x-chat: h"), nil, keys); got != "h" {
		t.Errorf("without a body: %q", got)
	}
	if got := SessionKey(header("x-chat: h"), nil, nil); got != "" {
		t.Errorf("without keys: %q", got)
	}
}

func TestSessionKeyAllocatesNothingWithoutAKey(t *testing.T) {
	h, body := plainRequest()
	if n := testing.AllocsPerRun(100, func() { SessionKey(h, body, config.DefaultStickyKeys) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func plainRequest() (http.Header, func(path ...string) (string, bool)) {
	h := header("Accept: */*", "Accept-Encoding: gzip", "Authorization: Bearer sk-1", "Connection: keep-alive",
		"Content-Length: 1234", "Content-Type: application/json", "User-Agent: openai-python", "X-Stainless-Lang: python",
		"X-Stainless-Os: Linux", "X-Stainless-Retry-Count: 0", "X-Client-Request-Id: r", "X-Forwarded-For: 10.0.0.1")
	return h, func(path ...string) (string, bool) { return "", false }
}

func BenchmarkSessionKey(b *testing.B) {
	h, body := plainRequest()
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			SessionKey(h, body, config.DefaultStickyKeys)
		}
	})
	b.Run("header", func(b *testing.B) {
		h := h.Clone()
		h.Set("X-Claude-Code-Session-Id", "7f9c3d52-4a0e-4b8a-8f60-9f5f2f1f5b11")
		b.ReportAllocs()
		for b.Loop() {
			SessionKey(h, body, config.DefaultStickyKeys)
		}
	})
}
