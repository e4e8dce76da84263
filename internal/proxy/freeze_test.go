package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// Case 39 (a): what is passed through keeps the upstream's own Retry-After.
func TestPassthroughKeepsRetryAfter(t *testing.T) {
	for _, cfg := range []string{chain(1, `rules: [{match: {status: 429}, action: passthrough}]`), pooled(1, "retry_statuses: [500]", "")} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, cfg)
			s.play("u1", refusal(429, `{"error":{"message":"slow down"}}`, "Retry-After", "30", "X-RateLimit-Remaining-Requests", "0"))
			got := s.hi()
			if got.status != 429 || got.body != `{"error":{"message":"slow down"}}` {
				t.Errorf("client got %d %q", got.status, got.body)
			}
			equal(t, "retry-after", got.header.Get("Retry-After"), "30")
			equal(t, "rate limit", got.header.Get("X-RateLimit-Remaining-Requests"), "0")
			s.isFrozen("u1", 0)
		})
	}
}

// Case 39 (c): a candidate without a stand-in is not locked out by one failure: the
// next request, a second later, is served.
func TestALoneCandidateIsNotLockedOut(t *testing.T) {
	for name, first := range map[string]drill.Script{
		"500":            refusal(500, `{"error":{"message":"oops"}}`),
		"503":            refusal(503, `{"error":{"message":"overloaded"}}`),
		"reset":          func(w *drill.Wire, _ drill.Request, _ int) { w.Reset() },
		"error in a 200": page("application/json", `{"error":{"message":"oops","code":500}}`),
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, chain(1, ""))
			s.play("u1", troubled(time.Minute, first))
			s.refused(s.hi(), 502)
			s.isFrozen("u1", 0)
			s.till(time.Minute + time.Second)
			s.from(s.hi(), "u1")
		})
	}
}

// Case 40: a freeze ends at the moment that the answer names, in whatever shape it
// names it; what machines state goes before a header, and that before text; without a hint the rule's own length
// holds, and so it does where the hint makes no sense.
func TestFreezeEndsWhenTheAnswerSays(t *testing.T) {
	const retryInfo = `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.463586755s"}]}}`
	for _, c := range []struct {
		name   string
		header []string
		body   string
		want   time.Duration
	}{
		{"Retry-After in seconds", []string{"Retry-After", "2"}, `{}`, 2 * time.Second},
		{"Retry-After as a date", []string{"Retry-After", "DATE+3"}, `{}`, 3 * time.Second},
		{"retry-after-ms", []string{"retry-after-ms", "1500"}, `{}`, 1500 * time.Millisecond},
		{"retry-after-ms beside Retry-After", []string{"Retry-After", "9", "retry-after-ms", "1500"}, `{}`, 1500 * time.Millisecond},
		{"Anthropic's reset", []string{"anthropic-ratelimit-unified-reset", "EPOCH+90"}, `{}`, 90 * time.Second},
		{"RetryInfo", nil, retryInfo, 2463587 * time.Microsecond},
		{"RetryInfo, which machines state, before a header", []string{"Retry-After", "7"}, retryInfo, 2463587 * time.Microsecond},
		{"a header before text", []string{"Retry-After", "7"}, `{"error":{"message":"Please try again in 7m12s."}}`, 7 * time.Second},
		{"resets_in_seconds", nil, `{"error":{"type":"usage_limit_reached","message":"limit","resets_in_seconds":3600}}`, time.Hour},
		{"text", nil, `{"error":{"message":"Rate limit reached. Please try again in 7m12s."}}`, 7*time.Minute + 12*time.Second},
		{"none", nil, `{"error":{"message":"slow down"}}`, 77 * time.Second},
		{"zero", []string{"Retry-After", "0"}, `{}`, time.Second},
		{"a date that has passed", []string{"Retry-After", "DATE-30"}, `{}`, time.Second},
		{"negative", []string{"Retry-After", "-5"}, `{}`, 77 * time.Second},
		{"garbage", []string{"Retry-After", "soon"}, `{}`, 77 * time.Second},
		{"more than 35 days", []string{"Retry-After", "3024001"}, `{}`, 77 * time.Second},
		{"more than freeze_max_seconds", []string{"Retry-After", "90000"}, `{}`, 24 * time.Hour},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newScene(t, chain(2, `rules: [{match: {status: 429}, action: freeze, freeze_seconds: 77}]`))
			s.play("u1", troubled(time.Millisecond, func(w *drill.Wire, r drill.Request, n int) {
				refusal(429, c.body, resolved(c.header)...)(w, r, n)
			}))
			s.play("u2", sayPong)
			s.from(s.hi(), "u2")
			s.isFrozen("u1", c.want)
			s.till(c.want - time.Nanosecond)
			s.from(s.hi(), "u2")
			s.till(c.want)
			s.from(s.hi(), "u1")
			equal(t, "u1 called at", s.when("u1"), []time.Duration{0, c.want})
		})
	}
}

// resolved puts times of the running clock into header values.
func resolved(header []string) (out []string) {
	for _, h := range header {
		var n int
		if _, err := fmt.Sscanf(h, "DATE%d", &n); err == nil {
			h = time.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
		} else if _, err := fmt.Sscanf(h, "EPOCH%d", &n); err == nil {
			h = fmt.Sprint(time.Now().Unix() + int64(n))
		}
		out = append(out, h)
	}
	return out
}

// freeze_from_group: the captured number times its unit goes before the answer's
// hint; a captured zero, garbage and more than 35 days fall through to it.
func TestFreezeFromAGroup(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		retry      string
		want       time.Duration
	}{
		{"the window is 5", "", "9", 5 * time.Minute},
		{"the window is 5", "seconds", "9", 5 * time.Second},
		{"the window is 1.5", "h", "9", 90 * time.Minute},
		{"the window is 2", "hour", "", 2 * time.Hour},
		{"the window is 0", "s", "9", 9 * time.Second},
		{"the window is 0", "s", "", 77 * time.Second},
		{"the window is never", "s", "9", 9 * time.Second},
		{"the window is 3024001", "s", "9", 9 * time.Second},
		{"the window is 99999999999999999999", "s", "", 77 * time.Second},
		{"the window is 30", "hours", "9", 24 * time.Hour}, // freeze_max_seconds
		{"the window is 0.25", "s", "", time.Second},       // the shortest freeze
	} {
		inBubble(t, c.text+c.unit+c.retry, func(t *testing.T) {
			unit := ""
			if c.unit != "" {
				unit = ", freeze_unit: " + c.unit
			}
			s := newScene(t, chain(2, `rules: [{match: {body_regex: "window is ([0-9.]+|never)"}, action: freeze, freeze_from_group: 1, freeze_seconds: 77`+unit+`}]`))
			var header []string
			if c.retry != "" {
				header = []string{"Retry-After", c.retry}
			}
			s.play("u1", refusal(429, `{"error":{"message":"`+c.text+`"}}`, header...))
			s.play("u2", sayPong)
			s.from(s.hi(), "u2")
			s.isFrozen("u1", c.want)
		})
	}
}

// Case 42: a freeze is for one upstream and model, wherever that stands, and for
// nothing else; the attempt after the one that froze goes to the next candidate.
func TestFreezeIsForOneUpstreamAndModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, `
virtual_models:
  vm:
    - {name: a, base_url: "http://u1", api_key: sk-1, model: m1}
    - {name: b, base_url: "http://u2", api_key: sk-2, model: m2}
  other:
    - {name: c, base_url: "http://u1", api_key: sk-1, model: m9}
    - {name: d, base_url: "http://u2", api_key: sk-2, model: m2}
  same:
    - {name: e, base_url: "http://u1", api_key: sk-1, model: m1}
    - {name: f, base_url: "http://u2", api_key: sk-2, model: m2}
  key:
    - {name: g, base_url: "http://u1", api_key: sk-other, model: m1}
    - {name: h, base_url: "http://u2", api_key: sk-2, model: m2}
`)
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if r.Model() == "m1" {
				w.JSON(429, []byte(`{"error":{"message":"Rate limit reached for m1","code":"rate_limit_exceeded"}}`), "Retry-After", "60")
				return
			}
			sayPong(w, r, n)
		})
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "b")
		equal(t, "attempts", got.header.Get("X-Understudy-Attempts"), "2")
		s.isFrozen("a", time.Minute)
		s.from(s.chat("other"), "c")
		s.from(s.chat("same"), "f") // shared: nobody is called to find out again
		equal(t, "calls", s.counts("u1", "u2"), []int{2, 2})
		s.chat("key")
		equal(t, "another key is asked", s.counts("u1", "u2"), []int{3, 3})
	})
}

// Case 42: one 404 for a model freezes nobody, or only briefly.
func TestOneMissingModelFreezesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		s.play("u1", drill.Sequence(refusal(404, `{"error":{"message":"The model m1 does not exist","code":"model_not_found"}}`), sayPong))
		s.play("u2", sayPong)
		s.from(s.hi(), "u2")
		s.isFrozen("u1", 0)
		s.from(s.hi(), "u1")
	})
}

// Case 42: with two attempts allowed, the attempt that froze its candidate is
// followed by the next one, not by a second at the frozen.
func TestNoRetryAtAFrozenCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, `rules: [{match: {status: 429}, action: retry, max_attempts: 2, max_wait: 5}]`))
		s.play("u1", refusal(429, `{"error":{"message":"slow"}}`, "Retry-After", "30"))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 0)
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 1})
		s.isFrozen("u1", 30*time.Second)
	})
	synctest.Test(t, func(t *testing.T) { // somebody else froze it while this attempt ran
		s := newScene(t, chain(2, ""))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Pause(time.Second)
			w.JSON(500, []byte(`{}`))
		})
		s.play("u2", sayPong)
		go func() {
			s.till(500 * time.Millisecond)
			s.freeze("u1", time.Hour, health.Person)
		}()
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, time.Second)
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 1})
	})
}

// Case 44: while the first choice is down its stand-in serves; it is used again as
// soon as its freeze is over and one request has tried it, and never without one.
func TestReturnsToThePreferredCandidate(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  string
		back time.Duration
	}{
		// 2 s, then twice that: frozen until 6 s.
		"a chain":  {chain(2, `rules: [{match: {status: 503}, action: freeze, freeze_seconds: 2}]`), 6 * time.Second},
		"the pool": {pooled(2, "cooldown_seconds: 2", ""), 6 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, c.cfg)
			s.play("u1", troubled(5*time.Second, refusal(503, `{"error":{"message":"overloaded"}}`)))
			s.play("u2", sayPong)
			var first []time.Duration
			for i := range 31 {
				at := time.Duration(i) * 500 * time.Millisecond
				s.till(at)
				got := s.hi()
				if got.status != 200 || got.err != nil {
					t.Fatalf("at %v: %d, %v", at, got.status, got.err)
				}
				if got.header.Get("X-Understudy-Candidate") == "u1" {
					first = append(first, at)
				}
			}
			if len(first) != 19 || first[0] != c.back {
				t.Errorf("u1 served at %v, want all from %v on", first, c.back)
			}
			synctest.Wait()
			if got, want := s.cast["u1"].Count()+s.cast["u2"].Count(), attemptsOf(s.records()); got != want {
				t.Errorf("%d calls for %d attempts of requests", got, want)
			}
		})
	}
}

func attemptsOf(records []stats.Record) (n int) {
	for _, r := range records {
		n += len(r.Tries)
	}
	return n
}

// Case 44 with the rules that apply where the file has none: requests that come all
// the time while the first choice is down for five seconds are all served, and it is
// back in time, since an outage so short is ridden out by retrying.
func TestShortOutageIsRiddenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		s.play("u1", troubled(5*time.Second, refusal(503, `{"error":{"message":"overloaded"}}`)))
		s.play("u2", sayPong)
		var by []string
		for s.now() < 15*time.Second {
			got := s.hi()
			if got.status != 200 {
				t.Fatalf("at %v: %d", s.now(), got.status)
			}
			by = append(by, got.header.Get("X-Understudy-Candidate"))
			s.till(s.now() + 500*time.Millisecond)
		}
		if text := strings.Join(by, " "); !strings.HasPrefix(text, "u2 u1 u1 u1") || strings.Count(text, "u2") != 1 {
			t.Errorf("served by %s", text)
		}
	})
}

// Spec section 7: freezes are shared by all virtual models and the pool that hold
// the identity, and a success of an attempt begun after the freeze lifts it at once.
// One begun before does not.
func TestWhichSuccessLiftsAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		slow := make(chan struct{})
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if n == 1 {
				w.Wait(slow)
			}
			sayPong(w, r, n)
		})
		s.play("u2", sayPong)
		older := make(chan reply)
		go func() { older <- s.hi() }()
		s.till(time.Second)
		s.freeze("u1", time.Minute, health.Rule)
		close(slow)
		s.from(<-older, "u1")
		s.isFrozen("u1", time.Minute)
		s.from(s.hi(), "u2")
		s.thaw("u1")
		s.from(s.hi(), "u1")
	})
}

// A person's freeze holds until its time or a person: no success, no failure and no
// cap touches it.
func TestAPersonsFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, "server: {freeze_max_seconds: 60}\nrules: [{match: {status: 429}, action: freeze, freeze_seconds: 50}]"))
		hold := make(chan struct{})
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Wait(hold)
			w.JSON(429, []byte(`{}`))
		})
		s.play("u2", sayPong)
		running := make(chan reply)
		go func() { running <- s.hi() }()
		s.till(time.Second)
		s.freeze("u1", 10*time.Second, health.Person)
		close(hold)
		s.from(<-running, "u2")
		s.isFrozen("u1", 10*time.Second) // the rule asked for 50 s
		s.freeze("u1", 90*24*time.Hour, health.Person)
		s.isFrozen("u1", 90*24*time.Hour)
		s.from(s.hi(), "u2")
		s.thaw("u1")
		s.isFrozen("u1", 0)
	})
}

// A machine that has no more files to connect with freezes nobody for it, neither a
// chain's candidates nor the pool's, and counts nothing against them.
func TestNobodyIsFrozenForWhatThisMachineLacks(t *testing.T) {
	for name, cfg := range map[string]string{
		"chain":          chain(2, "server: {auto_hedge_threshold: 1}"),
		"a rule freezes": chain(2, "server: {auto_hedge_threshold: 1}\nrules: [{match: {status: network}, action: freeze}]"),
		"pool":           "pool: {}\nupstream: [{id: u1, base_url: \"http://u1\"}, {id: u2, base_url: \"http://u2\"}]\n",
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, cfg)
			s.play("u1", sayPong)
			s.play("u2", sayPong)
			short := true
			s.handler.transports.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if short {
					return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
				}
				return s.net.DialContext(ctx, network, addr)
			}
			s.refused(s.hi(), 502)
			s.isFrozen("u1", 0)
			s.isFrozen("u2", 0)
			if n := s.counters("u1"); n.Streak != 0 {
				t.Errorf("counters %+v", n)
			}
			short = false
			s.from(s.hi(), "u1")
		})
	}
}
