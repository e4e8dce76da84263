package movein

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/internal/config"
)

var update = flag.Bool("update", false, "write the expected files anew")

// nowhere is an environment without variables.
func nowhere(string) (string, bool) { return "", false }

func source(t testing.TB, name string) Input {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/src", name))
	if err != nil {
		t.Fatal(err)
	}
	return Input{Path: name, Bytes: text}
}

func sources(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("testdata/src")
	if err != nil || len(entries) < 6 {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// mistakes are the errors of a configuration.
func mistakes(res Result) (list []config.Problem) {
	_, problems := config.Parse(config.Source{Path: "x." + res.Format.String(), Format: res.Format, Bytes: res.Bytes, Mode: 0o600})
	return slices.DeleteFunc(problems, func(p config.Problem) bool { return p.Severity != config.Error })
}

func TestEachKindOfFileBecomesTheExpectedOne(t *testing.T) {
	for _, name := range sources(t) {
		t.Run(name, func(t *testing.T) {
			res, err := Import([]Input{source(t, name)}, Options{Env: nowhere})
			if err != nil {
				t.Fatal(err)
			}
			if m := mistakes(res); len(m) > 0 {
				t.Errorf("the result has mistakes: %v", m)
			}
			golden := filepath.Join("testdata/want", strings.TrimSuffix(name, filepath.Ext(name))+"."+res.Format.String())
			if *update {
				if err := os.WriteFile(golden, res.Bytes, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(res.Bytes) {
				t.Errorf("%s is not what came:\n%s", golden, res.Bytes)
			}
		})
	}
}

// secrets are what stands in the sources and must stay there.
var secrets = map[string][]string{
	"litellm.yaml": {"az-7f3b1c9d5e2a4f6b8c0d1e3f5a7b9c1d", "sk-proj-Zk3nQ8vT1rYp6LmXw9Bs2Dc4", "tt-5Hq8Zr2Lw9Xv4Nb7Kc1M", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
		"AIzaSyD4example0000key1111value2222x", "hunter2-redis-password", "another-redis-passw0rd", "sk-1234", "dbpassword9", "sk-lf-9a8b7c6d-5e4f-3a2b"},
	"cliproxyapi.yaml": {"panel-Secret-99", "my-first-client-key", "my-second-client-key", "corp-pass", "AIzaSyExampleExampleExample01", "AIzaSyExampleExampleExample02",
		"sk-codex-relay-000000000001", "sk-ant-api03-one-one-one-one", "sk-ant-api03-two-two-two-two", "cr_custom_gateway_key_0123456789", "sk-or-v1-aaaaaaaaaaaaaaaaaaaab780", "egress-pass", "sk-or-v1-aaaaaaaaaaaaaaaaaaaab781"},
	"cliproxyapi-old.yaml": {"AIzaSyOldExampleExampleExample01", "AIzaSyOldExampleExampleExample02", "sk-ant-api03-old-old-old-old", "sk-or-v1-oldoldoldoldoldold0001"},
	"ccr.json":             {"ccr-client-secret-77", "sk-or-v1-0123456789abcdef0123", "gsk_groqgroqgroqgroq0001"},
	"pool.toml":            {"sk-second-0123456789abcdef"},
	"chain.yaml":           {"sk-direct-Zk3nQ8vT1rYp6LmXw9Bs"},
}

// unused are secrets that no configuration of ours has a place for.
var unused = []string{"wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "hunter2-redis-password", "another-redis-passw0rd", "dbpassword9", "sk-lf-9a8b7c6d-5e4f-3a2b", "panel-Secret-99"}

// said is everything that people are shown of a result, but for the configuration.
func said(res Result, err error) string {
	return fmt.Sprintf("%v %v %v %v %v %v %v", res.Exports, res.Variables, res.Carried, res.Missing, res.Clients, res.Kinds, err)
}

func TestNoSecretOfASourceIsShown(t *testing.T) {
	for _, name := range sources(t) {
		if len(secrets[name]) == 0 {
			t.Errorf("%s: say which secrets stand in it", name)
		}
		in := source(t, name)
		for _, secret := range secrets[name] {
			if !strings.Contains(string(in.Bytes), secret) {
				t.Errorf("%s does not hold %s", name, secret)
			}
		}
		env, err := Import([]Input{in}, Options{Env: nowhere})
		if err != nil {
			t.Fatal(err)
		}
		inline, err := Import([]Input{in}, Options{Env: nowhere, Keys: KeysInline})
		if err != nil {
			t.Fatal(err)
		}
		if m := mistakes(inline); len(m) > 0 {
			t.Errorf("%s with its keys has mistakes: %v", name, m)
		}
		for _, secret := range secrets[name] {
			if strings.Contains(string(env.Bytes), secret) {
				t.Errorf("%s: the configuration holds %s", name, secret)
			}
			for _, res := range []Result{env, inline} {
				if strings.Contains(said(res, nil), secret) {
					t.Errorf("%s: %s is shown", name, secret)
				}
			}
			if has := strings.Contains(string(inline.Bytes), secret); has == slices.Contains(unused, secret) {
				t.Errorf("%s inline: %s is there: %v", name, secret, has)
			}
		}
		// Every variable it names is one that the user is told of.
		cfg, _ := config.Parse(config.Source{Path: "x." + env.Format.String(), Format: env.Format, Bytes: env.Bytes, Mode: 0o600})
		told := slices.Clone(env.Variables)
		for _, e := range env.Exports {
			told = append(told, e.Name)
		}
		var all []config.Candidate
		all = append(all, cfg.Upstreams...)
		for _, m := range cfg.Models {
			for _, tier := range m.Tiers {
				all = append(all, tier...)
			}
		}
		for _, c := range all {
			for _, name := range c.MissingEnv() {
				if !slices.Contains(told, name) {
					t.Errorf("nobody is told to export %s", name)
				}
			}
		}
	}
}

func TestABaseURLFromTheEnvironmentIsTakenAsItIsNow(t *testing.T) {
	in := Input{Path: "c.yaml", Bytes: []byte("model_list:\n- model_name: m\n  litellm_params: {model: hosted_vllm/x, api_base: os.environ/VLLM, api_key: none}\n")}
	for value, want := range map[string]string{"http://10.0.0.5:8000/v1": "base_url: http://10.0.0.5:8000/v1\n", "": "base_url: https://replace-me.invalid\n"} {
		res, err := Import([]Input{in}, Options{Env: func(name string) (string, bool) { return value, name == "VLLM" && value != "" }})
		if err != nil || !strings.Contains(string(res.Bytes), want) {
			t.Errorf("%q: %v\n%s", value, err, res.Bytes)
		}
	}
}

func TestSeveralFilesBecomeOne(t *testing.T) {
	res, err := Import([]Input{source(t, "pool.toml"), source(t, "chain.yaml"), source(t, "ccr.json")}, Options{Env: nowhere})
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := config.Parse(config.Source{Bytes: res.Bytes})
	if cfg == nil || cfg.Pool == nil || cfg.Pool.MaxAttempts != 3 || len(cfg.Models) != 12 || len(cfg.Upstreams) != 2 || len(cfg.Clients) != 1 {
		t.Fatalf("%+v\n%s", cfg, res.Bytes)
	}
	if !strings.Contains(said(res, nil), "first_content_timeout") {
		t.Error("the retired key is not reported")
	}
}

func TestAFileWhoseKeysCannotBeMovedInPlaceIsWrittenAnew(t *testing.T) {
	const chain = "virtual_models:\n  a:\n  - {base_url: 'https://h', model: m, api_key: sk-0123456789abcdefghij} "
	for name, text := range map[string]string{
		"comment": chain + "# was sk-old-0123456789abcdefghij\n",
		"url":     "virtual_models:\n  a:\n  - {base_url: 'https://u:sk-old-0123456789abcdefghij@h', model: m, auth_style: none}\n",
		"token":   "server: {admin_token: sk-old-0123456789abcdefghij}\n" + chain + "\n",
		"anchor":  "x-a: &a {api_key: sk-old-0123456789abcdefghij}\nvirtual_models:\n  a:\n  - {<<: *a, base_url: 'https://h', model: m}\n",
	} {
		res, err := Import([]Input{{Path: "c.yaml", Bytes: []byte(text)}}, Options{})
		if all := string(res.Bytes) + said(res, err); err != nil || strings.Contains(all, "sk-old-0123456789abcdefghij") || strings.Contains(all, "sk-0123456789abcdefghij") {
			t.Errorf("%s: %v\n%s", name, err, res.Bytes)
		}
		if _, err := Import([]Input{{Path: "c.toml", Bytes: []byte(text)}}, Options{Format: "toml"}); err == nil {
			t.Errorf("%s: YAML is taken for TOML", name)
		}
	}
	if _, err := Import([]Input{source(t, "litellm.yaml")}, Options{Format: "toml"}); !errors.Is(err, ErrTOML) {
		t.Error(err)
	}
}

// The rules that are written out for another number of retries are the built-in
// ones otherwise.
func TestWrittenRulesAreTheBuiltInOnes(t *testing.T) {
	d := &draft{}
	for _, r := range config.BuiltInRules() {
		d.rules = append(d.rules, ruleBlock(r))
	}
	d.models = []*chain{{name: "m", tiers: []tier{{&block{pairs: []pair{{"base_url", "https://h"}, {"auth_style", "none"}, {"model", "m"}}}}}}}
	text, err := d.write(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, problems := config.Parse(config.Source{Bytes: text})
	if cfg == nil {
		t.Fatal(problems)
	}
	want := config.BuiltInRules()
	for i, r := range cfg.Rules {
		w := want[i]
		r.Line, r.Name, w.Name, r.Body, w.Body = 0, "", "", nil, nil
		if r.Action != "retry" && r.Action != "freeze" {
			continue
		}
		r.MaxAttempts, w.MaxAttempts = max(r.MaxAttempts, 3), max(w.MaxAttempts, 3)
		if fmt.Sprint(r) != fmt.Sprint(w) {
			t.Errorf("rule %d: %v, not %v", i+1, r, w)
		}
	}
	if len(cfg.Rules) != len(want) {
		t.Errorf("%d rules", len(cfg.Rules))
	}
}

func TestEveryVendorHasABaseURLThatCanBeUsed(t *testing.T) {
	for prefix, v := range vendors {
		text := "model_list:\n- model_name: m\n  litellm_params: {model: " + prefix + "/x}\n"
		for _, native := range []bool{false, true} {
			res, err := Import([]Input{{Path: "c.yaml", Bytes: []byte(text)}}, Options{Env: nowhere, Native: native})
			if err != nil {
				t.Errorf("%s: %v", prefix, err)
				continue
			}
			base := v.base
			if native && v.own != "" {
				base = v.ownBase
			}
			if base != "" && !strings.Contains(string(res.Bytes), "base_url: "+base+"\n") {
				t.Errorf("%s:\n%s", prefix, res.Bytes)
			}
		}
		if foreign[prefix] != "" {
			t.Errorf("%s is in both tables", prefix)
		}
	}
}
