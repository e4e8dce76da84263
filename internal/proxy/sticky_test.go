package proxy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// fleet is a pool of four with the weights of case 45; weights replace them, out
// leaves one out, backwards turns the file around.
func fleet(weights map[string]int, out string, backwards bool) string {
	entries := []string{}
	for i, weight := range []int{1, 1, 2, 4} {
		id := fmt.Sprintf("u%d", i+1)
		if w, ok := weights[id]; ok {
			weight = w
		}
		if id == out {
			continue
		}
		entry := fmt.Sprintf("  - {id: %s, base_url: \"http://%s\", weight: %d}\n", id, id, weight)
		if backwards {
			entries = append([]string{entry}, entries...)
		} else {
			entries = append(entries, entry)
		}
	}
	return "pool: {}\nupstream:\n" + strings.Join(entries, "")
}

func sessionKey(i int) string { return fmt.Sprintf("0197f3c2-%04x-7000-8000-%012x", i%7919, i) }

// owners says for ten thousand session keys who comes first.
func owners(t *testing.T, cfg string) []string {
	t.Helper()
	chain := compile(t, cfg).Routes.Pool()
	out := make([]string, 10_000)
	for i := range out {
		out[i] = chain.Plan(sessionKey(i), nil, nil).Steps[0].Name
	}
	return out
}

// Case 45: sessions spread by weight; taking one member away moves only its own
// sessions, a larger weight only attracts, and restart, order in the file and reload
// change nothing.
func TestSessionsSpreadByWeight(t *testing.T) {
	base := owners(t, fleet(nil, "", false))
	share := map[string]int{}
	for _, id := range base {
		share[id]++
	}
	for id, want := range map[string]float64{"u1": 12.5, "u2": 12.5, "u3": 25, "u4": 50} {
		if got := float64(share[id]) / 100; math.Abs(got-want) > 3 {
			t.Errorf("%s has %.1f %% of the sessions, want %.1f", id, got, want)
		}
	}
	moved := func(what string, after []string, may func(from, to string) bool) {
		t.Helper()
		for i := range base {
			if base[i] != after[i] && !may(base[i], after[i]) {
				t.Fatalf("%s: session %d moved from %s to %s", what, i, base[i], after[i])
			}
		}
	}
	moved("u3 is taken out", owners(t, fleet(nil, "u3", false)), func(from, _ string) bool { return from == "u3" })
	moved("u3 comes back", owners(t, fleet(nil, "", false)), func(string, string) bool { return false })
	moved("the file is turned around", owners(t, fleet(nil, "", true)), func(string, string) bool { return false })
	moved("u1 gets heavier", owners(t, fleet(map[string]int{"u1": 2}, "", false)), func(_, to string) bool { return to == "u1" })
}

// Case 45, over the wire: where a session goes is what the plan says, through another
// proxy (a restart), another order of the file and a reload; and requests without a
// key spread by load.
func TestSessionsGoWhereThePlanSays(t *testing.T) {
	want := owners(t, fleet(nil, "", false))
	all := func(s *scene) {
		for i := range 4 {
			s.play(fmt.Sprintf("u%d", i+1), page("application/json", okChat))
		}
	}
	check := func(s *scene, what string) {
		t.Helper()
		for i := range 100 {
			got := s.ask("POST", chatPath, chatBody("gpt", false), "session_id", sessionKey(i))
			if by := got.header.Get("X-Understudy-Candidate"); got.status != 200 || by != want[i] {
				t.Fatalf("%s: session %d got %d by %s, want %s", what, i, got.status, by, want[i])
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, fleet(nil, "", false))
		all(s)
		check(s, "at first")
		s.handler.Swap(compile(t, fleet(nil, "", true)))
		check(s, "after a reload with another order")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, fleet(nil, "", true))
		all(s)
		check(s, "after a restart")
	})
	synctest.Test(t, func(t *testing.T) { // no key: eight at once, by weight
		s := newScene(t, fleet(nil, "", false))
		open := make(chan struct{})
		for i := range 4 {
			s.play(fmt.Sprintf("u%d", i+1), func(w *drill.Wire, r drill.Request, n int) {
				w.Wait(open)
				page("application/json", okChat)(w, r, n)
			})
		}
		replies := make(chan reply, 8)
		for range 8 {
			go func() { replies <- s.ask("POST", chatPath, chatBody("gpt", false)) }()
			synctest.Wait()
		}
		equal(t, "spread", s.counts("u1", "u2", "u3", "u4"), []int{1, 1, 2, 4})
		close(open)
		for range 8 {
			<-replies
		}
	})
}

// Case 46: a member that is frozen for a moment gives its sessions to their second
// choice, the same each time, and has them back when it thaws; nobody else's move.
func TestAFreezeDoesNotRewriteSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fleet(map[string]int{"u3": 1, "u4": 1}, "", false)
		s := newScene(t, cfg)
		limited := ""
		for i := range 4 {
			name := fmt.Sprintf("u%d", i+1)
			s.play(name, func(w *drill.Wire, r drill.Request, n int) {
				if name == limited {
					limited = ""
					w.JSON(429, []byte(`{"error":{"message":"slow"}}`), "Retry-After", "1")
					return
				}
				page("application/json", okChat)(w, r, n)
			})
		}
		ask := func(i int) string {
			got := s.ask("POST", chatPath, chatBody("gpt", false), "x-claude-code-session-id", sessionKey(i))
			if got.status != 200 {
				t.Errorf("session %d got %d", i, got.status)
			}
			return got.header.Get("X-Understudy-Candidate")
		}
		rank := func(i int) (names []string) {
			for _, step := range compile(t, cfg).Routes.Pool().Plan(sessionKey(i), nil, nil).Order {
				names = append(names, step.Name)
			}
			return names
		}
		k := rank(7)
		limited = k[0]
		equal(t, "K while its owner refuses", ask(7), k[1])
		s.till(300 * time.Millisecond)
		for range 3 {
			equal(t, "K at 0.3 s", ask(7), k[1])
		}
		for i := range 40 {
			want := rank(i)
			if want[0] == k[0] {
				want = want[1:]
			}
			equal(t, fmt.Sprint("session ", i), ask(i), want[0])
		}
		s.till(2 * time.Second)
		equal(t, "K at 2 s", ask(7), k[0])
		for i := range 40 {
			equal(t, fmt.Sprint("session ", i, " at 2 s"), ask(i), rank(i)[0])
		}
	})
}

// Case 48: state that was minted by another account is that account's business: the
// refusal goes to the client as it came, nobody else is asked, nobody is frozen, and
// the body is never edited.
func TestForeignStateIsPassedThrough(t *testing.T) {
	const minted = `"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAABo=="}]`
	for name, c := range map[string]struct{ path, refusal, sent string }{
		"a code":            {responsesPath, `{"error":{"message":"The encrypted content gAAA...o=== could not be verified. Reason: Encrypted content could not be decrypted or parsed.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`, `{"model":"vm","stream":true,` + minted + `}`},
		"words alone":       {responsesPath, `{"error":{"message":"The encrypted content gAAA...o=== could not be verified.","type":"invalid_request_error","param":null,"code":null}}`, `{"model":"vm","stream":true,` + minted + `}`},
		"a signature":       {messagesPath, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}", `{"model":"vm","stream":true,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"}]}]}`},
		"an earlier answer": {responsesPath, `{"error":{"message":"Previous response with id 'resp_1' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, `{"model":"vm","stream":true,"input":"go on"}`},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "server: {auto_hedge_threshold: 1}", page(sseType, okRS), refusal(400, c.refusal, "request-id", "up-1"), page(sseType, okRS))
			u1 := &s.handler.Snapshot().Routes.Chains()[0].Tiers[0][0]
			s.handler.Board().Freeze(Key(u1.ID), freezeFor(time.Minute), time.Now()) // the owner, for a moment
			got := s.ask("POST", c.path, c.sent)
			s.expect(c.sent, got, outcome{status: 400, body: c.refusal, winner: 2, calls: []int{0, 1, 0}, ending: stats.PassedThrough})
			equal(t, "the upstream's header", got.header.Get("request-id"), "up-1")
			equal(t, "freezes besides the owner's", len(s.handler.Board().Freezes(time.Now())), 1)
			equal(t, "streak", s.streak(2), 0)
			if f := s.record().Tries[0].Fault; f != "affinity" {
				t.Errorf("the fault is %s", f)
			}
		})
	}
}

// A session's first choice that fails is followed by that session's own second.
func TestFailoverKeepsTheSessionsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fleet(nil, "", false)
		s := newScene(t, cfg)
		for i := range 4 {
			s.play(fmt.Sprintf("u%d", i+1), refusal(503, `{}`))
		}
		for i := range 20 {
			s.handler.Board().ThawAll(time.Now())
			plan := compile(t, cfg).Routes.Pool().Plan(sessionKey(i), nil, nil)
			got := s.ask("POST", chatPath, chatBody("gpt", false), "session_id", sessionKey(i))
			s.refused(got, 502)
			r := s.records()
			equal(t, "order", triedBy(r[len(r)-1]), namesOf(plan.Order[:3]))
		}
	})
}

func triedBy(r stats.Record) (names []string) {
	for _, t := range r.Tries {
		names = append(names, t.Name)
	}
	return names
}

func namesOf(steps []route.Step) (names []string) {
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names
}
