package proxy

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/health"
	"understudy/internal/stats"
)

// dialectPaths are one path per dialect, and one nobody knows.
var dialectPaths = []string{chatPath, responsesPath, messagesPath, geminiPath, ollamaPath, "/v1/nobody/knows"}

// inDialect is an error of our own as the caller of a path reads it, byte for byte.
// more is what stands beside type, code and message, keyed by what precedes it in
// the order of keys: "attempts" or "available_models", and "virtual_model".
func inDialect(path string, status int, kind, code, message, attempts, model, id string) string {
	switch path {
	case messagesPath:
		return fmt.Sprintf(`{"error":{%s"code":%q,"message":%q,"type":%q%s},"request_id":%q,"type":"error"}`, attempts, code, message, kind, model, id) + "\n"
	case geminiPath:
		word := map[int]string{404: "NOT_FOUND", 401: "UNAUTHENTICATED", 413: "INVALID_ARGUMENT", 502: "UNAVAILABLE", 503: "UNAVAILABLE"}[status]
		return fmt.Sprintf(`{"error":{"code":%d,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",%s"domain":"understudy","reason":%q,"type":%q%s}],"message":%q,"status":%q}}`, status, attempts, code, kind, model, message, word) + "\n"
	case ollamaPath:
		return fmt.Sprintf(`{%s"code":%q,"error":%q,"type":%q%s}`, attempts, code, message, kind, model) + "\n"
	}
	return fmt.Sprintf(`{"error":{%s"code":%q,"message":%q,"param":null,"type":%q%s}}`, attempts, code, message, kind, model) + "\n"
}

// Spec section 7: when nobody is left the client is told in its own dialect, in
// JSON also where it asked for a stream, with one line per candidate in the order of
// the chain: what each came to, and how long those passed over are frozen still.
func TestExhaustedAnswerInEveryDialect(t *testing.T) {
	for _, path := range dialectPaths {
		for _, stream := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("%s stream %v", path, stream), func(t *testing.T) {
				s := newScene(t, chain(6, "")+"    - {name: off, base_url: \"http://off\", api_key_env: UNDERSTUDY_TEST_UNSET, model: m7}\n"+
					"    - {name: out, base_url: \"http://out\", api_key: sk-out, model: m8, enabled: false}\n")
				s.play("u1", refusal(500, `{"error":{"message":"boom \u001b[31m sk-upstream-secret-1"}}`))
				s.freeze("u2", 4200*time.Millisecond+3750*time.Millisecond, health.Rule)
				s.play("u3", refusal(402, `{"error":{"message":"no credit"}}`))
				s.freeze("u4", time.Hour, health.Person)
				s.play("u5", refusal(401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`))
				s.net.Fail("u6:80", errNoHost)
				got := s.ask("POST", path, requestFor(path, stream))
				s.refused(got, 502)
				const took = 3750*time.Millisecond + 1500*time.Millisecond
				equal(t, "took", got.took, took)
				equal(t, "content type", got.header.Get("Content-Type"), "application/json")
				equal(t, "retry-after", got.header.Get("Retry-After"), "3")
				equal(t, "x-should-retry", got.header.Get("X-Should-Retry"), "")
				equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "7")
				attempts := `"attempts":["u1 (m1): 500 Internal Server Error (server): boom \\u001b[31m sk-ups***et-1 (3 attempts)",` +
					`"u2 (m2): frozen, 3 s left: put there by the test",` +
					`"u3 (m3): 402 Payment Required (quota): no credit",` +
					`"u4 (m4): frozen, 3595 s left: put there by the test",` +
					`"u5 (m5): 401 Unauthorized (credential) invalid_api_key: bad key",` +
					`"u6 (m6): network: name not found: u6 (2 attempts)",` +
					`"off (m7): env UNDERSTUDY_TEST_UNSET is not set",` +
					`"out (m8): disabled"],`
				want := inDialect(path, 502, "upstream_all_failed", "upstream_all_failed", "no upstream of virtual model 'vm' gave an answer",
					attempts, `,"virtual_model":"vm"`, got.header.Get("X-Understudy-Request-Id"))
				if got.body != want {
					t.Errorf("body\n%swant\n%s", got.body, want)
				}
				synctest.Wait()
				r := s.records()[0]
				if len(r.Skips) != 4 || r.Skips[0].Left != 7950*time.Millisecond || r.Skips[1].Left != time.Hour || r.Ending != stats.Exhausted {
					t.Errorf("booked %v with skips %+v", r.Ending, r.Skips)
				}
				s.idle()
			})
		}
	}
}

// Case 38 (c): errors of the proxy's own are in the caller's dialect, and JSON even
// for stream requests.
func TestOwnErrorsInEveryDialect(t *testing.T) {
	body := func(path string) string {
		return strings.NewReplacer(`"vm"`, `"nobody"`).Replace(requestFor(path, true))
	}
	for _, path := range dialectPaths {
		for _, c := range []struct {
			name, cfg, path, body string
			status                int
			kind, anthropic, code string
			message               string
			available             bool
		}{
			{"unknown model", chain(1, ""), strings.Replace(path, "/vm:", "/nobody:", 1), body(path), 404, "invalid_request_error", "not_found_error", "model_not_found", "model 'nobody' is no virtual model here", true},
			{"bad client key", chain(1, "clients: [{name: c, key: the-client-key-1}]"), path, requestFor(path, true), 401, "invalid_request_error", "authentication_error", "invalid_api_key", "the client key is missing or wrong", false},
			{"body too big", chain(1, "server: {max_body_bytes: 1024}"), path, requestFor(path, true) + strings.Repeat(" ", 1024), 413, "invalid_request_error", "request_too_large", "request_too_large", "the request body is larger than max_body_bytes (1024)", false},
		} {
			t.Run(c.name+" "+path, func(t *testing.T) {
				r := httptest.NewRequest("POST", c.path, strings.NewReader(c.body))
				r.Host = "127.0.0.1:8787"
				w := handle(t, c.cfg, r)
				more, kind := "", c.kind
				if c.available {
					more = `"available_models":["vm"],`
				}
				if path == messagesPath {
					kind = c.anthropic
				}
				want := inDialect(path, c.status, kind, c.code, c.message, more, "", w.Header().Get("X-Understudy-Request-Id"))
				if w.Code != c.status || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("got %d %s%s, want %d\n%s", w.Code, w.Header().Get("Content-Type"), w.Body, c.status, want)
				}
			})
		}
	}
}

// Case 39 (b), and the words of spec section 7 that hold over it: with everybody
// frozen nobody is called, and Retry-After is the soonest thaw, rounded up, at least
// one; beyond a minute SDKs are told not to sleep for it. A chain answers 502, the
// pool 503.
func TestEverybodyFrozen(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    string
		u1, u2 time.Duration
		status int
		after  string
		retry  string
	}{
		{"a chain", chain(2, ""), 4200 * time.Millisecond, 30 * time.Second, 502, "5", ""},
		{"the pool", pooled(2, "", ""), 4200 * time.Millisecond, 30 * time.Second, 503, "5", ""},
		{"the second thaws first", chain(2, ""), time.Minute, 8 * time.Second, 502, "8", ""},
		{"almost thawed", chain(2, ""), time.Millisecond, time.Hour, 502, "1", ""},
		{"a minute", chain(2, ""), time.Minute, time.Hour, 502, "60", ""},
		{"more than a minute", chain(2, ""), time.Minute + time.Millisecond, time.Hour, 502, "61", "false"},
		{"hours", pooled(2, "", ""), 5 * time.Hour, 6 * time.Hour, 503, "18000", "false"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, c.cfg)
			s.play("u1", sayPong)
			s.play("u2", sayPong)
			s.freeze("u1", c.u1, health.Rule)
			s.freeze("u2", c.u2, health.Person)
			got := s.hi()
			s.refused(got, c.status)
			equal(t, "took", got.took, 0)
			equal(t, "retry-after", got.header.Get("Retry-After"), c.after)
			equal(t, "x-should-retry", got.header.Get("X-Should-Retry"), c.retry)
			equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "0")
			equal(t, "calls", s.counts("u1", "u2"), []int{0, 0})
		})
	}
}

// The pool answers 503 only where every member was frozen from the start: one that
// was called, or lacks its secret, makes it 502.
func TestPoolIsNotSimplyFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(2, "", ""))
		s.play("u1", refusal(503, `{}`))
		s.freeze("u2", time.Hour, health.Rule)
		got := s.hi()
		s.refused(got, 502)
		equal(t, "retry-after", got.header.Get("Retry-After"), "30")
		equal(t, "after u1 was frozen as well", s.hi().status, 503)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(1, "", "")+"  - {id: off, base_url: \"http://off\", api_key_env: UNDERSTUDY_TEST_UNSET}\n")
		s.freeze("u1", time.Hour, health.Rule)
		s.refused(s.hi(), 502)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(1, "", "")+"  - {id: out, base_url: \"http://out\", enabled: false}\n")
		s.freeze("u1", time.Hour, health.Rule)
		s.refused(s.hi(), 503)
	})
}

// An answer without a thaw to wait for has no Retry-After, and no chain borrows from
// another.
func TestExhaustedWithoutAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(1, "rules: []")+"  other:\n    - {name: o1, base_url: \"http://o1\", api_key: sk-o, model: o}\n")
		s.play("u1", refusal(500, `{}`))
		s.play("o1", sayPong)
		got := s.hi()
		s.refused(got, 502)
		equal(t, "retry-after", got.header.Values("Retry-After"), nil)
		equal(t, "x-should-retry", got.header.Values("X-Should-Retry"), nil)
		equal(t, "calls", s.counts("u1", "o1"), []int{1, 0})
	})
}

// when_all_frozen: try_soonest sends one attempt, to the candidate nearest its thaw
// that can be called at all.
func TestTrySoonest(t *testing.T) {
	const setting = "server: {when_all_frozen: try_soonest}"
	for _, cfg := range []string{chain(3, setting), pooled(3, "", setting)} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, cfg)
			s.play("u1", sayPong)
			s.play("u2", sayPong)
			s.play("u3", sayPong)
			s.freeze("u1", 20*time.Second, health.Rule)
			s.freeze("u2", 10*time.Second, health.Rule)
			s.freeze("u3", 30*time.Second, health.Rule)
			got := s.hi()
			s.from(got, "u2")
			equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "1")
			equal(t, "calls", s.counts("u1", "u2", "u3"), []int{0, 1, 0})
			s.isFrozen("u2", 0) // its success lifts the freeze at once
			s.isFrozen("u1", 20*time.Second)
			s.from(s.hi(), "u2")
		})
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, cfg)
			s.play("u1", sayPong)
			s.play("u2", refusal(500, `{}`))
			s.play("u3", sayPong)
			s.freeze("u1", 20*time.Second, health.Rule)
			s.freeze("u2", 10*time.Second, health.Rule)
			s.freeze("u3", 30*time.Second, health.Rule)
			got := s.hi()
			s.refused(got, 502)
			equal(t, "calls", s.counts("u1", "u2", "u3"), []int{0, 1, 0})
			if got.took > 2*time.Second {
				t.Errorf("took %v for one attempt", got.took)
			}
			s.idle()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(1, setting)+"    - {name: off, base_url: \"http://off\", api_key_env: UNDERSTUDY_TEST_UNSET, model: m2}\n")
		s.play("u1", sayPong)
		s.freeze("u1", 20*time.Second, health.Rule)
		s.freeze("off", 10*time.Second, health.Rule)
		s.from(s.hi(), "u1")
	})
	synctest.Test(t, func(t *testing.T) { // a person's freeze stays, whatever the attempt came to
		s := newScene(t, chain(1, setting))
		s.play("u1", sayPong)
		s.freeze("u1", 20*time.Second, health.Person)
		s.from(s.hi(), "u1")
		s.isFrozen("u1", 20*time.Second)
	})
}
