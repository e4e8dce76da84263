package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
)

// opened gives stores on a server, a prefix of its own for each test.
func opened(t *testing.T, url, name string) health.Store {
	t.Helper()
	return openedWith(t, Options{URL: url, Name: name})
}

func openedWith(t *testing.T, o Options) health.Store {
	t.Helper()
	o.Prefix, o.Rescan = "test:"+t.Name()+":", 100*time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestMiniredisKeepsTheContract(t *testing.T) {
	server := miniredis.RunT(t)
	healthtest.Suite(t, func(t *testing.T, name string) health.Store {
		return opened(t, "redis://"+server.Addr(), name)
	})
}

// What is read between a change and its message is newer than the message: that a trial
// is over is told from what was read then, and once.
func TestATrialThatIsOverIsToldByWhicheverComesFirst(t *testing.T) {
	const key = health.Key("u:0123456789abcdef")
	server := miniredis.RunT(t)
	a, b := opened(t, "redis://"+server.Addr(), "a"), opened(t, "redis://"+server.Addr(), "b")
	var told []health.News
	l := &listener{Store: b.(*Store), heard: map[string]heard{}, told: func(c health.Change) {
		if c.News != health.Known {
			told = append(told, c.News)
			if c.From != "a" || c.Key != key {
				t.Errorf("told %+v", c)
			}
		}
	}}
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	now := time.Now()
	err := a.Put(t.Context(), health.Freeze{Key: key, Since: now, Until: now.Add(time.Second), Length: time.Second, By: health.Rule, Reason: "x", From: "a"})
	do(err, a.Try(t.Context(), key, true), l.load(t.Context()), a.Try(t.Context(), key, false), l.load(t.Context()))
	if want := []health.News{health.Froze, health.Trying, health.Tried}; !slices.Equal(told, want) {
		t.Fatalf("told %v and not %v", told, want)
	}
	l.message(`{"n":"tried","k":"` + string(key) + `","from":"a","rev":"1"}`)
	do(l.load(t.Context()))
	if len(told) != 3 {
		t.Errorf("told %v", told)
	}
}

// A trial that another instance has begun meanwhile goes on when the first one's is over,
// and that it is over, too, is told from what is read.
func TestATrialOutlastsTheOneBefore(t *testing.T) {
	const key = health.Key("u:0123456789abcdef")
	server := miniredis.RunT(t)
	address := "redis://" + server.Addr()
	a, b, c := opened(t, address, "a"), opened(t, address, "b"), opened(t, address, "c")
	var told []string
	l := &listener{Store: b.(*Store), heard: map[string]heard{}, told: func(c health.Change) {
		switch c.News {
		case health.Trying:
			told = append(told, "trying "+c.From)
		case health.Tried:
			told = append(told, "tried "+c.From)
		}
	}}
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	sub := server.NewSubscriber()
	defer sub.Close()
	sub.Subscribe(b.(*Store).prefix + "news")
	message := func() { t.Helper(); l.message((<-sub.Messages()).Message) }
	now := time.Now()
	put := make(chan error, 1)
	go func() {
		put <- a.Put(t.Context(), health.Freeze{Key: key, Since: now, Until: now.Add(time.Second), Length: time.Second, By: health.Rule, Reason: "x", From: "a"})
	}()
	message()
	do(<-put)
	try := func(s health.Store, on bool) <-chan error {
		done := make(chan error, 1)
		go func() { done <- s.Try(t.Context(), key, on) }()
		return done
	}
	for _, step := range []struct {
		s  health.Store
		on bool
	}{{a, true}, {c, true}, {a, false}} {
		done := try(step.s, step.on)
		message()
		do(<-done)
	}
	done := try(c, false)
	late := (<-sub.Messages()).Message
	do(<-done, l.load(t.Context()))
	l.message(late)
	if want := []string{"trying a", "trying c", "tried a", "tried c"}; !slices.Equal(told, want) {
		t.Errorf("told %v and not %v", told, want)
	}
}
