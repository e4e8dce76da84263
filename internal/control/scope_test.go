package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/health"
	"understudy/internal/proxy"
)

// A freeze of a host shows at every candidate there, and a person lifts it for all.
func TestAHostsFreezeIsEveryCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", `
rules: [{match: {status: network}, action: freeze, scope: host}]
virtual_models:
  auto:
    - {name: a, base_url: "https://h.example.com/v1", model: m, api_key: sk-a}
    - {name: b, base_url: "https://h.example.com/v1", model: m, api_key: sk-b}
    - {name: c, base_url: "https://other.example.com", model: m, api_key: sk-a}
`)
		_, wider := proxy.Keys(r.candidate("auto", 1))
		freeze := func() {
			r.handler.Board().Freeze(wider[1], health.Freeze{Length: time.Minute, By: health.Rule, Reason: "its host: refused"}, time.Now())
		}
		states := func() string {
			var out []string
			for _, c := range r.View().Models[0].Candidates {
				out = append(out, c.State)
			}
			return strings.Join(out, " ")
		}
		freeze()
		if got := states(); got != "frozen frozen ready" {
			t.Errorf("states %s", got)
		}
		if v := r.View(); len(v.Freezes) != 2 || v.Freezes[1].Candidate != "b" || v.Freezes[1].Reason != "its host: refused" || v.Freezes[1].SecondsLeft != 60 {
			t.Errorf("freezes %+v", v.Freezes)
		}
		if got := r.View().Rules[0].Scope; got != "host" {
			t.Errorf("the rule's scope is %q", got)
		}
		if out := r.run("rule ls"); !strings.Contains(out, "freeze, hint or 300 s; scope host") {
			t.Error(out)
		}
		if out := r.run("freeze rm auto 2"); !strings.Contains(out, "2 b") || !strings.Contains(out, "the others that share its key or host") {
			t.Error(out)
		}
		if got := states(); got != "ready ready ready" {
			t.Errorf("states %s", got)
		}
		freeze()
		if out := r.run("freeze clear auto"); !strings.Contains(out, "lifted 2 freeze(s)") {
			t.Error(out)
		}
		freeze()
		if out := r.run("freeze clear"); !strings.Contains(out, "lifted 1 freeze(s)") {
			t.Error(out)
		}
		if got := states(); got != "ready ready ready" {
			t.Errorf("states %s", got)
		}
	})
}
