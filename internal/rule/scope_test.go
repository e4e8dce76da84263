package rule

import (
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/probe"
	"understudy/internal/wire"
)

// scope: auto lets the evidence decide; the other words hold whatever failed.
func TestHowFarAFreezeReaches(t *testing.T) {
	status := func(code int, fault wire.Fault) *probe.Failure {
		return &probe.Failure{Kind: probe.Status, Status: code, Fault: fault}
	}
	for name, c := range map[string]struct {
		failure *probe.Failure
		auto    Scope
	}{
		"no connection":             {&probe.Failure{Kind: probe.Network, Phase: probe.Dial, Fault: wire.FaultServer, Unreached: true}, Host},
		"no connection in time":     {&probe.Failure{Kind: probe.Timeout, Phase: probe.Dial, Fault: wire.FaultServer, Unreached: true}, Host},
		"a reset":                   {&probe.Failure{Kind: probe.Network, Phase: probe.Header, Fault: wire.FaultServer}, Identity},
		"401":                       {status(401, wire.FaultCredential), Key},
		"402":                       {status(402, wire.FaultQuota), Key},
		"403, perhaps of one model": {status(403, wire.FaultCredential), Identity},
		"429 for a quota":           {status(429, wire.FaultQuota), Key},
		"429 for a rate":            {status(429, wire.FaultRate), Identity},
		"400 for a key":             {status(400, wire.FaultCredential), Key}, // Gemini's API_KEY_INVALID
		"404 for a model":           {status(404, wire.FaultModel), Identity},
		"503":                       {status(503, wire.FaultCapacity), Identity},
		"silence":                   {&probe.Failure{Kind: probe.Stalled, Fault: wire.FaultServer}, Identity},
		"a quota inside a 200":      {&probe.Failure{Kind: probe.BadStream, Status: 200, Embedded: 429, Fault: wire.FaultQuota}, Key},
		"401 inside a 200":          {&probe.Failure{Kind: probe.BadStream, Status: 200, Embedded: 401, Fault: wire.FaultCredential}, Key},
	} {
		for word, want := range map[string]Scope{"": Identity, "identity": Identity, "key": Key, "host": Host, "auto": c.auto} {
			s := New(nil, []config.Rule{{Name: "r", Action: "freeze", Freeze: time.Minute, Scope: word}})
			if d := s.Decide(Case{Failure: c.failure, Attempts: 1}, time.Hour, 0); d.Scope != want || d.Freeze != time.Minute {
				t.Errorf("%s, scope %q: %v for %v, want %v", name, word, d.Scope, d.Freeze, want)
			}
		}
		if got := Evidence(Case{Failure: c.failure}); got != c.auto {
			t.Errorf("%s: evidence %v", name, got)
		}
	}
}

func TestOnlyFreezeHasAScope(t *testing.T) {
	f := &probe.Failure{Kind: probe.Status, Status: 401, Fault: wire.FaultCredential, RetryAfter: time.Second, HasRetryAfter: true}
	for _, action := range []string{"retry", "next", "passthrough"} {
		s := New(nil, []config.Rule{{Action: action, Scope: "auto", MaxAttempts: 3, MaxWait: time.Minute}})
		if d := s.Decide(Case{Failure: f, Attempts: 1}, time.Hour, 0); d.Scope != Identity {
			t.Errorf("%s: %v", action, d.Scope)
		}
	}
	pool := NewPool(&config.Pool{RetryStatuses: []int{401}, Cooldown: time.Minute})
	if d := pool.Decide(Case{Failure: f, Attempts: 1}, time.Hour, 0); d.Scope != Identity || d.Freeze == 0 {
		t.Errorf("the pool's table: %+v", d)
	}
	for word, want := range map[string]string{"identity": "freeze for the answer's hint or 1m0s, then next", "auto": "freeze (scope auto) for the answer's hint or 1m0s, then next"} {
		if got := describeAction(&config.Rule{Action: "freeze", Freeze: time.Minute, Scope: word}); got != want {
			t.Errorf("%s: %q", word, got)
		}
	}
}
