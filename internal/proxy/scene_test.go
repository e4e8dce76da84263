package proxy

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// A scene is a bed on which several requests happen, at times of the test's own
// choosing, counted from the scene's beginning.
type scene struct {
	*bed
	begun time.Time
	cast  map[string]*drill.Upstream
}

// newScene serves a configuration. It must be made inside the bubble.
func newScene(t *testing.T, cfg string) *scene {
	t.Helper()
	return &scene{bed: newBed(t, cfg), begun: time.Now(), cast: map[string]*drill.Upstream{}}
}

// play puts an upstream behind http://NAME.
func (s *scene) play(name string, script drill.Script) *drill.Upstream {
	s.t.Helper()
	u := drill.StartOn(s.net.Listen(name+":80"), script)
	s.t.Cleanup(u.Close)
	s.cast[name] = u
	return u
}

// till waits until so long after the beginning.
func (s *scene) till(d time.Duration) {
	s.t.Helper()
	wait := d - s.now()
	if wait < 0 {
		s.t.Fatalf("it is %v already, past %v", s.now(), d)
	}
	<-time.After(wait)
}

// now is the time since the beginning.
func (s *scene) now() time.Duration { return time.Since(s.begun) }

// counts are the upstreams' requests so far, in the order asked for.
func (s *scene) counts(names ...string) []int {
	out := make([]int, len(names))
	for i, name := range names {
		out[i] = s.cast[name].Count()
	}
	return out
}

// when are the times at which an upstream was called.
func (s *scene) when(name string) []time.Duration {
	var out []time.Duration
	for _, r := range s.cast[name].Requests() {
		out = append(out, r.At.Sub(s.begun))
	}
	return out
}

// from asserts which candidate answered, with a whole 200.
func (s *scene) from(got reply, name string) {
	s.t.Helper()
	if c := got.header.Get("X-Understudy-Candidate"); got.status != 200 || got.err != nil || c != name {
		s.t.Errorf("at %v: %d by %q, %v, want 200 by %q: %q\n%s", s.now(), got.status, c, got.err, name, brief(got.body), s.log)
	}
}

// refused asserts a status, and that no upstream's answer went out.
func (s *scene) refused(got reply, status int) {
	s.t.Helper()
	if c := got.header.Get("X-Understudy-Candidate"); got.status != status || got.err != nil || c != "" {
		s.t.Errorf("at %v: %d by %q, %v, want our own %d: %q\n%s", s.now(), got.status, c, got.err, status, brief(got.body), s.log)
	}
}

// candidate is the candidate of that name, wherever it stands.
func (s *scene) candidate(name string) *route.Candidate {
	s.t.Helper()
	for _, chain := range s.handler.Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				if tier[i].Name == name {
					return &tier[i]
				}
			}
		}
	}
	s.t.Fatalf("no candidate %q", name)
	return nil
}

// left is how long a candidate is frozen from now on; 0 = it is not.
func (s *scene) left(name string) time.Duration {
	s.t.Helper()
	now := time.Now()
	if standing, f := s.handler.Board().Standing(Key(s.candidate(name).ID), now); standing == health.Frozen {
		return f.Until.Sub(now)
	}
	return 0
}

// standing is how a candidate stands, with its freeze.
func (s *scene) standing(name string) (health.Standing, health.Freeze) {
	s.t.Helper()
	return s.handler.Board().Standing(Key(s.candidate(name).ID), time.Now())
}

// isFrozen asserts how long a candidate is frozen from now on; 0 = not at all.
func (s *scene) isFrozen(name string, want time.Duration) {
	s.t.Helper()
	if got := s.left(name); got != want {
		s.t.Errorf("at %v: %s is frozen for %v, want %v\n%s", s.now(), name, got, want, s.log)
	}
}

// freeze freezes a candidate as a person or a rule would.
func (s *scene) freeze(name string, d time.Duration, by health.By) {
	s.t.Helper()
	s.handler.Board().Freeze(Key(s.candidate(name).ID), health.Freeze{Length: d, By: by, Reason: "put there by the test"}, time.Now())
}

// thaw lifts a candidate's freeze, as a person does.
func (s *scene) thaw(name string) {
	s.t.Helper()
	s.handler.Board().Thaw(Key(s.candidate(name).ID), time.Now())
}

// counters are a candidate's.
func (s *scene) counters(name string) health.Counters {
	s.t.Helper()
	return s.handler.Board().Counters(Key(s.candidate(name).ID))
}

// idle asserts that nothing is in flight anywhere, neither in the books nor by lease.
func (s *scene) idle() {
	s.t.Helper()
	if n := s.handler.Ledger().Totals().InFlight; n != 0 {
		s.t.Errorf("%d requests in flight", n)
	}
	for _, chain := range s.handler.Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				if n := s.handler.Board().InFlight(Key(tier[i].ID)); n != 0 {
					s.t.Errorf("%s has %d leases that were never settled", tier[i].Name, n)
				}
			}
		}
	}
}

// records are all finished requests.
func (s *scene) records() []stats.Record {
	sequenced, _ := s.handler.Ledger().Since(0, 1000)
	out := make([]stats.Record, 0, len(sequenced))
	for _, q := range sequenced {
		out = append(out, q.Record)
	}
	return out
}

// hi is a streamed chat request for vm.
func (s *scene) hi(headers ...string) reply {
	s.t.Helper()
	return s.chat("vm", headers...)
}

// pooled is a configuration with a pool over u1, u2, …; settings stand inside
// `pool`, more before it.
func pooled(n int, settings, more string) string {
	cfg := more + "\npool: {" + settings + "}\nupstream:\n"
	for i := range n {
		cfg += fmt.Sprintf("  - {id: u%d, base_url: \"http://u%d\"}\n", i+1, i+1)
	}
	return cfg
}

// sayPong answers whole, at once.
func sayPong(w *drill.Wire, r drill.Request, n int) { page(sseType, okSSE)(w, r, n) }

// troubled fails as first does for so long, and is healthy then.
func troubled(d time.Duration, first drill.Script) drill.Script {
	end := time.Now().Add(d)
	return func(w *drill.Wire, r drill.Request, n int) {
		if time.Now().Before(end) {
			first(w, r, n)
			return
		}
		sayPong(w, r, n)
	}
}

// equal asserts that two values of one type print alike.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// errNoHost is what dialling a name says that nobody knows.
var errNoHost = &net.DNSError{Err: "no such host", Name: "u6", IsNotFound: true}

// contextFor is a context of the test's own that can be ended early.
func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// freezeFor is a freeze that a rule might have made.
func freezeFor(d time.Duration) health.Freeze {
	return health.Freeze{Length: d, By: health.Rule, Reason: "put there by the test"}
}
