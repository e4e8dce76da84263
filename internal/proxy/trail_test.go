package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// An entry holds why things went as they did: the plan whole, who was passed over
// and why, and what rules saw of each failure and said.
func TestTheRecordHoldsTheDecisionTrail(t *testing.T) {
	inBubble(t, "chain", func(t *testing.T) {
		s := newScene(t, chain(4, `rules:
  - {match: {status: 500, body_regex: boom}, action: retry, max_attempts: 2, backoff_base: 2, max_wait: 1}
  - {match: {status: 429}, action: freeze, freeze_seconds: 60, scope: key}`))
		s.play("u2", refusal(500, `{"error":{"message":"boom, says sk-upstream-secret-2","code":"b"}}`))
		s.play("u3", refusal(429, strings.Repeat("x", 5000), "Retry-After", "7"))
		s.play("u4", sayPong)
		s.freeze("u1", time.Minute, health.Person)
		s.from(s.hi(), "u4")
		r := s.records()[0]
		equal(t, "strategy", r.Strategy, "order")
		var plan []string
		for i, p := range r.Plan {
			plan = append(plan, p.Name+" "+p.Model)
			equal(t, "tier", p.Tier, i+1)
			equal(t, "identity", p.Candidate, string(s.candidate(p.Name).ID))
		}
		equal(t, "plan", plan, []string{"u1 m1", "u2 m2", "u3 m3", "u4 m4"})
		if len(r.Skips) != 1 || r.Skips[0].Name != "u1" || r.Skips[0].Left != time.Minute || !strings.Contains(r.Skips[0].Reason, "put there by the test") {
			t.Errorf("%+v", r.Skips)
		}
		if len(r.Tries) != 4 {
			t.Fatalf("%+v", r.Tries)
		}
		boom := stats.Failure{Kind: "status", Phase: "header", Code: "b", Message: "boom, says sk-ups***et-2", Account: "500 Internal Server Error",
			Body: `{"error":{"message":"boom, says sk-ups***et-2","code":"b"}}`, Number: 1, Next: "again", Wait: time.Second, Scope: "identity"}
		again := boom
		again.Number, again.Next, again.Wait = 2, "following", 0
		slow := stats.Failure{Kind: "status", Phase: "header", Account: "429 Too Many Requests", Message: strings.Repeat("x", 1024), Body: strings.Repeat("x", 2048), Cut: true,
			HasRetryAfter: true, RetryAfter: 7 * time.Second, Number: 1, Next: "following", Freeze: 7 * time.Second, Scope: "key"}
		for i, want := range []*stats.Failure{&boom, &again, &slow, nil} {
			got := r.Tries[i].Failure
			if want != nil && got != nil {
				got.Message = got.Message[:min(len(got.Message), len(want.Message))]
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("attempt %d: %s", i+1, d)
			}
		}
		equal(t, "froze", r.Tries[2].Froze, 7*time.Second)
		s.till(10 * time.Second)
		s.from(s.hi(), "u4")
		if &s.records()[1].Plan[0] != &r.Plan[0] {
			t.Error("requests of one chain do not share its plan")
		}
	})
	inBubble(t, "pool", func(t *testing.T) {
		s := newScene(t, pooled(3, "", ""))
		for _, name := range []string{"u1", "u2", "u3"} {
			s.play(name, sayPong)
		}
		for i, key := range []string{"a", "b", "c", "d", "e", ""} {
			got := s.chat("anything", "Session-Id", key)
			r := s.records()[i]
			want := "rendezvous"
			if key == "" {
				want = "least load"
			}
			equal(t, "strategy", r.Strategy, want)
			equal(t, "planned", len(r.Plan), 3)
			equal(t, "first", r.Plan[0].Name, got.header.Get("X-Understudy-Candidate"))
		}
	})
}

// What a stream had said before it broke is what a user got to read: the entry
// quotes only what was said about the failure.
func TestStreamsAreNotQuoted(t *testing.T) {
	inBubble(t, "cut", func(t *testing.T) {
		s := newScene(t, chain(3, ""))
		s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Pause(time.Second)
			page(sseType, said("private"))(w, drill.Request{}, 0)
		})
		s.play("u2", page("text/html", "<html><title>Bad gateway, says the balancer</title></html>"))
		s.play("u3", page(sseType, "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n"))
		s.hi()
		r := s.records()[0]
		if len(r.Tries) < 3 {
			t.Fatalf("%+v", r.Tries)
		}
		if first := r.Tries[0]; first.FirstByte == 0 || first.FirstContent == 0 || r.Tries[2].FirstContent != 0 {
			t.Errorf("%+v", r.Tries)
		}
		var got []string
		for _, try := range r.Tries[:3] {
			got = append(got, try.Failure.Body)
			if strings.Contains(try.Text, "private") {
				t.Errorf("%s", try.Text)
			}
		}
		if got[0] != "" || !r.Tries[0].Failure.Cut || !strings.Contains(got[1], "balancer") || !strings.Contains(got[2], "overloaded") {
			t.Errorf("%q", got)
		}
	})
}
