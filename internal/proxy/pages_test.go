package proxy

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
)

// GET /healthz says what there is, whatever state the upstreams are in, and never
// calls one.
func TestHealthz(t *testing.T) {
	u := play(t, refusal(503, `{}`))
	r := newRig(t, over("rules: [{match: {status: 503}, action: freeze, freeze_seconds: 60}]", u.URL()))
	health := func() map[string]any {
		t.Helper()
		got := r.get("/healthz?x=1")
		var page map[string]any
		if err := json.Unmarshal(got.Body, &page); err != nil || got.Status != 200 || got.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return page
	}
	want := map[string]any{"status": "ok", "virtual_models": 1.0, "frozen_candidates": 0.0, "total_requests": 0.0, "total_exhausted": 0.0}
	if got := health(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("page %v, want %v", got, want)
	}
	for range 2 {
		r.post("/v1/chat/completions", `{"model":"vm"}`)
		r.settle()
	}
	want["frozen_candidates"], want["total_requests"], want["total_exhausted"] = 1.0, 2.0, 2.0
	for range 100 { // Case 57
		if got := health(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("page %v, want %v", got, want)
		}
	}
	if u.Count() != 1 {
		t.Errorf("%d calls", u.Count())
	}
	if got := r.send(drill.Query{Method: "HEAD", Path: "/healthz"}); got.Status != 200 || len(got.Body) != 0 {
		t.Errorf("HEAD gave %d %s", got.Status, got.Body)
	}
	if got := r.post("/healthz", `{"model":"vm"}`); got.Status != 502 {
		t.Errorf("POST gave %d: it is no page of ours", got.Status)
	}
}

// A freeze whose time is over counts no more.
func TestHealthzCountsRunningFreezesOnly(t *testing.T) {
	r := newRig(t, over("", "http://127.0.0.1:1"))
	id := r.handler.Snapshot().Routes.Chains()[0].Tiers[0][0].ID
	r.handler.Board().Freeze(Key(id), health.Freeze{Length: time.Nanosecond, By: health.Rule, Reason: "x"}, time.Now().Add(-time.Minute))
	if n := r.handler.Frozen(); n != 0 {
		t.Errorf("%d frozen", n)
	}
}

// Case 55: the lists hold every name that a client may send, once, in the shape of
// whoever asks, and call nobody.
func TestModelLists(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models:\n  vm: &c [{base_url: %q, api_key: sk-upstream-secret-1, model: m1}]\n  org/m:8b: *c\n%s", u.URL(), pool("", u.URL())))
	for _, c := range []struct {
		path   string
		header []string
		want   string
	}{
		{"/v1/models", nil, `{"object":"list","data":[{"id":"vm","object":"model","created":0,"owned_by":"understudy"},{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}]}`},
		{"/v1/models/?limit=1", nil, `{"object":"list","data":[{"id":"vm","object":"model","created":0,"owned_by":"understudy"},{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}]}`},
		{"//v1/models", nil, `{"object":"list","data":[{"id":"vm","object":"model","created":0,"owned_by":"understudy"},{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}]}`},
		{"/v1/models?client_version=0.171.0", nil, `{"object":"list","data":[{"id":"vm","object":"model","created":0,"owned_by":"understudy"},{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}],"models":[]}`},
		{"/v1/models/vm", nil, `{"id":"vm","object":"model","created":0,"owned_by":"understudy"}`},
		{"/v1/models/org/m:8b", nil, `{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}`},
		{"/v1/models/org%2Fm%3A8b", nil, `{"id":"org/m:8b","object":"model","created":0,"owned_by":"understudy"}`},
		{"/v1/models?limit=20", []string{"anthropic-version", "2023-06-01"}, `{"data":[{"type":"model","id":"vm","display_name":"vm","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"org/m:8b","display_name":"org/m:8b","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"vm","last_id":"org/m:8b"}`},
		{"/v1/models/vm", []string{"anthropic-version", "2023-06-01"}, `{"type":"model","id":"vm","display_name":"vm","created_at":"1970-01-01T00:00:00Z"}`},
		{"/v1beta/models?pageSize=50", nil, `{"models":[{"name":"models/vm","baseModelId":"vm","version":"1","displayName":"vm","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]},{"name":"models/org/m:8b","baseModelId":"org/m:8b","version":"1","displayName":"org/m:8b","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}]}`},
		{"/v1beta/models/vm", nil, `{"name":"models/vm","baseModelId":"vm","version":"1","displayName":"vm","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`},
		{"/api/tags", nil, `{"models":[{"name":"vm","model":"vm","modified_at":"1970-01-01T00:00:00Z","size":0,"digest":"","details":{"parent_model":"","format":"","family":"","families":[],"parameter_size":"","quantization_level":""}},{"name":"org/m:8b","model":"org/m:8b","modified_at":"1970-01-01T00:00:00Z","size":0,"digest":"","details":{"parent_model":"","format":"","family":"","families":[],"parameter_size":"","quantization_level":""}}]}`},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := r.send(drill.Query{Method: method, Path: c.path, Header: c.header})
			if got.Status != 200 || got.Get("Content-Type") != "application/json" || method == "GET" && !sameJSON(t, got.Body, c.want) {
				t.Errorf("%s %s: %d %s, want %s", method, c.path, got.Status, got.Body, c.want)
			}
			if got.Get("X-Understudy-Request-Id") == "" || got.Get("X-Understudy-Candidate") != "" {
				t.Errorf("%s %s: head %s", method, c.path, got.Head)
			}
		}
	}
	uncalled(t, u)
	// What is no list of ours is proxied.
	for _, q := range []drill.Query{{Method: "POST", Path: "/v1/models", Body: []byte(`{"model":"vm"}`)}, {Path: "/v1/models/gpt-9"}, {Path: "/v2/models"}, {Path: "/api/ps"}, {Method: "DELETE", Path: "/v1/models/vm"}} {
		before := u.Count()
		if got := r.send(q); got.Status != 200 || u.Count() != before+1 {
			t.Errorf("%s %s: %d, %d calls", q.Method, q.Path, got.Status, u.Count()-before)
		}
	}
}

// With a pool and no virtual models the lists are the upstreams' business.
func TestModelListsAreForwardedByAPoolAlone(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("", u.URL()))
	for i, path := range []string{"/v1/models", "/v1/models/gpt-9", "/v1beta/models?pageSize=5", "/api/tags"} {
		got := r.get(path, "Authorization", "Bearer client-own-key")
		if got.Status != 200 || got.Get("X-Understudy-Candidate") != "p1" {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
		if q := u.Requests()[i]; q.Target != path || q.Get("Authorization") != "Bearer client-own-key" {
			t.Errorf("upstream got %s", q.Head)
		}
	}
	if n := len(r.settle()); n != 4 {
		t.Errorf("%d records", n)
	}
}

// sameJSON compares documents, whatever the order of their members.
func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	return json.Unmarshal(got, &a) == nil && fmt.Sprint(a) == fmt.Sprint(b)
}
