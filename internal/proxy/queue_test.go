package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// alone is a chain of one candidate with limits, and a queue_timeout in seconds.
func alone(limits string, timeout int, more string) string {
	return strings.Replace(chain(1, fmt.Sprintf("server: {queue_timeout: %d}\n%s", timeout, more)), "model: m1}", "model: m1, "+limits+"}", 1)
}

// threeClients are client keys, and keyOf the headers that carry them.
const threeClients = "clients:\n  - {name: ann, key: client-key-ann-0123456789}\n  - {name: bob, key: client-key-bob-0123456789}\n  - {name: cid, key: client-key-cid-0123456789}"

func keyOf(name string) []string { return []string{"X-Api-Key", "client-key-" + name + "-0123456789"} }

// A candidate at its limit is passed over while somebody else is left; where nobody
// is, the request waits for room, up to queue_timeout.
func TestWaitingForRoom(t *testing.T) {
	inBubble(t, "somebody else is left", func(t *testing.T) {
		s := newScene(t, limited("max_parallel: 1", "server: {queue_timeout: 30}"))
		s.play("u1", after(5*time.Second, 0))
		s.play("u2", sayPong)
		one := s.aside()
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 0)
		s.from(<-one, "u1")
		s.idle()
	})
	inBubble(t, "somebody else fails", func(t *testing.T) {
		s := newScene(t, limited("max_parallel: 1", "server: {queue_timeout: 30}\nrules: []"))
		s.play("u1", after(5*time.Second, 0))
		s.play("u2", refusal(500, "{}"))
		one := s.aside()
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 10*time.Second)
		s.from(<-one, "u1")
		equal(t, "calls", s.counts("u1", "u2"), []int{2, 1})
		s.idle()
	})
	inBubble(t, "room comes", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 30, ""))
		s.play("u1", after(5*time.Second, 0))
		var all []<-chan reply
		for range 4 {
			all = append(all, s.aside())
		}
		var took []time.Duration
		for _, one := range all {
			got := <-one
			s.from(got, "u1")
			took = append(took, got.took)
		}
		slices.Sort(took)
		equal(t, "took", fmt.Sprint(took), "[5s 10s 15s 20s]")
		if skips := s.records()[1].Skips; len(skips) != 1 || skips[0].Reason != "at its limit of 1 requests at once (max_parallel); room after 5s" {
			t.Errorf("the trail says %+v", skips)
		}
		s.idle()
	})
	inBubble(t, "the first of two", func(t *testing.T) {
		cfg := strings.NewReplacer("model: m1}", "model: m1, max_parallel: 1}", "model: m2}", "model: m2, max_parallel: 1}").Replace(chain(2, "server: {queue_timeout: 30}"))
		s := newScene(t, cfg)
		s.play("u1", after(9*time.Second, 0))
		s.play("u2", after(4*time.Second, 0))
		one, two, three := s.aside(), s.aside(), s.aside()
		s.from(<-two, "u2")
		s.from(<-three, "u2")
		s.from(<-one, "u1")
		s.idle()
	})
	inBubble(t, "the time ends", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 3, ""))
		s.play("u1", after(10*time.Second, 0))
		one := s.aside()
		got := s.hi()
		s.refused(got, 429)
		equal(t, "took", got.took, 3*time.Second)
		equal(t, "Retry-After", got.header.Get("Retry-After"), "1")
		if skips := s.records()[0].Skips; len(skips) != 1 || skips[0].Reason != "at its limit of 1 requests at once (max_parallel); no room in 3s" {
			t.Errorf("the trail says %+v", skips)
		}
		s.from(<-one, "u1")
		equal(t, "calls", s.counts("u1"), []int{1})
		s.idle()
	})
	inBubble(t, "chain_timeout ends first", func(t *testing.T) {
		s := newScene(t, strings.Replace(alone("max_parallel: 1", 30, ""), "30}", "30, chain_timeout: 4}", 1))
		s.play("u1", after(3*time.Second, 20*time.Second))
		one := s.aside()
		got := s.hi()
		s.refused(got, 429)
		equal(t, "took", got.took, 4*time.Second)
		s.from(<-one, "u1")
		s.idle()
	})
	inBubble(t, "the client leaves", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 30, ""))
		s.play("u1", after(10*time.Second, 0))
		one := s.aside()
		leave := s.leaving(chatBody("vm", true))
		s.till(2 * time.Second)
		s.waiting("u1", 1)
		leave()
		synctest.Wait()
		if r := s.records(); len(r) != 1 || r[0].Ending != stats.Cancelled {
			t.Errorf("booked %+v", r)
		}
		s.waiting("u1", 0)
		two := s.aside()
		s.from(<-one, "u1")
		s.from(<-two, "u1") // nobody stands in its way
		equal(t, "at", s.now(), 20*time.Second)
		s.idle()
	})
	inBubble(t, "a freeze comes", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 30, ""))
		s.play("u1", after(10*time.Second, 0))
		one, two := s.aside(), s.aside()
		s.till(2 * time.Second)
		s.freeze("u1", time.Hour, health.Person)
		s.refused(<-two, 502)
		equal(t, "at", s.now(), 2*time.Second)
		s.from(<-one, "u1")
		s.idle()
	})
}

// A limit of the minute is waited for where it ends in time, and not where it does not.
func TestWaitingForTheMinute(t *testing.T) {
	inBubble(t, "in time", func(t *testing.T) {
		s := newScene(t, alone("rpm: 1", 90, ""))
		s.play("u1", sayPong)
		s.from(s.hi(), "u1")
		s.till(10 * time.Second)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 50*time.Second)
		s.idle()
	})
	inBubble(t, "in vain", func(t *testing.T) {
		s := newScene(t, alone("rpm: 1", 30, ""))
		s.play("u1", sayPong)
		s.from(s.hi(), "u1")
		s.till(10 * time.Second)
		got := s.hi()
		s.refused(got, 429)
		equal(t, "took", got.took, 0)
		equal(t, "Retry-After", got.header.Get("Retry-After"), "50")
		s.idle()
	})
}

// waiting asserts how many requests wait for room at a candidate.
func (s *scene) waiting(name string, want int) {
	s.t.Helper()
	c := s.candidate(name)
	if _, _, n := s.handler.Board().Crowd(Key(c.ID), Limits(c), time.Now()); n != want {
		s.t.Errorf("%d wait for %s, want %d", n, name, want)
	}
}

// Clients take turns for room: one that has twenty requests waiting is served no more
// often than one that has two.
func TestAGreedyClientStarvesNobody(t *testing.T) {
	inBubble(t, "turns", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 300, threeClients))
		var mu sync.Mutex
		var order []string
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			mu.Lock()
			order = append(order, r.Get("X-Name"))
			mu.Unlock()
			after(time.Second, 0)(w, r, n)
		})
		var all []<-chan reply
		come := func(name string, n int) {
			for range n {
				all = append(all, s.aside(append(keyOf(name), "X-Name", name)...))
			}
		}
		come("ann", 8)
		come("bob", 2)
		come("cid", 2)
		for _, one := range all {
			s.from(<-one, "u1")
		}
		equal(t, "order", strings.Join(order, " "), "ann ann bob cid ann bob cid ann ann ann ann ann")
		s.idle()
	})
}

// Another limit holds from the reload on, for those who wait too; what is in flight
// goes on counting.
func TestALimitThatChangesHoldsAtOnce(t *testing.T) {
	inBubble(t, "reload", func(t *testing.T) {
		s := newScene(t, alone("max_parallel: 1", 300, ""))
		s.play("u1", after(10*time.Second, 0))
		var all []<-chan reply
		for range 6 {
			all = append(all, s.aside())
		}
		s.till(2 * time.Second)
		s.handler.Swap(compile(t, alone("max_parallel: 3", 300, "")))
		synctest.Wait()
		equal(t, "calls", s.counts("u1"), []int{3})
		s.till(3 * time.Second)
		s.handler.Swap(compile(t, alone("max_parallel: 1", 300, "")))
		for _, one := range all {
			s.from(<-one, "u1")
		}
		equal(t, "calls at", fmt.Sprint(s.when("u1")), "[0s 2s 2s 12s 22s 32s]")
		s.idle()
	})
}

// However many ask at once, a real upstream never sees more requests than
// max_parallel, and everybody is served.
func TestNeverMoreInFlightThanMayBe(t *testing.T) {
	const most, clients, each = 5, 24, 12
	var in, peak atomic.Int64
	var once atomic.Bool
	full := make(chan struct{})
	u := play(t, func(w *drill.Wire, r drill.Request, n int) {
		now := in.Add(1)
		for {
			before := peak.Load()
			if now <= before || peak.CompareAndSwap(before, now) {
				break
			}
		}
		if now == most && !once.Swap(true) {
			close(full)
		}
		select { // the first ones wait for each other, so that all places have been taken
		case <-full:
		case <-time.After(10 * time.Second):
		}
		in.Add(-1)
		page("application/json", okChat)(w, r, n)
	})
	r := newRig(t, strings.Replace(over("server: {queue_timeout: 60}\n"+threeClients, u.URL()), "model: m1}", fmt.Sprintf("model: m1, max_parallel: %d}", most), 1))
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			name := []string{"ann", "bob", "cid"}[i%3]
			for range each {
				if got := r.post(chatPath, chatBody("vm", false), keyOf(name)...); got.Status != 200 {
					t.Errorf("%d: %s", got.Status, got.Body)
				}
			}
		})
	}
	wg.Wait()
	if p := peak.Load(); p != most {
		t.Errorf("%d in flight at once, want %d", p, most)
	}
	if n := len(u.Requests()); n != clients*each {
		t.Errorf("%d requests, want %d", n, clients*each)
	}
	r.settle()
	for _, tier := range r.handler.Snapshot().Routes.Chains()[0].Tiers {
		if n := r.handler.Board().InFlight(Key(tier[0].ID)); n != 0 {
			t.Errorf("%d leases are left", n)
		}
	}
}
