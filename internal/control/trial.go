package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/config"
	"understudy/internal/probe"
	"understudy/internal/proxy"
	"understudy/internal/route"
	"understudy/internal/rule"
	"understudy/internal/wire"
)

// A Trial is what the rules of one chain make of one failure.
type Trial struct {
	Model string `json:"virtual_model"`
	// Failure says in a line what is judged.
	Failure string `json:"failure"`
	// Lines are the rules that were asked, in order; the last one decides.
	Lines []TrialLine `json:"rules"`
	// Below is how many rules below that one were not asked.
	Below    int     `json:"rules_below"`
	Decision Outcome `json:"decision"`
	// Unsure says why the real decision may be another; "" = it is this one.
	Unsure string `json:"unsure,omitempty"`
}

// TrialLine is one rule and what it has to say.
type TrialLine struct {
	Rule    string `json:"rule"`
	Origin  string `json:"origin"` // own, common, default
	Line    int    `json:"line,omitempty"`
	Match   string `json:"match"`
	Action  string `json:"action"`
	Decides bool   `json:"decides"`
	Why     string `json:"why"`
}

// Outcome is a decision.
type Outcome struct {
	Rule string `json:"rule"`
	// Next is following (the next candidate), again (the same one) or return (the
	// client gets the answer).
	Next          string  `json:"next"`
	WaitSeconds   float64 `json:"wait_seconds,omitempty"`
	FreezeSeconds float64 `json:"freeze_seconds,omitempty"`
	Scope         string  `json:"scope,omitempty"` // of the freeze
}

// String says it for people.
func (o Outcome) String() string {
	text := map[string]string{
		rule.Following.String(): "the next candidate", rule.Again.String(): "the same candidate again after " + span(o.WaitSeconds), rule.Return.String(): "the client gets this answer",
	}[o.Next]
	if o.FreezeSeconds > 0 {
		frozen := "frozen for " + span(o.FreezeSeconds)
		if o.Scope != "" && o.Scope != rule.Identity.String() {
			frozen += " with its whole " + o.Scope
		}
		text = frozen + ", then " + text
	}
	return text
}

// Suppose is an answer, or the lack of one, that a person makes up.
type Suppose struct {
	Model string // a virtual model, "*" for the pool; "" is the only one there is
	// Status is the answer's; 0 where Class says what happened instead.
	Status int
	Class  string // network, timeout, stalled_stream, bad_stream
	Header map[string][]string
	Body   []byte
	// Text is our own account of a failure without an answer.
	Text string
	// Path is the endpoint that was asked, by POST, and Stream that a stream was.
	Path   string
	Stream bool
	// Attempts is how many attempts the request has made at the candidate, this one
	// included; 0 is 1.
	Attempts int
}

// errHealthy is why no rule is asked.
var errHealthy = errors.New("this is a healthy answer: it goes to the client, and no rule is asked")

// Try puts a made-up failure to the rules of a configuration.
func Try(s *proxy.Snapshot, q Suppose) (Trial, error) {
	chain, err := chainOf(s, q.Model)
	if err != nil {
		return Trial{}, err
	}
	f, err := q.failure(s)
	if err != nil {
		return Trial{}, err
	}
	return try(s, chain, rule.Case{Failure: f, Attempts: max(q.Attempts, 1)}), nil
}

// chainOf is the chain of that name.
func chainOf(s *proxy.Snapshot, model string) (*route.Chain, error) {
	chains := s.Routes.Chains()
	if model == "" && len(chains) == 1 {
		return chains[0], nil
	}
	var names []string
	for _, c := range chains {
		if c.Model == model {
			return c, nil
		}
		names = append(names, c.Model)
	}
	if model == "" {
		return nil, fmt.Errorf("whose rules? name one of %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no virtual model '%s'; there are %s", s.Redact.Quote(model, maxName), strings.Join(names, ", "))
}

// failure is what the proxy would make of it.
func (q *Suppose) failure(s *proxy.Snapshot) (*probe.Failure, error) {
	kinds := map[string]probe.Kind{}
	for _, k := range []probe.Kind{probe.Network, probe.BadStream, probe.Stalled, probe.Timeout} {
		kinds[k.String()] = k
	}
	if q.Class != "" {
		kind, ok := kinds[q.Class]
		if !ok {
			return nil, fmt.Errorf("no failure class is called '%s': there are %s", s.Redact.Quote(q.Class, 60), strings.Join(config.Classes, ", "))
		}
		f := &probe.Failure{Kind: kind, Phase: probe.Probe, Fault: wire.FaultServer, Text: q.Text, Body: q.Body}
		if len(q.Body) > 0 {
			e := wire.Explain(0, q.Header, q.Body, time.Now())
			f.Message, f.Code, f.RetryAfter, f.HasRetryAfter = e.Message, e.Code, e.RetryAfter, e.HasRetryAfter
			if e.Fault != wire.FaultNone {
				f.Fault = e.Fault
			}
		}
		return f, nil
	}
	if q.Status < 100 || q.Status > 999 {
		return nil, errors.New("a failure has a status or a class")
	}
	endpoint := wire.ParseEndpoint("POST", q.Path, "")
	ask := probe.Ask{Method: "POST", Want: wire.Want{Kind: endpoint.Kind, Stream: q.Stream, Array: endpoint.Array, MinChars: s.Config.Server.MinContentChars,
		Judged: endpoint.Generation, ErrorIsFailure: true}}
	_, f := probe.Rehearse(context.Background(), q.Status, q.Header, q.Body, &ask)
	if f == nil {
		return nil, errHealthy
	}
	return f, nil
}

// TryAgain puts a failed attempt of a request to the rules of a configuration. body
// is the answer's, where it was kept; nil = what the evidence quotes of it.
func TryAgain(s *proxy.Snapshot, r *Request, attempt int, body []byte) (Trial, error) {
	a := &r.Attempts[attempt]
	if a.Evidence == nil {
		return Trial{}, errors.New("no rule was asked about this attempt")
	}
	chain, err := chainOf(s, r.Model)
	if err != nil {
		return Trial{}, err
	}
	c := caseOf(a)
	if body != nil {
		c.Body = body
	}
	t := try(s, chain, c)
	if a.Evidence.BodyCut && body == nil && searchesBody(s, chain, len(t.Lines)) {
		t.Unsure = "the answer's body was kept only in part, and a rule searches it"
	}
	return t, nil
}

// caseOf is an attempt's failure as rules saw it.
func caseOf(a *Attempt) rule.Case {
	e := a.Evidence
	f := &probe.Failure{
		Status: a.Status, Embedded: e.Embedded, Unreached: e.Unreached, Code: e.Code, Message: e.Message, Text: e.Account, Body: []byte(e.Body),
		Errored: e.Errored, Empty: e.Empty, WellFormed: e.WellFormed,
	}
	f.Fault, _ = wire.ParseFault(a.Fault)
	for _, k := range []probe.Kind{probe.Status, probe.Network, probe.BadStream, probe.Stalled, probe.Timeout} {
		if k.String() == e.Kind {
			f.Kind = k
		}
	}
	for _, p := range []probe.Phase{probe.Dial, probe.Header, probe.Probe, probe.Relay} {
		if p.String() == e.Phase {
			f.Phase = p
		}
	}
	if e.RetryAfterSeconds != nil {
		f.RetryAfter, f.HasRetryAfter = time.Duration(*e.RetryAfterSeconds*float64(time.Second)), true
	}
	return rule.Case{Failure: f, Attempts: max(e.Number, 1)}
}

func try(s *proxy.Snapshot, chain *route.Chain, c rule.Case) Trial {
	set := s.Rules(chain)
	t := Trial{Model: chain.Model, Failure: describe(s, c), Decision: outcome(set.Decide(c, s.Config.Server.FreezeMax, 0))}
	lines, list := set.Trace(c), set.List()
	for i, l := range lines {
		t.Lines = append(t.Lines, TrialLine{Rule: l.Rule, Origin: string(l.Origin), Line: list[i].Line, Match: list[i].Match, Action: list[i].Action, Decides: l.Decides, Why: l.Why})
		if l.Decides {
			t.Below = max(0, len(lines)-i-2) // what stands for "no rule" is none
			break
		}
	}
	return t
}

func outcome(d rule.Decision) Outcome {
	o := Outcome{Rule: d.Rule, Next: d.Next.String(), WaitSeconds: d.Wait.Seconds(), FreezeSeconds: d.Freeze.Seconds()}
	if d.Freeze > 0 {
		o.Scope = d.Scope.String()
	}
	return o
}

// describe says in a line what a failure is.
func describe(s *proxy.Snapshot, c rule.Case) string {
	text := c.Class()
	if c.Kind == probe.Status {
		text = "status " + text
	} else if c.Embedded != 0 {
		text += " with status " + strconv.Itoa(c.Embedded)
	}
	text += ", fault " + c.Fault.String()
	if c.Message != "" {
		text += ", “" + c.Message + "”"
	} else if c.Text != "" {
		text += ", " + c.Text
	}
	if c.HasRetryAfter {
		text += ", asks for " + span(c.RetryAfter.Seconds())
	}
	if c.Attempts > 1 {
		text += ", attempt " + strconv.Itoa(c.Attempts) + " at this candidate"
	}
	return s.Redact.Quote(text, maxProse)
}

// searchesBody says whether one of the first n rules of a chain looks into bodies.
func searchesBody(s *proxy.Snapshot, chain *route.Chain, n int) bool {
	b := &builder{s: s}
	rules := b.ownRules(chain)
	if !chain.Pool {
		rules = slices.Concat(rules, s.Config.Rules)
	}
	return slices.ContainsFunc(rules[:min(n, len(rules))], func(r config.Rule) bool { return r.Body != nil })
}

// brief keeps a line to a terminal's width: patterns may be long.
func brief(text string) string {
	const most = 100
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Text says it for people.
func (t *Trial) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Model, t.Failure)
	for _, l := range t.Lines {
		mark := "no "
		if l.Decides {
			mark = "yes"
		}
		where := ""
		if l.Line > 0 {
			where = ", line " + strconv.Itoa(l.Line)
		}
		fmt.Fprintf(&b, "  %s  %s (%s%s): %s\n", mark, l.Rule, l.Origin, where, brief(l.Match))
		fmt.Fprintf(&b, "       %s\n", brief(l.Why))
		if l.Decides {
			fmt.Fprintf(&b, "       %s\n", l.Action)
		}
	}
	if t.Below > 0 {
		fmt.Fprintf(&b, "  (%s below not asked)\n", plural(t.Below, "rule"))
	}
	fmt.Fprintf(&b, "so: %s\n", t.Decision)
	if t.Unsure != "" {
		fmt.Fprintf(&b, "unsure: %s\n", t.Unsure)
	}
	return strings.TrimRight(b.String(), "\n")
}
