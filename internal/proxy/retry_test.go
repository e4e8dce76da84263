package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// Spec section 7, retry: the same candidate again, so many attempts in all, waiting
// base^n seconds capped at max_wait; then the next.
func TestRetryWaits(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		rule string
		at   []time.Duration // when u1 is called
		took time.Duration
	}{
		{"action: retry", []time.Duration{0, 1500 * time.Millisecond, 3750 * time.Millisecond}, 3750 * time.Millisecond},
		{"action: retry, max_attempts: 1", []time.Duration{0}, 0},
		{"action: retry, max_attempts: 2, backoff_base: 3", []time.Duration{0, 3 * second}, 3 * second},
		{"action: retry, max_attempts: 5, backoff_base: 2, max_wait: 5", []time.Duration{0, 2 * second, 6 * second, 11 * second, 16 * second}, 16 * second},
		{"action: retry, max_attempts: 3, backoff_base: 1", []time.Duration{0, second, 2 * second}, 2 * second},
		{"action: retry, max_attempts: 3, backoff_base: 0.5", []time.Duration{0, second / 2, 3 * second / 4}, 3 * second / 4},
		{"action: retry, max_attempts: 3, backoff_base: 0", []time.Duration{0, 0, 0}, 0},
		{"action: retry, max_attempts: 3, max_wait: 0", []time.Duration{0, 0, 0}, 0},
	} {
		inBubble(t, c.rule, func(t *testing.T) {
			s := newScene(t, chain(2, fmt.Sprintf("server: {auto_hedge_threshold: 0}\nrules: [{match: {status: 500}, %s}]", c.rule)))
			s.play("u1", refusal(500, `{}`))
			s.play("u2", sayPong)
			got := s.hi()
			s.from(got, "u2")
			equal(t, "u1 called at", s.when("u1"), c.at)
			equal(t, "took", got.took, c.took)
			equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), fmt.Sprint(len(c.at)+1))
			s.isFrozen("u1", 0)
			s.idle()
		})
	}
}

// The attempts of a rule are counted per candidate, whatever its failures were.
func TestAttemptsCountPerCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, `rules: [{match: {status: [500, 502]}, action: retry, max_attempts: 3, backoff_base: 1}]`))
		s.play("u1", drill.Sequence(refusal(500, `{}`), refusal(502, `{}`), refusal(500, `{}`)))
		s.play("u2", drill.Sequence(refusal(500, `{}`), refusal(500, `{}`), sayPong))
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 4*time.Second)
		equal(t, "calls", s.counts("u1", "u2"), []int{3, 3})
	})
}

// A retry that succeeds is the candidate's success, by one request.
func TestARetryMaySucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		s.play("u1", drill.Sequence(refusal(500, `{}`), sayPong))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 1500*time.Millisecond)
		synctest.Wait()
		r := s.records()[0]
		if r.Ending != stats.Success || len(r.Tries) != 2 || r.Tries[0].Action != "retry" || r.Tries[0].Wait != 1500*time.Millisecond || r.Winner != 1 {
			t.Errorf("booked %+v", r)
		}
		equal(t, "streak", s.counters("u1").Streak, 0)
	})
}

// Spec section 7: a reset hint freezes the candidate, so that everybody else passes
// it over; this request waits it out where it is within max_wait, and goes next
// where it is not, or where its attempts are used up.
func TestRetryAndAHint(t *testing.T) {
	for _, c := range []struct {
		hint, rule string
		waits      bool
	}{
		{"3", "action: retry, max_wait: 5", true},
		{"5", "action: retry, max_wait: 5", true},
		{"6", "action: retry, max_wait: 5", false},
		{"3", "action: retry, max_wait: 5, max_attempts: 1", false},
	} {
		inBubble(t, c.hint+" "+c.rule, func(t *testing.T) {
			s := newScene(t, chain(2, `rules: [{match: {status: 429}, `+c.rule+`}]`))
			s.play("u1", drill.Sequence(refusal(429, `{}`, "Retry-After", c.hint), sayPong))
			s.play("u2", sayPong)
			hint, _ := time.ParseDuration(c.hint + "s")
			first := make(chan reply)
			go func() { first <- s.hi() }()
			s.till(time.Second)
			s.isFrozen("u1", hint-time.Second)
			s.from(s.hi(), "u2")
			got := <-first
			if c.waits {
				s.from(got, "u1")
				equal(t, "took", got.took, hint)
				s.isFrozen("u1", 0)
				return
			}
			s.from(got, "u2")
			equal(t, "took", got.took, 0)
		})
	}
}

// Two requests that wait out the same hint come back to one candidate on probation:
// one tries it, and the other goes on to the next rather than doubling the load.
func TestTwoThatWaitOutTheSameHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if n <= 2 {
				w.Pause(time.Second) // so that both have asked
				w.JSON(429, []byte(`{"error":{"message":"Rate limit reached"}}`), "Retry-After", "2")
				return
			}
			w.Pause(time.Second) // the trial takes its time
			sayPong(w, r, n)
		})
		s.play("u2", sayPong)
		both := make(chan reply)
		for range 2 {
			go func() { both <- s.hi() }()
		}
		one, other := <-both, <-both
		s.from(one, "u2")
		s.from(other, "u1")
		equal(t, "took", []time.Duration{one.took, other.took}, []time.Duration{3 * time.Second, 4 * time.Second})
		equal(t, "calls", s.counts("u1", "u2"), []int{3, 1})
		s.idle()
	})
}

// One that finds its candidate tried out by somebody else comes back to it only where
// nobody is left, and its attempts go on from where they were.
func TestAttemptsGoOnAfterProbation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "server: {auto_hedge_threshold: 0}\n"+`rules: [{match: {status: 429}, action: retry, max_attempts: 3, max_wait: 5}, {match: {status: 500}, action: next}]`))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Pause(time.Second) // so that both have asked
			w.JSON(429, []byte(`{"error":{"message":"Rate limit reached"}}`), "Retry-After", "2")
		})
		s.play("u2", refusal(500, `{}`))
		one, other := s.later(), s.later()
		s.refused(<-one, 502)
		s.refused(<-other, 502)
		synctest.Wait()
		for _, r := range s.records() {
			n := 0
			for _, try := range r.Tries {
				if try.Name == "u1" {
					n++
				}
			}
			if n > 3 {
				t.Errorf("%d attempts at u1 by one request, and 3 are allowed", n)
			}
		}
		s.idle()
	})
}

// Next, and passthrough of what there is an answer to.
func TestPassthrough(t *testing.T) {
	const rules = `rules: [{match: {status: [418, network, timeout, stalled_stream, bad_stream]}, action: passthrough}]`
	teapot := `{"error":{"message":"short and stout"}}`
	for _, c := range []struct {
		name   string
		path   string
		script drill.Script
		want   outcome
	}{
		{"a status", chatPath, refusal(418, teapot), outcome{status: 418, body: teapot, winner: 1, ending: stats.PassedThrough}},
		{"a status without a body", chatPath, refusal(418, ``), outcome{status: 418, winner: 1, ending: stats.PassedThrough}},
		{"an error in a 200 with its status", chatPath, page("application/json", `{"error":{"message":"boom","code":503}}`), outcome{status: 503, body: `{"error":{"message":"boom","code":503}}`, winner: 1, ending: stats.PassedThrough}},
		{"an error in a 200 without one", chatPath, page("application/json", `{"error":{"message":"boom"}}`), outcome{status: 400, body: `{"error":{"message":"boom"}}`, winner: 1, ending: stats.PassedThrough}},
		{"an error event", chatPath, frames(role, data(`{"error":{"message":"boom","code":429}}`)), outcome{status: 429, body: `{"error":{"message":"boom","code":429}}`, winner: 1, ending: stats.PassedThrough}},
		{"an error event of Anthropic's", messagesPath, frames(messageStart, event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), outcome{status: 400, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, winner: 1, ending: stats.PassedThrough}},
		{"response.failed, in the envelope of errors", responsesPath, frames(created, event("response.failed", `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"boom"}}}`)), outcome{status: 400, body: `{"error":{"code":"server_error","message":"boom"}}`, winner: 1, ending: stats.PassedThrough}},
		{"no answer", chatPath, func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() }, outcome{status: 502, own: "a rule ends the request here", ending: stats.Exhausted}},
		{"a cut before anything was said", chatPath, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(role))
			w.FIN()
		}, outcome{status: 502, own: "a rule ends the request here", ending: stats.Exhausted}},
		{"an ending too early", chatPath, frames(role, hel), outcome{status: 502, own: "a rule ends the request here", ending: stats.Exhausted}},
		{"HTML", chatPath, page("text/html", "<!DOCTYPE html><html></html>"), outcome{status: 502, own: "a rule ends the request here", ending: stats.Exhausted}},
		{"nothing at all", chatPath, frames(), outcome{status: 502, own: "a rule ends the request here", ending: stats.Exhausted}},
		{"silence", chatPath, func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }, outcome{status: 502, own: "a rule ends the request here", took: time.Minute, ending: stats.Exhausted}},
		{"an empty answer, well-formed", chatPath, frames(role, finish("stop"), done), outcome{body: role + finish("stop") + done, winner: 1, ending: stats.EmptyPassed}},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, rules, c.script, page(sseType, okSSE))
			sent := requestFor(c.path, true)
			c.want.calls = []int{1, 0}
			s.expect(sent, s.ask("POST", c.path, sent), c.want)
			s.unfrozen()
		})
	}
}

// Auto-hedge: so many failed attempts in a row freeze a candidate, and an ongoing
// retry gives up there and then.
func TestAutoHedge(t *testing.T) {
	const setting = "server: {auto_hedge_threshold: 3, auto_hedge_minutes: 5}\n"
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, setting+`rules: [{match: {status: 500}, action: retry, max_attempts: 10, backoff_base: 1}]`))
		s.play("u1", troubled(time.Minute, refusal(500, `{"error":{"message":"oops"}}`)))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 2*time.Second)
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, time.Second, 2 * time.Second})
		s.isFrozen("u1", 5*time.Minute)
		_, f := s.standing("u1")
		equal(t, "reason", f.Reason, "3 failures in a row, the last: 500 Internal Server Error (server): oops")
		equal(t, "by", f.By.String(), "streak")
		c := s.counters("u1")
		equal(t, "freezes, hedges, streak", []int64{c.Freezes, c.Hedges, c.Streak}, []int64{1, 1, 3})
		synctest.Wait()
		if tries := s.records()[0].Tries; !tries[2].Hedged || tries[2].Froze != 5*time.Minute || tries[1].Hedged {
			t.Errorf("booked %+v", tries)
		}
		s.till(5*time.Minute + 2*time.Second)
		s.from(s.hi(), "u1")
		equal(t, "streak", s.counters("u1").Streak, 0)
	})
	synctest.Test(t, func(t *testing.T) { // over several requests, and models
		s := newScene(t, chain(2, setting+"rules: []")+"  other:\n    - {name: o1, base_url: \"http://u1\", api_key: sk-upstream-secret-1, model: m1}\n    - {name: o2, base_url: \"http://u2\", api_key: sk-upstream-secret-2, model: m2}\n")
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		for _, model := range []string{"vm", "other", "vm"} {
			s.isFrozen("u1", 0)
			if got := s.chat(model); got.status != 200 {
				t.Fatalf("%d", got.status)
			}
		}
		s.isFrozen("u1", 5*time.Minute)
	})
	synctest.Test(t, func(t *testing.T) { // one success resets
		s := newScene(t, chain(2, setting+"rules: []"))
		bad := refusal(500, `{}`)
		s.play("u1", drill.Sequence(bad, bad, sayPong, bad, bad, sayPong, bad))
		s.play("u2", sayPong)
		for range 7 {
			s.hi()
		}
		s.isFrozen("u1", 0)
		equal(t, "streak", s.counters("u1").Streak, 1)
	})
	synctest.Test(t, func(t *testing.T) { // off
		s := newScene(t, chain(2, "server: {auto_hedge_threshold: 0}\nrules: []"))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		for range 50 {
			s.hi()
		}
		s.isFrozen("u1", 0)
	})
	synctest.Test(t, func(t *testing.T) { // a rule's freeze that is longer stays, and the retry gives up too
		s := newScene(t, chain(2, `server: {auto_hedge_threshold: 1, auto_hedge_minutes: 0.01}
rules: [{match: {status: 500}, action: retry, max_wait: 5}]`))
		s.play("u1", refusal(500, `{}`, "Retry-After", "3"))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 0)
		s.isFrozen("u1", 3*time.Second)
	})
	synctest.Test(t, func(t *testing.T) { // capped like every automatic freeze
		s := newScene(t, chain(2, "server: {auto_hedge_threshold: 1, auto_hedge_minutes: 100, freeze_max_seconds: 60}\nrules: []"))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		s.hi()
		s.isFrozen("u1", time.Minute)
	})
}

// Auto-hedge counts the upstream's failures, after release too, and nothing else: not
// a client that leaves, not what the client did wrong, not state of another account,
// not a well-formed empty answer, not an ignored endpoint, and nothing in the pool.
func TestWhatAutoHedgeCounts(t *testing.T) {
	const setting = "server: {auto_hedge_threshold: 1, ignored_error_endpoints: [{method: POST, path: /v1/messages/count_tokens}]}\n"
	for _, c := range []struct {
		name   string
		path   string
		script drill.Script
		counts bool
	}{
		{"a status", chatPath, refusal(500, `{}`), true},
		{"a reset", chatPath, func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() }, true},
		{"silence", chatPath, func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }, true},
		{"an empty stream", chatPath, frames(), true},
		{"a cut after release", chatPath, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Reset()
		}, true},
		{"an early end after release", chatPath, frames(pong), true},
		{"an error event after release", chatPath, frames(pong, data(`{"error":{"message":"boom"}}`)), true},
		{"a break behind the terminal", chatPath, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(whole))
			w.Reset()
		}, false},
		{"a well-formed empty answer", chatPath, frames(role, finish("stop"), done), false},
		{"the client's fault", chatPath, refusal(400, contextTooLong), false},
		{"the client's fault in a 200", chatPath, page("application/json", `{"error":{"message":"prompt is too long","code":400}}`), false},
		{"another account's state", chatPath, refusal(400, `{"error":{"code":"invalid_encrypted_content","message":"could not be verified"}}`), false},
		{"an ignored endpoint", "/v1/messages/count_tokens", refusal(500, `{}`), false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, chain(2, setting+"rules: []"))
			s.play("u1", c.script)
			s.play("u2", sayPong)
			s.ask("POST", c.path, chatBody("vm", true))
			synctest.Wait()
			want := time.Duration(0)
			if c.counts {
				want = 10 * time.Minute
			}
			if got := s.left("u1"); (got > 0) != (want > 0) || s.counters("u1").Streak > 0 != c.counts {
				t.Errorf("frozen for %v with a streak of %d, want %v", got, s.counters("u1").Streak, want)
			}
			s.idle()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(2, "cooldown_seconds: 0", setting))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		for range 9 {
			s.from(s.hi(), "u2")
		}
		s.isFrozen("u1", 0)
		equal(t, "streak", s.counters("u1").Streak, 0)
	})
}
