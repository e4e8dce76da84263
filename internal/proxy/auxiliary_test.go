package proxy

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// Case 33: a storm of token counts that an upstream does not know leaves it where it
// was: each 404 comes back as it is, the model in it replaced, nobody is frozen, no
// session moves, and they stand apart in the statistics.
func TestTokenCountsDoNotHarmTheUpstream(t *testing.T) {
	for name, missing := range map[string]struct{ kind, body string }{
		"Anthropic's own": {"application/json", `{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}`},
		"FastAPI's":       {"application/json", `{"detail":"Not Found"}`},
		"Go's":            {"text/plain; charset=utf-8", "404 page not found\n"},
		"OpenAI's":        {"application/json", `{"error":{"message":"Invalid URL (POST /v1/messages/count_tokens)","type":"invalid_request_error","param":null,"code":null}}`},
		"nothing":         {"text/plain", ""},
	} {
		t.Run(name, func(t *testing.T) {
			script := func(w *drill.Wire, r drill.Request, n int) {
				if !strings.Contains(r.Target, "count_tokens") {
					page("application/json", okMessage)(w, r, n)
					return
				}
				w.Head(404, drill.Length(len(missing.body)), "Content-Type", missing.kind)
				w.Chunk([]byte(missing.body))
			}
			u1, u2 := play(t, script), play(t, script)
			r := newRig(t, fmt.Sprintf("virtual_models:\n  vm:\n    - any_of:\n      - {name: a, base_url: %q, api_key: sk-upstream-secret-1, model: m}\n      - {name: b, base_url: %q, api_key: sk-upstream-secret-2, model: m}\n", u1.URL(), u2.URL()))
			message := func() string {
				got := r.post("/v1/messages", `{"model":"vm"}`, "x-claude-code-session-id", "s1")
				r.is(got, 200, okMessage)
				return got.Get("X-Understudy-Candidate")
			}
			first := message()
			var wg sync.WaitGroup
			replies := make([]drill.Reply, 40)
			for i := range replies {
				wg.Go(func() {
					replies[i] = r.post("/v1/messages/count_tokens?beta=true", `{ "model" : "vm", "n": 1.0 }`, "x-claude-code-session-id", "s1")
				})
			}
			wg.Wait()
			for _, got := range replies {
				r.is(got, 404, missing.body)
				if got.Get("Content-Type") != missing.kind || got.Get("X-Understudy-Candidate") != first {
					t.Errorf("head %s", got.Head)
				}
			}
			if r.frozen() != 0 {
				t.Error("somebody is frozen")
			}
			if again := message(); again != first {
				t.Errorf("the session went from %s to %s", first, again)
			}
			if n := u1.Count() + u2.Count(); n != 42 || u1.Count() != 0 && u2.Count() != 0 {
				t.Errorf("%d and %d calls", u1.Count(), u2.Count())
			}
			for _, q := range append(u1.Requests(), u2.Requests()...) {
				if strings.Contains(q.Target, "count_tokens") && (q.Target != "/v1/messages/count_tokens?beta=true" || string(q.Body) != `{ "model" : "m", "n": 1.0 }`) {
					t.Errorf("upstream got %s %s", q.Target, q.Body)
				}
			}
			r.settle()
			if n := r.handler.Ledger().Totals(); n.Requests != 2 || n.Ignored != 40 || n.Exhausted != 0 {
				t.Errorf("totals %+v", n)
			}
			if strings.Contains(r.log.String(), "level=WARN") {
				t.Errorf("a warning for an ignored endpoint:\n%s", r.log.last())
			}
		})
	}
}

// Case 33: paths that nobody here knows go through with the model replaced, and what
// the upstream says of them comes back as it is.
func TestUnknownPathsPassThrough(t *testing.T) {
	u := play(t, func(w *drill.Wire, r drill.Request, _ int) {
		if strings.Contains(r.Target, "missing") {
			w.JSON(404, []byte(`{"error":{"message":"Invalid URL","type":"invalid_request_error"}}`))
			return
		}
		w.JSON(200, []byte(`{"path":"`+r.Path()+`"}`), "X-Path", r.Path())
	})
	r := newRig(t, over("server: {default_model: vm}", u.URL()))
	for _, c := range []drill.Query{
		{Path: "/v1/responses/compact", Body: []byte(`{"model":"vm","input":[]}`)}, {Path: "/v1/files"}, {Method: "DELETE", Path: "/v1/files/file-1"}, {Path: "/v1/responses/resp_1/input_items"},
		{Path: "/v1/messages/batches", Body: []byte(`{"requests":[]}`)}, {Path: "/v1/moderations", Body: []byte(`{"model":"vm","input":"x"}`)}, {Path: "/v1/rerank", Body: []byte(`{"model":"vm"}`)},
	} {
		before := u.Count()
		path, _, _ := strings.Cut(c.Path, "?")
		r.is(r.send(c), 200, `{"path":"`+path+`"}`)
		if q := u.Requests()[before]; string(q.Body) != strings.Replace(string(c.Body), `"vm"`, `"m1"`, 1) {
			t.Errorf("%s: upstream got %s", c.Path, q.Body)
		}
	}
	for range 7 {
		r.is(r.post("/v1/missing", `{"model":"vm"}`), 404, `{"error":{"message":"Invalid URL","type":"invalid_request_error"}}`)
	}
	if r.frozen() != 0 {
		t.Error("somebody is frozen")
	}
	for _, rec := range r.settle() {
		if rec.Ending != stats.Success && rec.Ending != stats.PassedThrough {
			t.Errorf("%s was booked as %v", rec.Path, rec.Ending)
		}
	}
}

// An ignored endpoint is compared with the client's path as it came, without its
// query; [] ignores none, and a list replaces the default.
func TestIgnoredEndpointsAreComparedExactly(t *testing.T) {
	u := play(t, refusal(500, `{"error":{"message":"oops"}}`))
	for more, want := range map[string]int64{
		"rules: []": 1,
		"server: {ignored_error_endpoints: []}\nrules: []":                                                                                 0,
		"server: {ignored_error_endpoints: [{method: POST, path: /v1/embeddings}, {method: GET, path: /v1/files}]}\nrules: []":             1,
		"server: {ignored_error_endpoints: [{method: POST, path: /messages/count_tokens}]}\nrules: []":                                     0,
		"server: {ignored_error_endpoints: [{method: POST, path: /v1/messages/count_tokens/}]}\nrules: []":                                 1,
		"server: {ignored_error_endpoints: [{method: PUT, path: /v1/messages/count_tokens}, {method: POST, path: /v1}]}\nrules: []":        0,
		"server: {ignored_error_endpoints: [{method: POST, path: /v1/messages%2Fcount_tokens}]}\nrules: []":                                1,
		"server: {ignored_error_endpoints: [{method: POST, path: /v1/messages/count_tokens}, {method: POST, path: /x}]}\nrules: []":        1,
		"server: {auto_hedge_threshold: 1, ignored_error_endpoints: [{method: POST, path: /v1/messages/count_tokens/}]}\nrules: []":        1,
		"server: {target_mode_max_wait_seconds: 1, ignored_error_endpoints: [{method: POST, path: /v1/messages/count_tokens}]}\nrules: []": 1,
	} {
		r := newRig(t, over(more, u.URL()))
		for _, path := range []string{"/v1/messages/count_tokens?beta=true", "/v1/messages/count_tokens/", "//v1/messages/count_tokens", "/v1/messages%2Fcount_tokens", "/v1/embeddings"} {
			r.fails(r.post(path, `{"model":"vm"}`), 502, "upstream_all_failed")
		}
		r.settle()
		if n := r.handler.Ledger().Totals(); n.Ignored != want || n.Requests != 5-want {
			t.Errorf("%s: totals %+v", more, n)
		}
	}
}
