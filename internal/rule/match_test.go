package rule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/config"
	"understudy/internal/probe"
)

func TestConditions(t *testing.T) {
	tests := []struct {
		name string
		rule config.Rule
		c    Case
		want bool
	}{
		{"status", config.Rule{Statuses: []int{429}}, failed(t, "429 rate"), true},
		{"one of several", config.Rule{Statuses: []int{500, 429}}, failed(t, "429 rate"), true},
		{"other status", config.Rule{Statuses: []int{429}}, failed(t, "500 server"), false},
		{"class", config.Rule{Classes: []string{"network"}}, failed(t, "network server"), true},
		{"other class", config.Rule{Classes: []string{"network"}}, failed(t, "timeout server"), false},
		{"class of a status", config.Rule{Classes: []string{"network", "bad_stream", "stalled_stream", "timeout"}}, failed(t, "500 server"), false},
		{"every class", config.Rule{Classes: []string{"stalled_stream"}}, failed(t, "stalled_stream server"), true},
		{"status or class, status", config.Rule{Statuses: []int{429}, Classes: []string{"network"}}, failed(t, "429 rate"), true},
		{"status or class, class", config.Rule{Statuses: []int{429}, Classes: []string{"network"}}, failed(t, "network server"), true},
		{"embedded status by status", config.Rule{Statuses: []int{503}}, failed(t, "bad_stream/503 capacity"), true},
		{"embedded status by class", config.Rule{Classes: []string{"bad_stream"}}, failed(t, "bad_stream/503 capacity"), true},
		{"embedded status, other", config.Rule{Statuses: []int{500}}, failed(t, "bad_stream/503 capacity"), false},
		{"the 200 around an error", config.Rule{Statuses: []int{200}}, failed(t, "bad_stream server"), false},
		{"an answer that broke", config.Rule{Statuses: []int{200}}, failed(t, "network server", func(f *probe.Failure) { f.Status = 200 }), false},
		{"fault", config.Rule{Faults: []string{"quota", "rate"}}, failed(t, "429 rate"), true},
		{"other fault", config.Rule{Faults: []string{"quota"}}, failed(t, "429 rate"), false},
		{"all must hold", config.Rule{Statuses: []int{429}, Faults: []string{"quota"}}, failed(t, "429 rate"), false},
		{"all hold", config.Rule{Statuses: []int{429}, Faults: []string{"quota"}, Body: re("plan")}, failed(t, "429 quota", body("your PLAN")), true},
		{"text missing", config.Rule{Statuses: []int{429}, Body: re("plan")}, failed(t, "429 quota", body("money")), false},
		{"raw body", config.Rule{Body: re(`"code":"x"`)}, failed(t, "500 server", body(`{"code":"X"}`)), true},
		{"decoded message", config.Rule{Body: re(`größer als`)}, failed(t, "500 server", body(`{"m":"gr\u00f6\u00dfer als"}`), message("größer als")), true},
		{"our own text", config.Rule{Body: re(`own text`)}, failed(t, "network server"), true},
		{"bytes that are no UTF-8", config.Rule{Body: re(`caf`)}, failed(t, "500 server", body("caf\xe9\xff")), true},
		{"anything", config.Rule{}, failed(t, "500 server"), true},
		{"within the first MiB", config.Rule{Body: re(`needle`)}, failed(t, "500 server", body(strings.Repeat(" ", maxText-6)+"needle")), true},
		{"beyond the first MiB", config.Rule{Body: re(`needle`)}, failed(t, "500 server", body(strings.Repeat(" ", maxText-5)+"needle")), false},
		{"message beyond the first MiB", config.Rule{Body: re(`needle`)}, failed(t, "500 server", message(strings.Repeat(" ", maxText)+"needle")), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := matches(&tt.rule, tt.c); got != tt.want {
				t.Errorf("matches = %v, want %v", got, tt.want)
			}
			if why, ok := explain(&tt.rule, tt.c); ok != tt.want || why == "" {
				t.Errorf("explain = %q, %v", why, ok)
			}
		})
	}
}

// Every fault can be named, and only it matches.
func TestEveryFault(t *testing.T) {
	faults := []string{"client", "affinity", "credential", "quota", "rate", "capacity", "model", "server"}
	var rules []config.Rule
	for _, f := range faults {
		rules = append(rules, config.Rule{Name: f, Faults: []string{f}, Action: "next"})
	}
	s := New(nil, rules)
	for _, f := range faults {
		if d := s.Decide(failed(t, "500 "+f), freezeMax, 0); d.Rule != f {
			t.Errorf("%s: decided by %q", f, d.Rule)
		}
	}
	if d := s.Decide(failed(t, "500 none"), freezeMax, 0); d.Rule != NoRule {
		t.Errorf("no fault: decided by %q", d.Rule)
	}
}

func TestTraceSaysWhyForEveryRule(t *testing.T) {
	rules := []config.Rule{
		{Name: "rule 1", Statuses: []int{401, 403}},
		{Name: "rule 2", Statuses: []int{429}, Faults: []string{"quota"}},
		{Name: "rule 3", Statuses: []int{429}, Body: re("per day"), BodySource: "per day"},
		{Name: "rule 4", Statuses: []int{429}, Faults: []string{"rate"}, Body: re("per minute")},
		{Name: "rule 5", Faults: []string{"rate"}},
	}
	s := New(rules[:1], rules[1:])
	c := failed(t, "429 rate", message("slow down: 3 per minute"))
	want := []Line{
		{"rule 1", Own, false, false, "it is status 429, not status 401 or 403"},
		{"rule 2", Common, false, false, "the fault is rate, not quota"},
		{"rule 3", Common, false, false, "no text matches /per day/"},
		{"rule 4", Common, true, true, "status 429, fault rate, the message matches /(?i)per minute/"},
		{"rule 5", Common, true, false, "fault rate"},
		{NoRule, Default, true, false, "anything else"},
	}
	if d := cmp.Diff(want, s.Trace(c)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := s.Decide(c, freezeMax, 0); d.Rule != "rule 4" || d.Why != want[3].Why {
		t.Errorf("decided by %q because %q", d.Rule, d.Why)
	}
	lines := s.Trace(failed(t, "bad_stream/503 capacity"))
	if last := lines[5]; !last.Decides || lines[0].Why != "it is bad_stream with status 503, not status 401 or 403" {
		t.Errorf("lines = %+v", lines)
	}
	lines = NewPool(&config.Pool{RetryStatuses: []int{429}, Cooldown: time.Second}).Trace(failed(t, "404 model"))
	if len(lines) != 1 || lines[0] != (Line{PoolTable, Default, true, true, "status 404 is not in retry_statuses"}) {
		t.Errorf("lines = %+v", lines)
	}
}

func TestListShowsRulesInOrder(t *testing.T) {
	own := []config.Rule{{
		Name: "rule 1", Statuses: []int{429, 503}, Classes: []string{"network"}, Body: re("x"), BodySource: "x",
		Action: "freeze", FreezeGroup: 1, FreezeUnit: time.Minute, Freeze: 5 * time.Minute, Line: 12,
	}}
	common := []config.Rule{
		{Name: "rule 2", Faults: []string{"rate", "capacity"}, Action: "retry", MaxAttempts: 3, BackoffBase: 1.5, MaxWait: 5 * time.Second},
		{Name: "rule 3", Classes: []string{"timeout"}, Action: "next"},
		{Name: "rule 4", Action: "freeze", Freeze: time.Hour},
	}
	want := []Shown{
		{"rule 1", Own, "status 429 or 503 or network and text matches /x/", "freeze for group 1 times 1m0s, or the answer's hint, or 5m0s, then next", 12},
		{"rule 2", Common, "fault rate or capacity", "retry, 3 attempts in all, waiting 1.5^n s up to 5s", 0},
		{"rule 3", Common, "timeout", "next", 0},
		{"rule 4", Common, "anything", "freeze for the answer's hint or 1h0m0s, then next", 0},
		{NoRule, Default, "anything else", "next", 0},
	}
	if d := cmp.Diff(want, New(own, common).List()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	p := &config.Pool{RetryStatuses: []int{429, 500}, Cooldown: 30 * time.Second}
	want = []Shown{{PoolTable, Default, "status 429 or 500, or network, timeout, stalled_stream, bad_stream",
		"freeze for the answer's hint or 30s, then next; anything else: passthrough", 0}}
	if d := cmp.Diff(want, NewPool(p).List()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	p.Cooldown = 0
	if got := NewPool(p).List()[0].Action; got != "next; anything else: passthrough" {
		t.Errorf("action = %q", got)
	}
}

func TestNextHasNames(t *testing.T) {
	for n, want := range map[Next]string{Following: "following", Again: "again", Return: "return"} {
		if n.String() != want {
			t.Errorf("%d = %q, want %q", n, n, want)
		}
	}
}
