package health

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A lobby is a board where callers wait, by the names that a test gives them.
type lobby struct {
	t     *testing.T
	b     *Board
	order []string
	place map[string]*Place
	lease map[string]*Lease
}

func newLobby(t *testing.T) *lobby {
	return &lobby{t: t, b: NewBoard(), place: map[string]*Place{}, lease: map[string]*Lease{}}
}

// come has a caller, whose client is what stands before the digit, wait.
func (l *lobby) come(name string, second float64, wants ...Want) {
	l.t.Helper()
	l.order = append(l.order, name)
	l.place[name] = l.b.Wait(strings.TrimRight(name, "0123456789"), at(second), wants...)
}

// in are those that have got a lease since it was asked last, in the order in which
// they came.
func (l *lobby) in() string {
	var got []string
	for _, name := range l.order {
		p := l.place[name]
		if p == nil {
			continue
		}
		select {
		case <-p.Ready():
			lease, want := p.Leave()
			if lease == nil {
				l.t.Errorf("%s was called, and there is no lease", name)
			}
			l.lease[name], l.place[name] = lease, nil
			got = append(got, fmt.Sprint(name, ":", want))
		default:
		}
	}
	return strings.Join(got, " ")
}

func (l *lobby) settle(name string, second float64) {
	l.lease[name].Settle(OK, at(second), Strike{})
}

func (l *lobby) is(want string) {
	l.t.Helper()
	if got := l.in(); got != want {
		l.t.Errorf("got in: %q, want %q", got, want)
	}
}

// Clients take turns, however much one of them sends; one client's own callers go in
// order; who comes later does not go before them.
func TestClientsTakeTurns(t *testing.T) {
	l := newLobby(t)
	one := Want{Key: k, Limits: Limits{Parallel: 1}}
	l.come("a0", 0, one)
	l.is("a0:0") // there was room at once
	for i := 1; i <= 5; i++ {
		l.come(fmt.Sprint("a", i), 0, one)
	}
	l.come("b1", 0, one)
	l.come("b2", 0, one)
	l.come("c1", 0, one)
	last := "a0"
	for i, want := range []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4", "a5"} {
		if limit, _, waiting := l.b.Crowd(k, one.Limits, at(float64(i))); limit != Parallel || waiting != 8-i {
			t.Errorf("%v, %d wait, want %d", limit, waiting, 8-i)
		}
		l.settle(last, float64(i))
		if _, r, ok := l.b.Enter(k, one.Limits, at(float64(i)), false); ok || r.Limit != Parallel {
			t.Errorf("somebody went before those who wait: %+v", r)
		}
		l.is(want + ":0")
		last = want
	}
	l.settle(last, 9)
	if _, _, waiting := l.b.Crowd(k, one.Limits, at(9)); waiting != 0 {
		t.Errorf("%d wait", waiting)
	}
	if _, _, ok := l.b.Enter(k, one.Limits, at(9), false); !ok {
		t.Error("nobody waits, and there is no room")
	}
}

// Who waits at several keys gets the first with room, and stands in no other line then.
func TestWaitingAtSeveralKeys(t *testing.T) {
	l := newLobby(t)
	x, y := Want{Key: "u:x", Limits: Limits{Parallel: 1}}, Want{Key: "u:y", Limits: Limits{Parallel: 1}}
	l.come("ax0", 0, x)
	l.come("ay0", 0, y)
	l.is("ax0:0 ay0:0")
	l.come("a1", 1, x, y)
	l.come("a2", 1, x, y)
	l.come("b1", 1, y)
	l.settle("ay0", 2)
	l.is("a1:1")
	if _, _, n := l.b.Crowd("u:x", x.Limits, at(2)); n != 1 {
		t.Errorf("%d wait at x, want 1", n)
	}
	l.settle("a1", 3)
	l.is("b1:0") // a has had its turn at y
	l.settle("ax0", 3)
	l.is("a2:0")
	for _, key := range []Key{"u:x", "u:y"} {
		if e := l.b.entries[key]; e.line != nil {
			t.Errorf("somebody is left in the line of %s", key)
		}
	}
}

// Who leaves frees its place, and gives back a lease that it had been given meanwhile.
func TestLeavingALine(t *testing.T) {
	l := newLobby(t)
	one := Want{Key: k, Limits: Limits{Parallel: 1}}
	l.come("a0", 0, one)
	l.is("a0:0")
	l.come("a1", 0, one)
	l.come("b1", 0, one)
	if lease, _ := l.place["a1"].Leave(); lease != nil {
		t.Error("a lease without room")
	}
	if lease, _ := l.place["a1"].Leave(); lease != nil { // leaves once
		t.Error("a lease without room")
	}
	l.place["a1"] = nil
	l.settle("a0", 1)
	lease, _ := l.place["b1"].Leave() // called, and gone
	if lease == nil {
		t.Fatal("b1 was not let in")
	}
	lease.Settle(Abandoned, at(1), Strike{})
	if n := l.b.InFlight(k); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// A limit of the minute ends with time alone, so who waits looks again; a freeze keeps
// everybody out, and is told; its end lets in.
func TestLookingAgain(t *testing.T) {
	l := newLobby(t)
	w := Want{Key: k, Limits: Limits{RPM: 2}}
	l.come("a0", 0, w)
	l.come("a1", 10, w)
	l.is("a0:0 a1:0")
	l.come("a2", 20, w)
	l.come("b1", 20, w)
	if r := l.place["a2"].Look(at(20)); len(r) != 1 || r[0].Limit != RPM || r[0].Wait != 40*time.Second {
		t.Errorf("%+v", r)
	}
	l.is("")
	l.b.Freeze(k, Freeze{Length: 45 * time.Second}, at(20))
	if r := l.place["a2"].Look(at(60)); len(r) != 1 || !r[0].Freeze.Until.Equal(at(65)) {
		t.Errorf("%+v", r)
	}
	l.is("")
	l.place["b1"].Look(at(65)) // whoever looks lets the first in
	l.is("a2:0")
	l.place["b1"].Look(at(71))
	l.is("b1:0")
}

// Another limit holds at once, for those who wait too.
func TestALimitChanges(t *testing.T) {
	l := newLobby(t)
	w := Want{Key: k, Limits: Limits{Parallel: 1}}
	for _, name := range []string{"a0", "a1", "b1", "c1"} {
		l.come(name, 0, w)
	}
	l.is("a0:0")
	set := func(limits Limits) {
		l.b.Relimit(func(key Key) (Limits, bool) { return limits, key == k }, at(1))
	}
	set(Limits{Parallel: 3})
	l.is("a1:0 b1:0")
	set(Limits{Parallel: 2})
	l.settle("a0", 2)
	l.is("")
	set(Limits{})
	l.is("c1:0")
}

// However many wait, leave and are let in at once, no more are in than may, and all
// who stay get in.
func TestLinesInARace(t *testing.T) {
	b := NewBoard()
	keys := []Want{{Key: "u:x", Limits: Limits{Parallel: 2}}, {Key: "u:y", Limits: Limits{Parallel: 3}}}
	var mu sync.Mutex
	in, most, got := map[Key]int{}, map[Key]int{}, 0
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			p := b.Wait(fmt.Sprint("c", i%7), at(0), keys...)
			if i%5 == 0 {
				if lease, _ := p.Leave(); lease != nil {
					lease.Settle(Abandoned, at(0), Strike{})
				}
				return
			}
			<-p.Ready()
			lease, n := p.Leave()
			key := keys[n].Key
			mu.Lock()
			in[key]++
			got++
			most[key] = max(most[key], in[key])
			mu.Unlock()
			mu.Lock()
			in[key]--
			mu.Unlock()
			lease.Settle(OK, at(0), Strike{})
		})
	}
	wg.Wait()
	if most["u:x"] > 2 || most["u:y"] > 3 || got != 320 {
		t.Errorf("at most %v at once, %d got in", most, got)
	}
	if left := slices.Collect(func(yield func(int) bool) {
		for _, e := range b.entries {
			if e.line != nil || e.inFlight != 0 {
				yield(e.inFlight)
			}
		}
	}); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
