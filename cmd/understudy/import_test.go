package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// What import writes serves: each kind of upstream is asked where it answers, with
// its key where it looks for it, for the model that the source names.
func TestAnImportedFileServes(t *testing.T) {
	up := drill.Start(drill.Healthy(drill.Answer{Text: "PONG, and well", Usage: drill.Usage{Input: 1, Output: 1}}))
	t.Cleanup(up.Close)
	chat := func(model string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"ping"}]}`
	}
	type call struct{ path, body, target, header, value, model string }
	for _, c := range []struct {
		name, source string
		calls        []call
	}{
		{"config.yaml", `
model_list:
  - {model_name: big, litellm_params: {model: azure/dep-1, api_base: UP, api_key: key-of-azure, api_version: "2024-10-21"}}
  - {model_name: own, litellm_params: {model: hosted_vllm/org/m-2, api_base: UP/v1, api_key: key-of-vllm}}
  - {model_name: local, litellm_params: {model: ollama/m-3, api_base: UP}}
  - {model_name: sonnet, litellm_params: {model: anthropic/m-4, api_base: UP, api_key: key-of-claude}}
  - {model_name: flash, litellm_params: {model: gemini/m-5, api_base: UP, api_key: key-of-gemini}}
`, []call{
			{"/v1/chat/completions", chat("big"), "/openai/v1/chat/completions", "api-key", "key-of-azure", "dep-1"},
			{"/chat/completions", chat("own"), "/v1/chat/completions", "Authorization", "Bearer key-of-vllm", "org/m-2"},
			{"/v1/chat/completions", chat("own"), "/v1/chat/completions", "Authorization", "Bearer key-of-vllm", "org/m-2"},
			{"/v1/chat/completions", chat("local"), "/v1/chat/completions", "Authorization", "", "m-3"},
			{"/v1/messages", chat("sonnet"), "/v1/messages", "x-api-key", "key-of-claude", "m-4"},
			{"/v1beta/models/flash:generateContent", `{"contents":[{"parts":[{"text":"ping"}]}]}`, "/v1beta/models/m-5:generateContent", "x-goog-api-key", "key-of-gemini", ""},
		}},
		{"cliproxy.yaml", `
port: 8317
claude-api-key: [{api-key: key-of-claude, base-url: UP, models: [{name: m-1, alias: sonnet}]}]
codex-api-key: [{api-key: key-of-codex, base-url: UP/v1, prefix: relay, models: [{name: m-2, alias: codex}]}]
openai-compatibility: [{name: lab, base-url: UP/api/v1, api-key-entries: [{api-key: key-of-lab}], models: [{name: m-3, alias: kimi}]}]
gemini-api-key: [{api-key: key-of-gemini, base-url: UP}]
`, []call{
			{"/v1/messages", chat("sonnet"), "/v1/messages", "Authorization", "Bearer key-of-claude", "m-1"},
			{"/v1/responses", `{"model":"relay/codex","input":"ping"}`, "/v1/responses", "Authorization", "Bearer key-of-codex", "m-2"},
			{"/v1/chat/completions", chat("kimi"), "/api/v1/chat/completions", "Authorization", "Bearer key-of-lab", "m-3"},
			{"/v1beta/models/any:generateContent", `{"contents":[{"parts":[{"text":"ping"}]}]}`, "/v1beta/models/any:generateContent", "x-goog-api-key", "key-of-gemini", ""},
		}},
		{"config.json", `{
  "PORT": 3456,
  "Providers": [{"name": "p", "api_base_url": "UP/v1/messages", "api_key": "key-of-p", "models": ["m-1", "m-2"], "transformer": {"use": ["Anthropic"]}}],
  "Router": {"default": "p,m-1", "background": "p,m-2"}}`, []call{
			{"/v1/messages", chat("default"), "/v1/messages", "x-api-key", "key-of-p", "m-1"},
			{"/v1/messages", chat("background"), "/v1/messages", "x-api-key", "key-of-p", "m-2"},
			{"/v1/messages", chat("p,m-2"), "/v1/messages", "x-api-key", "key-of-p", "m-2"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			source, file := filepath.Join(dir, c.name), filepath.Join(dir, "understudy.yaml")
			if err := os.WriteFile(source, []byte(strings.ReplaceAll(c.source, "UP", up.URL())), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if code := run([]string{"import", source, "--keys", "inline", "-o", file}, streams{strings.NewReader(""), &out, &errs}); code != exitOK {
				t.Fatal(code, errs.String())
			}
			p := launch(t, "serve", "--no-repl", "-c", file, "--port", "0", "--admin", "127.0.0.1:0")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, one := range c.calls {
				before := up.Count()
				got := drill.Ask(ctx, p.proxy, drill.Query{Path: one.path, Body: []byte(one.body), Header: []string{"Content-Type", "application/json"}})
				if got.Err != nil || got.Status != 200 || up.Count() != before+1 {
					t.Errorf("%s: %d %v %s", one.path, got.Status, got.Err, got.Body)
					continue
				}
				asked := up.Requests()[before]
				value := ""
				for _, f := range asked.Header {
					if strings.EqualFold(f.Name, one.header) {
						value = f.Value
					}
				}
				if asked.Target != one.target || value != one.value || one.model != "" && !strings.Contains(string(asked.Body), `"model":"`+one.model+`"`) {
					t.Errorf("%s: asked for %s with %s %q and %s", one.path, asked.Target, one.header, value, asked.Body)
				}
			}
		})
	}
}
