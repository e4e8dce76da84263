package proxy

import (
	"fmt"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// An error that goes to the client as it came does not take a key along: one that
// quotes a key of the configuration's is told in our words, with its status.
func TestAnErrorThatQuotesAKeyIsNotPassedOn(t *testing.T) {
	const key = "sk-upstream-secret-1234567890"
	for name, cfg := range map[string]string{
		"pool":  "pool: {}\nupstream: [{id: a, base_url: %q, api_key: " + key + "}]",
		"chain": "rules: [{match: {status: 400}, action: passthrough}, {match: {status: 302}, action: passthrough}]\nvirtual_models: {vm: [{base_url: %q, api_key: " + key + ", model: m1}]}",
	} {
		for told, c := range map[string]struct {
			status, want int
			body, header string
			shown        bool
		}{
			"in the body":   {400, 400, `{"error":{"message":"bad key ` + key + `"}}`, "x", false},
			"in the head":   {400, 400, `{"error":{"message":"bad key"}}`, key, false},
			"in a redirect": {302, 502, "", "https://elsewhere.example/?key=" + key, false},
			"not at all":    {400, 400, `{"error":{"message":"bad key sk-up***7890"}}`, "x", true},
		} {
			u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				w.JSON(c.status, []byte(c.body), "X-Told", c.header, "Location", c.header)
			})
			r := newRig(t, fmt.Sprintf(cfg, u.URL()))
			got := r.post("/v1/chat/completions", `{"model":"vm"}`)
			if got.Status != c.want || strings.Contains(string(got.Head)+string(got.Body)+r.log.String(), key) || (string(got.Body) == c.body) != c.shown {
				t.Errorf("%s, %s: %s%s", name, told, got.Head, got.Body)
			}
			if !c.shown && !strings.Contains(string(got.Body), "told in other words") {
				t.Errorf("%s, %s: %s", name, told, got.Body)
			}
		}
	}
}

// No head and no trailer of any answer quotes a key, and no error far behind its beginning.
func TestNoHeadOfAnAnswerQuotesAKey(t *testing.T) {
	const key = "sk-upstream-secret-1234567890"
	large := `{"error":{"message":"` + strings.Repeat("x", 1<<20) + key + `"}}`
	for told, c := range map[string]struct {
		status int
		body   string
		whole  bool
	}{
		"an answer":             {200, okChat, true},
		"an answer of no body":  {204, "", true},
		"an error":              {400, `{"error":{"message":"no"}}`, true},
		"an error that is long": {400, large, false},
	} {
		u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			header := []string{"Content-Type", "application/json", "X-Other", "as it came", "Trailer", "X-Late, X-Sum"}
			if c.status != 400 {
				header = append(header, "X-Echo", "Bearer "+key, "Etag", `"`+key+`"`)
			}
			if c.status == 204 {
				w.Raw([]byte("HTTP/1.1 204 No Content\r\nX-Other: as it came\r\nX-Echo: " + key + "\r\n\r\n"))
				return
			}
			w.Head(c.status, drill.Chunked, header...)
			w.Chunk([]byte(c.body))
			w.End("X-Late", "key="+key, "X-Sum", "abc")
		})
		r := newRig(t, fmt.Sprintf("rules: [{match: {status: 400}, action: passthrough}]\nvirtual_models: {vm: [{base_url: %q, api_key: "+key+", model: m1}]}", u.URL()))
		got := r.post("/v1/chat/completions", `{"model":"vm"}`)
		if got.Status != c.status || strings.Contains(fmt.Sprintf("%s%s%v%s", got.Head, got.Body, got.Trailer, r.log), key) || (string(got.Body) == c.body) != c.whole {
			t.Errorf("%s: %s%.300s%v", told, got.Head, got.Body, got.Trailer)
		}
		if c.whole && got.Get("X-Other") != "as it came" || c.whole && c.body != "" && !strings.Contains(fmt.Sprint(got.Trailer), "abc") {
			t.Errorf("%s: more is missing: %s%v", told, got.Head, got.Trailer)
		}
		if !c.whole && !strings.Contains(string(got.Body), "quotes a key") {
			t.Errorf("%s: %.300s", told, got.Body)
		}
	}
}

// Nor a credential that stands in a header of its own, in any of its spellings; what only
// comes from the environment may be a word that every answer holds.
func TestNoHeadQuotesACredentialInAHeader(t *testing.T) {
	t.Setenv("REWORDED_AUTH", "Bearer sk-upstream-secret-1234567890")
	t.Setenv("REWORDED_PROJECT", "proj_1234567890")
	u := play(t, func(w *drill.Wire, r drill.Request, _ int) {
		header := []string{"Openai-Project", "proj_1234567890", "X-Echo", r.Get("Authorization")}
		if _, bare, ok := strings.Cut(r.Get("Authorization"), " "); ok {
			header = append(header, "X-Bare", bare)
		}
		w.JSON(200, []byte(okChat), header...)
	})
	address := strings.TrimPrefix(u.URL(), "http://")
	for name, candidate := range map[string]string{
		"a header": "{base_url: 'http://" + address + "', header_env: {authorization: REWORDED_AUTH, openai-project: REWORDED_PROJECT}, auth_style: none, model: m1}",
		"a user":   "{base_url: 'http://user:password-123@" + address + "', auth_style: none, model: m1}",
		"a key":    "{base_url: 'http://" + address + "', api_key: sk-upstream-secret-1234567890, model: m1}",
	} {
		r := newRig(t, "virtual_models: {vm: ["+candidate+"]}")
		got := r.post("/v1/chat/completions", `{"model":"vm"}`)
		if got.Status != 200 || got.Get("X-Echo") != "" || got.Get("X-Bare") != "" || got.Get("Openai-Project") != "proj_1234567890" {
			t.Errorf("%s: %d %s", name, got.Status, got.Head)
		}
	}
}
