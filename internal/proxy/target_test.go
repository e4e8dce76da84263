package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// targeted is a scene with target mode on: a round every 5 s, for 20 s.
func targeted(t *testing.T, cfg string) *scene {
	t.Helper()
	s := newScene(t, strings.Replace(cfg, "server: {", "server: {target_mode_round_interval_seconds: 5, target_mode_max_wait_seconds: 20, ", 1))
	s.handler.Target().Set(true)
	return s
}

const patient = "server: {auto_hedge_threshold: 0}\nrules: [{match: {status: 429}, action: freeze, freeze_seconds: 7}, {match: {status: 418}, action: passthrough}]"

var second = time.Second

// Spec section 10: an exhausted chain is walked again from its head, every interval,
// until its time is up.
func TestTargetModeRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, chain(2, patient))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", refusal(500, `{}`))
		got := s.hi()
		s.refused(got, 504)
		equal(t, "took", got.took, 20*second)
		rounds := []time.Duration{0, 5 * second, 10 * second, 15 * second}
		equal(t, "u1 called at", s.when("u1"), rounds)
		equal(t, "u2 called at", s.when("u2"), rounds)
		equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "8")
		synctest.Wait()
		r := s.records()
		if len(r) != 1 || r[0].Ending != stats.Exhausted || len(r[0].Tries) != 8 {
			t.Errorf("booked %+v", r)
		}
		s.idle()
	})
}

// The first answer that comes is the client's, as if there had been no waiting.
func TestTargetModeEndsWithAnAnswer(t *testing.T) {
	for name, cfg := range map[string]string{"a chain": chain(2, patient), "the pool": pooled(2, "cooldown_seconds: 0, max_attempts: 2", patient)} {
		inBubble(t, name, func(t *testing.T) {
			s := targeted(t, cfg)
			s.play("u1", refusal(500, `{}`))
			s.play("u2", troubled(12*second, refusal(500, `{}`)))
			got := s.hi()
			s.from(got, "u2")
			equal(t, "took", got.took, 15*second)
			equal(t, "body", got.body, okSSE)
			equal(t, "calls", s.counts("u1", "u2"), []int{4, 4}) // none twice in a round
			s.idle()
		})
	}
}

// With everything frozen it sleeps: to the soonest thaw, to the moment a person lifts
// a freeze, or to the end; nobody is called meanwhile.
func TestTargetModeSleepsToTheThaw(t *testing.T) {
	for _, c := range []struct {
		name string
		u1   time.Duration // how long u1 is frozen; u2 for an hour
		do   func(s *scene)
		at   []time.Duration // when u1 is called
		took time.Duration
		by   string
	}{
		{"thaws before the interval is over", 3 * second, nil, []time.Duration{3 * second}, 3 * second, "u1"},
		{"thaws after three intervals", 17 * second, nil, []time.Duration{17 * second}, 17 * second, "u1"},
		{"thaws at the end", 20 * second, nil, nil, 20 * second, ""},
		{"thaws too late", time.Hour, nil, nil, 20 * second, ""},
		{"a person lifts the freeze", time.Hour, func(s *scene) { s.till(6500 * time.Millisecond); s.thaw("u1") }, []time.Duration{6500 * time.Millisecond}, 6500 * time.Millisecond, "u1"},
		{"a person lifts the other's", time.Hour, func(s *scene) { s.till(8 * second); s.thaw("u2") }, nil, 8 * second, "u2"},
		{"somebody else's freeze changes nothing", 17 * second, func(s *scene) {
			s.till(4 * second)
			s.freeze("o1", time.Hour, health.Person)
			s.till(9 * second)
			s.thaw("o1")
		}, []time.Duration{17 * second}, 17 * second, "u1"},
		{"a freeze that grows is slept through", 10 * second, func(s *scene) {
			s.till(4 * second)
			s.freeze("u1", 12*second, health.Person)
		}, []time.Duration{16 * second}, 16 * second, "u1"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := targeted(t, chain(2, patient)+"  other:\n    - {name: o1, base_url: \"http://o1\", api_key: sk-o, model: o}\n")
			s.play("u1", sayPong)
			s.play("u2", sayPong)
			s.freeze("u1", c.u1, health.Rule)
			s.freeze("u2", time.Hour, health.Rule)
			waiting := s.later()
			if c.do != nil {
				c.do(s)
			}
			got := <-waiting
			equal(t, "took", got.took, c.took)
			equal(t, "u1 called at", s.when("u1"), c.at)
			if c.by == "" {
				s.refused(got, 504)
			} else {
				s.from(got, c.by)
			}
			s.idle()
		})
	}
}

// A change on the board while not everything is frozen does not put the next round
// off.
func TestTargetModeKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, chain(1, patient)+"  other:\n    - {name: o1, base_url: \"http://o1\", api_key: sk-o, model: o}\n")
		s.play("u1", refusal(500, `{}`))
		waiting := s.later()
		for i := range 18 {
			s.till(time.Duration(i+1) * second)
			s.freeze("o1", time.Duration(100+i)*second, health.Person)
		}
		got := <-waiting
		s.refused(got, 504)
		equal(t, "took", got.took, 20*second)
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 5 * second, 10 * second, 15 * second})
	})
}

// Frozen candidates are skipped in every round: u1 freezes itself for 7 s each time.
func TestTargetModeSkipsTheFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, chain(2, patient))
		s.play("u1", refusal(429, `{}`, "Retry-After", "7"))
		s.play("u2", refusal(500, `{}`))
		s.refused(s.hi(), 504)
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 10 * second})
		equal(t, "u2 called at", s.when("u2"), []time.Duration{0, 5 * second, 10 * second, 15 * second})
	})
}

// The time counts from the first exhaustion, and a round that runs ends first.
func TestTargetModeLetsARoundEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, chain(1, patient))
		s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Pause(8 * second)
			w.JSON(500, []byte(`{}`))
		})
		got := s.hi()
		s.refused(got, 504)
		// Exhausted at 8 s, so its end is at 28 s; the round of 26 s ends at 34 s.
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 13 * second, 26 * second})
		equal(t, "took", got.took, 34*second)
	})
}

// chain_timeout does not count in target mode.
func TestTargetModeIsApartFromTheChainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, chain(1, strings.Replace(patient, "server: {", "server: {chain_timeout: 7, ", 1)))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if n < 3 {
				w.JSON(500, []byte(`{}`))
				return
			}
			w.Pause(9 * second)
			sayPong(w, r, n)
		})
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 19*second)
	})
}

// Each timeout action, in each dialect's words.
func TestTargetModeTimeoutActions(t *testing.T) {
	for _, c := range []struct {
		action string
		status int
		kind   string
	}{
		{"return_504", 504, "target_mode_gateway_timeout"},
		{"return_429", 429, "target_mode_all_unavailable"},
		{"return_502", 502, "target_mode_all_unavailable"},
	} {
		for _, path := range dialectPaths {
			inBubble(t, c.action+" "+path, func(t *testing.T) {
				s := targeted(t, chain(1, strings.Replace(patient, "server: {", "server: {target_mode_timeout_action: "+c.action+", ", 1)))
				s.play("u1", sayPong)
				s.freeze("u1", time.Minute, health.Rule)
				got := s.ask("POST", path, requestFor(path, true))
				s.refused(got, c.status)
				equal(t, "took", got.took, 20*second)
				equal(t, "retry-after", got.header.Get("Retry-After"), "40")
				if !strings.Contains(got.body, fmt.Sprintf(`"type":%q`, c.kind)) || !strings.Contains(got.body, `"attempts":["u1 (m1): frozen, 40 s left`) {
					t.Errorf("body %s", got.body)
				}
				synctest.Wait()
				if r := s.records()[0]; r.Ending != stats.Exhausted || r.Status != c.status {
					t.Errorf("booked %v with %d", r.Ending, r.Status)
				}
			})
		}
	}
	inBubble(t, "drop_connection", func(t *testing.T) {
		s := targeted(t, chain(1, strings.Replace(patient, "server: {", "server: {target_mode_timeout_action: drop_connection, ", 1)))
		s.play("u1", refusal(500, `{}`))
		got := s.hi()
		if got.err == nil || got.status != 0 {
			t.Errorf("client got %d %q, want its connection dropped", got.status, got.body)
		}
		equal(t, "took", got.took, 20*second)
		synctest.Wait()
		if r := s.records()[0]; r.Ending != stats.Exhausted || r.Status != 0 {
			t.Errorf("booked %v with %d", r.Ending, r.Status)
		}
		s.idle()
	})
}

// A client that leaves ends it: nobody is called any more.
func TestTargetModeEndsWithTheClient(t *testing.T) {
	for name, frozen := range map[string]bool{"between rounds": false, "asleep": true} {
		inBubble(t, name, func(t *testing.T) {
			s := targeted(t, chain(1, patient))
			s.play("u1", refusal(500, `{}`))
			if frozen {
				s.freeze("u1", 15*second, health.Rule)
			}
			leave := s.leaving(chatBody("vm", true))
			s.till(7 * second)
			leave()
			synctest.Wait()
			s.idle()
			before := s.cast["u1"].Count()
			s.till(time.Minute)
			equal(t, "calls", s.cast["u1"].Count(), before)
			if r := s.records(); len(r) != 1 || r[0].Ending != stats.Cancelled || r[0].End != 7*second {
				t.Errorf("booked %+v", r)
			}
		})
	}
}

// Switched off while requests run: those that wait end at once, with the exhausted
// answer; a round that runs ends first.
func TestTargetModeSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		freeze time.Duration
		pause  time.Duration // that u1 takes to fail
		off    time.Duration
		took   time.Duration
	}{
		{"between rounds", 0, 0, 7 * second, 7 * second},
		{"asleep", time.Hour, 0, 7 * second, 7 * second},
		{"within a round", 0, 2 * second, 8 * second, 9 * second},
		{"within the first round", 0, 2 * second, second, 2 * second},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := targeted(t, chain(1, patient))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Pause(c.pause)
				w.JSON(500, []byte(`{}`))
			})
			if c.freeze > 0 {
				s.freeze("u1", c.freeze, health.Rule)
			}
			waiting := s.later()
			s.till(c.off)
			equal(t, "was on", s.handler.Target().Set(false), true)
			got := <-waiting
			s.refused(got, 502)
			equal(t, "took", got.took, c.took)
			if !strings.Contains(got.body, `"type":"upstream_all_failed"`) {
				t.Errorf("body %s", got.body)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // off and on again starts anew for those that come after
		s := targeted(t, chain(1, patient))
		s.play("u1", refusal(500, `{}`))
		equal(t, "was on", s.handler.Target().Set(true), true)
		s.handler.Target().Set(false)
		equal(t, "was on", s.handler.Target().Set(false), false)
		s.refused(s.hi(), 502)
		s.handler.Target().Set(true)
		s.refused(s.hi(), 504)
	})
}

// What ends a request at once does so in target mode too, in any round: passthrough,
// and a mistake of the client's that every called candidate refused.
func TestTargetModeIsNotForWhatNobodyCures(t *testing.T) {
	for name, c := range map[string]struct {
		second drill.Script
		status int
	}{
		"passthrough":         {refusal(418, `{"error":"teapot"}`), 418},
		"the client's fault":  {refusal(400, contextTooLong), 400},
		"affinity, by a rule": {refusal(418, `{"error":{"code":"invalid_encrypted_content"}}`), 418},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := targeted(t, chain(1, patient))
			s.play("u1", drill.Sequence(refusal(500, `{}`), c.second))
			got := s.hi()
			equal(t, "status", got.status, c.status)
			equal(t, "took", got.took, 5*second)
		})
		inBubble(t, name+", in the first round", func(t *testing.T) {
			s := targeted(t, chain(1, patient))
			s.play("u1", c.second)
			got := s.hi()
			equal(t, "status", got.status, c.status)
			equal(t, "took", got.took, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) { // a refusal of an earlier round does not answer for a later one
		s := targeted(t, chain(2, patient))
		s.play("u1", drill.Sequence(refusal(400, contextTooLong), refusal(500, `{}`)))
		s.play("u2", refusal(500, `{}`))
		s.refused(s.hi(), 504)
	})
}

// A chain of which nobody can ever be called is not walked again and again.
func TestTargetModeWithNobodyToCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, patient+"\nvirtual_models:\n  vm:\n    - {name: u1, base_url: \"http://u1\", api_key: sk-1, model: m, enabled: false}\n    - {name: u2, base_url: \"http://u2\", api_key_env: UNDERSTUDY_TEST_UNSET, model: m}\n")
		got := s.hi()
		s.refused(got, 504)
		equal(t, "took", got.took, 20*second)
	})
}
