package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// CONNECT, TRACE and targets that are no path are refused; nobody is called.
func TestTargetsThatAreNoPathAreRefused(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	for _, cfg := range []string{over("", u.URL()), pool("", u.URL())} {
		r := newRig(t, cfg)
		for _, q := range []drill.Query{
			{Method: "CONNECT", Path: "api.openai.com:443"},
			{Method: "CONNECT", Path: "/v1/chat/completions"},
			{Method: "TRACE", Path: "/v1/chat/completions"},
			{Method: "POST", Path: "http://api.openai.com/v1/chat/completions", Body: []byte(`{"model":"vm"}`)},
			{Method: "POST", Path: u.URL() + "/v1/chat/completions", Body: []byte(`{"model":"vm"}`)},
			{Method: "GET", Path: "http://localhost/healthz"},
			{Method: "GET", Path: "https://localhost/v1/models"},
			{Method: "OPTIONS", Path: "*"},
		} {
			r.fails(r.send(q), 400, `"code":"bad_request"`)
		}
		for _, rec := range r.settle() {
			if rec.Ending != stats.Refused {
				t.Errorf("%s %s was booked as %v", rec.Method, rec.Path, rec.Ending)
			}
		}
	}
	uncalled(t, u)
}

// Every other method is proxied, known or not, with its body and without.
func TestEveryOtherMethodIsProxied(t *testing.T) {
	u := play(t, page("application/json", `{"ok":true}`))
	r := newRig(t, pool("", u.URL()))
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE", "m-search"} {
		before := u.Count()
		got := r.send(drill.Query{Method: method, Path: "/v1/things/1?x=1", Body: []byte(`{"a": 1}`)})
		if got.Status != 200 || method != "HEAD" && string(got.Body) != `{"ok":true}` || got.Get("Content-Length") != "11" {
			t.Errorf("%s: client got %d %q", method, got.Status, got.Body)
		}
		if q := u.Requests()[before]; q.Method != method || q.Target != "/v1/things/1?x=1" || string(q.Body) != `{"a": 1}` {
			t.Errorf("%s: upstream got %s %s %q", method, q.Method, q.Target, q.Body)
		}
	}
	for _, method := range []string{"GET", "POST", "DELETE"} {
		before := u.Count()
		r.send(drill.Query{Method: method, Path: "/v1/things/1"})
		length := ""
		if method == "POST" {
			length = "0"
		}
		if q := u.Requests()[before]; len(q.Body) != 0 || q.Get("Content-Length") != length || q.Get("Transfer-Encoding") != "" {
			t.Errorf("%s without a body: upstream got %q, Content-Length %q, Transfer-Encoding %q", method, q.Body, q.Get("Content-Length"), q.Get("Transfer-Encoding"))
		}
	}
}

// Case 32: a WebSocket attempt gets 426 at once: no candidate is called, nothing is
// frozen, and HTTP goes on to work.
func TestWebSocketAttemptGets426AtOnce(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	for _, cfg := range []string{over("", u.URL()), pool("", u.URL())} {
		r := newRig(t, cfg)
		for _, header := range [][]string{
			{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
			{"Connection", "keep-alive, upgrade", "Upgrade", "WebSocket", "Authorization", "Bearer client-own-key"},
		} {
			r.fails(r.get("/v1/responses", header...), 426, "WebSocket")
		}
		if r.frozen() != 0 {
			t.Error("somebody is frozen")
		}
		uncalled(t, u)
	}
}

// Another upgrade is dropped, and the request goes on without it.
func TestOtherUpgradesAreDropped(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("", u.URL()))
	r.is(r.post("/v1/chat/completions", `{"model":"vm"}`, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAAP__"), 200, okChat)
	q := only(t, u)
	for _, name := range []string{"Upgrade", "Connection", "HTTP2-Settings"} {
		if v := q.Values(name); len(v) != 0 {
			t.Errorf("upstream got %s: %q", name, v)
		}
	}
}

// A path with a ".." segment is refused in any encoding; what only looks like one
// is not.
func TestClimbingPathsAreRefused(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("", u.URL()))
	for _, path := range []string{
		"/v1/../admin", "/..", "/v1/..", "/v1/%2e%2e/x", "/v1/%2E./x", "/v1/.%2e", "/v1/..%2fx", "/v1%2f..%2Fx", "/v1/%252e%252e/x", "/v1/%25252e%25252e%25252fx",
		`/v1/..\x`, "/v1/..%5cx", "/v1%5c..%5cx", "/v1/%255c../x", "//../x", "/v1/..?a=b", "/v1/%c0%ae%c0%ae/x", "/v1/%25zz/%252e%252e/x", "/v1/..;a=b/x", "/v1/%2e%2e%3bx/y",
	} {
		r.fails(r.post(path, `{"model":"vm"}`), 400, "..")
	}
	uncalled(t, u)
	for _, path := range []string{"/v1/chat/completions?a=../..", "/v1/a..b/completions", "/v1/.../completions", "/v1/..a/completions", "/v1/a../completions", "/./completions", "/v1/%2e/completions", "/v1/..a%2fb"} {
		if got := r.post(path, `{"model":"vm"}`); got.Status != 200 {
			t.Errorf("%s: client got %d %s", path, got.Status, got.Body)
		}
	}
}

// The model is looked for in the JSON body, the form, the path; spaces around it do
// not matter. An unknown one is 404, a missing one 400, each in the caller's dialect
// and with what there is; nobody is called.
func TestUnknownAndMissingModels(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models:\n  vm: &c\n    - {base_url: %q, api_key: sk-upstream-secret-1, model: m1}\n  other/one: *c\n", u.URL()))
	const list = `"available_models":["vm","other/one"]`
	for path, unknown := range map[string][]string{
		"/v1/chat/completions": {`{"error":{`, `"type":"invalid_request_error"`, `"code":"model_not_found"`, "'gpt-9'", list},
		"/v1/responses":        {`{"error":{`, `"type":"invalid_request_error"`, `"code":"model_not_found"`, list},
		"/v1/messages":         {`"type":"error"`, `"type":"not_found_error"`, `"request_id":"req_`, list},
		"/v1/embeddings":       {`{"error":{`, list},
		"/api/chat":            {`"error":"model 'gpt-9'`, list},
		"/anything":            {`{"error":{`, list},
	} {
		r.fails(r.post(path, `{"model":"gpt-9","stream":true}`), 404, unknown...)
		for _, body := range []string{`{"messages":[]}`, `{"model":null}`, `{"model":7}`, `{"model":["vm"]}`, `{"model":"vm","model":{}}`, `{"model":""}`, `[{"model":"vm"}]`, `{"x":{"model":"vm"}}`} {
			r.fails(r.post(path, body), 400, "available_models")
		}
		for _, body := range []string{`{"model":"models/vm"}`, `{"model":"Vm"}`, `{"model":"vm/"}`} {
			r.fails(r.post(path, body), 404, "available_models")
		}
	}
	for _, path := range []string{"/v1beta/models/gpt-9:generateContent", "/v1/models/gpt-9:streamGenerateContent?alt=sse"} {
		r.fails(r.post(path, `{"contents":[]}`), 404, `"status":"NOT_FOUND"`, `"code":404`, list, `"details":[`)
	}
	r.fails(r.post("/openai/deployments/gpt-9/chat/completions?api-version=1", `{"messages":[]}`), 404, list)
	r.fails(r.get("/v1/models/gpt-9"), 404, list)
	r.fails(r.get("/v1/models/gpt-9", "anthropic-version", "2023-06-01"), 404, `"type":"error"`, `"not_found_error"`)
	for path, envelope := range map[string][]string{
		"/v1/chat/completions":              {`{"error":{`, `"type":"invalid_request_error"`},
		"/v1/responses":                     {`{"error":{`, `"type":"invalid_request_error"`},
		"/v1/messages":                      {`"type":"error"`, `"type":"invalid_request_error"`, `"request_id":"req_`},
		"/api/chat":                         {`"error":"`},
		"/anything":                         {`{"error":{`},
		"/v1beta/models/vm:generateContent": {`"status":"INVALID_ARGUMENT"`, `"details":[`},
		"/openai/deployments/vm/chat/completions?api=1": {`{"error":{`},
	} {
		for _, body := range []string{`{"model":"vm"`, `{"model":"vm"} {}`, "\ufeff{\"model\":\"vm\"}", `{"model":"vm",}`, `{'model':'vm'}`, "model=vm"} {
			r.fails(r.post(path, body), 400, envelope...)
		}
	}
	r.fails(r.get("/v1/files"), 400)
	for _, rec := range r.settle() {
		if rec.Ending != stats.Refused || len(rec.Tries) != 0 {
			t.Errorf("%s was booked as %v", rec.Path, rec.Ending)
		}
	}
	uncalled(t, u)
}

// Each place a model may stand in routes by it, and has it replaced there.
func TestModelIsFoundAndReplacedWhereItStands(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models: {vm: [{base_url: %q, api_key: sk-upstream-secret-1, model: real/m:1}], org/vm: [{base_url: %q, api_key: sk-upstream-secret-2, model: m2}]}", u.URL(), u.URL()))
	for _, c := range []struct{ method, path, body, wantPath, wantBody string }{
		{"POST", "/v1/chat/completions", `{"model":" vm "}`, "/v1/chat/completions", `{"model":"real/m:1"}`},
		{"POST", "/v1beta/models/vm:generateContent", `{"contents":[]}`, "/v1beta/models/real%2Fm%3A1:generateContent", `{"contents":[]}`},
		{"POST", "/v1beta/models/v%6D:streamGenerateContent?alt=sse&x=%2f", `{"contents":[]}`, "/v1beta/models/real%2Fm%3A1:streamGenerateContent?alt=sse&x=%2f", `{"contents":[]}`},
		{"POST", "/v1/models/vm:countTokens", `{}`, "/v1/models/real%2Fm%3A1:countTokens", `{}`},
		{"POST", "/v1beta/models/org/vm:generateContent", `{}`, "/v1beta/models/m2:generateContent", `{}`},
		{"POST", "/v1beta/models/org%2Fvm:generateContent", `{}`, "/v1beta/models/m2:generateContent", `{}`},
		{"POST", "/openai/deployments/vm/chat/completions?api-version=2024-06-01", `{"messages":[]}`, "/openai/deployments/real%2Fm%3A1/chat/completions?api-version=2024-06-01", `{"messages":[]}`},
		{"POST", "/openai/deployments/vm/chat/completions", `{"model":"vm"}`, "/openai/deployments/real%2Fm%3A1/chat/completions", `{"model":"real/m:1"}`},
		{"POST", "/v1beta/models/vm:embedContent", `{"model":"models/vm","content":{}}`, "/v1beta/models/real%2Fm%3A1:embedContent", `{"model":"models/real/m:1","content":{}}`},
		{"POST", "/v1beta/models/vm:embedContent", `{"model":"vm"}`, "/v1beta/models/real%2Fm%3A1:embedContent", `{"model":"real/m:1"}`},
		{"POST", "//v1/messages", `{"model":"vm"}`, "/v1/messages", `{"model":"real/m:1"}`},
		{"POST", "/v1/unknown/endpoint", `{"model":"vm"}`, "/v1/unknown/endpoint", `{"model":"real/m:1"}`},
		{"PUT", "/v1/unknown/endpoint", `{"model":"vm"}`, "/v1/unknown/endpoint", `{"model":"real/m:1"}`},
	} {
		before := u.Count()
		got := r.send(drill.Query{Method: c.method, Path: c.path, Body: []byte(c.body)})
		if got.Status != 200 {
			t.Errorf("%s: client got %d %s", c.path, got.Status, got.Body)
			continue
		}
		if q := u.Requests()[before]; q.Target != c.wantPath || string(q.Body) != c.wantBody {
			t.Errorf("%s: upstream got %s %s, want %s %s", c.path, q.Target, q.Body, c.wantPath, c.wantBody)
		}
	}
	// Two models that disagree: the body's goes before the path's, and neither is
	// left standing.
	before := u.Count()
	r.post("/openai/deployments/vm/embeddings", `{"model":"org/vm"}`)
	if q := u.Requests()[before]; q.Target != "/openai/deployments/m2/embeddings" || string(q.Body) != `{"model":"m2"}` {
		t.Errorf("upstream got %s %s", q.Target, q.Body)
	}
}

// Requests that carry no model go to default_model where there is no pool, and what
// they carry is not touched.
func TestDefaultModelServesWhatCarriesNone(t *testing.T) {
	u := play(t, page("application/json", `{"ok":true}`))
	r := newRig(t, over("server: {default_model: vm}", u.URL()))
	for _, c := range [][3]string{
		{"GET", "/v1/files?limit=2", ""}, {"DELETE", "/v1/files/file-1", ""}, {"POST", "/v1/batches", `{"input_file_id":"file-1"}`}, {"POST", "/v1/files", `{"model":null}`},
		{"POST", "/v1/lines", "{\"a\":1}\n{\"a\":2}\n"}, {"PUT", "/v1/blob", "\x00\x01"},
	} {
		before := u.Count()
		q := drill.Query{Method: c[0], Path: c[1], Header: []string{"Content-Type", "application/octet-stream"}}
		want := strings.Replace(c[2], "null", `"m1"`, 1)
		if c[2] != "" {
			q.Body = []byte(c[2])
		}
		r.is(r.send(q), 200, `{"ok":true}`)
		if got := u.Requests()[before]; got.Target != c[1] || string(got.Body) != want || got.Get("Authorization") != "Bearer sk-upstream-secret-1" {
			t.Errorf("upstream got %s %q, want %q", got.Target, got.Body, want)
		}
	}
	if got := r.post("/v1/chat/completions", `{"model":"gpt-9"}`); got.Status != 404 {
		t.Errorf("a model that is none got %d", got.Status)
	}
}

// With a pool beside virtual models, what is no virtual model's goes to the pool,
// unchanged.
func TestPoolTakesWhatNoVirtualModelServes(t *testing.T) {
	u, p := play(t, page("application/json", okChat)), play(t, page("application/json", okChat))
	r := newRig(t, over("server: {default_model: vm}", u.URL())+pool("", p.URL()))
	for _, body := range []string{`{"model":"gpt-9" }`, `{"messages":[]}`, `{"model":7}`} {
		before := p.Count()
		r.is(r.post("/v1/chat/completions", body), 200, okChat)
		if got := p.Requests()[before]; string(got.Body) != body {
			t.Errorf("the pool got %q, want %q", got.Body, body)
		}
	}
	uncalled(t, u)
	r.is(r.post("/v1/chat/completions", `{"model":"vm"}`), 200, okChat)
	only(t, u)
}

// A body that cannot be read never reaches where a model is replaced, as an upstream
// might read it more kindly and find another model in it.
func TestUnreadableBodyGoesOnlyWhereNoModelIsReplaced(t *testing.T) {
	const broken = `{"model":"secret-model","messages":[]} trailing`
	u, p := play(t, page("application/json", okChat)), play(t, page("application/json", okChat))
	r := newRig(t, over("server: {default_model: vm}", u.URL()))
	for _, path := range []string{"/v1/chat/completions", "/v1/embeddings", "/openai/deployments/vm/chat/completions", "/v1beta/models/vm:generateContent"} {
		r.fails(r.post(path, broken), 400, "cannot be read")
	}
	r = newRig(t, "pool: {}\nupstream: [{id: a, base_url: \""+u.URL()+"\", model: m1}]")
	r.fails(r.post("/v1/chat/completions", broken), 400)
	uncalled(t, u)
	r = newRig(t, pool("", p.URL()))
	r.is(r.post("/v1/chat/completions", broken), 200, okChat)
	if q := only(t, p); string(q.Body) != broken {
		t.Errorf("the pool got %q", q.Body)
	}
}

// Our own errors are one JSON document with a length, and name the request.
func TestOwnErrorsAreWholeDocuments(t *testing.T) {
	r := newRig(t, over("", "http://127.0.0.1:1"))
	got := r.post("/v1/messages", `{"model":"gpt-9"}`)
	var doc struct {
		Type      string
		RequestID string `json:"request_id"`
		Error     struct{ Type, Message string }
	}
	if err := json.Unmarshal(got.Body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.RequestID == "" || doc.RequestID != got.Get("X-Understudy-Request-Id") || got.Get("X-Understudy-Attempts") != "0" || got.Get("X-Understudy-Candidate") != "" {
		t.Errorf("id %q, headers %s", doc.RequestID, got.Head)
	}
	if got.Get("Content-Length") != fmt.Sprint(len(got.Body)) || len(got.Values("Date")) != 1 {
		t.Errorf("head %s", got.Head)
	}
}
