package main

import (
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/daemon"
	"understudy/internal/route"
)

// loaded reads a configuration as the commands do.
func loaded(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	snap, _, _, err := daemon.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return snap.Config
}

const drilled = `
server:
  admin_token: sk-the-admin-token-0123456789
  cors_origins: [https://chat.example.com]
  default_model: vm
clients: [{name: laptop, key: sk-the-client-key-0123456789}]
virtual_models:
  vm:
    delivery: window
    hold_ms: 7000
    hedge: {after: 8}
    candidates:
      - {name: off, base_url: "https://off.example.com", api_key: sk-off-0123456789012345, model: m0, enabled: false}
      - any_of:
          - {name: a, base_url: "https://user:pass@a.example.com/openai/v1?key=sk-in-the-url-0123456789", api_key: sk-shared-0123456789abcdef, model: m1, rpm: 3, proxy: "http://proxy.example.com:3128"}
          - {name: b, base_url: "https://b.example.com/v1", api_key: sk-shared-0123456789abcdef, model: m2, header_env: {x-team: NO_SUCH_VARIABLE}, headers: {cookie: sk-in-a-header-0123456789}}
      - {name: a again, base_url: "https://user:pass@a.example.com/openai/v1?key=sk-in-the-url-0123456789", api_key: sk-shared-0123456789abcdef, model: m1}
      - {name: c, base_url: "https://c.example.com", api_key_env: NO_SUCH_VARIABLE, model: m3, auth_style: x-api-key}
pool: {cooldown_seconds: 30, affinity: warm}
upstream:
  - {id: p, base_url: "https://p.example.com"}
`

func TestStandInsHaveNoSecretsAndCallNobodyElse(t *testing.T) {
	all := standIns(loaded(t, drilled))
	if len(all) != 2 || all[0].name() != "vm" || all[1].name() != route.PoolName {
		t.Fatalf("%d chains", len(all))
	}
	vm := all[0]
	if len(vm.cast) != 3 || vm.cast[0].Name != "a" || vm.cast[1].Name != "b" || vm.cast[2].Name != "c" {
		t.Fatalf("cast %v", vm.cast)
	}
	cfg, err := vm.config([]string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Models) != 1 || cfg.Pool != nil || len(cfg.Clients) != 0 || !cfg.Server.AdminToken.IsZero() || cfg.Server.DefaultModel != "" {
		t.Errorf("more than the chain is left: %+v", cfg.Server)
	}
	tiers := cfg.Models[0].Tiers
	if len(tiers) != 3 || len(tiers[0]) != 2 {
		t.Fatalf("tiers %v", tiers)
	}
	var urls, keys []string
	ids := map[route.ID]bool{}
	for _, c := range slices.Concat(tiers...) {
		secret, err := c.Credential.Resolve()
		if err != nil || c.Proxy != "none" || c.RPM != 0 || c.Missing() != "" {
			t.Errorf("%s: %v, proxy %s, rpm %d, missing %s", c.Name, err, c.Proxy, c.RPM, c.Missing())
		}
		for _, h := range c.Headers {
			value, err := h.Resolve()
			if err != nil || !strings.HasPrefix(value.Reveal(), "drill-key-") {
				t.Errorf("%s: header %s is %s, %v", c.Name, h.Name, value.Reveal(), err)
			}
		}
		urls, keys = append(urls, c.BaseURL.String()), append(keys, secret.Reveal())
		ids[route.Identity(c)] = true
	}
	if want := []string{"http://127.0.0.1:1/openai/v1", "http://127.0.0.1:2/v1", "http://127.0.0.1:1/openai/v1", "http://127.0.0.1:3"}; !slices.Equal(urls, want) {
		t.Errorf("base URLs %v, want %v", urls, want)
	}
	if keys[0] != keys[1] || keys[0] == keys[3] || !strings.HasPrefix(keys[0], "drill-key-") {
		t.Errorf("keys %v: who shares one in the file shares one here, nobody else", keys)
	}
	if len(ids) != 3 {
		t.Errorf("%d identities, want 3 as in the file", len(ids))
	}
}

// clocks are the durations that a drill divides; every other one of the
// configuration is named in still.
func clocks(v reflect.Value, path string, into map[string]time.Duration) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		into[path] = time.Duration(v.Int())
	case v.Type() == reflect.TypeFor[*url.URL](), v.Type() == reflect.TypeFor[config.Source]():
	case v.Kind() == reflect.Pointer && !v.IsNil():
		clocks(v.Elem(), path, into)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			clocks(v.Index(i), path, into)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				clocks(v.Field(i), path+"."+f.Name, into)
			}
		}
	}
}

// still are clocks that nothing in a drill waits for.
var still = map[string]bool{
	".Server.MetricsWindow": true, ".Server.ReloadPoll": true, ".Server.DrainTimeout": true,
	".Server.TargetMaxWait": true, ".Server.TargetInterval": true,
}

func TestEveryClockIsDivided(t *testing.T) {
	cfg := loaded(t, drilled)
	for _, s := range standIns(cfg) {
		before, after := map[string]time.Duration{}, map[string]time.Duration{}
		own := &config.Config{Server: cfg.Server, Rules: cfg.Rules}
		if s.model != nil {
			own.Models = []config.VirtualModel{*s.model}
		} else {
			own.Pool, own.Upstreams = cfg.Pool, cfg.Upstreams
		}
		clocks(reflect.ValueOf(own), "", before)
		replaced, err := s.config([]string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"}, 10)
		if err != nil {
			t.Fatal(err)
		}
		clocks(reflect.ValueOf(replaced), "", after)
		for path, d := range before {
			if d > 0 && !still[path] && after[path] >= d {
				t.Errorf("%s: %s is %s is %s", s.name(), path, d, after[path])
			}
			if still[path] && after[path] != d {
				t.Errorf("%s: %s is %s, was %s", s.name(), path, after[path], d)
			}
		}
	}
}

func TestClocksAsTheyAre(t *testing.T) {
	cfg := loaded(t, drilled)
	for _, s := range standIns(cfg) {
		replaced, err := s.config([]string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if s.model != nil && (replaced.Models[0].Hold != 7*time.Second || replaced.Models[0].Hedge.After != 8*time.Second) {
			t.Errorf("%+v", replaced.Models[0])
		}
		if replaced.Server.NonstreamTimeout != cfg.Server.NonstreamTimeout || !reflect.DeepEqual(replaced.Rules, cfg.Rules) {
			t.Error("server or rules differ")
		}
	}
}

func TestFactorLeavesTheShortestClockLongEnough(t *testing.T) {
	for text, want := range map[string]float64{
		"":                             30, // a stall of 60 s is two then
		"server: {stall_timeout: 15}":  10,
		"server: {content_timeout: 3}": 2,
		"server: {content_timeout: 1}": 1,
	} {
		cfg := loaded(t, text+"\nvirtual_models: {vm: [{base_url: \"https://a.example.com\", model: m, auth_style: none}]}")
		if got := standIns(cfg)[0].factor(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A retry's waits are powers of seconds. Divided, all of them together are as long
// as the division of their sum.
func TestRetriesWaitAsLongInAll(t *testing.T) {
	for _, test := range []struct {
		rule config.Rule
		want time.Duration
	}{
		{config.Rule{MaxAttempts: 3, BackoffBase: 2, MaxWait: 30 * time.Second}, 3 * time.Second}, // 2 + 4
		{config.Rule{MaxAttempts: 3, BackoffBase: 2, MaxWait: 3 * time.Second}, 2500 * time.Millisecond},
		{config.Rule{MaxAttempts: 1, BackoffBase: 2, MaxWait: 3 * time.Second}, 2 * time.Second},
	} {
		if got := meanWait(test.rule); got != test.want {
			t.Errorf("%+v: %s, want %s", test.rule, got, test.want)
		}
	}
}
