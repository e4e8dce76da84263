package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parsed parses a text that must have no errors.
func parsed(t *testing.T, format Format, text string) *Config {
	t.Helper()
	cfg, problems := Parse(Source{Path: "dir/x." + format.String(), Format: format, Bytes: []byte(text)})
	for _, p := range problems {
		if p.Severity == Error {
			t.Error(p)
		}
	}
	if cfg == nil {
		t.FailNow()
	}
	return cfg
}

func TestDefaults(t *testing.T) {
	cfg := parsed(t, YAML, "upstream: [{id: a, base_url: https://h}]")
	want := Server{
		Host: "127.0.0.1", Port: 8787, Admin: "127.0.0.1:8788",
		StallTimeout: 60 * time.Second, StreamTimeout: 300 * time.Second, NonstreamTimeout: 600 * time.Second,
		ConnectTimeout: 15 * time.Second, ContentTimeout: 0, ChainTimeout: 900 * time.Second,
		RelayStallTimeout: 600 * time.Second, ReadIdleTimeout: 60 * time.Second, WriteIdleTimeout: 300 * time.Second, MaxHeldBytes: -1, MaxConnections: 20000,
		MinContentChars: 10, MaxBodyBytes: 64 << 20, HoldBytes: 8 << 20,
		AutoHedgeThreshold: 5, AutoHedge: 10 * time.Minute, FreezeMax: 86400 * time.Second,
		MetricsWindow: 30 * time.Minute, ReloadPoll: 2 * time.Second,
		TargetMaxWait: 300 * time.Second, TargetInterval: 5 * time.Second, TargetTimeoutAction: "return_504",
		IgnoredErrorEndpoints: []IgnoredEndpoint{{"POST", "/v1/messages/count_tokens"}},
		BrokenStream:          "abort", WhenAllFrozen: "fail", Ownership: "on",
		StickyKeys: DefaultStickyKeys, DrainTimeout: 300 * time.Second, StateDir: DefaultStateDir(),
	}
	if diff := cmp.Diff(want, cfg.Server); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Pool{RetryStatuses: []int{429, 500, 502, 503, 504}, MaxAttempts: 3, Cooldown: 30 * time.Second, Affinity: "strict", AffinityTTL: 5 * time.Minute, StickyKeys: DefaultStickyKeys}, cfg.Pool); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
	if !cfg.BuiltInRules || len(cfg.Rules) == 0 {
		t.Error("no built-in rules")
	}
	c := cfg.Upstreams[0]
	if c.Name != "a" || c.Named || c.Weight != 1 || c.AuthStyle != "bearer" || !c.Credential.IsNone() || !c.Enabled || c.Index != 1 || c.Tier != 1 {
		t.Errorf("upstream: %+v", candidateFields(c))
	}
	if c.Connect != time.Minute || c.Stall != time.Minute || !c.StallAlways || c.Stream != 5*time.Minute || c.Nonstream != 10*time.Minute || c.Content != 0 {
		t.Errorf("upstream's limits: %+v", candidateFields(c))
	}
}

// candidateFields shows a candidate that otherwise prints itself in short.
func candidateFields(c Candidate) any {
	type fields Candidate
	return fields(c)
}

// TestSpellings reads the same configuration in YAML and TOML.
func TestSpellings(t *testing.T) {
	yaml := parsed(t, YAML, `
server:
  port: 1
  stall_timeout: 2.5
  websocket: on
  max_body_bytes: 1 MiB
  sticky_keys: ["header:x-a", "body:a.b"]
  ignored_error_endpoints: [{method: GET, path: /x}]
  admin_token: hush
pool: {retry_statuses: [500], max_attempts: 1, cooldown_seconds: 0, rules: [{match: {fault: quota}, action: next}]}
upstream:
  - id: a
    base_url: https://u:p@h/v1
    weight: 2
    timeout_seconds: 7
    headers: {x-client: y}
    header_env: {authorization: A_VAR, x-client: B_VAR}
    model: m0
    rpm: 5
    stall_timeout: 3
virtual_models:
  one:
    - {name: n, base_url: "http://h:1", model: m, api_key: k, auth_style: x-api-key, proxy: none, join: plain, terminal: optional, websocket: off, enabled: false, content_timeout: 4}
    - {upstream: a, model: m2}
    - any_of:
        - {upstream: a, headers: {X-CLIENT: mine}, weight: 5, stall_timeout: 9}
        - {base_url: https://i, model: m, api_key_env: K_VAR}
  two:
    candidates: [{base_url: https://i, model: m, api_key_file: keys/k}]
    delivery: window
    hold_ms: 2
    affinity: warm
    affinity_ttl: 60
    min_chars_per_second: 0.5
    hedge: {after: 2500ms, max: 3, budget: 50%}
    rules: [{match: {status: [429, timeout], body_regex: '(x)'}, action: freeze, freeze_from_group: 1, freeze_unit: h, freeze_seconds: 9, scope: auto}]
rules:
  - {name: r, match: {status: 500, body_regex: 'Boom (\d+)'}, action: retry, max_attempts: 2, backoff_base: 0.5, max_wait: 1}
clients: [{name: c, key: kk, models: [one, "*"], rpm: 1, tpm: 2, max_parallel: 3}]
store: {url: "redis://h:6379/0"}
request_log: {keep: 5, days: 0, bodies: all}
`[1:])
	toml := parsed(t, TOML, `
[server]
port = 1
stall_timeout = 2.5
websocket = true
max_body_bytes = 1_048_576
sticky_keys = ["header:x-a", "body:a.b"]
ignored_error_endpoints = [{method = "GET", path = "/x"}]
admin_token = "hush"

[pool]
retry_statuses = [500]
max_attempts = 1
cooldown_seconds = 0
[[pool.rules]]
match.fault = "quota"
action = "next"

[[upstream]]
id = "a"
base_url = "https://u:p@h/v1"
weight = 2.0
timeout_seconds = 7
header_env = { authorization = "A_VAR", "x-client" = "B_VAR" }
model = "m0"
rpm = 5
stall_timeout = 3
[upstream.headers]
x-client = "y"

[[virtual_models.one]]
name = "n"
base_url = "http://h:1"
model = "m"
api_key = "k"
auth_style = "x-api-key"
proxy = "none"
join = "plain"
terminal = "optional"
websocket = "off"
enabled = false
content_timeout = 4
[[virtual_models.one]]
upstream = "a"
model = "m2"
[[virtual_models.one]]
any_of = [
  { upstream = "a", headers = { X-CLIENT = "mine" }, weight = 5, stall_timeout = 9 },
  { base_url = "https://i", model = "m", api_key_env = "K_VAR" },
]

[virtual_models.two]
delivery = "window"
hold_ms = 2
affinity = "warm"
affinity_ttl = 60
min_chars_per_second = 0.5
hedge = { after = 2.5, max = 3, budget = 0.5 }
[[virtual_models.two.candidates]]
base_url = "https://i"
model = "m"
api_key_file = "keys/k"
[[virtual_models.two.rules]]
match = { status = [429, "timeout"], body_regex = '(x)' }
action = "freeze"
freeze_from_group = 1
freeze_unit = "h"
freeze_seconds = 9
scope = "auto"

[[rules]]
name = "r"
match = { status = 500, body_regex = 'Boom (\d+)' }
action = "retry"
max_attempts = 2
backoff_base = 0.5
max_wait = 1

[[clients]]
name = "c"
key = "kk"
models = ["one", "*"]
rpm = 1
tpm = 2
max_parallel = 3

[store]
url = "redis://h:6379/0"

[request_log]
keep = 5
days = 0
bodies = "all"
`[1:])
	if diff := cmp.Diff(yaml, toml, sameConfig); diff != "" {
		t.Errorf("(-yaml +toml):\n%s", diff)
	}
	if c := toml.Models[0].Tiers[2][0]; c.Index != 3 || c.Stall != 9*time.Second || headerTexts(c)[0] != "X-CLIENT: mine" {
		t.Errorf("%+v", candidateFields(c))
	}
	if h := toml.Upstreams[0].Headers; len(h) != 2 || h[0].Env != "B_VAR" && h[1].Env != "B_VAR" {
		t.Errorf("headers %v", h)
	}
}

// sameConfig compares what two files say, not where they say it.
var sameConfig = cmp.Options{
	cmpopts.IgnoreFields(Config{}, "Source"), cmpopts.IgnoreFields(Rule{}, "Line"), cmpopts.EquateEmpty(),
	cmp.AllowUnexported(Credential{}), sameRegexp,
	cmp.Comparer(func(a, b *url.URL) bool { return (a == nil) == (b == nil) && (a == nil || a.String() == b.String()) }),
	cmpopts.SortSlices(func(a, b HeaderValue) bool { return strings.ToLower(a.Name) < strings.ToLower(b.Name) }),
}

func TestRuleDefaults(t *testing.T) {
	cfg := parsed(t, YAML, `
virtual_models: {a: {candidates: [{base_url: https://h, auth_style: none, model: m}], rules: [{match: {fault: quota}, action: next}]}}
rules:
  - {match: {status: 429}, action: retry}
  - {match: {status: [500, network], body_regex: 'x'}, action: freeze}
`)
	want := []Rule{
		{Name: "rule 1", Statuses: []int{429}, Action: "retry", MaxAttempts: 3, BackoffBase: 1.5, MaxWait: 30 * time.Second, FreezeUnit: time.Minute, Freeze: 300 * time.Second, Scope: "identity", Line: 4},
		{Name: "rule 2", Statuses: []int{500}, Classes: []string{"network"}, Body: NewExpression("(?i)x"), BodySource: "x", Action: "freeze", MaxAttempts: 3, BackoffBase: 1.5, MaxWait: 30 * time.Second, FreezeUnit: time.Minute, Freeze: 300 * time.Second, Scope: "identity", Line: 5},
	}
	same := cmp.Comparer(func(a, b *Expression) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	})
	if diff := cmp.Diff(want, cfg.Rules, same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cfg.BuiltInRules {
		t.Error("a file with rules has the built-in ones")
	}
	if name := cfg.Models[0].Rules[0].Name; name != "rule 1 of a" {
		t.Errorf("a model's own rule is called %q", name)
	}
	if cfg := parsed(t, YAML, "rules: []\nupstream: [{id: a, base_url: https://h}]"); cfg.BuiltInRules || len(cfg.Rules) != 0 {
		t.Error("rules: [] must mean none")
	}
}

// TestPoolExists: there is a pool where the file has one, or no virtual models.
func TestPoolExists(t *testing.T) {
	const up, vm = "upstream: [{id: a, base_url: https://h}]\n", "virtual_models: {a: [{upstream: a, model: m}]}\n"
	for text, want := range map[string]bool{
		up:                          true,
		up + "virtual_models: {}\n": true,
		up + "virtual_models:\n":    true,
		up + "virtual_models: {x-a: [], .b: 1}\n": true,
		up + vm:                false,
		up + vm + "pool: {}\n": true,
		up + vm + "pool:\n":    true,
	} {
		if cfg := parsed(t, YAML, text); (cfg.Pool != nil) != want {
			t.Errorf("pool %v, want %v:\n%s", cfg.Pool != nil, want, text)
		}
	}
}

func TestReferToUpstream(t *testing.T) {
	cfg := parsed(t, YAML, `
server: {stall_timeout: 11, connect_timeout: 12, stream_timeout: 13}
upstream:
  - {id: a, base_url: https://h, api_key: k, auth_style: api-key, timeout_seconds: 7, model: m0, weight: 3, headers: {x-a: "1", x-b: "2"}, stream_timeout: 8, rpm: 9, enabled: false, name: nice}
  - {id: b, base_url: https://h}
virtual_models:
  v:
    - {upstream: a}
    - {upstream: a, model: m1, weight: 4, headers: {X-A: own}, stream_timeout: 5, enabled: true, name: mine}
    - any_of: [{upstream: b, model: m2}, {base_url: https://i, model: m3, auth_style: none, nonstream_timeout: 6}]
`)
	tiers := cfg.Models[0].Tiers
	if len(tiers) != 3 || len(tiers[2]) != 2 {
		t.Fatalf("tiers %v", tiers)
	}
	c := tiers[0][0]
	if c.ID != "a" || c.Name != "v#1" || c.Named || c.Model != "m0" || c.Weight != 3 || c.AuthStyle != "api-key" || c.RPM != 9 || c.Enabled {
		t.Errorf("%+v", candidateFields(c))
	}
	if c.Connect != 7*time.Second || c.Stall != 7*time.Second || !c.StallAlways || c.Stream != 8*time.Second || c.Nonstream != 600*time.Second || len(c.Overrides) != 0 {
		t.Errorf("limits: %+v", candidateFields(c))
	}
	c = tiers[1][0]
	if c.Name != "mine" || !c.Named || c.Model != "m1" || c.Weight != 4 || !c.Enabled || c.Stream != 5*time.Second || c.Overrides["stream_timeout"] != 5*time.Second {
		t.Errorf("%+v", candidateFields(c))
	}
	if got := headerTexts(c); !slices.Equal(got, []string{"X-A: own", "x-b: 2"}) {
		t.Errorf("headers %q", got)
	}
	c = tiers[2][0]
	if c.Index != 3 || c.Tier != 3 || c.Connect != 12*time.Second || c.Stall != 11*time.Second || c.StallAlways || c.Stream != 13*time.Second {
		t.Errorf("%+v", candidateFields(c))
	}
	c = tiers[2][1]
	if c.Index != 4 || c.Tier != 3 || c.ID != "" || c.Name != "v#4" || c.Nonstream != 6*time.Second {
		t.Errorf("%+v", candidateFields(c))
	}
}

func headerTexts(c Candidate) []string {
	var list []string
	for _, h := range c.Headers {
		list = append(list, h.Name+": "+h.Value.Reveal())
	}
	return list
}

func TestFindCandidate(t *testing.T) {
	const text = `
virtual_models:
  a:
    - {upstream: u, model: m}
    - any_of: [{upstream: u, model: n}, {upstream: u, model: o}]
    - {upstream: u, model: p}
  b: {candidates: [{upstream: u, model: q}]}
upstream: [{id: u, base_url: https://h}]
`
	src := Source{Path: "x.yaml", Bytes: []byte(text)}
	cfg, _ := Parse(src)
	for _, m := range cfg.Models {
		for _, tier := range m.Tiers {
			for _, c := range tier {
				path, err := src.CandidatePath(m.Name, c.Index)
				if err != nil {
					t.Fatal(err)
				}
				out, err := src.Set(append(path, "model"), "changed")
				if err != nil {
					t.Fatal(err)
				}
				after, _ := Parse(out)
				at := slices.IndexFunc(after.Models, func(v VirtualModel) bool { return v.Name == m.Name })
				for _, tier := range after.Models[at].Tiers {
					for _, d := range tier {
						if (d.Model == "changed") != (d.Index == c.Index) {
							t.Errorf("%s %d: %d is %s", m.Name, c.Index, d.Index, d.Model)
						}
					}
				}
			}
		}
	}
	for _, index := range []int{-1, 0, 5} {
		if path, err := src.CandidatePath("a", index); err == nil {
			t.Errorf("candidate %d is at %v", index, path)
		}
	}
	if path, err := src.ChainPath("c"); err == nil {
		t.Errorf("no such model, yet %v", path)
	}
}

// TestBuiltInRulesInOrder: the order and the numbers of the specification.
func TestBuiltInRulesInOrder(t *testing.T) {
	var got []string
	for _, r := range BuiltInRules() {
		line := strings.TrimPrefix(r.Name, "built-in ") + ": " + strings.Join(append(slices.Clone(r.Faults), r.Classes...), " ")
		if r.Body != nil {
			line += " by body"
		}
		line += " -> " + r.Action
		switch r.Action {
		case "retry":
			line += " x" + itoa(r.MaxAttempts) + " base " + number(r.BackoffBase) + " wait " + r.MaxWait.String()
		case "freeze":
			line += " " + r.Freeze.String()
		}
		got = append(got, line)
	}
	want := []string{
		"prompt too long: client by body -> next",
		"client: client affinity -> passthrough",
		"quota: quota -> freeze 1h0m0s",
		"credential: credential -> freeze 10m0s",
		"model: model -> next",
		"rate: rate -> retry x3 base 2 wait 5s",
		"network: network -> retry x2 base 1.5 wait 30s",
		"stream: stalled_stream timeout bad_stream -> next",
		"server: capacity server -> retry x3 base 1.5 wait 5s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPromptTooLong: the vendors' wordings, and what only looks like them.
func TestPromptTooLong(t *testing.T) {
	body := BuiltInRules()[0].Body
	for _, text := range []string{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
		`{"error":{"code":"context_length_exceeded"}}`,
		"prompt is too long: 210000 tokens > 200000 maximum",
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		"the request exceeds the available context size. try increasing the context size",
		"Input is too long for requested model.",
		"The prompt (9000 tokens) is longer than the model's context length",
		"string_above_max_length",
		"Please reduce the length of the messages or completion.",
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
		"Your input exceeds the context window of this model.",
	} {
		if !body.MatchString(text) {
			t.Errorf("not seen: %s", text)
		}
	}
	for _, text := range []string{
		"Invalid value for 'temperature'", "max_tokens is too large", "invalid_prompt", "Unsupported parameter",
	} {
		if body.MatchString(text) {
			t.Errorf("taken for it: %s", text)
		}
	}
}

func TestSafeURL(t *testing.T) {
	cfg := parsed(t, YAML, `
upstream:
  - {id: a, base_url: "https://user:SECRET@h/v1?api-version=1&api-key=SECRET&sig=SECRET&x=%20"}
  - {id: b, base_url: "https://h?SECRETkey1234567890AB"}
`)
	if got, want := SafeURL(cfg.Upstreams[0].BaseURL), "https://***@h/v1?api-version=1&api-key=***&sig=***&x=%20"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, c := range cfg.Upstreams {
		if s := SafeURL(c.BaseURL); strings.Contains(s, "SECRET") {
			t.Error(s)
		}
	}
	if got := len(Secrets(cfg.Upstreams[0].BaseURL)); got != 4 {
		t.Errorf("%d secrets in the URL", got)
	}
	if SafeURL(nil) != "" || Secrets(nil) != nil {
		t.Error("a nil URL")
	}
}

func TestPathsCountFromTheFile(t *testing.T) {
	cfg := parsed(t, YAML, "server: {state_dir: state, tls_cert: /c, tls_key: ~/k}\nupstream: [{id: a, base_url: https://h, api_key_file: keys/a}]")
	if got := filepath.ToSlash(cfg.Server.StateDir); got != "dir/state" {
		t.Error(got)
	}
	if cfg.Server.TLSCert != "/c" || strings.HasPrefix(cfg.Server.TLSKey, "~") {
		t.Error(cfg.Server.TLSCert, cfg.Server.TLSKey)
	}
	if got := filepath.ToSlash(cfg.Upstreams[0].Credential.path()); got != "dir/keys/a" {
		t.Error(got)
	}
}

var sameRegexp = cmp.Comparer(func(a, b *Expression) bool {
	return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
})

func TestRequestLog(t *testing.T) {
	const more = "\nupstream: [{id: a, base_url: https://h}]"
	for text, want := range map[string]RequestLog{
		"":                              {10_000, 7, "off"},
		"request_log: {}":               {10_000, 7, "off"},
		"request_log:":                  {10_000, 7, "off"},
		"request_log: {keep: 0}":        {0, 7, "off"},
		"request_log: {bodies: off}":    {10_000, 7, "off"},
		"request_log: {bodies: 'off'}":  {10_000, 7, "off"},
		"request_log: {bodies: failed}": {10_000, 7, "failed"},
		"request_log: {keep: 5, days: 0, bodies: all}": {5, 0, "all"},
	} {
		if got := parsed(t, YAML, text+more).RequestLog; got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}
