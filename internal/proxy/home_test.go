package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/health"
	"understudy/internal/route"
)

// equals is a virtual model with one tier of three, and settings of its own; the
// same as a pool where pool is set.
func equals(pool bool, settings ...string) string {
	if pool {
		return "pool: {" + strings.Join(settings, ", ") + "}\nupstream:\n  - {id: u1, base_url: \"http://u1\"}\n  - {id: u2, base_url: \"http://u2\"}\n  - {id: u3, base_url: \"http://u3\"}\n"
	}
	return "virtual_models:\n  vm:\n    " + strings.Join(append(settings, "delivery: stream"), "\n    ") + "\n    candidates:\n      - any_of:\n" +
		"          - {name: u1, base_url: \"http://u1\", model: m, auth_style: none}\n" +
		"          - {name: u2, base_url: \"http://u2\", model: m, auth_style: none}\n" +
		"          - {name: u3, base_url: \"http://u3\", model: m, auth_style: none}\n"
}

// homes are a session's three homes, in order.
func (s *scene) homes(key string) (names []string) {
	for _, step := range s.handler.Snapshot().Routes.Chains()[0].Plan(key, nil, nil).Steps {
		names = append(names, step.Name)
	}
	return names
}

// A session whose home thaws goes back at once (strict), or stays where it was served
// within affinity_ttl (warm).
func TestHomecoming(t *testing.T) {
	const key = "0197f3c2-0001"
	for _, pool := range []bool{false, true} {
		for policy, c := range map[string]struct {
			settings []string
			warm     bool
			ttl      time.Duration
		}{
			"strict":        {[]string{"affinity: strict"}, false, 0},
			"by default":    {nil, false, 0},
			"warm":          {[]string{"affinity: warm"}, true, 5 * time.Minute},
			"warm, shortly": {[]string{"affinity: warm", "affinity_ttl: 30"}, true, 30 * time.Second},
		} {
			inBubble(t, fmt.Sprint(policy, ", pool ", pool), func(t *testing.T) {
				s := newScene(t, equals(pool, c.settings...))
				for _, name := range []string{"u1", "u2", "u3"} {
					s.play(name, sayPong)
				}
				home := s.homes(key)
				ask := func(want string) {
					t.Helper()
					s.from(s.hi("session_id", key), want)
				}
				ask(home[0])
				s.freeze(home[0], 10*time.Second, health.Rule)
				ask(home[1])
				s.till(20 * time.Second) // home has thawed
				if !c.warm {
					ask(home[0])
					return
				}
				ask(home[1])
				for range 3 { // each turn keeps the cache alive
					s.till(s.now() + c.ttl)
					ask(home[1])
				}
				s.freeze(home[1], time.Hour, health.Rule) // gone from there: its own order again
				ask(home[0])
				s.thaw(home[1])
				ask(home[0])
				s.freeze(home[0], time.Second, health.Rule)
				ask(home[1])
				s.till(s.now() + c.ttl + time.Nanosecond)
				ask(home[0]) // the cache is cold: home
				s.idle()
			})
		}
	}
}

// Tiers are no equals: a session goes back to the better tier at once.
func TestWarmStaysWithinItsTier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "virtual_models:\n  vm:\n    affinity: warm\n    candidates:\n"+
			"      - {name: best, base_url: \"http://u1\", model: m, auth_style: none}\n"+
			"      - {name: next, base_url: \"http://u2\", model: m, auth_style: none}\n")
		s.play("u1", sayPong)
		s.play("u2", sayPong)
		s.freeze("best", 10*time.Second, health.Rule)
		s.from(s.hi("session_id", "k"), "next")
		s.till(10 * time.Second)
		s.from(s.hi("session_id", "k"), "best")
	})
}

// off takes no notice of sessions, and a request without a key has none.
func TestAffinityOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, equals(true, "affinity: off"))
		for _, name := range []string{"u1", "u2", "u3"} {
			s.play(name, after(time.Second, 0))
		}
		done := make(chan reply)
		for range 6 {
			go func() { done <- s.hi("session_id", "k") }()
			synctest.Wait()
		}
		for range 6 {
			<-done
		}
		equal(t, "spread by load", s.counts("u1", "u2", "u3"), []int{2, 2, 2})
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, equals(true, "affinity: warm"))
		for _, name := range []string{"u1", "u2", "u3"} {
			s.play(name, sayPong)
		}
		s.hi()
		if v := s.handler.guests.visits; v != nil {
			t.Errorf("%d sessions noted for a request without one", v.Len())
		}
	})
}

// Sessions of one key are apart by virtual model, and of different clients by client.
func TestTheGuestBook(t *testing.T) {
	var b guestBook
	now := time.Now()
	a, other := guestOf("vm", 1, "k"), guestOf("vm", 2, "k")
	if a == other || a == guestOf("v", 1, "k") || a == guestOf("vm", 1, "K") {
		t.Error("two sessions are one")
	}
	b.note(a, "one", now)
	b.note(other, "two", now)
	for i := range maxGuests - 1 {
		b.note(guestOf("vm", 1, fmt.Sprint(i)), route.ID(fmt.Sprint(i)), now)
	}
	if _, ok := b.host(a, time.Minute, now); ok {
		t.Error("the one served longest ago is still there")
	}
	if by, ok := b.host(other, time.Minute, now.Add(time.Minute)); !ok || by != "two" {
		t.Errorf("%q %v", by, ok)
	}
	if _, ok := b.host(other, time.Minute, now.Add(time.Minute+1)); ok {
		t.Error("its time is over")
	}
	if b.visits.Len() != maxGuests {
		t.Errorf("%d entries", b.visits.Len())
	}
}
