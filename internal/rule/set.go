// Package rule turns a failure into a decision: what the request does next, and
// whether the candidate is frozen and for how long.
//
// It knows the conditions and actions of rules, and why a rule matched or did
// not. It never knows HTTP, the time, health or chains: everything it decides
// follows from its arguments, the random number included.
package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/config"
)

// Set is the rules of one chain, or of the pool, in the order they are asked. It
// is immutable and safe for concurrent use.
type Set struct {
	rules []entry
	// table is what the pool does where none of its rules matches; nil for
	// chains, which then go to the next candidate.
	table *config.Pool
}

// entry is one rule of a set.
type entry struct {
	config.Rule
	origin Origin
}

// Origin says where a rule of a set comes from.
type Origin string

const (
	Own     Origin = "own"     // of the virtual model, or of the pool
	Common  Origin = "common"  // of the file, for all chains
	Default Origin = "default" // what happens where no rule matches
)

// New returns the rules of a chain: the virtual model's own ones first, then the
// common ones.
func New(own, common []config.Rule) *Set {
	s := &Set{rules: make([]entry, 0, len(own)+len(common))}
	s.add(own, Own)
	s.add(common, Common)
	return s
}

// NewPool returns the rules of the pool: its own ones first, then its table of
// statuses and cooldown.
func NewPool(p *config.Pool) *Set {
	s := &Set{rules: make([]entry, 0, len(p.Rules)), table: p}
	s.add(p.Rules, Own)
	return s
}

func (s *Set) add(rules []config.Rule, origin Origin) {
	for _, r := range rules {
		s.rules = append(s.rules, entry{Rule: r, origin: origin})
	}
}

// Names of what decides where no rule matches.
const (
	NoRule    = "no rule"    // a chain: the next candidate
	PoolTable = "pool table" // the pool: retry_statuses and cooldown_seconds
)

// Shown is a rule as people see it. Rule and Origin together name it.
type Shown struct {
	Rule   string `json:"rule"`
	Origin Origin `json:"origin"`
	Match  string `json:"match"`
	Action string `json:"action"`
	Line   int    `json:"line,omitempty"` // in the file; 0 where it stands in none
}

// List returns the rules in the order they are asked, and last what happens
// where none matches.
func (s *Set) List() []Shown {
	out := make([]Shown, 0, len(s.rules)+1)
	for _, e := range s.rules {
		out = append(out, Shown{
			Rule: e.Name, Origin: e.origin, Match: describeMatch(&e.Rule), Action: describeAction(&e.Rule), Line: e.Line,
		})
	}
	if s.table == nil {
		return append(out, Shown{Rule: NoRule, Origin: Default, Match: "anything else", Action: "next"})
	}
	freeze := "next"
	if s.table.Cooldown > 0 {
		freeze = "freeze for the answer's hint or " + s.table.Cooldown.String() + ", then next"
	}
	return append(out, Shown{
		Rule: PoolTable, Origin: Default,
		Match:  "status " + join(s.table.RetryStatuses, strconv.Itoa) + ", or " + strings.Join(tableClasses, ", "),
		Action: freeze + "; anything else: passthrough",
	})
}

func describeMatch(r *config.Rule) string {
	var parts []string
	if len(r.Statuses)+len(r.Classes) > 0 {
		parts = append(parts, wanted(r))
	}
	if len(r.Faults) > 0 {
		parts = append(parts, "fault "+strings.Join(r.Faults, " or "))
	}
	if r.Body != nil {
		parts = append(parts, "text matches "+pattern(r))
	}
	if len(parts) == 0 {
		return "anything"
	}
	return strings.Join(parts, " and ")
}

// wanted names the statuses and classes a rule asks for.
func wanted(r *config.Rule) string {
	var parts []string
	if len(r.Statuses) > 0 {
		parts = append(parts, "status "+join(r.Statuses, strconv.Itoa))
	}
	if len(r.Classes) > 0 {
		parts = append(parts, strings.Join(r.Classes, " or "))
	}
	return strings.Join(parts, " or ")
}

// pattern is the regular expression as it stands in the file.
func pattern(r *config.Rule) string {
	if r.BodySource != "" {
		return "/" + r.BodySource + "/"
	}
	return "/" + r.Body.String() + "/"
}

func join[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = text(v)
	}
	return strings.Join(parts, " or ")
}

func describeAction(r *config.Rule) string {
	switch r.Action {
	case actionRetry:
		return fmt.Sprintf("retry, %d attempts in all, waiting %s^n s up to %v",
			r.MaxAttempts, strconv.FormatFloat(r.BackoffBase, 'g', -1, 64), r.MaxWait)
	case actionFreeze:
		from := "for the answer's hint or "
		if r.FreezeGroup > 0 {
			from = fmt.Sprintf("for group %d times %v, or the answer's hint, or ", r.FreezeGroup, r.FreezeUnit)
		}
		if r.Scope != "" && r.Scope != config.Scopes[0] {
			from = "(scope " + r.Scope + ") " + from
		}
		return "freeze " + from + r.Freeze.String() + ", then next"
	default:
		return r.Action
	}
}

// The actions, as files spell them.
const (
	actionRetry       = "retry"
	actionNext        = "next"
	actionFreeze      = "freeze"
	actionPassthrough = "passthrough"
)

// maxHint is the longest time an upstream can ask for; longer ones are mistakes.
const maxHint = 35 * 24 * time.Hour

// minFreeze is what a freeze "until now", or until a time that has passed, comes
// to.
const minFreeze = time.Second

// tableClasses are the failure classes that the pool's table freezes for.
var tableClasses = []string{"network", "timeout", "stalled_stream", "bad_stream"}

// inTable tells whether the pool's table names status.
func inTable(p *config.Pool, status int) bool { return slices.Contains(p.RetryStatuses, status) }
