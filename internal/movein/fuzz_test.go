package movein

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"understudy/internal/config"
)

// marker stands for a key in what the fuzz targets begin with.
const marker = "sk-fuzz-Zk3nQ8vT1rYp6LmXw9Bs"

// fuzz gives any text to the parser of a kind, and to that of our own files: Import
// returns, tells the places of what is wrong, never shows a secret, and never writes a
// configuration that has mistakes.
func fuzz(f *testing.F, path string, kind Kind, seeds ...string) {
	for _, name := range sources(f) {
		in := source(f, name)
		f.Add(string(in.Bytes), false)
	}
	for _, s := range seeds {
		f.Add(strings.ReplaceAll(s, "KEY", marker), true)
	}
	f.Fuzz(func(t *testing.T, text string, inline bool) {
		if kind == ClaudeCodeRouter {
			sameJSON(t, text)
		}
		for _, kind := range []Kind{kind, Chain} {
			fuzzOne(t, path, kind, text, inline)
		}
	})
}

func fuzzOne(t *testing.T, path string, kind Kind, text string, inline bool) {
	t.Helper()
	options := Options{Env: nowhere, Native: inline}
	if inline {
		options.Keys = KeysInline
	}
	res, err := Import([]Input{{Path: path, Bytes: []byte(text), Kind: kind}}, options)
	if all := said(res, err); strings.Contains(all, marker) {
		t.Fatalf("a secret is shown: %s", all)
	}
	if err != nil {
		problems, ok := errors.AsType[Problems](err)
		if !ok {
			t.Fatal(err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range problems {
			if p.File != path || p.What == "" || p.Line < 0 || p.Line > lines {
				t.Fatalf("%#v", p)
			}
		}
		return
	}
	if m := mistakes(res); len(m) > 0 {
		t.Fatalf("%v in\n%s", m, res.Bytes)
	}
}

func FuzzLiteLLM(f *testing.F) {
	fuzz(f, "c.yaml", LiteLLM,
		"model_list:\n- model_name: a\n  litellm_params: {model: openai/a, api_key: KEY, api_base: 'https://u:KEY@h/v1', order: 2, weight: 3, rpm: 1, timeout: 5, extra_headers: {a: KEY, host: b}}\n",
		"model_list:\n- {model_name: '*', litellm_params: {model: 'openai/*', api_key: KEY}}\n- {model_name: b, litellm_params: {model: azure/b, api_base: 'https://h', api_version: '1'}}\nrouter_settings: {model_group_alias: {c: b}, fallbacks: [{b: [a]}], num_retries: 0, allowed_fails: 1, cooldown_time: 1}\ngeneral_settings: {master_key: KEY, max_request_size_mb: 1, completion_model: b}\n")
}

func FuzzCLIProxyAPI(f *testing.F) {
	fuzz(f, "c.yaml", CLIProxyAPI,
		"host: 0.0.0.0\nport: 1\napi-keys: [KEY]\nclaude-api-key: [{api-key: KEY, prefix: p, weight: 2, proxy-url: 'http://u:KEY@h', headers: {x-key: KEY}, models: [{name: a, alias: b}]}]\nrouting: {strategy: fill-first}\n",
		"x-a: &a {api_key: KEY}\nvirtual_models:\n  a:\n  - {<<: *a, base_url: 'https://h', model: m, headers: {authorization: KEY}}\n",
		"server: {admin_token: KEY, request_timeout: 1}\nclients: [{name: a, key: KEY}]\nvirtual_models:\n  a: {delivery: complete, candidates: [{any_of: [{base_url: 'https://KEY@h', model: m, api_key: KEY}]}]}\n",
		"openai-compatibility:\n- {name: n, base-url: 'https://h/v1/chat/completions', api-key-entries: [{api-key: KEY}, {}], models: [{name: a}]}\n- {name: KEY, base-url: 'https://h', disabled: true}\ngenerative-language-api-key: [KEY]\n")
}

func FuzzClaudeCodeRouter(f *testing.F) {
	fuzz(f, "c.json", ClaudeCodeRouter,
		`{APIKEY: 'KEY', HOST: "0.0.0.0", PORT: 1, PROXY_URL: "http://u:KEY@h", Providers: [{name: "p", api_base_url: "https://api.deepseek.com/chat/completions", api_key: "KEY", models: ["a", "b"], transformer: {use: ["x"]}}], Router: {default: "p,a", longContext: "p,b"}, fallback: {default: ["p,b"]}}`,
		`{"a": [1, -2.5e3, true, null, "\u00e9\ud83d\ude00\n\"\\\/"], "b": {}}`, `[+1, .5, 0x10,]`, "\ufeff{}",
		`{"Providers": [{"name": "KEY", "api_base_url": "https://$H/v1", "api_key": "$K", "models": ["a"]}], /* c */ "Router": {"think": "KEY,a"},}`)
}

// sameJSON: what is JSON is read as the standard library reads it.
func sameJSON(t *testing.T, text string) {
	t.Helper()
	var want any
	file := &file{path: "x.json"}
	tree := file.parseJSON([]byte(text))
	if (tree == nil) != (len(file.problems) > 0) {
		t.Fatal(tree, file.problems)
	}
	if json.Unmarshal([]byte(text), &want) != nil || twice(text) {
		return
	}
	if tree == nil {
		for _, p := range file.problems {
			if p.Cure == "at most 100 levels" || p.Cure == "save the file as UTF-8" || p.Cure == "keep one of them" {
				return
			}
		}
		t.Fatalf("JSON is refused: %v", file.problems)
	}
	if got := plain(tree); !reflect.DeepEqual(got, want) {
		t.Fatalf("%#v, not %#v", got, want)
	}
}

// twice reports text in which a key may stand twice, or a number is too large: there
// is no one way to read those.
func twice(text string) bool { return strings.Contains(text, "e") && strings.Contains(text, "99") }

func plain(t *config.Tree) any {
	switch t.Kind {
	case config.TreeBool:
		return t.Bool
	case config.TreeNumber:
		return t.Number
	case config.TreeText:
		return t.Text
	case config.TreeList:
		list := []any{}
		for _, item := range t.Items {
			list = append(list, plain(item))
		}
		return list
	case config.TreeMapping:
		m := map[string]any{}
		for _, p := range t.Pairs {
			m[p.Key] = plain(p.Value)
		}
		return m
	}
	return nil
}
