package proxy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// clientCredentials are a client's, one in every place where one can stand.
var clientCredentials = []string{
	"Authorization", "Bearer client-secret-bearer", "x-api-key", "client-secret-x-api", "x-goog-api-key", "client-secret-goog", "api-key", "client-secret-api",
	"Cookie", "session=client-secret-cookie", "Proxy-Authorization", "Basic client-secret-proxy",
	"Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.client-secret-protocol, openai-beta.realtime-v1",
}

const clientKeyQuery = "a=1&key=client-secret-query&b=%2F+&k%65y=client-secret-escaped;key=client-secret-semicolon&keys=3"

// A client's credentials reach nobody who has one of its own, nor any candidate of a
// chain, nor anybody where client keys are configured; only a pool's upstream with
// none gets them, as they are.
func TestClientCredentialsGoNowhereElse(t *testing.T) {
	t.Setenv("RIG_AUTH", "Bearer env-credential")
	const clients = "clients: [{name: me, key: client-secret-bearer}]\n"
	for name, c := range map[string]struct {
		cfg  string
		own  []string // the candidate's own, as header lines
		want string   // the query
	}{
		"a chain":                        {"virtual_models: {vm: [{base_url: %q, api_key: own-credential, model: m1}]}", []string{"authorization: Bearer own-credential"}, ""},
		"a chain without a credential":   {"virtual_models: {vm: [{base_url: %q, auth_style: none, model: m1}]}", nil, ""},
		"a pool with a credential":       {"pool: {}\nupstream: [{id: a, base_url: %q, api_key: own-credential}]", []string{"authorization: Bearer own-credential"}, ""},
		"a pool with another style":      {"pool: {}\nupstream: [{id: a, base_url: %q, api_key: own-credential, auth_style: api-key}]", []string{"api-key: own-credential"}, ""},
		"a pool with a header":           {"pool: {}\nupstream: [{id: a, base_url: %q, headers: {X-Api-Key: own-credential}}]", []string{"x-api-key: own-credential"}, ""},
		"a pool with a variable":         {"pool: {}\nupstream: [{id: a, base_url: %q, header_env: {authorization: RIG_AUTH}}]", []string{"authorization: Bearer env-credential"}, ""},
		"a pool with a key in its URL":   {"pool: {}\nupstream: [{id: a, base_url: %q}]", nil, "key=own-credential&"},
		"a pool with a user in its URL":  {"pool: {}\nupstream: [{id: a, base_url: %q}]", []string{"authorization: Basic dXNlcjpwYXNzd29yZA=="}, ""},
		"a pool where there are clients": {clients + "pool: {}\nupstream: [{id: a, base_url: %q}]", nil, ""},
		"a chain where there are clients": {clients + "virtual_models: {vm: [{base_url: %q, api_key: own-credential, model: m1}]}",
			[]string{"authorization: Bearer own-credential"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := play(t, page("application/json", okChat))
			base := u.URL()
			switch {
			case strings.Contains(name, "key in its URL"):
				base += "?key=own-credential"
			case strings.Contains(name, "user in its URL"):
				base = strings.Replace(base, "://", "://user:password@", 1)
			}
			r := newRig(t, fmt.Sprintf(c.cfg, base))
			r.is(r.post("/v1/chat/completions?"+clientKeyQuery, `{"model":"vm"}`, clientCredentials...), 200, okChat)
			q := only(t, u)
			if strings.Contains(string(q.Head), "client-secret") {
				t.Errorf("the upstream got a client's credential:\n%s", q.Head)
			}
			want := append(slices.Clone(c.own), "sec-websocket-protocol: realtime, openai-beta.realtime-v1")
			slices.Sort(want)
			if got := lines(q.Header, "host", "content-length", "content-type", "accept-encoding"); !slices.Equal(got, want) {
				t.Errorf("upstream got %q, want %q", got, want)
			}
			if q.Query() != c.want+"a=1&b=%2F+&keys=3" {
				t.Errorf("query %q", q.Query())
			}
		})
	}

	u := play(t, page("application/json", okChat))
	r := newRig(t, pool("", u.URL()))
	r.is(r.post("/v1/chat/completions?"+clientKeyQuery, `{"model":"vm"}`, clientCredentials...), 200, okChat)
	q := only(t, u)
	want := []string{"api-key: client-secret-api", "authorization: Bearer client-secret-bearer", "cookie: session=client-secret-cookie",
		"sec-websocket-protocol: realtime, openai-insecure-api-key.client-secret-protocol, openai-beta.realtime-v1",
		"x-api-key: client-secret-x-api", "x-goog-api-key: client-secret-goog"}
	if got := lines(q.Header, "host", "content-length", "content-type", "accept-encoding"); !slices.Equal(got, want) || q.Query() != clientKeyQuery {
		t.Errorf("the pool's upstream got %q ? %s", got, q.Query())
	}
}

// In a mixed pool each upstream gets what is meant for it, in one request too.
func TestMixedPoolKeepsCredentialsApart(t *testing.T) {
	own, none := play(t, refusal(503, `{}`)), play(t, refusal(503, `{}`))
	r := newRig(t, fmt.Sprintf("pool: {}\nupstream: [{id: a, base_url: %q, api_key: own-credential}, {id: b, base_url: %q}]", own.URL(), none.URL()))
	r.fails(r.post("/v1/chat/completions", `{"model":"x"}`, "Authorization", "Bearer client-secret-bearer", "X-Api-Key", "client-secret-x"), 502)
	if q := only(t, own); q.Get("Authorization") != "Bearer own-credential" || q.Get("X-Api-Key") != "" {
		t.Errorf("the one with a credential got %q", q.Head)
	}
	if q := only(t, none); q.Get("Authorization") != "Bearer client-secret-bearer" || q.Get("X-Api-Key") != "client-secret-x" {
		t.Errorf("the one without got %q", q.Head)
	}
}

// A credential that is missing skips its candidate with that reason: nobody is
// called with the client's instead, and a variable that appears later is used.
func TestMissingCredentialIsNeverReplacedByTheClients(t *testing.T) {
	u := play(t, page("application/json", okChat))
	for name, cfg := range map[string]string{
		"chain":       "virtual_models: {vm: [{name: one, base_url: %q, api_key_env: RIG_LATER, model: m1}]}",
		"pool":        "pool: {}\nupstream: [{id: one, base_url: %q, api_key_env: RIG_LATER}]",
		"pool header": "pool: {}\nupstream: [{id: one, base_url: %q, header_env: {authorization: RIG_LATER}}]",
		"a file":      "virtual_models: {vm: [{name: one, base_url: %q, api_key_file: /nowhere/at/all, model: m1}]}",
	} {
		t.Run(name, func(t *testing.T) {
			before := u.Count()
			r := newRig(t, fmt.Sprintf(cfg, u.URL()))
			why := "env RIG_LATER is not set"
			if name == "a file" {
				why = "file /nowhere/at/all is not set"
			}
			r.fails(r.post("/v1/chat/completions", `{"model":"vm"}`, clientCredentials...), 502, "one", why)
			if u.Count() != before {
				t.Error("somebody was called")
			}
			if r.frozen() != 0 {
				t.Error("somebody is frozen")
			}
			if name == "a file" {
				return
			}
			t.Setenv("RIG_LATER", "late-credential")
			r.is(r.post("/v1/chat/completions", `{"model":"vm"}`, clientCredentials...), 200, okChat)
			if q := u.Requests()[before]; !strings.HasSuffix(q.Get("Authorization"), "late-credential") || strings.Contains(string(q.Head), "client-secret") {
				t.Errorf("upstream got %q", q.Head)
			}
		})
	}
}

// What vendors, their gateways and clouds call a credential is one: it reaches nobody
// else, and nobody reads it where an upstream quotes it.
func TestCredentialsUnderOtherNames(t *testing.T) {
	names := []string{"X-Auth-Token", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token", "X-Goog-Iam-Authorization-Token", "Cf-Aig-Authorization", "Helicone-Auth",
		"X-Portkey-Api-Key", "X-Litellm-Api-Key", "X-Access-Token", "X-Password", "X-Secret-Key", "X-My-Credential", "Cf-Access-Client-Secret", "X_api_key", "Token"}
	u := play(t, func(w *drill.Wire, q drill.Request, _ int) {
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "you sent " + string(q.Head)}})
		w.JSON(400, body)
	})
	cfg, sent := "virtual_models: {vm: [{base_url: %q, api_key: sk-upstream-secret-1, model: m1, headers: {x-client: codex-1234567890", []string{"Idempotency-Key", "idempotent-0123456789", "X-Stainless-Lang", "js", "X-Max-Tokens", "4096"}
	for i, name := range names {
		cfg += fmt.Sprintf(", x-%d-%s: configured-secret-%d", i, strings.ToLower(name), i)
		sent = append(sent, name, fmt.Sprintf("client-secret-%d", i))
	}
	for _, prefix := range []string{"", "pool: {}\nupstream: [{id: a, base_url: 'http://127.0.0.1:1', api_key: x}]\n"} {
		r := newRig(t, prefix+fmt.Sprintf(cfg+"}}]}", u.URL()))
		got := r.post("/v1/chat/completions?access_token=client-secret-q&a=1", `{"model":"vm"}`, sent...)
		calls := u.Requests()
		q := calls[len(calls)-1]
		if strings.Contains(string(q.Head), "client-secret") || !strings.Contains(string(q.Head), "idempotent-0123456789") || !strings.Contains(string(q.Head), "configured-secret-3") || !strings.Contains(string(q.Head), "4096") {
			t.Errorf("the upstream got\n%s", q.Head)
		}
		shown := fmt.Sprintf("%s%+v", r.log, r.settle())
		if got.Status != 400 || strings.Contains(shown, "secret-1") || strings.Contains(shown, "configured-secret") || strings.Contains(shown, "client-secret") {
			t.Errorf("%d: %s", got.Status, shown)
		}
	}
}

// Only key parameters leave a query, and only where they must.
func TestWithoutKey(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a=b": "a=b", "&&a": "&&a", "key": "key", "keys=1": "keys=1", "key=1": "", "key=": "", "a=1&key=2": "a=1", "key=2&a=1": "a=1", "key=1&key=2;a=%2f": "a=%2f",
		"a=1;key=2;b=3": "a=1;b=3", "%6bey=1&b=": "b=", "a=key=1": "a=key=1", "=key": "=key", "key=a&&b": "&b", "Key=1": "", "access_token=1&token=2&Subscription-Key=3&api%5Fkey=4&pageToken=5": "pageToken=5", "a=%zz&key=%zz": "a=%zz",
	} {
		if got := withoutKey(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
