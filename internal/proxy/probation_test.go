package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
)

// gated answers only when it is let, one request per value, and says first that it
// was asked.
type gated struct {
	asked  chan int
	answer chan drill.Script
}

func newGated() *gated { return &gated{make(chan int, 100), make(chan drill.Script)} }

func (g *gated) script(w *drill.Wire, r drill.Request, n int) {
	g.asked <- n
	stop := make(chan struct{})
	left := make(chan struct{})
	go func() {
		w.Wait(stop) // sees the client leave
		close(left)
	}()
	select {
	case answer := <-g.answer:
		close(stop)
		<-left
		answer(w, r, n)
	case <-left:
	}
}

// later asks in the background.
func (s *scene) later(headers ...string) <-chan reply {
	out := make(chan reply, 1)
	go func() { out <- s.hi(headers...) }()
	return out
}

// Spec section 7: when a freeze expires one request tries the candidate while the
// others go on to the next; what releases its answer ends the probation, before the
// answer is whole.
func TestProbationHasOneTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		first := newGated()
		s.play("u1", first.script)
		s.play("u2", sayPong)
		s.freeze("u1", time.Minute, health.Rule)
		s.till(time.Minute)
		trial := s.later()
		<-first.asked
		for range 3 {
			s.from(s.hi(), "u2")
		}
		standing, _ := s.standing("u1")
		equal(t, "standing", standing, health.Probation)
		hold := make(chan struct{})
		first.answer <- func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Wait(hold)
			w.Chunk([]byte(stop + done))
			w.End()
		}
		synctest.Wait()
		standing, _ = s.standing("u1")
		equal(t, "standing after release", standing, health.Ready)
		next := s.later()
		<-first.asked
		first.answer <- sayPong
		s.from(<-next, "u1")
		close(hold)
		s.from(<-trial, "u1")
		equal(t, "calls", s.counts("u1", "u2"), []int{2, 3})
		s.idle()
	})
}

// Where none is left besides, the others try the candidate on probation too, rather
// than fail.
func TestProbationWhereNobodyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		first := newGated()
		s.play("u1", first.script)
		s.play("u2", refusal(401, `{"error":{"message":"no","code":"invalid_api_key"}}`))
		s.freeze("u1", time.Minute, health.Rule)
		s.till(time.Minute)
		trial := s.later()
		<-first.asked
		other := s.later()
		<-first.asked // it came here after u2 had refused
		equal(t, "calls", s.counts("u1", "u2"), []int{2, 1})
		first.answer <- sayPong
		first.answer <- sayPong
		s.from(<-trial, "u1")
		got := <-other
		s.from(got, "u1")
		equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "2")
		s.idle()
	})
}

// A client that leaves passes the trial on: to nobody's harm, and to the next request.
func TestProbationIsPassedOn(t *testing.T) {
	for name, how := range map[string]string{"the client left": "", "its own mistake": contextTooLong, "another account's state": `{"error":{"code":"invalid_encrypted_content"}}`} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, chain(2, ""))
			first := newGated()
			s.play("u1", first.script)
			s.play("u2", sayPong)
			s.freeze("u1", time.Minute, health.Rule)
			s.till(time.Minute)
			if how == "" {
				leave := s.leaving(chatBody("vm", true))
				<-first.asked
				leave()
			} else {
				trial := s.later()
				<-first.asked
				first.answer <- refusal(400, how)
				<-trial
			}
			synctest.Wait()
			standing, _ := s.standing("u1")
			equal(t, "standing", standing, health.Probation)
			s.idle()
			next := s.later()
			<-first.asked
			s.from(s.hi(), "u2")
			first.answer <- sayPong
			s.from(<-next, "u1")
			standing, _ = s.standing("u1")
			equal(t, "standing after a success", standing, health.Ready)
		})
	}
}

// leaving asks in the background; the function it returns makes the client leave, and
// waits until it has.
func (s *scene) leaving(body string, headers ...string) (leave func()) {
	ctx, cancel := contextFor(s.t)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.askCtx(ctx, "POST", chatPath, body, headers...)
	}()
	return func() { cancel(); <-gone }
}

// In chains a trial that fails freezes for twice as long as last time, up to the cap,
// unless a hint or a rule's capture says otherwise; a success starts anew.
func TestProbationDoublesInChains(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		name  string
		rules string
		u1    drill.Script
		want  []time.Duration // how long each freeze lasts
	}{
		{"a rule's own length", `rules: [{match: {status: 500}, action: freeze, freeze_seconds: 10}]`, refusal(500, `{}`), []time.Duration{10 * second, 20 * second, 40 * second, 60 * second, 60 * second}},
		{"a rule that does not freeze", `rules: []`, refusal(500, `{}`), []time.Duration{10 * second, 20 * second, 40 * second, 60 * second}},
		{"a retry that gives up", `rules: [{match: {status: 500}, action: retry}]`, refusal(500, `{}`), []time.Duration{10 * second, 20 * second, 40 * second, 60 * second}},
		{"a longer rule", `rules: [{match: {status: 500}, action: freeze, freeze_seconds: 35}]`, refusal(500, `{}`), []time.Duration{10 * second, 35 * second, 60 * second}},
		{"passed through", `rules: [{match: {status: 500}, action: passthrough}]`, refusal(500, `{}`), []time.Duration{10 * second, 20 * second, 40 * second}},
		{"a hint says otherwise", `rules: [{match: {status: 500}, action: freeze, freeze_seconds: 10}]`, refusal(500, `{}`, "Retry-After", "7"), []time.Duration{10 * second, 7 * second, 7 * second}},
		{"a capture says otherwise", `rules: [{match: {body_regex: "window ([0-9]+)"}, action: freeze, freeze_from_group: 1, freeze_unit: s}]`, refusal(500, `{"error":{"message":"window 6"}}`), []time.Duration{10 * second, 6 * second, 6 * second}},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, chain(2, "server: {freeze_max_seconds: 60, auto_hedge_threshold: 0}\n"+c.rules))
			s.play("u1", c.u1)
			s.play("u2", sayPong)
			s.freeze("u1", c.want[0], health.Rule)
			at := time.Duration(0)
			for i, want := range c.want {
				s.isFrozen("u1", want)
				at += want
				s.till(at)
				got := s.hi()
				if c := s.cast["u1"].Count(); c != i+1 {
					t.Fatalf("at %v: u1 was called %d times, want %d (%d)", s.now(), c, i+1, got.status)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a success between them starts anew
		s := newScene(t, chain(2, "rules: [{match: {status: 500}, action: freeze, freeze_seconds: 10}]"))
		bad := refusal(500, `{}`)
		s.play("u1", drill.Sequence(bad, bad, sayPong, bad))
		s.play("u2", sayPong)
		s.hi()
		s.isFrozen("u1", 10*second)
		s.till(10 * second)
		s.hi()
		s.isFrozen("u1", 20*second)
		s.till(30 * second)
		s.from(s.hi(), "u1")
		s.hi()
		s.isFrozen("u1", 10*second)
	})
}

// The pool does not double: it cools down as long as its table says.
func TestProbationDoesNotDoubleInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, pooled(2, "cooldown_seconds: 10", ""))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		for i := range 4 {
			s.till(time.Duration(i) * 10 * time.Second)
			s.from(s.hi(), "u2")
			s.isFrozen("u1", 10*time.Second)
		}
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second})
	})
}

// After a person's freeze has run out the candidate is on probation like any other.
// What a person chose is no measure of what the upstream did: a trial that fails
// freezes for as short as there is, and grows from there.
func TestProbationAfterAPersonsFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "rules: []"))
		s.play("u1", refusal(500, `{}`))
		s.play("u2", sayPong)
		s.freeze("u1", time.Hour, health.Person)
		s.till(time.Hour)
		s.from(s.hi(), "u2")
		s.isFrozen("u1", time.Second)
		s.till(time.Hour + time.Second)
		s.from(s.hi(), "u2")
		s.isFrozen("u1", 2*time.Second)
	})
}

// A trial's answer that breaks after release is a failure, but the probation is over.
func TestBreakAfterReleaseOnProbation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		s.play("u1", frames(pong))
		s.play("u2", sayPong)
		s.freeze("u1", time.Minute, health.Rule)
		s.till(time.Minute)
		if got := s.hi(); got.err == nil {
			t.Error("the cut answer looks whole")
		}
		synctest.Wait()
		standing, _ := s.standing("u1")
		equal(t, "standing", standing, health.Ready)
		equal(t, "streak", s.counters("u1").Streak, 1)
	})
}

// An attempt that began before a freeze and fails when the freeze is over was no
// trial: it doubles nothing.
func TestAStragglerIsNoTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "rules: []"))
		first := newGated()
		s.play("u1", first.script)
		s.play("u2", sayPong)
		straggler := s.later()
		<-first.asked
		s.freeze("u1", 10*time.Second, health.Rule)
		s.till(20 * time.Second)
		first.answer <- refusal(500, `{}`)
		s.from(<-straggler, "u2")
		s.isFrozen("u1", 0)
	})
}
