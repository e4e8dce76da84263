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

// Spec section 7: a status of the pool's table, and every failure that is no status,
// freezes for the answer's hint or the cooldown, and the next is tried; any other
// status goes to the client as it came.
func TestPoolTable(t *testing.T) {
	silent := func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }
	for _, c := range []struct {
		name   string
		pool   string
		script drill.Script
		frozen time.Duration // 0: passed through
		took   time.Duration
	}{
		{"429", "", refusal(429, `{}`), 30 * time.Second, 0},
		{"429 with a hint", "", refusal(429, `{}`, "Retry-After", "4"), 4 * time.Second, 0},
		{"500", "", refusal(500, `{}`), 30 * time.Second, 0},
		{"502", "", refusal(502, `{}`), 30 * time.Second, 0},
		{"503", "", refusal(503, `{}`), 30 * time.Second, 0},
		{"504", "", refusal(504, `{}`), 30 * time.Second, 0},
		{"429 for money", "", refusal(429, `{"error":{"code":"insufficient_quota"}}`), 30 * time.Second, 0},
		{"501", "", refusal(501, `{"error":"not that"}`), 0, 0},
		{"401", "", refusal(401, `{"error":"key"}`), 0, 0},
		{"404", "", refusal(404, `{"error":"where"}`), 0, 0},
		{"a redirect", "", refusal(302, `{}`, "Location", "https://elsewhere.example"), 0, 0},
		{"a table of one's own", "retry_statuses: [401], cooldown_seconds: 5", refusal(401, `{}`), 5 * time.Second, 0},
		{"a table of one's own, and another status", "retry_statuses: [401]", refusal(500, `{"error":"oops"}`), 0, 0},
		{"an empty table", "retry_statuses: []", refusal(500, `{"error":"oops"}`), 0, 0},
		{"an empty table, and no status", "retry_statuses: []", func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() }, 30 * time.Second, 0},
		{"network", "", func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() }, 30 * time.Second, 0},
		{"stalled_stream", "", silent, 30 * time.Second, time.Minute},
		{"bad_stream", "", page("application/json", `{"error":{"message":"boom"}}`), 30 * time.Second, 0},
		{"an empty stream", "", frames(done), 30 * time.Second, 0},
		{"HTML", "", page("text/html", "<!DOCTYPE html><html></html>"), 30 * time.Second, 0},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, pooled(2, c.pool, ""))
			s.play("u1", c.script)
			s.play("u2", sayPong)
			got := s.hi()
			s.isFrozen("u1", c.frozen)
			equal(t, "took", got.took, c.took)
			if c.frozen > 0 {
				s.from(got, "u2")
				return
			}
			equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
			if got.status < 300 || got.header.Get("X-Understudy-Candidate") != "u1" {
				t.Errorf("client got %d by %q: %q", got.status, got.header.Get("X-Understudy-Candidate"), got.body)
			}
			synctest.Wait()
			if r := s.records()[0]; r.Ending != stats.PassedThrough {
				t.Errorf("booked as %v", r.Ending)
			}
		})
	}
}

// timeout_seconds of a pool's upstream is the longest silence before release also of
// an answer that is no stream, and the time to connect.
func TestPoolTimeout(t *testing.T) {
	for _, stream := range []bool{true, false} {
		inBubble(t, fmt.Sprint("silence, stream ", stream), func(t *testing.T) {
			s := newScene(t, strings.ReplaceAll(pooled(2, "", ""), `"http://u1"`, `"http://u1", timeout_seconds: 7`))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() })
			s.play("u2", drill.Healthy(drill.Answer{}))
			got := s.ask("POST", chatPath, chatBody("gpt", stream))
			s.from(got, "u2")
			equal(t, "took", got.took, 7*time.Second)
			s.isFrozen("u1", 30*time.Second)
		})
		inBubble(t, fmt.Sprint("black hole, stream ", stream), func(t *testing.T) {
			s := newScene(t, strings.ReplaceAll(pooled(2, "", ""), `"http://u1"`, `"http://u1", timeout_seconds: 7`))
			s.net.Blackhole("u1:80")
			s.play("u2", drill.Healthy(drill.Answer{}))
			got := s.ask("POST", chatPath, chatBody("gpt", stream))
			s.from(got, "u2")
			equal(t, "took", got.took, 7*time.Second)
		})
	}
}

// max_attempts bounds the attempts of one request, and none uses an upstream twice.
func TestPoolAttempts(t *testing.T) {
	for _, c := range []struct{ members, max, want int }{{5, 3, 3}, {2, 3, 2}, {5, 1, 1}, {5, 9, 5}} {
		inBubble(t, fmt.Sprintf("%d of %d", c.max, c.members), func(t *testing.T) {
			s := newScene(t, pooled(c.members, fmt.Sprint("cooldown_seconds: 0, max_attempts: ", c.max), ""))
			var names []string
			for i := range c.members {
				names = append(names, fmt.Sprintf("u%d", i+1))
				s.play(names[i], refusal(503, `{}`))
			}
			got := s.hi()
			s.refused(got, 502)
			equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), fmt.Sprint(c.want))
			for i, n := range s.counts(names...) {
				if want := map[bool]int{true: 1}[i < c.want]; n != want {
					t.Errorf("%s was called %d times, want %d", names[i], n, want)
				}
			}
			if c.want < c.members && (!strings.Contains(got.body, "max_attempts is used up") || strings.Count(got.body, "not tried") != c.members-c.want) {
				t.Errorf("the answer does not say why it ended: %s", got.body)
			}
		})
	}
}

// cooldown_seconds: 0 freezes nobody, not even where the answer says for how long.
func TestPoolWithoutCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(2, "cooldown_seconds: 0", ""))
		s.play("u1", refusal(429, `{}`, "Retry-After", "60"))
		s.play("u2", sayPong)
		for range 3 {
			s.from(s.hi(), "u2")
			s.isFrozen("u1", 0)
		}
		equal(t, "calls", s.counts("u1", "u2"), []int{3, 3})
	})
}

// pool.rules come before the table.
func TestPoolRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(3, `rules: [{match: {status: 401}, action: freeze, freeze_seconds: 100}, {match: {status: 503, body_regex: "maintenance"}, action: passthrough}]`, ""))
		s.play("u1", refusal(401, `{}`))
		s.play("u2", drill.Sequence(refusal(503, `{}`), refusal(503, `{"error":"maintenance"}`)))
		s.play("u3", sayPong)
		s.from(s.hi(), "u3")
		s.isFrozen("u1", 100*time.Second)
		s.isFrozen("u2", 30*time.Second)
		s.till(30 * time.Second)
		got := s.hi()
		equal(t, "status", got.status, 503)
		equal(t, "body", got.body, `{"error":"maintenance"}`)
	})
}

// Where every called candidate failed by the client's fault the pool too passes the
// last such answer on, whatever its table says of the status.
func TestPoolPassesTheClientsFaultOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(2, "retry_statuses: [400]", ""))
		s.play("u1", refusal(400, contextTooLong))
		s.play("u2", refusal(400, badParameter))
		got := s.hi()
		if got.status != 400 || got.body != badParameter || got.header.Get("X-Understudy-Candidate") != "u2" {
			t.Errorf("client got %d %q", got.status, got.body)
		}
	})
}

// Spec section 7, ignored endpoints: rules apply and freeze; there is no auto-hedge
// count, no target mode, no warning, one info line when exhausted, still 502, and no
// trace in the statistics but a counter of their own.
func TestIgnoredEndpoints(t *testing.T) {
	const path = "/v1/messages/count_tokens"
	body := requestFor(messagesPath, false)
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "server: {auto_hedge_threshold: 1}"))
		s.handler.Target().Set(true)
		s.play("u1", refusal(500, `{}`))
		s.play("u2", refusal(401, `{}`))
		got := s.ask("POST", path+"?beta=true", body)
		s.refused(got, 502)
		equal(t, "took", got.took, 3750*time.Millisecond) // the rules' retries, and no more
		equal(t, "calls", s.counts("u1", "u2"), []int{3, 1})
		s.isFrozen("u1", 0)
		s.isFrozen("u2", 10*time.Minute) // the rule for dead keys
		synctest.Wait()
		if log := s.log.String(); strings.Contains(log, "level=WARN") || strings.Count(log, "level=INFO") != 1 || strings.Contains(log, "level=ERROR") {
			t.Errorf("log:\n%s", log)
		}
		n := s.handler.Ledger().Totals()
		equal(t, "ignored, requests, exhausted", []int64{n.Ignored, n.Requests, n.Exhausted}, []int64{1, 0, 0})
		for _, name := range []string{"u1", "u2"} {
			series := s.handler.Ledger().Candidate(string(s.candidate(name).ID), time.Now())
			if c := s.counters(name); series.Requests != 0 || series.LastError != "" || c.LastError != "" || c.Streak != 0 {
				t.Errorf("%s: booked %d requests, last error %q %q, streak %d", name, series.Requests, series.LastError, c.LastError, c.Streak)
			}
		}
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // nor does its success speak for the candidate's answers
		s := newScene(t, chain(2, "server: {auto_hedge_threshold: 3}\nrules: []"))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if r.Path() == path {
				w.JSON(200, []byte(`{"input_tokens":7}`))
				return
			}
			w.JSON(500, []byte(`{}`))
		})
		s.play("u2", sayPong)
		for range 2 {
			s.from(s.hi(), "u2")
			s.from(s.ask("POST", path, body), "u1")
		}
		s.from(s.hi(), "u2")
		synctest.Wait()
		s.isFrozen("u1", 10*time.Minute)
	})
	synctest.Test(t, func(t *testing.T) { // another method or path is not ignored
		s := newScene(t, chain(1, "server: {auto_hedge_threshold: 1}\nrules: []"))
		s.play("u1", refusal(500, `{}`))
		s.ask("POST", path+"/", body)
		s.isFrozen("u1", 10*time.Minute)
	})
	synctest.Test(t, func(t *testing.T) { // an ignored endpoint's success ends a probation like any other
		s := newScene(t, chain(1, ""))
		s.play("u1", page("application/json", `{"input_tokens":7}`))
		s.freeze("u1", time.Minute, health.Rule)
		s.till(time.Minute)
		s.from(s.ask("POST", path, body), "u1")
		standing, _ := s.standing("u1")
		equal(t, "standing", standing, health.Ready)
	})
}
