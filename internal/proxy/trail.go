package proxy

import (
	"bytes"
	"unicode/utf8"

	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/rule"
	"understudy/internal/stats"
)

// How much of an upstream's words about a failure is kept, in bytes: enough for the
// errors that APIs send, and for rules to be tried on them later.
const (
	quotedMessage = 1 << 10
	quotedBody    = 2 << 10
)

// strategyOwner is why a plan has one candidate only: what the request carries lives
// in that one's account.
const strategyOwner = "owner"

// planned notes the order of the request's first plan, and how it came about.
func (r *run) planned(plan *route.Plan) {
	if r.record.Plan != nil {
		return // target mode goes round again
	}
	r.record.Strategy = plan.Strategy
	if len(plan.Steps) < len(plan.Order)-len(plan.Skips) {
		r.record.Strategy = strategyOwner
	}
	shared := r.s.planned[r.chain]
	for i, step := range plan.Order {
		if shared != nil && step.Tier != i+1 {
			shared = nil
		}
	}
	if shared == nil {
		shared = plannedOf(plan.Order)
	}
	r.record.Plan = shared
}

func plannedOf(order []route.Step) []stats.Planned {
	list := make([]stats.Planned, len(order))
	for i, step := range order {
		list[i] = stats.Planned{Candidate: string(step.ID), Name: step.Name, Model: step.Model, Tier: step.Tier}
	}
	return list
}

// plans are the orders of the chains in which there is never a choice, so that
// requests can share them.
func (s *Snapshot) plans() {
	s.planned = map[*route.Chain][]stats.Planned{}
	for _, chain := range s.Routes.Chains() {
		if plan := chain.Plan("", nil, nil); plan.Strategy == route.InOrder {
			s.planned[chain] = plannedOf(plan.Order)
		}
	}
}

// evidence is what the rules saw of a failure and what they said, without secrets.
func (r *run) evidence(f *probe.Failure, d rule.Decision, attempts int) *stats.Failure {
	e := &stats.Failure{
		Kind: f.Kind.String(), Phase: f.Phase.String(), Embedded: f.Embedded, Unreached: f.Unreached,
		Code: r.redact.hide(f.Code, 200), Message: r.redact.hide(f.Message, quotedMessage), Account: r.redact.hide(f.Text, quotedMessage),
		Errored: f.Errored, Empty: f.Empty, WellFormed: f.WellFormed, RetryAfter: f.RetryAfter, HasRetryAfter: f.HasRetryAfter,
		Number: attempts, Next: d.Next.String(), Wait: d.Wait, Freeze: d.Freeze, Scope: d.Scope.String(),
	}
	// What a stream said before it broke is no word about the failure, but what a
	// user got to read.
	if f.Kind == probe.Status || f.Errored || bytes.HasPrefix(bytes.TrimSpace(f.Body), []byte("<")) {
		e.Body, e.Cut = r.redact.hide(string(f.Body[:min(len(f.Body), quotedBody+hideAhead)]), quotedBody), len(f.Body) > quotedBody
	} else {
		e.Cut = len(f.Body) > 0
	}
	return e
}

// hideAhead is how far beyond what is kept a text is looked at, so that no secret
// is cut in two and its beginning kept.
const hideAhead = 8 << 10

// hide takes the secrets out of a text and cuts it to a length in bytes.
func (q *quoter) hide(text string, max int) string {
	text = q.Hide(text[:min(len(text), max+hideAhead)])
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}
