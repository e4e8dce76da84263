package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
)

// domains is a chain whose candidates share hosts and keys: a1 and a2 are one key
// with two models, b another key at the same host, c another host.
func domains(rules, more string) string {
	return more + "\nrules: " + rules + `
virtual_models:
  vm:
    - {name: a1, base_url: "http://u1/v1", api_key: sk-upstream-secret-a, model: m1}
    - {name: a2, base_url: "http://u1/v1", api_key: sk-upstream-secret-a, model: m2}
    - {name: b, base_url: "http://u1/v1", api_key: sk-upstream-secret-b, model: m1}
    - {name: c, base_url: "http://u2/v1", api_key: sk-upstream-secret-a, model: m1}
`
}

// byKeyAndModel answers as said for a key (a or b) with a model, and well otherwise.
func byKeyAndModel(how map[string]drill.Script) drill.Script {
	return func(w *drill.Wire, r drill.Request, n int) {
		auth := r.Get("Authorization")
		for model := range map[string]bool{"m1": true, "m2": true} {
			if strings.Contains(string(r.Body), `"`+model+`"`) {
				if script := how[auth[len(auth)-1:]+" "+model]; script != nil {
					script(w, r, n)
					return
				}
			}
		}
		sayPong(w, r, n)
	}
}

// stands are the candidates that are frozen, and for how long.
func (s *scene) stands(names ...string) string {
	var out []string
	for _, name := range names {
		own, wider := Keys(s.candidate(name))
		if standing, f := s.handler.Board().Standing(own, time.Now(), wider...); standing != health.Ready {
			out = append(out, fmt.Sprintf("%s %v %v", name, standing, time.Until(f.Until)))
		}
	}
	return strings.Join(out, ", ")
}

// A host that is down is found out once, not once per key, and tried out once when
// its time has come.
func TestAHostThatIsDownIsFoundOutOnce(t *testing.T) {
	for scope, dials := range map[string]int{"auto": 1, "host": 1, "key": 2, "identity": 3} {
		inBubble(t, scope, func(t *testing.T) {
			s := newScene(t, domains("[{match: {status: network}, action: freeze, freeze_seconds: 30, scope: "+scope+"}]", ""))
			s.play("u2", sayPong)
			s.from(s.hi(), "c")
			equal(t, "dials", s.net.Dials("u1:80"), dials)
			s.from(s.hi(), "c") // and the next request calls nobody there
			equal(t, "dials", s.net.Dials("u1:80"), dials)
			equal(t, "frozen identities", s.handler.Frozen(), 3)
			if scope != "auto" {
				return
			}
			equal(t, "freezes", s.stands("a1", "a2", "b", "c"), "a1 frozen 30s, a2 frozen 30s, b frozen 30s")
			r := s.records()[1]
			for i, name := range []string{"a1", "a2", "b"} {
				if skip := r.Skips[i]; skip.Name != name || skip.Reason != "frozen, 30 s left: its host: network: connection refused" || skip.Left != 30*time.Second {
					t.Errorf("skipped %+v", skip)
				}
			}
			s.till(30 * time.Second)
			s.from(s.hi(), "c") // a1 tried the host out, in vain
			equal(t, "dials", s.net.Dials("u1:80"), 2)
			equal(t, "twice as long", s.stands("a1", "a2", "b"), "a1 frozen 1m0s, a2 frozen 1m0s, b frozen 1m0s")
			s.play("u1", sayPong)
			s.till(90 * time.Second)
			s.from(s.hi(), "a1")
			equal(t, "its success lifts the whole host's freeze", s.stands("a1", "a2", "b", "c"), "")
			s.idle()
		})
	}
}

// scope: auto goes by the evidence: a key's failure is every model's of that key at
// that host, a model's is its own.
func TestEvidenceDecidesHowFarAFreezeReaches(t *testing.T) {
	unauthorized := refusal(401, `{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}`)
	for name, c := range map[string]struct {
		script drill.Script
		want   string
		calls  int // at u1
	}{
		"401":                {unauthorized, "a1 frozen 1m0s, a2 frozen 1m0s", 2},
		"402":                {refusal(402, `{"error":{"message":"Insufficient credits","code":402}}`), "a1 frozen 1m0s, a2 frozen 1m0s", 2},
		"a quota":            {refusal(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), "a1 frozen 1m0s, a2 frozen 1m0s", 2},
		"404 for a model":    {refusal(404, `{"error":{"message":"The model m1 does not exist","code":"model_not_found"}}`), "a1 frozen 1m0s", 2},
		"a rate limit":       {refusal(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`), "a1 frozen 1m0s", 2},
		"an overloaded host": {refusal(503, `{"error":{"message":"overloaded"}}`), "a1 frozen 1m0s", 2},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, domains("[{match: {status: [401, 402, 404, 429, 503]}, action: freeze, freeze_seconds: 60, scope: auto}]", ""))
			s.play("u1", byKeyAndModel(map[string]drill.Script{"a m1": c.script}))
			s.play("u2", sayPong)
			got := s.hi()
			equal(t, "frozen", s.stands("a1", "a2", "b", "c"), c.want)
			want := "a2"
			if strings.Contains(c.want, "a2") {
				want = "b"
			}
			s.from(got, want)
			equal(t, "calls", s.counts("u1"), []int{c.calls})
		})
	}
}

// A pool's upstream without a credential has no key of its own: what the client's
// key fails for stops that upstream, and nobody else at the host.
func TestNoKeyNoKeyWideFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, `
pool: {rules: [{match: {status: 401}, action: freeze, freeze_seconds: 60, scope: key}]}
upstream:
  - {id: one, base_url: "http://u1/a"}
  - {id: two, base_url: "http://u1/b"}
`)
		s.play("u1", drill.Sequence(refusal(401, `{"error":{"message":"no"}}`), sayPong))
		got := s.hi()
		equal(t, "status", got.status, 200)
		equal(t, "calls", s.counts("u1"), []int{2})
		equal(t, "frozen", s.handler.Frozen(), 1)
	})
}

// A failure that says nothing of the host passes its trial on; one that does freezes
// it again. The candidate's own freeze goes by its own.
func TestATrialOfAHostGoesByTheEvidence(t *testing.T) {
	const rules = "[{match: {status: network}, action: freeze, freeze_seconds: 30, scope: auto}]"
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, domains(rules, ""))
		s.play("u2", sayPong)
		s.from(s.hi(), "c")
		s.play("u1", byKeyAndModel(map[string]drill.Script{"a m1": refusal(500, `{}`), "a m2": refusal(500, `{}`)}))
		s.till(30 * time.Second)
		s.from(s.hi(), "b") // a1 and a2 each were the trial, and passed it on
		equal(t, "standing", s.stands("a1", "a2", "b", "c"), "")
		equal(t, "calls", s.counts("u1"), []int{3})
	})
	synctest.Test(t, func(t *testing.T) { // while one request tries it out, others go on
		s := newScene(t, domains(rules, ""))
		s.play("u2", sayPong)
		s.from(s.hi(), "c")
		s.play("u1", after(10*second, 0))
		s.till(30 * time.Second)
		done := make(chan reply)
		go func() { done <- s.hi() }()
		s.till(35 * time.Second)
		s.from(s.hi(), "c")
		equal(t, "calls", s.counts("u1"), []int{1})
		s.from(<-done, "a1")
		equal(t, "standing", s.stands("a1", "a2", "b"), "")
		s.idle()
	})
}

// What is told of an exhausted chain, and what is tried of it, goes by all keys.
func TestExhaustedByAHost(t *testing.T) {
	const rules = "[{match: {status: network}, action: freeze, freeze_seconds: 30, scope: auto}]"
	one := func(more string) string {
		cfg := domains(rules, more)
		return cfg[:strings.Index(cfg, "    - {name: c,")]
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, one(""))
		s.refused(s.hi(), 502)
		s.till(10 * time.Second)
		got := s.hi()
		s.refused(got, 502)
		equal(t, "retry-after", got.header.Get("Retry-After"), "20")
		if n := strings.Count(got.body, "frozen, 20 s left: its host: network: connection refused"); n != 3 {
			t.Errorf("%d lines tell of it: %s", n, got.body)
		}
		if health := s.ask("GET", "/healthz", ""); !strings.Contains(health.body, `"frozen_candidates":3`) {
			t.Errorf("healthz says %s", health.body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, one("server: {when_all_frozen: try_soonest}"))
		s.refused(s.hi(), 502)
		s.freeze("a1", time.Minute, health.Rule) // by itself longer than its host
		s.play("u1", sayPong)
		s.from(s.hi(), "a2")
		equal(t, "standing", s.stands("a1", "a2", "b"), "a1 frozen 1m0s")
	})
}

// What a streak freezes is the candidate, however far the rule's own freeze reaches.
func TestAStreakIsTheCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, domains("[{match: {status: 401}, action: freeze, freeze_seconds: 1, scope: key}]", "server: {auto_hedge_threshold: 2}"))
		s.play("u1", byKeyAndModel(map[string]drill.Script{"a m1": refusal(401, `{}`), "a m2": refusal(500, `{}`)}))
		s.play("u2", sayPong)
		s.from(s.hi(), "b")
		s.till(10 * second)
		s.from(s.hi(), "b")
		if own, _ := s.standing("a1"); own != health.Frozen {
			t.Errorf("a1 stands %v by itself", own)
		}
		equal(t, "streak's freezes", []int64{s.counters("a1").Hedges, s.counters("a2").Hedges}, []int64{1, 0})
		equal(t, "standing", s.stands("a1", "a2"), "a1 frozen 10m0s, a2 frozen 2s")
	})
}

// A host that fails at TLS is down for every key, and so is one whose name nobody
// knows; on real sockets, where errors are the system's own.
func TestAHostThatIsNotReached(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	noTLS := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(noTLS.Close)
	good := play(t, sayPong)
	closed := play(t, sayPong)
	closed.Close()
	for name, url := range map[string]string{
		"an untrusted certificate": untrusted.URL, "no TLS": strings.Replace(noTLS.URL, "http://", "https://", 1), "refused": closed.URL(), "no such name": "http://no-such-host.invalid",
	} {
		r := newRig(t, fmt.Sprintf("rules: [{match: {status: network}, action: freeze, scope: auto}]\nvirtual_models:\n  vm:\n"+
			"    - {name: a, base_url: %q, api_key: sk-a, model: m, proxy: none}\n    - {name: b, base_url: %q, api_key: sk-b, model: m, proxy: none}\n    - {name: c, base_url: %q, api_key: sk-c, model: m}\n", url, url, good.URL()))
		got := r.post(chatPath, chatBody("vm", true))
		if got.Status != 200 || got.Get("X-Understudy-Candidate") != "c" || got.Get("X-Understudy-Attempts") != "2" {
			t.Errorf("%s: %d by %q after %s attempts\n%s", name, got.Status, got.Get("X-Understudy-Candidate"), got.Get("X-Understudy-Attempts"), r.log.last())
		}
		if n := r.handler.Frozen(); n != 2 {
			t.Errorf("%s: %d are frozen", name, n)
		}
	}
}
