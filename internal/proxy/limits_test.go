package proxy

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
)

// limited is a chain u1, u2 whose first candidate has limits.
func limited(limits, more string) string {
	return strings.Replace(chain(2, more), "model: m1}", "model: m1, "+limits+"}", 1)
}

// aside sends a request on a goroutine of its own.
func (s *scene) aside(headers ...string) <-chan reply {
	got := make(chan reply, 1)
	go func() { got <- s.hi(headers...) }()
	synctest.Wait()
	return got
}

// A candidate at a limit of its own is passed over, with the reason, until the limit
// ends; nobody is frozen for it, and nothing counts against it.
func TestACandidatesLimits(t *testing.T) {
	usage := `data: {"choices":[],"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}` + "\n\n"
	spender := page(sseType, pong+stop+usage+done)
	for name, c := range map[string]struct {
		limits, reason string
		free           time.Duration // when u1 may be asked again
	}{
		"requests a minute": {"rpm: 2", "at its limit of 2 requests a minute (rpm)", 60 * time.Second},
		"tokens a minute":   {"tpm: 150", "at its limit of 150 tokens a minute (tpm)", 60 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, limited(c.limits, ""))
			s.play("u1", spender)
			s.play("u2", sayPong)
			s.from(s.hi(), "u1")
			s.till(10 * time.Second)
			s.from(s.hi(), "u1")
			s.till(20 * time.Second)
			s.from(s.hi(), "u2")
			if skips := s.records()[2].Skips; len(skips) != 1 || skips[0].Name != "u1" || skips[0].Reason != c.reason || skips[0].Left != 0 {
				t.Errorf("passed over for %+v", skips)
			}
			s.till(c.free - time.Second)
			s.from(s.hi(), "u2")
			s.till(c.free + time.Millisecond)
			s.from(s.hi(), "u1")
			s.isFrozen("u1", 0)
			if n := s.counters("u1"); n.Streak != 0 || n.LastError != "" {
				t.Errorf("counters %+v", n)
			}
			s.idle()
		})
	}
	inBubble(t, "requests at once", func(t *testing.T) {
		s := newScene(t, limited("max_parallel: 2", ""))
		s.play("u1", after(5*time.Second, 5*time.Second))
		s.play("u2", sayPong)
		one, two := s.aside(), s.aside()
		s.from(s.hi(), "u2")
		s.till(9 * time.Second) // released, and not over
		s.from(s.hi(), "u2")
		s.till(11 * time.Second)
		s.from(<-one, "u1")
		s.from(<-two, "u1")
		s.from(s.hi(), "u1")
		s.idle()
	})
	inBubble(t, "retries count", func(t *testing.T) {
		s := newScene(t, limited("rpm: 2", ""))
		s.play("u1", refusal(503, "{}"))
		s.play("u2", sayPong)
		s.from(s.hi(), "u2")
		equal(t, "calls", s.counts("u1", "u2"), []int{2, 1})
	})
}

// Limits are the identity's: every virtual model that has it shares them, and a
// reload forgets nothing.
func TestLimitsOutliveAReload(t *testing.T) {
	inBubble(t, "reload", func(t *testing.T) {
		cfg := limited("rpm: 1", "")
		s := newScene(t, cfg)
		s.play("u1", sayPong)
		s.play("u2", sayPong)
		s.from(s.hi(), "u1")
		s.handler.Swap(compile(t, strings.ReplaceAll(cfg, "vm:", "other:")))
		s.from(s.chat("other"), "u2")
		s.handler.Swap(compile(t, strings.Replace(cfg, "rpm: 1", "rpm: 2", 1)))
		s.from(s.hi(), "u1")
		s.from(s.hi(), "u2")
	})
}

// Where limits of ours stand before every candidate the answer is 429, with the time
// at which the first of them ends; where one was called or is frozen it is not.
func TestAllAtTheirLimits(t *testing.T) {
	for _, path := range []string{chatPath, messagesPath, geminiPath, ollamaPath} {
		inBubble(t, path, func(t *testing.T) {
			s := newScene(t, strings.ReplaceAll(chain(2, ""), "model: m", "rpm: 1, model: m"))
			s.play("u1", drill.Healthy(drill.Answer{}))
			s.play("u2", drill.Healthy(drill.Answer{}))
			ask := func() reply { return s.ask("POST", path, requestFor(path, true)) }
			s.from(ask(), "u1")
			s.till(5 * time.Second)
			s.from(ask(), "u2")
			s.till(20 * time.Second)
			got := ask()
			s.refused(got, 429)
			if got.header.Get("Retry-After") != "40" || !strings.Contains(got.body, "u1 (m1): at its limit of 1 requests a minute (rpm)") || !strings.Contains(got.body, "upstream_all_failed") {
				t.Errorf("Retry-After %q: %s", got.header.Get("Retry-After"), got.body)
			}
			equal(t, "calls", s.counts("u1", "u2"), []int{1, 1})
			s.freeze("u2", 30*time.Second, 0)
			s.refused(ask(), 502)
			s.idle()
		})
	}
	inBubble(t, "the other one fails", func(t *testing.T) {
		s := newScene(t, limited("rpm: 1", "rules: []"))
		s.play("u1", sayPong)
		s.play("u2", refusal(500, "{}"))
		s.from(s.hi(), "u1")
		s.refused(s.hi(), 502)
	})
	inBubble(t, "the pool", func(t *testing.T) {
		s := newScene(t, "pool: {}\nupstream: [{id: u1, base_url: \"http://u1\", max_parallel: 1}]\n")
		s.play("u1", after(5*time.Second, 0))
		one := s.aside()
		got := s.hi()
		s.refused(got, 429)
		equal(t, "Retry-After", got.header.Get("Retry-After"), "1")
		s.from(<-one, "u1")
	})
}

// A client over a limit of its key gets 429 in its dialect, with the time at which to
// come back; nobody is called, and other clients do not notice.
func TestAClientsLimits(t *testing.T) {
	clients := func(limits string) string {
		return chain(1, "clients:\n  - {name: me, key: client-key-me-0123456789, "+limits+"}\n  - {name: you, key: client-key-you-0123456789}")
	}
	me, you := []string{"X-Api-Key", "client-key-me-0123456789"}, []string{"X-Api-Key", "client-key-you-0123456789"}
	usage := `data: {"choices":[],"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}` + "\n\n"
	for limits, reason := range map[string]string{"rpm: 1": "1 requests a minute (rpm)", "tpm: 100": "100 tokens a minute (tpm)"} {
		inBubble(t, limits, func(t *testing.T) {
			s := newScene(t, clients(limits))
			s.play("u1", page(sseType, pong+stop+usage+done))
			s.from(s.hi(me...), "u1")
			s.till(15 * time.Second)
			for path, kind := range map[string]string{chatPath: `"type":"rate_limit_error"`, messagesPath: `"type":"rate_limit_error"`, geminiPath: `"status":"RESOURCE_EXHAUSTED"`, ollamaPath: `"error":"this client key`} {
				got := s.ask("POST", path, requestFor(path, true), me...)
				s.refused(got, 429)
				if got.header.Get("Retry-After") != "45" || !strings.Contains(got.body, kind) || !strings.Contains(got.body, reason) {
					t.Errorf("%s: Retry-After %q: %s", path, got.header.Get("Retry-After"), got.body)
				}
			}
			s.from(s.hi(you...), "u1")
			s.till(60*time.Second + time.Millisecond)
			s.from(s.hi(me...), "u1")
			equal(t, "calls", s.counts("u1"), []int{3})
			if n := s.handler.Ledger().Totals(); n.Refused != 4 || n.InFlight != 0 {
				t.Errorf("totals %+v", n)
			}
		})
	}
	inBubble(t, "max_parallel", func(t *testing.T) {
		s := newScene(t, clients("max_parallel: 1"))
		s.play("u1", after(5*time.Second, 0))
		one := s.aside(me...)
		s.refused(s.hi(me...), 429)
		other := s.aside(you...)
		s.from(<-one, "u1")
		s.from(<-other, "u1")
		leave := s.leaving(chatBody("vm", true), me...)
		synctest.Wait()
		s.refused(s.hi(me...), 429)
		leave()
		synctest.Wait()
		s.from(s.hi(me...), "u1")
		s.idle()
	})
	inBubble(t, "pages and refusals do not count", func(t *testing.T) {
		s := newScene(t, clients("rpm: 1"))
		s.play("u1", sayPong)
		for range 3 {
			if got := s.ask("GET", "/v1/models", "", me...); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
			s.refused(s.chat("nobody", me...), 404)
		}
		s.from(s.hi(me...), "u1")
	})
}
