package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// hedged is a chain of n with a hedge, and with rules that go on at once.
func hedged(n int, hedge, more string) string {
	cfg := "rules: []\n" + more + "\nvirtual_models:\n  vm:\n    hedge: {" + hedge + "}\n    candidates:\n"
	for i := range n {
		cfg += fmt.Sprintf("      - {name: u%d, base_url: \"http://u%d\", api_key: sk-upstream-secret-%d, model: m%d}\n", i+1, i+1, i+1, i+1)
	}
	return cfg
}

// after answers well after d, with a stream that lasts for length.
func after(d, length time.Duration) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		if d > 0 && !w.Pause(d) {
			return
		}
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		w.Chunk([]byte(pong))
		if length > 0 && !w.Pause(length) {
			return
		}
		w.Chunk([]byte(stop + done))
		w.End()
	}
}

func silent(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }

// leftAt is when an upstream's peer left in the middle of an answer.
func (s *scene) leftAt(name string) <-chan time.Duration {
	at := make(chan time.Duration, 1)
	u := s.cast[name]
	go func() {
		if u.Await(s.t.Context(), func() bool { return u.Gone() > 0 }) {
			at <- s.now()
		}
		close(at)
	}()
	return at
}

// A refusing, a silent and a slow but good upstream, hedged after 5 s: the good one
// wins at exactly its moment, its long stream is read whole, the loser is cancelled
// then and counts as neither success nor failure.
func TestHedgeWinsAtTheExactMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(3, "after: 5", ""))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", silent)
		s.play("u3", after(3*second, 30*second))
		loser := s.leftAt("u2")
		got := s.hi()
		s.from(got, "u3")
		equal(t, "first byte", got.at[0], 8*second)
		equal(t, "took", got.took, 38*second)
		equal(t, "body", got.body, whole)
		equal(t, "the loser sees it", <-loser, 8*second)
		equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "3")
		synctest.Wait()
		s.idle()
		r := s.records()[0]
		verdicts := map[string]stats.Verdict{}
		for _, try := range r.Tries {
			verdicts[try.Name] = try.Verdict
		}
		equal(t, "verdicts", verdicts, map[string]stats.Verdict{"u1": stats.Failed, "u2": stats.Abandoned, "u3": stats.OK})
		equal(t, "winner", r.Tries[r.Winner].Name, "u3")
		equal(t, "streaks", []int64{s.counters("u1").Streak, s.counters("u2").Streak, s.counters("u3").Streak}, []int64{1, 0, 0})
		series := s.handler.Ledger().Candidate(string(s.candidate("u2").ID), time.Now())
		equal(t, "the loser's books", []int64{series.Requests, series.Successes, series.Failures}, []int64{0, 0, 0})
	})
}

// The first attempt may win all the same; the second one is given up then.
func TestTheFirstMayWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 5", ""))
		s.play("u1", after(7*second, 0))
		s.play("u2", silent)
		loser := s.leftAt("u2")
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 7*second)
		equal(t, "u2 called at", s.when("u2"), []time.Duration{5 * second})
		equal(t, "the loser sees it", <-loser, 7*second)
		synctest.Wait()
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // and an answer within the time starts none
		s := newScene(t, hedged(2, "after: 5", ""))
		s.play("u1", after(4999*time.Millisecond, 30*second))
		s.play("u2", sayPong)
		s.from(s.hi(), "u1")
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
	})
}

// max is the number of extra attempts: with those running another one starts only
// where one of them has failed, and then at once.
func TestHedgeWidth(t *testing.T) {
	for _, c := range []struct {
		max  int
		want [][]time.Duration // when each of five is called
		took time.Duration
	}{
		{1, [][]time.Duration{{0}, {5 * second}, {25 * second}, {60 * second}, {85 * second}}, 95 * second},
		{2, [][]time.Duration{{0}, {5 * second}, {10 * second}, {25 * second}, {60 * second}}, 70 * second},
	} {
		inBubble(t, fmt.Sprint("max ", c.max), func(t *testing.T) {
			s := newScene(t, hedged(5, fmt.Sprint("after: 5, budget: 1, max: ", c.max), ""))
			// Enough requests have gone before that the budget allows several.
			for range 10 {
				s.handler.hedges.request("vm", time.Now())
			}
			s.play("u1", silent) // until its stall clock, 60 s
			s.play("u2", func(w *drill.Wire, r drill.Request, n int) { w.Pause(20 * second); refusal(500, `{}`)(w, r, n) })
			s.play("u3", silent)
			s.play("u4", silent)
			s.play("u5", after(10*second, 0))
			got := s.hi()
			s.from(got, "u5")
			for i, want := range c.want {
				equal(t, fmt.Sprintf("u%d called at", i+1), s.when(fmt.Sprintf("u%d", i+1)), want)
			}
			equal(t, "took", got.took, c.took)
			synctest.Wait()
			s.idle()
		})
	}
}

// A failure while the other attempt runs goes on at once to the next candidate, and
// a retry of it waits beside the running one.
func TestAHedgeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(3, "after: 5", ""))
		s.play("u1", silent)
		s.play("u2", refusal(500, `{}`))
		s.play("u3", after(2*second, 0))
		got := s.hi()
		s.from(got, "u3")
		equal(t, "took", got.took, 7*second)
		synctest.Wait()
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // all of them
		s := newScene(t, hedged(2, "after: 5", ""))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) { w.Pause(9 * second); refusal(500, `{}`)(w, r, n) })
		s.play("u2", refusal(500, `{}`))
		got := s.hi()
		s.refused(got, 502)
		equal(t, "took", got.took, 9*second)
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // passthrough ends the race
		s := newScene(t, strings.Replace(hedged(2, "after: 5", ""), "rules: []", "rules: [{match: {status: 418}, action: passthrough}]", 1))
		s.play("u1", silent)
		s.play("u2", refusal(418, `{"error":"teapot"}`))
		got := s.hi()
		equal(t, "status", got.status, 418)
		equal(t, "took", got.took, 5*second)
		synctest.Wait()
		s.idle()
	})
	synctest.Test(t, func(t *testing.T) { // a retry
		s := newScene(t, strings.Replace(hedged(2, "after: 5", ""), "rules: []", "rules: [{match: {status: 500}, action: retry, backoff_base: 4}]", 1))
		s.play("u1", silent)
		s.play("u2", drill.Sequence(refusal(500, `{}`), sayPong))
		got := s.hi()
		s.from(got, "u2")
		equal(t, "u2 called at", s.when("u2"), []time.Duration{5 * second, 9 * second})
		synctest.Wait()
		s.idle()
	})
}

// A frozen candidate is no hedge, nor is one that is on probation while another
// request tries it.
func TestHedgePassesTheFrozenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(3, "after: 5", ""))
		s.play("u1", silent)
		s.play("u2", sayPong)
		s.play("u3", sayPong)
		go func() { s.till(2 * second); s.freeze("u2", time.Hour, health.Person) }()
		got := s.hi()
		s.from(got, "u3")
		equal(t, "took", got.took, 5*second)
		equal(t, "calls", s.counts("u1", "u2", "u3"), []int{1, 0, 1})
	})
}

// The budget is a share of the requests of the last ten minutes; the first extra
// attempt in that time is always allowed.
func TestHedgeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 1, budget: 0.25", "server: {auto_hedge_threshold: 0}"))
		s.play("u1", after(2*second, 0))
		s.play("u2", sayPong)
		extra := func() bool {
			before := s.cast["u2"].Count()
			s.hi()
			return s.cast["u2"].Count() > before
		}
		var got []bool
		for range 12 {
			got = append(got, extra())
		}
		want := []bool{true, false, false, false, false, false, false, true, false, false, false, true}
		equal(t, "extra attempts", got, want)
		s.till(11 * time.Minute) // all of that is forgotten
		equal(t, "after eleven minutes", extra(), true)
		equal(t, "and then", extra(), false)
	})
}

// Never for requests that create state at the upstream: stored answers, background
// jobs, nor for what is no generation.
func TestNoHedgeForStoredAnswers(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		hedges           bool
	}{
		{"chat", chatPath, chatBody("vm", true), true},
		{"chat, not streamed", chatPath, chatBody("vm", false), true},
		{"chat that stores", chatPath, `{"model":"vm","stream":true,"store":true,"messages":[]}`, false},
		{"chat that does not", chatPath, `{"model":"vm","stream":true,"store":false,"messages":[]}`, true},
		{"responses, which store by themselves", responsesPath, `{"model":"vm","stream":true,"input":"hi"}`, false},
		{"responses that do not store", responsesPath, `{"model":"vm","stream":true,"store":false,"input":"hi"}`, true},
		{"responses in the background", responsesPath, `{"model":"vm","stream":true,"store":false,"background":true,"input":"hi"}`, false},
		{"responses in a conversation", responsesPath, `{"model":"vm","stream":true,"store":false,"conversation":"conv_1","input":"hi"}`, false},
		{"responses in none", responsesPath, `{"model":"vm","stream":true,"store":false,"conversation":null,"input":"hi"}`, true},
		{"messages", messagesPath, requestFor(messagesPath, true), true},
		{"messages in a container", messagesPath, `{"model":"vm","stream":true,"max_tokens":9,"container":"container_1","messages":[]}`, false},
		{"embeddings", "/v1/embeddings", `{"model":"vm","input":"hi"}`, false},
		{"images", "/v1/images/generations", `{"model":"vm","prompt":"hi"}`, false},
		{"a batch", "/v1/batches", `{"model":"vm","input_file_id":"file-1"}`, false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, hedged(2, "after: 5", ""))
			answer := drill.Healthy(drill.Answer{})
			s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
				if w.Pause(8 * second) {
					answer(w, r, n)
				}
			})
			s.play("u2", answer)
			got := s.ask("POST", c.path, c.body)
			want := []int{1, 0}
			if c.hedges {
				want = []int{1, 1}
			}
			equal(t, "calls", s.counts("u1", "u2"), want)
			equal(t, "status", got.status, 200)
			synctest.Wait()
			s.idle()
		})
	}
}

// A client that leaves ends every attempt at once.
func TestHedgesEndWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 5", ""))
		s.play("u1", silent)
		s.play("u2", silent)
		one, other := s.leftAt("u1"), s.leftAt("u2")
		leave := s.leaving(chatBody("vm", true))
		s.till(9 * second)
		leave()
		equal(t, "they see it", []time.Duration{<-one, <-other}, []time.Duration{9 * second, 9 * second})
		synctest.Wait()
		s.idle()
		equal(t, "streaks", []int64{s.counters("u1").Streak, s.counters("u2").Streak}, []int64{0, 0})
		if r := s.records()[0]; r.Ending != stats.Cancelled || len(r.Tries) != 2 {
			t.Errorf("booked %v with %d attempts", r.Ending, len(r.Tries))
		}
	})
}

// Two answers that are good at the same moment: one goes out, the other is closed.
func TestTwoGoodAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 5", ""))
		s.play("u1", after(8*second, second))
		s.play("u2", after(3*second, second))
		got := s.hi()
		if by := got.header.Get("X-Understudy-Candidate"); got.body != whole || got.took != 9*second || by != "u1" && by != "u2" {
			t.Errorf("client got %q by %q after %v", got.body, by, got.took)
		}
		synctest.Wait()
		s.idle()
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 1})
		for _, u := range s.cast {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			u.Await(ctx, func() bool { return u.Open() <= 1 })
			cancel()
		}
	})
}

// chain_timeout bounds the race as it bounds a chain.
func TestHedgeAndTheChainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 5", "server: {chain_timeout: 12}"))
		s.play("u1", silent)
		s.play("u2", silent)
		got := s.hi()
		s.refused(got, 502)
		equal(t, "took", got.took, 12*second)
		synctest.Wait()
		s.idle()
		equal(t, "streaks", []int64{s.counters("u1").Streak, s.counters("u2").Streak}, []int64{0, 0})
		if !strings.Contains(got.body, "chain_timeout") || strings.Contains(got.body, "not tried") {
			t.Errorf("body %s", got.body)
		}
	})
}
