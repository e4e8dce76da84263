package control

import (
	"fmt"
	"strings"
	"time"

	"understudy/internal/proxy"
)

// A Replay puts the failures of past requests to the rules of a configuration, and
// notes where they would have decided otherwise.
type Replay struct {
	// Requests are those with a failure, Failures the attempts that failed.
	Requests int `json:"requests"`
	Failures int `json:"failures"`
	// Same are decided as they were, OtherRule of these by another rule.
	Same      int `json:"same"`
	OtherRule int `json:"same_by_another_rule"`
	// Unsure are those whose body was not kept whole though a rule searches it; they
	// are in Same or in Differences too.
	Unsure int `json:"unsure"`
	// NoChain are failures of virtual models that the configuration has not.
	NoChain     int          `json:"no_chain"`
	Differences []Difference `json:"differences"`

	s *proxy.Snapshot
}

// Difference is a decision that would have been another.
type Difference struct {
	Request   string    `json:"request"`
	Start     time.Time `json:"start"`
	Model     string    `json:"virtual_model"`
	Attempt   int       `json:"attempt"` // from 1
	Candidate string    `json:"candidate"`
	Failure   string    `json:"failure"`
	Was       Outcome   `json:"was"`
	Would     Outcome   `json:"would_be"`
	Unsure    bool      `json:"unsure"`
}

// NewReplay begins a replay with the rules of a configuration.
func NewReplay(s *proxy.Snapshot) *Replay { return &Replay{s: s, Differences: []Difference{}} }

// Take takes a request, with its attempts.
func (p *Replay) Take(r *Request) {
	failures := 0
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Evidence == nil {
			continue
		}
		failures++
		t, err := TryAgain(p.s, r, i, nil)
		if err != nil {
			p.NoChain++
			continue
		}
		if t.Unsure != "" {
			p.Unsure++
		}
		was := Outcome{Rule: a.Rule, Next: a.Evidence.Next, WaitSeconds: a.Evidence.WaitSeconds, FreezeSeconds: a.Evidence.FreezeSeconds}
		if was.FreezeSeconds > 0 {
			was.Scope = a.Evidence.Scope
		}
		if !was.differs(t.Decision) {
			p.Same++
			if was.Rule != t.Decision.Rule {
				p.OtherRule++
			}
			continue
		}
		p.Differences = append(p.Differences, Difference{
			Request: r.ID, Start: r.Start, Model: r.Model, Attempt: i + 1, Candidate: a.Candidate, Failure: t.Failure, Was: was, Would: t.Decision, Unsure: t.Unsure != "",
		})
	}
	if failures > 0 {
		p.Requests++
		p.Failures += failures
	}
}

// jitter is by how much a wait that was may be longer than the one it came from;
// package rule stretches them by up to a twentieth.
const jitter = 0.051

// differs says whether what would be is something else than what was. Which rule
// decides does not matter.
func (o Outcome) differs(would Outcome) bool {
	const moment = 0.001 // seconds
	return o.Next != would.Next || o.Scope != would.Scope ||
		abs(o.FreezeSeconds-would.FreezeSeconds) > moment ||
		o.WaitSeconds < would.WaitSeconds-moment || o.WaitSeconds > would.WaitSeconds*(1+jitter)+moment
}

func abs(x float64) float64 { return max(x, -x) }

// Text says it for people: every difference, and a summary.
func (p *Replay) Text() string {
	var b strings.Builder
	for _, d := range p.Differences {
		fmt.Fprintf(&b, "%s %s, attempt %d (%s): %s\n", d.Request, d.Model, d.Attempt, d.Candidate, d.Failure)
		fmt.Fprintf(&b, "  was       %s   [%s]\n", d.Was, d.Was.Rule)
		fmt.Fprintf(&b, "  would be  %s   [%s]\n", d.Would, d.Would.Rule)
		if d.Unsure {
			b.WriteString("  unsure: the answer's body was kept only in part, and a rule searches it\n")
		}
	}
	fmt.Fprintf(&b, "%s of %s: %s otherwise, %d as they were", plural(p.Failures, "failure"), plural(p.Requests, "request"), decided(len(p.Differences)), p.Same)
	if p.OtherRule > 0 {
		fmt.Fprintf(&b, " (%d by another rule)", p.OtherRule)
	}
	if p.NoChain > 0 {
		fmt.Fprintf(&b, ", %d of virtual models that are not in the configuration", p.NoChain)
	}
	return b.String()
}

func decided(n int) string {
	if n == 1 {
		return "1 would be decided"
	}
	return fmt.Sprint(n) + " would be decided"
}
