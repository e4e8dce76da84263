package rule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/internal/config"
	"understudy/internal/probe"
)

const (
	freezeMax = 24 * time.Hour
	week      = 7 * 24 * time.Hour
)

// failed is a failure of that kind and fault: "429 rate", "network server",
// "bad_stream/503 capacity" with the status inside the 200.
func failed(t *testing.T, what string, more ...func(*probe.Failure)) Case {
	t.Helper()
	class, fault, ok := strings.Cut(what, " ")
	if !ok {
		t.Fatalf("%q names no fault", what)
	}
	f := &probe.Failure{Phase: probe.Probe, Text: "our own text"}
	class, embedded, _ := strings.Cut(class, "/")
	fmt.Sscan(embedded, &f.Embedded)
	for k := probe.Network; k <= probe.Timeout; k++ {
		if k.String() == class {
			f.Kind = k
		}
	}
	if f.Kind == 0 {
		f.Kind = probe.Status
		fmt.Sscan(class, &f.Status)
	} else if f.Kind == probe.BadStream {
		f.Status = 200
	}
	for f.Fault.String() != fault {
		if f.Fault++; f.Fault > 20 {
			t.Fatalf("no fault %q", fault)
		}
	}
	for _, m := range more {
		m(f)
	}
	return Case{Failure: f, Attempts: 1}
}

func after(d time.Duration) func(*probe.Failure) {
	return func(f *probe.Failure) { f.RetryAfter, f.HasRetryAfter = d, true }
}

func body(s string) func(*probe.Failure)    { return func(f *probe.Failure) { f.Body = []byte(s) } }
func message(s string) func(*probe.Failure) { return func(f *probe.Failure) { f.Message = s } }
func text(s string) func(*probe.Failure)    { return func(f *probe.Failure) { f.Text = s } }

func (c Case) attempt(n int) Case {
	c.Attempts = n
	return c
}

// outcome is what matters of a decision.
type outcome struct {
	Next         Next
	Wait, Freeze time.Duration
	Hint, Grow   bool
}

func decide(s *Set, c Case) (outcome, Decision) {
	d := s.Decide(c, freezeMax, 0)
	return outcome{d.Next, d.Wait, d.Freeze, d.FreezeFromHint, d.Grow}, d
}

// re compiles an expression as configuration does.
func re(s string) *config.Expression { return config.NewExpression("(?i)" + s) }

const tooLong = `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`

// The rules that apply where the file has none, for every fault there is and
// every class.
func TestBuiltInRules(t *testing.T) {
	s := New(nil, config.BuiltInRules())
	second := time.Second
	next := outcome{Next: Following, Grow: true}
	calm := outcome{Next: Following} // next, and nobody is to blame
	back := outcome{Next: Return}
	tests := []struct {
		name string
		c    Case
		want outcome
	}{
		{"prompt too long", failed(t, "400 client", body(tooLong)), calm},
		{"prompt too long, as Anthropic says it", failed(t, "400 client", message("prompt is too long: 208310 tokens > 200000 maximum")), calm},
		{"prompt too long, as Gemini says it", failed(t, "400 client", message("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")), calm},
		{"prompt too long, as local servers say it", failed(t, "400 client", message("The prompt (length 9000) is longer than the model's context length (8192)")), calm},
		{"prompt too long, inside a 200", failed(t, "bad_stream/400 client", body(tooLong)), calm},
		{"invalid parameter", failed(t, "422 client", body(`{"error":{"message":"bad temperature"}}`)), back},
		{"content filter", failed(t, "400 client", body(`{"error":{"code":"content_filter"}}`)), back},
		{"wrong path", failed(t, "404 client"), back},
		{"client's mistake inside a 200", failed(t, "bad_stream/400 client"), back},
		{"state of another account", failed(t, "400 affinity"), back},
		{"quota", failed(t, "429 quota"), outcome{Next: Following, Freeze: time.Hour, Grow: true}},
		{"quota until Monday", failed(t, "429 quota", after(12*time.Hour)), outcome{Next: Following, Freeze: 12 * time.Hour, Hint: true}},
		{"quota until next week", failed(t, "429 quota", after(week)), outcome{Next: Following, Freeze: freezeMax, Hint: true}},
		{"payment required", failed(t, "402 quota"), outcome{Next: Following, Freeze: time.Hour, Grow: true}},
		{"quota inside a 200", failed(t, "bad_stream quota"), outcome{Next: Following, Freeze: time.Hour, Grow: true}},
		{"bad key", failed(t, "401 credential"), outcome{Next: Following, Freeze: 10 * time.Minute, Grow: true}},
		{"no such model", failed(t, "404 model"), next},
		{"rate, first", failed(t, "429 rate"), outcome{Next: Again, Wait: 2 * second, Grow: true}},
		{"rate, second", failed(t, "429 rate").attempt(2), outcome{Next: Again, Wait: 4 * second, Grow: true}},
		{"rate, third", failed(t, "429 rate").attempt(3), next},
		{"rate, 2 s", failed(t, "429 rate", after(2*second)), outcome{Next: Again, Wait: 2 * second, Freeze: 2 * second, Hint: true}},
		{"rate, 5 s", failed(t, "429 rate", after(5*second)), outcome{Next: Again, Wait: 5 * second, Freeze: 5 * second, Hint: true}},
		{"rate, 6 s", failed(t, "429 rate", after(6*second)), outcome{Next: Following, Freeze: 6 * second, Hint: true}},
		{"rate, 2 s, third", failed(t, "429 rate", after(2*second)).attempt(3), outcome{Next: Following, Freeze: 2 * second, Hint: true}},
		{"rate, now", failed(t, "429 rate", after(0)), outcome{Next: Again, Wait: second, Freeze: second, Hint: true}},
		{"rate inside a 200", failed(t, "bad_stream/429 rate"), outcome{Next: Again, Wait: 2 * second, Grow: true}},
		{"network", failed(t, "network server"), outcome{Next: Again, Wait: 1500 * time.Millisecond, Grow: true}},
		{"network, second", failed(t, "network server").attempt(2), next},
		{"stalled", failed(t, "stalled_stream server"), next},
		{"timeout", failed(t, "timeout server"), next},
		{"empty", failed(t, "bad_stream server"), next},
		{"overloaded inside a 200", failed(t, "bad_stream/503 capacity"), next},
		{"overloaded", failed(t, "529 capacity"), outcome{Next: Again, Wait: 1500 * time.Millisecond, Grow: true}},
		{"overloaded, second", failed(t, "503 capacity").attempt(2), outcome{Next: Again, Wait: 2250 * time.Millisecond, Grow: true}},
		{"overloaded, third", failed(t, "503 capacity").attempt(3), next},
		{"overloaded, 5 s", failed(t, "503 capacity", after(5*second)), outcome{Next: Again, Wait: 5 * second, Freeze: 5 * second, Hint: true}},
		{"server", failed(t, "500 server"), outcome{Next: Again, Wait: 1500 * time.Millisecond, Grow: true}},
		{"edge challenge", failed(t, "403 server"), outcome{Next: Again, Wait: 1500 * time.Millisecond, Grow: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, d := decide(s, tt.c)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (%s) (-want +got):\n%s", d.Rule, d.Why, diff)
			}
			if d.Rule == "" || d.Rule == NoRule || d.Why == "" {
				t.Errorf("rule %q, why %q", d.Rule, d.Why)
			}
		})
	}
}

func TestNoRulesMeansNext(t *testing.T) {
	s := New(nil, nil)
	for what, grow := range map[string]bool{"429 rate": true, "network server": true, "400 client": false, "400 affinity": false} {
		got, d := decide(s, failed(t, what, after(time.Minute)))
		if want := (outcome{Next: Following, Grow: grow}); got != want || d.Rule != NoRule {
			t.Errorf("%s: %+v by %s, want %+v", what, got, d.Rule, want)
		}
	}
}

func TestOwnRulesComeFirst(t *testing.T) {
	own := []config.Rule{{Name: "mine", Statuses: []int{429}, Action: "passthrough"}}
	common := []config.Rule{{Name: "everybody's", Statuses: []int{429, 500}, Action: "next"}}
	s := New(own, common)
	if got, d := decide(s, failed(t, "429 rate")); got.Next != Return || d.Rule != "mine" {
		t.Errorf("%+v by %s", got, d.Rule)
	}
	if got, d := decide(s, failed(t, "500 server")); got.Next != Following || d.Rule != "everybody's" {
		t.Errorf("%+v by %s", got, d.Rule)
	}
}

// Case 35: rules on the same status that mean different things.
func TestSameStatusDifferentMeaning(t *testing.T) {
	s := New(nil, []config.Rule{
		{Name: "model", Statuses: []int{400}, Body: re(`not available for this api key|no available channel|unknown model`), Action: "next"},
		{Name: "client", Statuses: []int{400}, Action: "passthrough"},
		{Name: "overloaded", Statuses: []int{529}, Action: "freeze", Freeze: 20 * time.Second},
		{Name: "challenge", Statuses: []int{403}, Body: re(`/cdn-cgi/challenge|Enable JavaScript`), Action: "next"},
		{Name: "capacity", Body: re(`capacity`), Action: "retry", MaxAttempts: 3, BackoffBase: 1.5, MaxWait: 30 * time.Second},
	})
	tests := []struct {
		c    Case
		rule string
		want outcome
	}{
		{failed(t, "400 model", body(`{"error":{"message":"Model NOT AVAILABLE for this API key"}}`)), "model", outcome{Next: Following, Grow: true}},
		{failed(t, "400 client", body(`{"error":{"message":"bad"}}`)), "client", outcome{Next: Return}},
		{failed(t, "529 capacity"), "overloaded", outcome{Next: Following, Freeze: 20 * time.Second, Grow: true}},
		{failed(t, "403 server", body("<script>Enable JavaScript and cookies</script>")), "challenge", outcome{Next: Following, Grow: true}},
		{failed(t, "403 credential", body(`{"error":"bad key"}`)), NoRule, outcome{Next: Following, Grow: true}},
		{failed(t, "418 server", body("Selected model is at capacity")), "capacity", outcome{Next: Again, Wait: 1500 * time.Millisecond, Grow: true}},
	}
	for _, tt := range tests {
		if got, d := decide(s, tt.c); d.Rule != tt.rule || got != tt.want {
			t.Errorf("%s: %+v by %q, want %+v by %q", tt.c.describe(), got, d.Rule, tt.want, tt.rule)
		}
	}
}

func TestFreezeLengthFirstFound(t *testing.T) {
	group := func(unit time.Duration) config.Rule {
		return config.Rule{Name: "r", Body: re(`wait (\S*) units`), Action: "freeze", FreezeGroup: 1, FreezeUnit: unit, Freeze: 300 * time.Second}
	}
	said := func(v string) func(*probe.Failure) { return body("please wait " + v + " units") }
	tests := []struct {
		name string
		rule config.Rule
		c    Case
		want outcome
	}{
		{"group in minutes", group(time.Minute), failed(t, "429 rate", said("7"), after(time.Second)), outcome{Freeze: 7 * time.Minute}},
		{"group in seconds", group(time.Second), failed(t, "429 rate", said("7")), outcome{Freeze: 7 * time.Second}},
		{"group in hours", group(time.Hour), failed(t, "429 rate", said("7")), outcome{Freeze: 7 * time.Hour}},
		{"fraction", group(time.Minute), failed(t, "429 rate", said("1.5")), outcome{Freeze: 90 * time.Second}},
		{"less than the shortest", group(time.Second), failed(t, "429 rate", said("0.2")), outcome{Freeze: time.Second}},
		{"group over the cap", group(time.Hour), failed(t, "429 rate", said("100")), outcome{Freeze: freezeMax}},
		{"35 days exactly", group(24 * time.Hour), failed(t, "429 rate", said("35")), outcome{Freeze: freezeMax}},
		{"more than 35 days falls to the hint", group(24 * time.Hour), failed(t, "429 rate", said("36"), after(time.Minute)), outcome{Freeze: time.Minute, Hint: true}},
		{"endless number", group(time.Minute), failed(t, "429 rate", said(strings.Repeat("9", 400)), after(time.Minute)), outcome{Freeze: time.Minute, Hint: true}},
		{"zero falls to the hint", group(time.Minute), failed(t, "429 rate", said("0"), after(time.Minute)), outcome{Freeze: time.Minute, Hint: true}},
		{"negative falls to freeze_seconds", group(time.Minute), failed(t, "429 rate", said("-3")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"exponent is garbage", group(time.Minute), failed(t, "429 rate", said("1e3")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"hexadecimal is garbage", group(time.Minute), failed(t, "429 rate", said("0x1p4")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"infinite is garbage", group(time.Minute), failed(t, "429 rate", said("Inf")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"NaN is garbage", group(time.Minute), failed(t, "429 rate", said("NaN")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"nothing captured", group(time.Minute), failed(t, "429 rate", said("")), outcome{Freeze: 300 * time.Second, Grow: true}},
		{"garbage in the body, sense in the message", group(time.Minute),
			failed(t, "429 rate", said(`\u0037`), message("please wait 7 units")), outcome{Freeze: 7 * time.Minute}},
		{"found in our own text", group(time.Minute), failed(t, "429 rate", text("wait 2 units")), outcome{Freeze: 2 * time.Minute}},
		{"group that took no part", config.Rule{Body: re(`a(\d+)?b`), Action: "freeze", FreezeGroup: 1, FreezeUnit: time.Minute, Freeze: time.Hour},
			failed(t, "429 rate", body("ab")), outcome{Freeze: time.Hour, Grow: true}},
		{"group that does not exist", config.Rule{Body: re(`ab`), Action: "freeze", FreezeGroup: 3, FreezeUnit: time.Minute, Freeze: time.Hour},
			failed(t, "429 rate", body("ab")), outcome{Freeze: time.Hour, Grow: true}},
		{"group without a unit", config.Rule{Body: re(`(\d)`), Action: "freeze", FreezeGroup: 1, Freeze: time.Hour},
			failed(t, "429 rate", body("4")), outcome{Freeze: time.Hour, Grow: true}},
		{"hint", config.Rule{Action: "freeze", Freeze: time.Hour}, failed(t, "429 rate", after(1500*time.Millisecond)), outcome{Freeze: 1500 * time.Millisecond, Hint: true}},
		{"hint of zero", config.Rule{Action: "freeze", Freeze: time.Hour}, failed(t, "429 rate", after(0)), outcome{Freeze: time.Second, Hint: true}},
		{"hint over the cap", config.Rule{Action: "freeze", Freeze: time.Hour}, failed(t, "429 rate", after(week)), outcome{Freeze: freezeMax, Hint: true}},
		{"hint of 36 days", config.Rule{Action: "freeze", Freeze: time.Hour}, failed(t, "429 rate", after(36*24*time.Hour)), outcome{Freeze: time.Hour, Grow: true}},
		{"negative hint", config.Rule{Action: "freeze", Freeze: time.Hour}, failed(t, "429 rate", after(-1)), outcome{Freeze: time.Hour, Grow: true}},
		{"freeze_seconds over the cap", config.Rule{Action: "freeze", Freeze: week}, failed(t, "429 rate"), outcome{Freeze: freezeMax, Grow: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := decide(New(nil, []config.Rule{tt.rule}), tt.c)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// freeze_max caps whatever an upstream asks for, and the file too.
func TestFreezeCap(t *testing.T) {
	s := New(nil, []config.Rule{{Action: "freeze", Freeze: time.Hour}})
	for _, c := range []Case{failed(t, "429 rate"), failed(t, "429 rate", after(time.Hour))} {
		if d := s.Decide(c, time.Minute, 0); d.Freeze != time.Minute {
			t.Errorf("freeze = %v, want the cap", d.Freeze)
		}
		if d := s.Decide(c, 0, 0); d.Freeze != time.Hour {
			t.Errorf("freeze = %v, want no cap", d.Freeze)
		}
	}
}

func TestRetry(t *testing.T) {
	rule := config.Rule{Action: "retry", MaxAttempts: 4, BackoffBase: 1.5, MaxWait: 3 * time.Second}
	s := New(nil, []config.Rule{rule})
	for n, want := range map[int]outcome{
		1: {Next: Again, Wait: 1500 * time.Millisecond, Grow: true},
		2: {Next: Again, Wait: 2250 * time.Millisecond, Grow: true},
		3: {Next: Again, Wait: 3 * time.Second, Grow: true},
		4: {Next: Following, Grow: true},
		9: {Next: Following, Grow: true},
	} {
		if got, _ := decide(s, failed(t, "500 server").attempt(n)); got != want {
			t.Errorf("attempt %d: %+v, want %+v", n, got, want)
		}
	}
	rule.MaxAttempts, rule.BackoffBase = 1e6, 10
	s = New(nil, []config.Rule{rule})
	if got, _ := decide(s, failed(t, "500 server").attempt(5000)); got.Wait != rule.MaxWait {
		t.Errorf("wait = %v, want the cap", got.Wait)
	}
	rule.MaxWait = 0
	s = New(nil, []config.Rule{rule})
	if got, _ := decide(s, failed(t, "500 server")); got.Next != Again || got.Wait != 0 {
		t.Errorf("max_wait 0: %+v", got)
	}
	// A hint with no patience for it: everybody passes the candidate over.
	want := outcome{Next: Following, Freeze: time.Second, Hint: true}
	if got, _ := decide(s, failed(t, "500 server", after(0))); got != want {
		t.Errorf("max_wait 0 with a hint: %+v", got)
	}
}

func TestBackoffIsStretchedALittle(t *testing.T) {
	s := New(nil, []config.Rule{{Action: "retry", MaxAttempts: 9, BackoffBase: 2, MaxWait: 4100 * time.Millisecond}})
	c := failed(t, "500 server")
	if d := s.Decide(c, freezeMax, 0.999); d.Wait <= 2*time.Second || d.Wait > 2100*time.Millisecond {
		t.Errorf("wait = %v", d.Wait)
	}
	if d := s.Decide(c.attempt(2), freezeMax, 0.999); d.Wait != 4100*time.Millisecond {
		t.Errorf("wait = %v, want max_wait", d.Wait)
	}
	// A hint is exact: jitter would miss the moment the freeze ends.
	if d := s.Decide(failed(t, "500 server", after(2*time.Second)), freezeMax, 0.999); d.Wait != 2*time.Second {
		t.Errorf("wait = %v", d.Wait)
	}
}

func TestPoolTable(t *testing.T) {
	p := &config.Pool{RetryStatuses: []int{429, 500, 502, 503, 504}, MaxAttempts: 3, Cooldown: 30 * time.Second}
	cool := outcome{Next: Following, Freeze: 30 * time.Second}
	back := outcome{Next: Return}
	tests := []struct {
		c    Case
		want outcome
	}{
		{failed(t, "429 rate"), cool},
		{failed(t, "429 quota"), cool},
		{failed(t, "429 rate", after(2*time.Second)), outcome{Next: Following, Freeze: 2 * time.Second, Hint: true}},
		{failed(t, "503 capacity", after(0)), outcome{Next: Following, Freeze: time.Second, Hint: true}},
		{failed(t, "503 capacity", after(week)), outcome{Next: Following, Freeze: freezeMax, Hint: true}},
		{failed(t, "500 server"), cool},
		{failed(t, "network server"), cool},
		{failed(t, "timeout server"), cool},
		{failed(t, "stalled_stream server"), cool},
		{failed(t, "bad_stream server"), cool},
		{failed(t, "bad_stream/503 capacity"), cool},
		{failed(t, "bad_stream/401 credential"), cool},
		{failed(t, "400 client"), back},
		{failed(t, "401 credential"), back},
		{failed(t, "402 quota"), back},
		{failed(t, "404 model"), back},
		{failed(t, "529 capacity"), back},
		{failed(t, "301 server"), back},
		{failed(t, "400 affinity", after(time.Minute)), back},
		// The request's own faults inside a 200 punish nobody.
		{failed(t, "bad_stream/400 client"), back},
		{failed(t, "bad_stream affinity"), back},
		{failed(t, "bad_stream client"), outcome{Next: Following}},
	}
	for _, tt := range tests {
		got, d := decide(NewPool(p), tt.c)
		if got != tt.want || d.Rule != PoolTable || d.Why == "" {
			t.Errorf("%s, %s: %+v by %s (%s), want %+v", tt.c.describe(), tt.c.fault(), got, d.Rule, d.Why, tt.want)
		}
		off := *p
		off.Cooldown = 0
		got, _ = decide(NewPool(&off), tt.c)
		if want := (outcome{Next: tt.want.Next}); got != want {
			t.Errorf("%s without cooldown: %+v, want %+v", tt.c.describe(), got, want)
		}
	}
}

func TestPoolRulesComeBeforeItsTable(t *testing.T) {
	s := NewPool(&config.Pool{
		RetryStatuses: []int{429}, Cooldown: 30 * time.Second,
		Rules: []config.Rule{
			{Name: "rule 1", Faults: []string{"quota"}, Action: "freeze", Freeze: time.Hour},
			{Name: "rule 2", Statuses: []int{404}, Action: "next"},
		},
	})
	for what, want := range map[string]struct {
		outcome
		rule string
	}{
		"429 quota": {outcome{Next: Following, Freeze: time.Hour}, "rule 1"},
		"404 model": {outcome{Next: Following}, "rule 2"},
		"429 rate":  {outcome{Next: Following, Freeze: 30 * time.Second}, PoolTable},
	} {
		if got, d := decide(s, failed(t, what)); got != want.outcome || d.Rule != want.rule {
			t.Errorf("%s: %+v by %s, want %+v by %s", what, got, d.Rule, want.outcome, want.rule)
		}
	}
}

// Whatever the rule, the answer and the numbers: lengths are in bounds, and a
// request that waits out a freeze waits as long as it lasts.
func TestDecisionProperties(t *testing.T) {
	classes := []string{"429 rate", "500 server", "network server", "bad_stream/503 capacity", "400 client", "bad_stream client", "400 affinity"}
	var cases []Case
	for _, what := range classes {
		cases = append(cases, failed(t, what))
	}
	rapid.Check(t, func(t *rapid.T) {
		f := *rapid.SampledFrom(cases).Draw(t, "case").Failure
		f.HasRetryAfter = rapid.Bool().Draw(t, "hint")
		f.RetryAfter = time.Duration(rapid.Int64().Draw(t, "retry after"))
		f.Body = []byte(rapid.StringMatching(`wait [0-9.e-]{0,9} m`).Draw(t, "body"))
		c := Case{Failure: &f, Attempts: rapid.IntRange(1, 400).Draw(t, "attempts")}
		r := config.Rule{
			Name: "r", Body: re(`wait (\S*) m`), Action: rapid.SampledFrom([]string{"retry", "next", "freeze", "passthrough"}).Draw(t, "action"),
			MaxAttempts: rapid.IntRange(1, 500).Draw(t, "max attempts"), BackoffBase: rapid.Float64Range(0.1, 100).Draw(t, "base"),
			MaxWait:     time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max wait")),
			FreezeGroup: rapid.IntRange(0, 2).Draw(t, "group"), FreezeUnit: time.Minute, Freeze: time.Hour,
		}
		pool := &config.Pool{RetryStatuses: []int{429, 500}, Cooldown: time.Minute}
		limit := time.Duration(rapid.Int64Range(int64(time.Second), int64(week)).Draw(t, "limit"))
		rnd := rapid.Float64Range(0, 0.9999).Draw(t, "rnd")
		for _, s := range []*Set{New(nil, []config.Rule{r}), New(nil, nil), NewPool(pool)} {
			d := s.Decide(c, limit, rnd)
			switch {
			case d.Freeze < 0 || d.Freeze > limit:
				t.Fatalf("freeze = %v of at most %v", d.Freeze, limit)
			case d.FreezeFromHint && d.Freeze < time.Second:
				t.Fatalf("freeze = %v", d.Freeze)
			case d.Wait < 0 || d.Wait > r.MaxWait:
				t.Fatalf("wait = %v of at most %v", d.Wait, r.MaxWait)
			case d.Next != Again && d.Wait != 0, d.Next == Again && d.Freeze != 0 && d.Wait != d.Freeze:
				t.Fatalf("%v with wait %v and freeze %v", d.Next, d.Wait, d.Freeze)
			case d.Next == Again && c.Attempts >= r.MaxAttempts:
				t.Fatalf("attempt %d of %d", c.Attempts+1, r.MaxAttempts)
			case d.Grow && d.FreezeFromHint:
				t.Fatal("a hint does not grow")
			}
			if e := s.Decide(c, limit, rnd); e != d {
				t.Fatalf("not the same twice: %+v, %+v", d, e)
			}
		}
	})
}

// BenchmarkDecide puts a failure to the built-in rules, and to many with expressions
// of which none matches.
func BenchmarkDecide(b *testing.B) {
	f := &probe.Failure{Kind: probe.Status, Status: 503, Body: []byte(tooLong), Message: "overloaded", Text: "status 503"}
	for f.Fault.String() != "server" {
		f.Fault++
	}
	sets := []struct {
		name string
		set  *Set
	}{{"builtin", New(nil, config.BuiltInRules())}}
	for _, n := range []int{1, 10, 100, 1000} {
		var rules []config.Rule
		for i := range n {
			rules = append(rules, config.Rule{Action: "next", Body: config.NewExpression(fmt.Sprintf(`(?i)too long by %d tokens|quota of \d+ per %d minutes`, i, i))})
		}
		sets = append(sets, struct {
			name string
			set  *Set
		}{fmt.Sprintf("regexes%d", n), New(nil, rules)})
	}
	for _, s := range sets {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.set.Decide(Case{Failure: f, Attempts: 1}, freezeMax, 0.5)
			}
		})
	}
}
