package movein

import (
	"errors"
	"strings"
	"testing"
)

func TestBadInputIsToldWithItsPlace(t *testing.T) {
	deep := strings.Repeat("[", 300)
	for _, c := range []struct {
		name, path string
		kind       Kind
		text       string
		want       string // the first problem
	}{
		{"empty", "c.yaml", "", "", "c.yaml: this is none of the files that import reads: say which by --from: litellm, cliproxyapi, claude-code-router, pool or chain"},
		{"unknown shape", "c.yaml", "", "services: {web: {image: nginx}}\n", "c.yaml: this is none of the files that import reads: say which by --from: litellm, cliproxyapi, claude-code-router, pool or chain"},
		{"a list", "c.yaml", LiteLLM, "- a\n- b\n", "c.yaml:1:1: the file: a list where a mapping is due: write a mapping"},
		{"not YAML", "c.yaml", LiteLLM, "model_list:\n\t- x\n", "c.yaml:2:1: not valid YAML: a tab where indentation stands: indent with spaces"},
		{"no JSON", "c.json", "", "{\n  \"Providers\": [\n    {\"name\": \"a\",,}\n", "c.json:3:18: not valid JSON: a key is missing: write \"key\": value"},
		{"a text without end", "c.json", "", "{\"Providers\": \"abc\n}", "c.json:1:19: not valid JSON: a text that does not end on its line: close its quote"},
		{"a key twice", "c.json", "", "{\"Router\": {}, \"Router\": {}}", "c.json:1:16: a key that stands twice: keep one of them"},
		{"a word", "c.json", "", "{\"Router\": yes}", "c.json:1:12: not valid JSON: a word that is no value: put text in quotes"},
		{"behind the end", "c.json", "", "{\"Router\": {}} x", "c.json:1:16: not valid JSON: something behind the end of the value: remove it"},
		{"deep JSON", "c.json", "", "{\"Router\": " + deep, "c.json:1:111: not valid JSON: nested too deeply: at most 100 levels"},
		{"deep YAML", "c.yaml", "", "model_list: " + deep, "c.yaml:1:213: nested too deeply: at most 200 levels"},
		{"2 MiB", "c.yaml", "", "model_list:\n" + strings.Repeat("# padding\n", 200_000), "c.yaml: the file is larger than 1 MiB: split off what is no configuration"},
		{"2 MiB of JSON", "c.json", "", "{\"Router\": \"" + strings.Repeat("x", 2<<20) + "\"}", "c.json: the file is larger than 1 MiB: split off what is no configuration"},
		{"not UTF-8", "c.json", "", "{\"Router\": \"\xff\"}", "c.json: not UTF-8: save the file as UTF-8"},
		{"an anchor that is not there", "c.yaml", "", "model_list: *nobody\n", "c.yaml:1:13: an alias whose anchor is not defined above it: define it with &name first"},
		{"no list of models", "c.yaml", "", "model_list: {gpt-4o: openai/gpt-4o}\n", "c.yaml:1:13: model_list: a mapping where a list is due: write a list"},
		{"a deployment that is text", "c.yaml", "", "model_list:\n  - gpt-4o\n", "c.yaml:2:5: model_list[0]: text where a mapping is due: write a mapping"},
		{"no model_name", "c.yaml", "", "model_list:\n  - litellm_params: {model: gpt-4o}\n", "c.yaml:2:5: model_list[0]: model_name is missing: write the name that clients send"},
		{"no model", "c.yaml", "", "model_list:\n  - model_name: a\n", "c.yaml:2:5: model_list[0]: litellm_params.model is missing: write model: provider/name"},
		{"a model that is a list", "c.yaml", "", "model_list:\n  - model_name: a\n    litellm_params: {model: [a]}\n", "c.yaml:3:29: model_list[0].litellm_params.model: a list where text is due: write text"},
		{"a base that is no URL", "c.yaml", "", "model_list:\n  - model_name: a\n    litellm_params: {model: openai/a, api_base: localhost:8000}\n", "c.yaml:3:49: model_list[0].litellm_params.api_base: no URL that can be used: write https://host"},
		{"a limit that is text", "c.yaml", "", "model_list:\n  - model_name: a\n    litellm_params: {model: openai/a, rpm: many}\n", "c.yaml:3:44: model_list[0].litellm_params.rpm: text where a number is due: write a number"},
		{"a name that cannot be", "c.yaml", "", "model_list:\n  - model_name: x-mine\n    litellm_params: {model: openai/a}\n", "c.yaml:2:5: model_name: a name that no virtual model may have (names that begin with a dot or with x-, or *): give it another one, here and at the clients"},
		{"nothing with a counterpart", "c.yaml", "", "model_list:\n  - model_name: a\n    litellm_params: {model: bedrock/a}\n", "c.yaml:3:22: model_list[0].litellm_params.model has no counterpart: Amazon Bedrock's own API wants requests signed by AWS; its OpenAI-compatible endpoint takes a Bedrock API key: base_url https://bedrock-runtime.REGION.amazonaws.com/openai/v1"},
		{"no models at all", "c.yaml", "", "general_settings: {master_key: sk-12345678901234}\n", "c.yaml: nothing in it can be taken over: there is no model in it"},
		{"a port that is none", "c.yaml", "", "api-keys: [a]\nport: 70000\n", "c.yaml:2:7: port: out of range: write a whole number from 1 to 65535"},
		{"a key that is missing", "c.yaml", "", "claude-api-key:\n  - base-url: https://h\n", "c.yaml:2:5: claude-api-key[0]: api-key is missing: write the key"},
		{"a codex key without its place", "c.yaml", "", "codex-api-key:\n  - api-key: sk-1\n", "c.yaml:2:5: codex-api-key[0]: base-url is missing: write where it is"},
		{"two providers of a name", "c.json", "", `{"Providers": [{"name": "a", "api_base_url": "https://h"}, {"name": "a", "api_base_url": "https://h"}]}`, "c.json:1:60: Providers[1]: a second provider of this name: give each a name of its own"},
		{"a provider without a name", "c.json", "", `{"Providers": [{"api_base_url": "https://h"}]}`, "c.json:1:16: Providers[0]: name is missing: write it"},
		{"a pool with a mistake", "c.toml", "", "[pool]\nmax_attempts = 0\n[[upstream]]\nid = \"a\"\nbase_url = \"https://h\"\n", "c.toml:2:16: 0 is out of range: write at least 1"},
		{"a chain with a mistake", "c.yaml", "", "virtual_models:\n  a:\n    - {base_url: https://h, model: m}\n", "c.yaml:3:7: no credential: add api_key, api_key_env or api_key_file, or auth_style: none"},
	} {
		_, err := Import([]Input{{Path: c.path, Bytes: []byte(c.text), Kind: c.kind}}, Options{Env: nowhere})
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) == 0 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := problems[0].String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What YAML has to share values is expanded.
func TestAnchorsAndMergeKeysAreExpanded(t *testing.T) {
	const text = `
x-common: &common {api_key: os.environ/K, timeout: 30}
model_list:
  - model_name: a
    litellm_params: {<<: *common, model: openai/m1}
  - model_name: b
    litellm_params:
      <<: *common
      model: openai/m2
      timeout: 60
`
	res, err := Import([]Input{{Path: "c.yaml", Bytes: []byte(text)}}, Options{Env: nowhere})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"model: m1\n      nonstream_timeout: 30", "model: m2\n      nonstream_timeout: 60"} {
		if !strings.Contains(string(res.Bytes), want) {
			t.Errorf("no %q in\n%s", want, res.Bytes)
		}
	}
}
