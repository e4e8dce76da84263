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

// Case 55: every answer says who gave it and after how many attempts, errors too, and
// its body still names the model that the upstream names.
func TestAnswersSayWhoGaveThem(t *testing.T) {
	const answer = `{"id":"c2","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"PONG"},"finish_reason":"stop"}]}`
	for _, c := range []struct {
		name     string
		u1, u2   drill.Script
		status   int
		by       string
		attempts string
		ending   stats.Ending
	}{
		{"the first answers", page("application/json", answer), sayPong, 200, "Claude%20%C2%B7%20direct", "1", stats.Success},
		{"its stand-in answers", refusal(401, `{}`), page("application/json", answer), 200, "u2", "2", stats.Success},
		{"after retries", refusal(500, `{}`), page("application/json", answer), 200, "u2", "4", stats.Success},
		{"an error passes", refusal(422, badParameter), sayPong, 422, "Claude%20%C2%B7%20direct", "1", stats.PassedThrough},
		{"nobody answers", refusal(401, `{}`), refusal(402, `{}`), 502, "", "2", stats.Exhausted},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, strings.Replace(chain(2, ""), "name: u1", `name: "Claude · direct"`, 1))
			s.play("u1", c.u1)
			s.play("u2", c.u2)
			got := s.ask("POST", chatPath, chatBody("vm", false))
			equal(t, "status", got.status, c.status)
			equal(t, "candidate", got.header.Get("X-Understudy-Candidate"), c.by)
			equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), c.attempts)
			if c.status == 200 && got.body != answer {
				t.Errorf("body %s", got.body)
			}
			synctest.Wait()
			r := s.records()[0]
			if id := got.header.Get("X-Understudy-Request-Id"); r.ID != id || r.Ending != c.ending || fmt.Sprint(len(r.Tries)) != c.attempts {
				t.Errorf("request %q is booked as %q, %v with %d attempts", id, r.ID, r.Ending, len(r.Tries))
			}
		})
	}
}

// Case 57: nobody is called to find out how somebody is: an idle proxy, its health
// page and its lists of models cost nothing, and its health is its own, whatever the
// state of its upstreams.
func TestNobodyIsCalledWithoutARequest(t *testing.T) {
	for name, cfg := range map[string]string{"a chain": chain(2, ""), "the pool": pooled(2, "", "")} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, cfg)
			s.play("u1", sayPong)
			s.play("u2", sayPong)
			s.freeze("u1", 10*second, health.Rule)
			s.freeze("u2", time.Hour, health.Rule)
			for i := range 100 {
				s.till(time.Duration(i) * time.Minute)
				if got := s.ask("GET", "/healthz", ""); got.status != 200 || !strings.Contains(got.body, `"status":"ok"`) {
					t.Fatalf("at %v: %d %s", s.now(), got.status, got.body)
				}
				if name == "a chain" {
					s.ask("GET", "/v1/models", "")
				}
			}
			s.till(48 * time.Hour)
			equal(t, "calls", s.counts("u1", "u2"), []int{0, 0})
			equal(t, "dials", []int{s.net.Dials("u1:80"), s.net.Dials("u2:80")}, []int{0, 0})
		})
	}
}
