package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const hidden = "sk-proj-0123456789SECRET"

// everySecret is a configuration with a secret wherever one may stand.
const everySecret = `
server: {admin_token: ` + hidden + `}
upstream:
  - id: a
    base_url: https://user:` + hidden + `@h/v1?api_key=` + hidden + `
    api_key: ` + hidden + `
    proxy: http://u:` + hidden + `@p:1
    headers: {authorization: ` + hidden + `, cookie: ` + hidden + `}
virtual_models:
  m: [{upstream: a, model: x}, {base_url: "https://h", model: x, api_key: ` + hidden + `}]
pool: {}
clients: [{name: c, key: ` + hidden + `}]
store: {url: "redis://:` + hidden + `@h:1"}
`

// TestNothingPrintsASecret sends every type of a configuration through every
// way of printing.
func TestNothingPrintsASecret(t *testing.T) {
	cfg := parsed(t, YAML, everySecret)
	type private struct {
		s Secret
		p *Secret
		c Credential
		m map[string]Secret
	}
	s := cfg.Server.AdminToken
	shown := *cfg
	shown.Source = Source{} // the bytes of the file are not hidden
	values := map[string]any{
		"secret": s, "pointer": &s, "slice": []Secret{s}, "map": map[string]any{"k": s},
		"private":         private{s, &s, cfg.Upstreams[0].Credential, map[string]Secret{"k": s}},
		"private pointer": &private{s, &s, cfg.Upstreams[0].Credential, nil},
		"config":          shown, "config pointer": &shown, "server": cfg.Server, "pool": cfg.Pool,
		"upstream": cfg.Upstreams[0], "upstream pointer": &cfg.Upstreams[0], "upstreams": cfg.Upstreams,
		"embedding": struct{ Candidate }{cfg.Upstreams[0]},
		"model":     cfg.Models[0], "models": cfg.Models, "credential": cfg.Upstreams[0].Credential,
		"header": cfg.Upstreams[0].Headers[0], "headers": cfg.Upstreams[0].Headers,
		"client": cfg.Clients[0], "clients": cfg.Clients, "store": cfg.Store, "error": fmt.Errorf("x %v", s),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%p"} {
			// fmt asks no method for %p, so only the pointer inside a Secret
			// keeps it; a proxy's URL is plain text by contract.
			if verb == "%p" && !strings.HasPrefix(name, "secret") && !strings.HasPrefix(name, "private") {
				continue
			}
			check(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		check(t, name+" print", fmt.Sprint(v)+fmt.Sprintln(v))
		if b, err := json.Marshal(v); err == nil {
			check(t, name+" json", string(b))
		}
		if b, err := yaml.Marshal(v); err == nil {
			check(t, name+" yaml", string(b))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v, slog.Group("g", "v", v))
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		check(t, name+" slog", log.String())
	}
}

func check(t *testing.T, name, text string) {
	t.Helper()
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("%X", hidden), "123456789SEC"} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the secret: %.300s", name, text)
		}
	}
}

// TestSecretsAreSecretTypes walks the types of a configuration: what carries a
// secret is a Secret or a Credential, never plain text.
func TestSecretsAreSecretTypes(t *testing.T) {
	cfg := parsed(t, YAML, everySecret)
	cfg.Source = Source{}
	allowed := map[string]bool{ // plain by contract; they never leave by printing
		"Upstreams[].Proxy": true, "Models[].Tiers[][].Proxy": true,
	}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[Secret]() || v.Type() == reflect.TypeFor[Credential]() {
				return
			}
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					walk(strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
				}
			}
		case reflect.Pointer:
			if !v.IsNil() && v.Type() != reflect.TypeFor[*Config]() && !strings.HasSuffix(path, "BaseURL") {
				walk(path, v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path+"[]", v.Index(i))
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(path+"{}", v.MapIndex(k))
			}
		case reflect.String:
			if strings.Contains(v.String(), hidden) && !allowed[path] {
				t.Errorf("%s holds a secret in plain text", path)
			}
		}
	}
	walk("", reflect.ValueOf(*cfg))
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "short": "***", strings.Repeat("x", 19): "***",
		"sk-abcdefghijklmn1234": "sk-abc***1234", "密密密密密密密密密密密密密密密密密密密钥": "密密密密密密***密密密钥",
	} {
		if got := NewSecret(text).Mask(); got != want {
			t.Errorf("%q masks to %q, want %q", text, got, want)
		}
	}
}

func TestSecretEqual(t *testing.T) {
	a, b := NewSecret("x"), NewSecret("x")
	if !a.Equal(b) || a.Equal(NewSecret("y")) || a.Equal(Secret{}) || !(Secret{}).Equal(NewSecret("")) || a.Digest() != b.Digest() {
		t.Error("equality goes by the text")
	}
	if a.IsZero() || !(Secret{}).IsZero() || a.Reveal() != "x" || (Secret{}).Reveal() != "" {
		t.Error("zero and reveal")
	}
}

func TestCredentialResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "key-1\r\n\n \t")
	write("lines", "a\nb\n")
	write("blank", "\n\n")
	write("big", strings.Repeat("x", maxSecretFile+1))
	t.Setenv("UNDERSTUDY_TEST_KEY", "key-2")
	t.Setenv("UNDERSTUDY_TEST_EMPTY", "")
	t.Setenv("UNDERSTUDY_TEST_LINES", "a\nSECRET")
	for _, c := range []struct {
		c             Credential
		want, missing string
		notThere      bool
	}{
		{Credential{}, "", "", false},
		{LiteralCredential("key-0"), "key-0", "", false},
		{EnvCredential("UNDERSTUDY_TEST_KEY"), "key-2", "", false},
		{EnvCredential("UNDERSTUDY_TEST_EMPTY"), "", "env UNDERSTUDY_TEST_EMPTY", true},
		{EnvCredential("UNDERSTUDY_TEST_NOT_SET"), "", "env UNDERSTUDY_TEST_NOT_SET", true},
		{EnvCredential("UNDERSTUDY_TEST_LINES"), "", "env UNDERSTUDY_TEST_LINES", false},
		{FileCredential("good", dir), "key-1", "", false},
		{FileCredential(filepath.Join(dir, "good"), "elsewhere"), "key-1", "", false},
		{FileCredential("none", dir), "", "file none", true},
		{FileCredential("lines", dir), "", "file lines", false},
		{FileCredential("blank", dir), "", "file blank", true},
		{FileCredential("big", dir), "", "file big", false},
	} {
		s, err := c.c.Resolve()
		if s.Reveal() != c.want || (err != nil) != (c.missing != "") || c.c.Missing() != c.missing || errors.Is(err, ErrMissing) != c.notThere {
			t.Errorf("%s: %q, %v, missing %q", c.c, s.Reveal(), err, c.c.Missing())
		}
		if err != nil && (strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), c.missing)) {
			t.Errorf("%s: %v", c.c, err)
		}
	}
}

// TestHeaderValueResolve: the variable wins, the static value stands in for one
// that is not set, and nothing stands in for one that cannot be used.
func TestHeaderValueResolve(t *testing.T) {
	t.Setenv("UNDERSTUDY_TEST_KEY", "from env")
	t.Setenv("UNDERSTUDY_TEST_LINES", "a\nb")
	static := NewSecret("static")
	for _, c := range []struct {
		h             HeaderValue
		want, missing string
	}{
		{HeaderValue{Name: "x", Value: static}, "static", ""},
		{HeaderValue{Name: "x", Env: "UNDERSTUDY_TEST_KEY"}, "from env", ""},
		{HeaderValue{Name: "x", Env: "UNDERSTUDY_TEST_KEY", Value: static}, "from env", ""},
		{HeaderValue{Name: "x", Env: "UNDERSTUDY_TEST_NOT_SET", Value: static}, "static", ""},
		{HeaderValue{Name: "x", Env: "UNDERSTUDY_TEST_NOT_SET"}, "", "env UNDERSTUDY_TEST_NOT_SET"},
		{HeaderValue{Name: "x", Env: "UNDERSTUDY_TEST_LINES", Value: static}, "", "env UNDERSTUDY_TEST_LINES"},
	} {
		s, err := c.h.Resolve()
		if s.Reveal() != c.want || (err != nil) != (c.missing != "") || c.h.Missing() != c.missing {
			t.Errorf("%v: %q, %v, missing %q", c.h, s.Reveal(), err, c.h.Missing())
		}
	}
	c := Candidate{Credential: EnvCredential("UNDERSTUDY_TEST_NOT_SET"), Headers: []HeaderValue{{Env: "UNDERSTUDY_TEST_NOR_THIS"}, {Env: "UNDERSTUDY_TEST_KEY"}}}
	if got := strings.Join(c.MissingEnv(), " "); got != "UNDERSTUDY_TEST_NOT_SET UNDERSTUDY_TEST_NOR_THIS" || c.Missing() != "env UNDERSTUDY_TEST_NOT_SET" {
		t.Errorf("missing %q, %q", got, c.Missing())
	}
}
