package health_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
)

const key = health.Key("u:0123456789abcdef")

// a member is one instance with its board, running.
type member struct {
	*health.Board
	*health.Peers
	callers *health.Board
	name    string
	heard   []health.Freeze
	changes []health.Status
	leave   func()
}

// member joins the hub and waits until it is in.
func join(t *testing.T, store health.Store, name string) *member {
	t.Helper()
	m := &member{Board: health.NewBoard(), callers: health.NewBoard(), name: name}
	m.Peers = health.Join(store, name, func(f health.Freeze) { m.heard = append(m.heard, f) },
		func(s health.Status) { m.changes = append(m.changes, s) }, m.Board, m.callers)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	m.leave = func() {
		cancel()
		wg.Wait()
	}
	return m
}

// members are so many instances that know of each other. They leave at the end of the bubble.
func members(t *testing.T, hub *healthtest.Hub, n int) (list []*member, end func()) {
	t.Helper()
	for i := range n {
		name := fmt.Sprint("instance-", i)
		list = append(list, join(t, hub.Store(name), name))
	}
	pass(2 * time.Second) // everybody has beaten after the last had come
	for _, m := range list {
		if s := m.Status(); !s.Up || len(s.Names) != n {
			t.Fatalf("%s is not in: %+v", m.name, s)
		}
	}
	return list, func() {
		for _, m := range list {
			m.leave()
		}
	}
}

// pass lets time pass in the bubble, and all that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func standing(t *testing.T, m *member, want health.Standing) health.Freeze {
	t.Helper()
	s, f := m.Standing(key, time.Now())
	if s != want {
		t.Fatalf("%s has it %v (%+v), want %v", m.name, s, f, want)
	}
	return f
}

func TestAFreezeIsKnownEverywhereAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms, end := members(t, new(healthtest.Hub), 3)
		defer end()
		changed := ms[1].Changed()
		ms[0].Freeze(key, health.Freeze{Length: time.Hour, Reason: "429", By: health.Rule}, time.Now())
		synctest.Wait()
		for _, m := range ms {
			f := standing(t, m, health.Frozen)
			if time.Until(f.Until) != time.Hour || f.Reason != "429" || f.By != health.Rule {
				t.Fatalf("%s has %+v", m.name, f)
			}
			if (f.From == "") != (m == ms[0]) || m != ms[0] && f.From != "instance-0" {
				t.Fatalf("%s has it from %q", m.name, f.From)
			}
		}
		select {
		case <-changed:
		default:
			t.Fatal("nobody who waits for a change was woken")
		}
		if len(ms[1].heard) != 1 || len(ms[0].heard) != 0 {
			t.Fatalf("heard %v and %v", ms[1].heard, ms[0].heard)
		}
		if n := ms[1].Counters(key).Freezes; n != 1 {
			t.Fatalf("counted %d freezes", n)
		}
		pass(time.Minute) // nothing is told again by the rescans
		if len(ms[1].heard) != 1 {
			t.Fatalf("heard again: %v", ms[1].heard)
		}
		ms[2].Thaw(key, time.Now())
		synctest.Wait()
		for _, m := range ms {
			standing(t, m, health.Ready)
		}
	})
}

func TestASuccessReachesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms, end := members(t, new(healthtest.Hub), 2)
		defer end()
		ms[0].Freeze(key, health.Freeze{Length: time.Second, By: health.Streak}, time.Now())
		pass(2 * time.Second)
		standing(t, ms[1], health.Probation)
		l, _, ok := ms[1].Acquire(key, time.Now(), false)
		if !ok {
			t.Fatal("refused on probation")
		}
		l.Released(time.Now())
		synctest.Wait()
		standing(t, ms[0], health.Ready)
		l.Settle(health.OK, time.Now(), health.Strike{})
	})
}

func TestOneTrialAtATimeOverAllInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms, end := members(t, new(healthtest.Hub), 3)
		defer end()
		for round := range 20 {
			k := health.Key(fmt.Sprintf("u:%016x", round))
			ms[round%3].Freeze(k, health.Freeze{Length: time.Second, By: health.Rule}, time.Now())
			pass(time.Second)
			// All come at once, again and again; each trial takes a while and is
			// abandoned, but for the last.
			running, trials := 0, 0
			for step := 0; step < 400 && trials < 5; step++ {
				for _, m := range ms {
					l, _, ok := m.Acquire(k, time.Now(), false)
					if !ok {
						continue
					}
					if running++; running > 1 {
						t.Fatalf("round %d, step %d: two trials at once", round, step)
					}
					trials++
					time.AfterFunc(50*time.Millisecond, func() { running--; l.Settle(health.Abandoned, time.Now(), health.Strike{}) })
				}
				pass(10 * time.Millisecond)
			}
			if trials != 5 {
				t.Fatalf("round %d: %d trials", round, trials)
			}
			// Where nobody else is left, everybody tries.
			for _, m := range ms {
				l, _, ok := m.Acquire(k, time.Now(), true)
				if !ok {
					t.Fatal("refused, though nobody is left")
				}
				l.Settle(health.Abandoned, time.Now(), health.Strike{})
			}
			pass(time.Second)
		}
	})
}

func TestTheTrialOfAnInstanceThatIsGoneIsTakenOver(t *testing.T) {
	for _, how := range []string{"leaves", "is cut off", "leaves the one who hears"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := new(healthtest.Hub)
				ms, end := members(t, hub, 2)
				defer end()
				ms[0].Freeze(key, health.Freeze{Length: time.Second, By: health.Rule}, time.Now())
				pass(2 * time.Second)
				l, _, ok := ms[0].Acquire(key, time.Now(), false)
				if !ok || !l.Trial() {
					t.Fatal("no trial")
				}
				synctest.Wait()
				if _, _, ok := ms[1].Acquire(key, time.Now(), false); ok {
					t.Fatal("two trials at once")
				}
				switch how {
				case "leaves":
					ms[0].leave()
					pass(time.Second)
				case "is cut off":
					hub.Cut("instance-0", true)
					pass(health.Lifetime + 2*time.Second)
				default:
					hub.Cut("instance-1", true)
					pass(2 * time.Second)
				}
				if _, _, ok := ms[1].Acquire(key, time.Now(), false); !ok {
					t.Fatal("nobody tries it any more")
				}
			})
		})
	}
}

func TestWhoWasCutOffLearnsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		ms, end := members(t, hub, 2)
		defer end()
		now := time.Now()
		ms[0].Freeze(key, health.Freeze{Length: time.Hour, By: health.Person, Reason: "by hand"}, now)
		synctest.Wait()
		hub.Cut("instance-1", true)
		pass(2 * time.Second)
		if s := ms[1].Status(); s.Up || s.Problem == nil {
			t.Fatalf("status %+v", s)
		}
		other := health.Key("u:00000000000000ff")
		ms[1].Freeze(other, health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		ms[0].Thaw(key, time.Now())
		pass(time.Second)
		standing(t, ms[1], health.Frozen)
		hub.Cut("instance-1", false)
		pass(3 * time.Second)
		if s := ms[1].Status(); !s.Up || s.Problem != nil || s.Waiting != 0 {
			t.Fatalf("status %+v", s)
		}
		standing(t, ms[1], health.Ready)
		if s, _ := ms[0].Standing(other, time.Now()); s != health.Frozen {
			t.Fatal("what was frozen meanwhile was never told")
		}
		if n := len(ms[1].changes); n != 3 {
			t.Fatalf("%d changes of state were told, want in, out, in: %+v", n, ms[1].changes)
		}
	})
}

func TestAStoreThatForgetsIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		ms, end := members(t, hub, 2)
		defer end()
		ms[0].Freeze(key, health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		l := health.Limits{Parallel: 2, RPM: 5}
		for range 2 {
			lease, _, ok := ms[0].Enter("u:11", l, time.Now(), false)
			if !ok {
				t.Fatal("refused")
			}
			lease.Settle(health.OK, time.Now(), health.Strike{})
		}
		for range 2 {
			if _, _, ok := ms[0].Enter("u:11", l, time.Now(), false); !ok {
				t.Fatal("refused")
			}
		}
		synctest.Wait()
		hub.Flush()
		pass(2 * time.Second)
		third := join(t, hub.Store("third"), "third")
		defer third.leave()
		pass(2 * time.Second)
		standing(t, third, health.Frozen)
		if _, refusal, ok := third.Enter("u:11", l, time.Now(), false); ok || refusal.Limit != health.Parallel {
			t.Fatalf("%+v %v: what the others have open is forgotten", refusal, ok)
		}
		if _, _, ok := third.Enter("u:11", health.Limits{RPM: 5}, time.Now(), false); !ok {
			t.Fatal("the fifth of the minute is refused")
		}
		if _, refusal, ok := third.Enter("u:11", health.Limits{RPM: 5}, time.Now(), false); ok || refusal.Limit != health.RPM {
			t.Fatalf("%+v %v: what the others have begun is forgotten", refusal, ok)
		}
	})
}

func TestLimitsAreForAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		ms, end := members(t, hub, 2)
		defer end()
		two := health.Limits{Parallel: 2}
		var leases []*health.Lease
		for _, m := range ms {
			l, _, ok := m.Enter(key, two, time.Now(), false)
			if !ok {
				t.Fatal("refused within the limit")
			}
			leases = append(leases, l)
		}
		if _, refusal, ok := ms[1].Enter(key, two, time.Now(), false); ok || refusal.Limit != health.Parallel {
			t.Fatalf("beyond the limit: %+v %v", refusal, ok)
		}
		if n := ms[1].InFlight(key); n != 1 {
			t.Fatalf("%d in flight after a refusal", n)
		}
		// Who waits at another instance is let in, one for each that ends.
		places := []*health.Place{
			ms[1].Wait("x", time.Now(), health.Want{Key: key, Limits: two}),
			ms[1].Wait("y", time.Now(), health.Want{Key: key, Limits: two}),
		}
		let := func() (n int) {
			synctest.Wait()
			for _, p := range places {
				select {
				case <-p.Ready():
					n++
				default:
				}
			}
			return n
		}
		if n := let(); n != 0 {
			t.Fatalf("%d let in beyond the limit", n)
		}
		leases[0].Settle(health.OK, time.Now(), health.Strike{})
		if n := let(); n != 1 {
			t.Fatalf("%d let in, where there is room for one", n)
		}
		pass(5 * time.Second)
		if n := let(); n != 1 {
			t.Fatalf("%d let in, where there is room for one", n)
		}
		for _, p := range places {
			if l, _ := p.Leave(); l != nil {
				l.Settle(health.OK, time.Now(), health.Strike{})
			}
		}
		synctest.Wait() // what was reserved for who has left goes back
		l, refusal, ok := ms[0].Enter(key, two, time.Now(), false)
		if !ok {
			t.Fatalf("refused, though there is room: %+v", refusal)
		}
		l.Settle(health.OK, time.Now(), health.Strike{})
		leases[1].Settle(health.OK, time.Now(), health.Strike{})

		// A client's, and tokens.
		hundred := health.Limits{TPM: 100}
		c, _, ok := ms[0].callers.Enter("c:alice", hundred, time.Now(), false)
		if !ok {
			t.Fatal("refused")
		}
		c.Settle(health.Abandoned, time.Now(), health.Strike{})
		c.Spend(100, time.Now())
		synctest.Wait()
		_, refusal, ok = ms[1].callers.Enter("c:alice", hundred, time.Now(), false)
		if ok || refusal.Limit != health.TPM || refusal.Wait != time.Minute {
			t.Fatalf("%+v %v", refusal, ok)
		}
		pass(time.Minute)
		if _, _, ok := ms[1].callers.Enter("c:alice", hundred, time.Now(), false); !ok {
			t.Fatal("refused after the minute")
		}
		if s := ms[1].Status(); s.Alone != 0 {
			t.Fatalf("%d limits were decided alone", s.Alone)
		}
	})
}

func TestLimitsAreDividedWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		ms, end := members(t, hub, 2)
		defer end()
		l := health.Limits{Parallel: 5, RPM: 7}
		enter := func(m *member) bool {
			began := time.Now()
			lease, _, ok := m.Enter(key, l, began, false)
			if ok {
				lease.Settle(health.OK, time.Now(), health.Strike{})
			}
			if took := time.Since(began); took > health.Patience {
				t.Fatalf("waited %v", took)
			}
			return ok
		}
		for _, m := range ms {
			hub.Cut(m.name, true)
		}
		pass(2 * time.Second)
		for n := range 4 {
			if ok := enter(ms[0]); ok != (n < 3) {
				t.Fatalf("request %d of an instance whose share is 3 of 7: %v", n+1, ok)
			}
		}
		if !enter(ms[1]) {
			t.Fatal("the other one's share is gone too")
		}
		if s := ms[0].Status(); s.Alone != 3 {
			t.Fatalf("%d limits were decided alone", s.Alone)
		}
		for _, m := range ms {
			hub.Cut(m.name, false)
		}
		pass(2 * time.Second)
		for n := range 4 { // 4 of the minute's 7 were had
			if ok := enter(ms[n%2]); ok != (n < 3) {
				t.Fatalf("request %d after the store is back: %v", n+1, ok)
			}
		}
	})
}

// slow answers to Count after a while.
type slow struct {
	health.Store
	after atomic.Int64 // nanoseconds
}

func (s *slow) Count(ctx context.Context, had []health.Usage, asks []health.Ask) ([]health.Grant, error) {
	select {
	case <-time.After(time.Duration(s.after.Load())):
		return s.Store.Count(ctx, had, asks)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestNobodyWaitsForASlowStore(t *testing.T) {
	for _, after := range []time.Duration{3 * time.Millisecond, 50 * time.Millisecond, time.Hour} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := new(healthtest.Hub)
				s := &slow{Store: hub.Store("a")}
				m := join(t, s, "a")
				defer m.leave()
				pass(2 * time.Second)
				s.after.Store(int64(after))
				late := 0
				for range 100 {
					began := time.Now()
					l, _, ok := m.Enter(key, health.Limits{Parallel: 1, RPM: 1000}, began, false)
					if !ok {
						t.Fatal("refused: the only instance's share is all")
					}
					switch took := time.Since(began); {
					case took > health.Patience:
						t.Fatalf("waited %v", took)
					case took > 0:
						late++
					}
					l.Settle(health.OK, time.Now(), health.Strike{})
					pass(time.Millisecond)
				}
				if late != 1 {
					t.Fatalf("%d requests waited in vain, want the first alone", late)
				}
				s.after.Store(0)
				pass(2 * time.Second)
				l, _, ok := m.Enter(key, health.Limits{Parallel: 1}, time.Now(), false)
				if !ok {
					t.Fatal("refused: what was given back is still counted")
				}
				before := m.Status().Alone
				l.Settle(health.OK, time.Now(), health.Strike{})
				if l, _, ok = m.Enter(key, health.Limits{Parallel: 1}, time.Now(), false); !ok || m.Status().Alone != before {
					t.Fatal("the store is not asked again")
				}
				l.Settle(health.OK, time.Now(), health.Strike{})
			})
		})
	}
}

func TestNewsThatWaitAreBoundedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		hub.Cut("a", true)
		m := join(t, hub.Store("a"), "a")
		defer m.leave()
		for n := range 1100 {
			m.Freeze(health.Key(fmt.Sprintf("u:%016x", n)), health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		}
		synctest.Wait()
		if s := m.Status(); s.Waiting != 1024 || s.Dropped != 1100-1024 || s.Up || s.Problem == nil {
			t.Fatalf("%+v", s)
		}
		hub.Cut("a", false)
		pass(10 * time.Second)
		// What was dropped is found missing, and told all the same.
		if s := m.Status(); !s.Up || s.Waiting != 0 || hub.Puts() != 1100 {
			t.Fatalf("%+v, %d freezes are in the store", s, hub.Puts())
		}
	})
}

// late is a store that takes thaws only from a moment on.
type late struct {
	health.Store
	from chan struct{}
}

func (s *late) Drop(ctx context.Context, k health.Key, by health.By) error {
	select {
	case <-s.from:
		return s.Store.Drop(ctx, k, by)
	default:
		return context.DeadlineExceeded
	}
}

// A person's thaw waits to be told while another instance tells its freeze again, to a
// store that has forgotten it.
func TestAThawThatWasToldLateHoldsWhereItWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		store := &late{hub.Store("instance-1"), make(chan struct{})}
		a, b := join(t, hub.Store("instance-0"), "instance-0"), join(t, store, "instance-1")
		defer a.leave()
		defer b.leave()
		pass(2 * time.Second)
		a.Freeze(key, health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		pass(time.Second)
		standing(t, b, health.Frozen)
		b.Thaw(key, time.Now())
		hub.Flush()
		pass(2 * time.Second)
		standing(t, b, health.Frozen) // the store knows nothing else
		close(store.from)
		pass(5 * time.Second)
		standing(t, a, health.Ready)
		standing(t, b, health.Ready)
		if b.Peers.Status().Waiting > 0 || len(b.heard) != 2 {
			t.Errorf("%+v, heard %v", b.Peers.Status(), b.heard)
		}
	})
}

// A freeze that waits to be told outlives an older thaw of another instance's that comes
// late.
func TestAFreezeHoldsWhereItWasMadeAfterAnOlderThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := new(healthtest.Hub)
		ms, end := members(t, hub, 2)
		defer end()
		ms[0].Freeze(key, health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		pass(time.Second)
		hub.Cut("instance-1", true)
		pass(time.Second)
		ms[0].Thaw(key, time.Now())
		pass(time.Second)
		ms[1].Thaw(key, time.Now())
		ms[1].Freeze(key, health.Freeze{Length: time.Hour, By: health.Person}, time.Now())
		hub.Cut("instance-1", false)
		pass(5 * time.Second)
		for _, m := range ms {
			if f := standing(t, m, health.Frozen); f.By != health.Person {
				t.Errorf("%s has %+v", m.name, f)
			}
		}
	})
}

// far is a store behind a network: a call takes a while to get there, its reply a while to
// come back, and news a while to come.
type far struct {
	health.Store
	there, back, news time.Duration
}

func (s *far) Put(ctx context.Context, f health.Freeze) error {
	time.Sleep(s.there)
	defer time.Sleep(s.back)
	return s.Store.Put(ctx, f)
}

func (s *far) Drop(ctx context.Context, k health.Key, by health.By) error {
	time.Sleep(s.there)
	defer time.Sleep(s.back)
	return s.Store.Drop(ctx, k, by)
}

func (s *far) Watch(ctx context.Context, told func(health.Change)) {
	s.Store.Watch(ctx, func(c health.Change) {
		if c.News == health.Froze || c.News == health.Thawed {
			time.Sleep(s.news)
		}
		told(c)
	})
}

// pair are two instances, of which the second is far from the store.
func pair(t *testing.T, f far) (near, away *member, end func()) {
	t.Helper()
	hub := new(healthtest.Hub)
	f.Store = hub.Store("instance-1")
	near, away = join(t, hub.Store("instance-0"), "instance-0"), join(t, &f, "instance-1")
	pass(2 * time.Second)
	return near, away, func() {
		near.leave()
		away.leave()
	}
}

// Who contradicts another at the same moment comes to stand as the store has it, although
// the store tells everybody before it answers.
func TestContradictionsEndAsTheStoreHasThem(t *testing.T) {
	person := func(length time.Duration) health.Freeze { return health.Freeze{Length: length, By: health.Person} }
	for name, play := range map[string]struct {
		first, second func(near, away *member)
		want          health.Standing
	}{
		"a thaw here, a freeze there": {func(near, _ *member) { near.Freeze(key, person(time.Hour), time.Now()) }, func(near, away *member) {
			away.Thaw(key, time.Now())
			pass(5 * time.Millisecond)
			near.Freeze(key, person(2*time.Hour), time.Now())
		}, health.Ready},
		"a freeze here, a thaw there": {func(near, away *member) {}, func(near, away *member) {
			away.Freeze(key, person(time.Hour), time.Now())
			pass(5 * time.Millisecond)
			near.Freeze(key, person(time.Minute), time.Now())
			near.Thaw(key, time.Now()) // it was later, though it is told sooner
		}, health.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, away, end := pair(t, far{there: 20 * time.Millisecond, back: time.Millisecond})
				defer end()
				play.first(near, away)
				pass(time.Second)
				play.second(near, away)
				pass(10 * time.Second)
				standing(t, near, play.want)
				standing(t, away, play.want)
			})
		})
	}
}

// What comes back of an instance's own word is old news where it has said another thing
// since, and changes nothing in between.
func TestOwnOldNewsChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, away, end := pair(t, far{there: 20 * time.Millisecond, back: time.Millisecond})
		defer end()
		away.Freeze(key, health.Freeze{Length: time.Hour, By: health.Person}, time.Now())
		away.Thaw(key, time.Now())
		for range 60 {
			standing(t, away, health.Ready)
			pass(time.Millisecond)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		near, away, end := pair(t, far{news: 50 * time.Millisecond})
		defer end()
		away.Freeze(key, health.Freeze{Length: time.Hour, By: health.Rule}, time.Now())
		pass(time.Second)
		away.Thaw(key, time.Now())
		away.Freeze(key, health.Freeze{Length: time.Hour, By: health.Person}, time.Now())
		for range 200 {
			if f := standing(t, away, health.Frozen); f.From != "" || f.By != health.Person {
				t.Fatalf("it has %+v", f)
			}
			pass(time.Millisecond)
		}
		standing(t, near, health.Frozen)
	})
}
