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
