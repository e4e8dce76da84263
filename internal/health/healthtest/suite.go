package healthtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/internal/health"
)

// within bounds every wait of the suite; the store's own times are far shorter.
const within = time.Minute

const key = health.Key("u:0123456789abcdef")

// Suite holds stores to the contract of health.Store. open gives a store that nobody
// has used, as an instance of the given name has it: stores opened for one t belong
// together. Their rescans take a second at most.
func Suite(t *testing.T, open func(t *testing.T, name string) health.Store) {
	for _, test := range []struct {
		name string
		run  func(s *scene)
	}{
		{"freezes reach the others and come back", freezesReach},
		{"all hear the same in the same order", inOrder},
		{"automatic freezes only extend", onlyExtend},
		{"a person's freeze holds as given", personsHold},
		{"thaws reach the others", thawsReach},
		{"a freeze that is told again after its thaw stays lifted", toldAgain},
		{"a success does not lift what a person froze", successLeavesPersons},
		{"who comes later learns what stands", latecomers},
		{"a freeze that is over is a probation", probation},
		{"trials are told, and end with their instance", trials},
		{"instances know of each other", roll},
		{"max_parallel counts over all instances", parallel},
		{"rpm counts over all instances", rpm},
		{"tpm counts over all instances", tpm},
		{"who is granted at once is never too many", contention},
		{"what is told late counts from when it was", late},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(&scene{t: t, open: func(name string) health.Store { return open(t, name) }})
		})
	}
}

// A scene is a few instances and what each of them hears.
type scene struct {
	t    *testing.T
	open func(name string) health.Store
}

// an instance, with all that it was told.
type instance struct {
	health.Store
	t    *testing.T
	name string

	mu    sync.Mutex
	told  []health.Change
	known int
	news  chan struct{}
}

// instance opens a store and watches it until all that it holds has been told.
func (s *scene) instance(name string) *instance {
	s.t.Helper()
	i := &instance{Store: s.open(name), t: s.t, name: name, news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { i.Watch(ctx, i.hear) })
	s.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	i.until("all is known", func([]health.Change) bool { return i.known > 0 })
	return i
}

func (i *instance) hear(c health.Change) {
	i.mu.Lock()
	if c.News == health.Known {
		i.known++
	} else {
		i.told = append(i.told, c)
	}
	i.mu.Unlock()
	select {
	case i.news <- struct{}{}:
	default:
	}
}

// heard is all that it was told.
func (i *instance) heard() []health.Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.told)
}

// until waits for a condition on what was told.
func (i *instance) until(what string, ok func(told []health.Change) bool) {
	i.t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		i.mu.Lock()
		done, told := ok(i.told), fmt.Sprintf("%+v", i.told)
		i.mu.Unlock()
		if done {
			return
		}
		select {
		case <-i.news:
		case <-deadline.C:
			i.t.Fatalf("%s waits in vain until %s; it was told %s", i.name, what, told)
		}
	}
}

// last waits for news of a kind and returns the latest.
func (i *instance) last(news health.News) (c health.Change) {
	i.t.Helper()
	i.until(fmt.Sprintf("it is told news %d", news), func(told []health.Change) bool {
		for _, c = range slices.Backward(told) {
			if c.News == news {
				return true
			}
		}
		return false
	})
	return c
}

// rescanned waits until everything has been told anew, and returns how much was told
// in all.
func (i *instance) rescanned() []health.Change {
	i.t.Helper()
	i.mu.Lock()
	from := i.known
	i.mu.Unlock()
	i.until("everything is told again", func([]health.Change) bool { return i.known > from+1 })
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.told)
}

func (i *instance) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatalf("%s: %v", i.name, err)
	}
}

func (i *instance) put(by health.By, length time.Duration, reason string) {
	i.t.Helper()
	now := time.Now()
	i.must(i.Put(i.t.Context(), health.Freeze{Key: key, Since: now, Until: now.Add(length), Length: length, By: by, Reason: reason}))
}

func (i *instance) beat() health.Roll {
	i.t.Helper()
	r, err := i.Beat(i.t.Context())
	i.must(err)
	return r
}

func (i *instance) ask(l health.Limits) health.Grant {
	i.t.Helper()
	g, err := i.Count(i.t.Context(), nil, []health.Ask{{Key: key, Limits: l}})
	i.must(err)
	if len(g) != 1 {
		i.t.Fatalf("%s asked once and got %d grants", i.name, len(g))
	}
	return g[0]
}

// lasts checks how long a freeze still lasts, to the slack that a busy machine needs.
func lasts(t *testing.T, f health.Freeze, want time.Duration) {
	t.Helper()
	if left := time.Until(f.Until); left > want || left < want-within {
		t.Fatalf("%v left of %+v, want about %v", left, f, want)
	}
}

func freezesReach(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.put(health.Streak, time.Hour, "5 failures \"in a row\"\n")
	c := b.last(health.Froze)
	f := c.Freeze
	if c.Key != key || c.From != "a" || f.From != "a" || f.Reason != "5 failures \"in a row\"\n" || f.By != health.Streak || f.Length != time.Hour {
		s.t.Fatalf("b was told %+v", c)
	}
	if age := time.Since(f.Since); age < -time.Second || age > within {
		s.t.Fatalf("the freeze is %v old", age)
	}
	lasts(s.t, f, time.Hour)
	if told := b.rescanned(); len(told) != 1 {
		s.t.Fatalf("b was told the same again: %+v", told)
	}
	if told := a.rescanned(); len(told) != 1 || told[0].News != health.Froze || told[0].From != "a" {
		s.t.Fatalf("a was told %+v, want its own once", told)
	}
}

// inOrder has two instances contradict each other: everybody hears the same last, those
// two as well.
func inOrder(s *scene) {
	a, b, c := s.instance("a"), s.instance("b"), s.instance("c")
	for range 20 {
		var wg sync.WaitGroup
		var froze, thawed error
		now := time.Now()
		wg.Go(func() {
			froze = a.Put(s.t.Context(), health.Freeze{Key: key, Since: now, Until: now.Add(time.Hour), Length: time.Hour, By: health.Person})
		})
		wg.Go(func() { thawed = b.Drop(s.t.Context(), key, health.Person) })
		wg.Wait()
		a.must(froze)
		b.must(thawed)
	}
	var last []health.News
	for _, i := range []*instance{a, b, c} {
		told := i.rescanned()
		last = append(last, told[len(told)-1].News)
	}
	if last[0] != last[1] || last[0] != last[2] {
		s.t.Fatalf("the last that each of them hears: %v", last)
	}
}

func onlyExtend(s *scene) {
	a, b, c := s.instance("a"), s.instance("b"), s.instance("c")
	a.put(health.Rule, time.Hour, "long")
	b.put(health.Rule, time.Minute, "short")
	b.put(health.Streak, 2*time.Hour, "longer")
	c.until("it hears of the longer one", func(told []health.Change) bool {
		return len(told) > 1 && told[len(told)-1].Freeze.Reason == "longer"
	})
	if told := c.rescanned(); len(told) != 2 || told[0].Freeze.Reason != "long" {
		s.t.Fatalf("c was told %+v", told)
	}
	lasts(s.t, c.last(health.Froze).Freeze, 2*time.Hour)
}

func personsHold(s *scene) {
	a, b, c := s.instance("a"), s.instance("b"), s.instance("c")
	a.put(health.Rule, 3*time.Hour, "a rule")
	b.put(health.Person, time.Hour, "a person")
	a.put(health.Rule, 5*time.Hour, "a rule again")
	c.until("it hears of the person's", func(told []health.Change) bool {
		return len(told) > 1 && told[1].Freeze.By == health.Person
	})
	lasts(s.t, c.last(health.Froze).Freeze, time.Hour)
	b.put(health.Person, time.Minute, "a person, for less")
	c.until("it hears of the shorter one", func(told []health.Change) bool {
		return told[len(told)-1].Freeze.Reason == "a person, for less"
	})
	if told := c.rescanned(); len(told) != 3 {
		s.t.Fatalf("c was told %+v", told)
	}
}

func thawsReach(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.put(health.Rule, time.Hour, "x")
	b.last(health.Froze)
	b.must(b.Drop(s.t.Context(), key, health.Rule))
	c := a.last(health.Thawed)
	if age := time.Since(c.At); c.Key != key || c.From != "b" || c.By == health.Person || age < -time.Second || age > within {
		s.t.Fatalf("a was told %+v", c)
	}
	a.put(health.Rule, time.Minute, "again, for less")
	b.until("it hears that it is frozen again", func(told []health.Change) bool {
		return told[len(told)-1].Freeze.Reason == "again, for less"
	})
	a.must(a.Drop(s.t.Context(), key, health.Person))
	b.until("it hears that a person has thawed it", func(told []health.Change) bool {
		c := told[len(told)-1]
		return c.News == health.Thawed && c.From == "a" && c.By == health.Person
	})
}

func toldAgain(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	now := time.Now()
	f := health.Freeze{Key: key, Since: now.Add(-time.Second), Until: now.Add(time.Hour), Length: time.Hour, By: health.Person, Reason: "x"}
	a.must(a.Put(s.t.Context(), f))
	b.last(health.Froze)
	b.must(b.Drop(s.t.Context(), key, health.Person))
	a.last(health.Thawed)
	a.must(a.Put(s.t.Context(), f))
	later := s.instance("later")
	if c := later.last(health.Thawed); c.From != "b" {
		s.t.Fatalf("later was told %+v", c)
	}
	a.put(health.Rule, time.Minute, "a new one")
	b.until("it hears of a new one", func(told []health.Change) bool { return told[len(told)-1].Freeze.Reason == "a new one" })
	for _, c := range b.heard()[1:] {
		if c.News == health.Froze && c.Freeze.Reason == "x" {
			s.t.Fatalf("b was told again: %+v", c)
		}
	}
}

func successLeavesPersons(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.put(health.Person, time.Hour, "x")
	b.last(health.Froze)
	b.must(b.Drop(s.t.Context(), key, health.Rule))
	if told := a.rescanned(); len(told) != 1 || told[0].News != health.Froze {
		s.t.Fatalf("a was told %+v", told)
	}
	later := s.instance("later")
	if f := later.last(health.Froze).Freeze; f.By != health.Person {
		s.t.Fatalf("the store holds %+v", f)
	}
}

func latecomers(s *scene) {
	a := s.instance("a")
	a.put(health.Rule, time.Hour, "x")
	other := health.Key("k:00ff")
	now := time.Now()
	a.must(a.Put(s.t.Context(), health.Freeze{Key: other, Since: now, Until: now.Add(time.Hour), Length: time.Hour, By: health.Rule}))
	a.must(a.Drop(s.t.Context(), other, health.Person))
	b := s.instance("b")
	lasts(s.t, b.last(health.Froze).Freeze, time.Hour)
	if c := b.last(health.Thawed); c.Key != other || c.By != health.Person {
		s.t.Fatalf("b was told %+v", c)
	}
}

func probation(s *scene) {
	a := s.instance("a")
	a.put(health.Rule, 20*time.Millisecond, "x")
	b := s.instance("b")
	c := b.last(health.Froze)
	for !time.Now().After(c.Freeze.Until) { // it may still run on a fast machine
		b.rescanned()
	}
	later := s.instance("later")
	f := later.last(health.Froze).Freeze
	if time.Now().Before(f.Until) || f.Length != 20*time.Millisecond {
		s.t.Fatalf("later was told %+v", f)
	}
	later.must(later.Drop(s.t.Context(), key, health.Rule))
	b.last(health.Thawed)
}

func trials(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.beat()
	a.put(health.Rule, 20*time.Millisecond, "x")
	a.must(a.Try(s.t.Context(), key, true))
	if c := b.last(health.Trying); c.Key != key || c.From != "a" {
		s.t.Fatalf("b was told %+v", c)
	}
	later := s.instance("later")
	if c := later.last(health.Trying); c.Key != key || c.From != "a" {
		s.t.Fatalf("later was told %+v", c)
	}
	a.must(a.Try(s.t.Context(), key, false))
	if c := b.last(health.Tried); c.Key != key || c.From != "a" {
		s.t.Fatalf("b was told %+v", c)
	}
	a.must(a.Leave(s.t.Context()))
	if c := b.last(health.Gone); c.From != "a" {
		s.t.Fatalf("b was told %+v", c)
	}
}

func roll(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	if r := a.beat(); !r.Fresh || !slices.Equal(r.Names, []string{"a"}) {
		s.t.Fatalf("first beat: %+v", r)
	}
	if r := b.beat(); !r.Fresh || !slices.Equal(r.Names, []string{"a", "b"}) {
		s.t.Fatalf("first beat of another: %+v", r)
	}
	if r := a.beat(); r.Fresh || !slices.Equal(r.Names, []string{"a", "b"}) {
		s.t.Fatalf("second beat: %+v", r)
	}
	b.must(b.Leave(s.t.Context()))
	if r := a.beat(); !slices.Equal(r.Names, []string{"a"}) {
		s.t.Fatalf("after it left: %+v", r)
	}
}

func parallel(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.beat()
	b.beat()
	two := health.Limits{Parallel: 2}
	for _, i := range []*instance{a, b} {
		if g := i.ask(two); g != (health.Grant{}) {
			s.t.Fatalf("%s: %+v", i.name, g)
		}
	}
	if g := b.ask(two); g.Limit != health.Parallel {
		s.t.Fatalf("a third one: %+v", g)
	}
	if g := b.ask(health.Limits{Parallel: 3, RPM: 1000}); g != (health.Grant{}) {
		s.t.Fatalf("a third one, with a higher limit: %+v", g)
	}
	_, err := a.Count(s.t.Context(), []health.Usage{{Key: key, Open: 0}}, nil)
	a.must(err)
	b.last(health.Room)
	_, err = b.Count(s.t.Context(), []health.Usage{{Key: key, Open: 1}}, nil)
	b.must(err)
	if g := b.ask(two); g != (health.Grant{}) {
		s.t.Fatalf("after two have ended: %+v", g)
	}
	b.must(b.Leave(s.t.Context()))
	for range 2 {
		if g := a.ask(two); g != (health.Grant{}) {
			s.t.Fatalf("what an instance had that has left still counts: %+v", g)
		}
	}
}

func rpm(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.beat()
	b.beat()
	l := health.Limits{RPM: 5}
	for n := range 5 {
		if g := []*instance{a, b}[n%2].ask(l); g != (health.Grant{}) {
			s.t.Fatalf("the %d. one: %+v", n, g)
		}
	}
	g := b.ask(l)
	if g.Limit != health.RPM || g.Wait > 61*time.Second || g.Wait < 40*time.Second {
		s.t.Fatalf("the sixth: %+v", g)
	}
}

func tpm(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.beat()
	b.beat()
	l := health.Limits{TPM: 100}
	for _, i := range []*instance{a, b} {
		if g := i.ask(l); g != (health.Grant{}) {
			s.t.Fatalf("%s: %+v", i.name, g)
		}
		_, err := i.Count(s.t.Context(), []health.Usage{{Key: key, Open: 1, Had: []health.Had{{Tokens: 60}}}}, nil)
		i.must(err)
	}
	if g := a.ask(l); g.Limit != health.TPM || g.Wait > 61*time.Second || g.Wait < 40*time.Second {
		s.t.Fatalf("beyond the limit: %+v", g)
	}
}

func contention(s *scene) {
	const instances, each, limit = 3, 20, 25
	var granted [instances]int
	var wg sync.WaitGroup
	list := make([]*instance, instances)
	for n := range list {
		list[n] = s.instance(fmt.Sprint("i", n))
		list[n].beat()
	}
	for n, i := range list {
		wg.Go(func() {
			for range each {
				// Who has not been heard of for some seconds has left; on a busy machine this
				// takes as long.
				_, err := i.Beat(s.t.Context())
				if err != nil {
					s.t.Errorf("%s: %v", i.name, err)
					return
				}
				g, err := i.Count(s.t.Context(), nil, []health.Ask{{Key: key, Limits: health.Limits{Parallel: limit, RPM: 1000}}, {Key: key + "0", Limits: health.Limits{Parallel: 1}}})
				if err != nil {
					s.t.Errorf("%s: %v", i.name, err)
					return
				}
				if g[0].Limit == health.Unlimited {
					granted[n]++
				}
			}
		})
	}
	wg.Wait()
	if sum := granted[0] + granted[1] + granted[2]; sum != limit {
		s.t.Fatalf("%v granted, %d in all, want %d", granted, sum, limit)
	}
}

func late(s *scene) {
	a, b := s.instance("a"), s.instance("b")
	a.beat()
	b.beat()
	_, err := a.Count(s.t.Context(), []health.Usage{{Key: key, Open: 0, Had: []health.Had{{Ago: 50, Began: 2}, {Ago: 10, Began: 1}}}}, nil)
	a.must(err)
	if g := b.ask(health.Limits{RPM: 3}); g.Limit != health.RPM || g.Wait > 11*time.Second || g.Wait <= 0 {
		s.t.Fatalf("at the limit by what was told late: %+v", g)
	}
	if g := b.ask(health.Limits{RPM: 1}); g.Limit != health.RPM || g.Wait < 30*time.Second {
		s.t.Fatalf("far beyond it: %+v", g)
	}
}
