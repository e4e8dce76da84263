package route

import (
	"cmp"
	"slices"
)

// Load tells how many requests an identity has in flight.
type Load func(ID) int

// Why tells whether to leave an identity out of a plan, and for what reason. It
// is advice: the attempt itself asks again.
type Why func(ID) (reason string, skip bool)

// Step is one place in a plan.
type Step struct {
	*Candidate
	Tier int // counts from 1
	// Score is the rendezvous score where the session key chose, else 0.
	Score float64

	load float64
}

// Skip is a candidate left out of a plan.
type Skip struct {
	*Candidate
	Reason string
}

// Strategies of a plan: how the members of its groups were ordered.
const (
	Rendezvous = "rendezvous" // by session key
	LeastLoad  = "least load"
	InOrder    = "order" // there was no choice, every tier is one candidate
)

// Plan is the candidates of one request, in the order to try them. Its
// candidates are the chain's own; its slices may share memory and are not to be
// changed.
type Plan struct {
	Steps    []Step // those to try
	Skips    []Skip // those left out, in the same order
	Order    []Step // all of them
	Strategy string
}

// ReasonDisabled is the reason of a Skip for a candidate switched off in the
// configuration.
const ReasonDisabled = "disabled"

// Plan orders the chain's candidates for one request: tier by tier, and inside a
// tier of several by session key, or, without one, the least loaded first (in
// flight / weight; of equals the heavier, then by id). A chain without affinity
// takes no notice of the key. load and why may be nil.
// They are called at most once per candidate, and the result depends on nothing
// else.
func (c *Chain) Plan(key string, load Load, why Why) Plan {
	n := 0
	for _, tier := range c.Tiers {
		n += len(tier)
	}
	if c.Affinity == "off" {
		key = ""
	}
	p := Plan{Order: make([]Step, 0, n), Strategy: InOrder}
	var r ranker
	for i := range c.Tiers {
		tier := c.Tiers[i]
		first := len(p.Order)
		for j := range tier {
			p.Order = append(p.Order, Step{Candidate: &tier[j], Tier: i + 1})
		}
		if len(tier) < 2 && !c.Pool {
			continue
		}
		steps := p.Order[first:]
		if key != "" {
			p.Strategy = Rendezvous
			rank(steps, key, &r)
		} else {
			p.Strategy = LeastLoad
			balance(steps, load)
		}
	}
	p.leaveOut(why)
	return p
}

// rank orders the members of a group by their scores for key.
func rank(steps []Step, key string, r *ranker) {
	for i := range steps {
		s := &steps[i]
		s.Score = r.score(key, s.RendezvousID, s.Weight)
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.RendezvousID, b.RendezvousID))
	})
}

// balance orders the members of a group by their load.
func balance(steps []Step, load Load) {
	if load != nil {
		for i := range steps {
			s := &steps[i]
			s.load = float64(load(s.ID)) / s.Weight
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(b.Weight, a.Weight),
			cmp.Compare(a.RendezvousID, b.RendezvousID))
	})
}

// leaveOut divides Order into Steps and Skips.
func (p *Plan) leaveOut(why Why) {
	kept := 0
	for i, s := range p.Order {
		reason, skip := ReasonDisabled, !s.Enabled
		if !skip && why != nil {
			reason, skip = why(s.ID)
		}
		switch {
		case skip && p.Skips == nil:
			// From here on Steps is no prefix of Order any more.
			p.Steps = append(make([]Step, 0, len(p.Order)-1), p.Order[:i]...)
			fallthrough
		case skip:
			p.Skips = append(p.Skips, Skip{Candidate: s.Candidate, Reason: reason})
		case p.Skips == nil:
			kept++
		default:
			p.Steps = append(p.Steps, s)
		}
	}
	if p.Skips == nil {
		p.Steps = p.Order[:kept:kept]
	}
}
