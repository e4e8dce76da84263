package rule

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"understudy/internal/config"
)

// Next is what a request does after a failure.
type Next uint8

const (
	// Following tries the next candidate.
	Following Next = iota
	// Again tries the same candidate once more, after Decision.Wait.
	Again
	// Return gives the failure to the client.
	Return
)

// String names it.
func (n Next) String() string {
	switch n {
	case Again:
		return "again"
	case Return:
		return "return"
	}
	return "following"
}

// Decision is what follows from a failure. What next and whether to freeze are
// independent of each other: Again with a freeze means that everybody else passes
// the candidate over while this request waits.
type Decision struct {
	Next Next
	// Wait is how long to wait before Again. With a freeze it is the freeze's
	// length, so the freeze is to be set before the wait begins.
	Wait time.Duration
	// Freeze is how long to freeze the candidate; 0 is not at all.
	Freeze time.Duration
	// FreezeFromHint: the answer said so, apart from what the rule captured.
	FreezeFromHint bool
	// Grow: nothing the upstream said set the length, and it is to blame. On
	// probation the candidate is frozen for twice its last freeze, if that is
	// more than Freeze, even if Freeze is 0.
	Grow bool
	// Scope is how far Freeze reaches.
	Scope Scope
	Rule  string // the rule's name, NoRule or PoolTable
	Why   string // the conditions that held; never a secret, nor an upstream's words
}

// jitter is the largest share by which a backoff is lengthened at random, so
// that requests that failed together do not come back together.
const jitter = 0.05

// Decide returns what the first matching rule says about c, or the pool's table,
// or NoRule. limit is freeze_max, which caps every freeze (0 caps none). rnd is
// from [0,1) and stretches a backoff by at most a twentieth, within max_wait.
func (s *Set) Decide(c Case, limit time.Duration, rnd float64) Decision {
	for i := range s.rules {
		r := &s.rules[i].Rule
		if !matches(r, c) {
			continue
		}
		d := apply(r, c, limit, rnd)
		d.Rule = r.Name
		d.Why, _ = explain(r, c)
		if s.table != nil {
			d.Grow = false // the pool's freezes do not grow
		}
		return d
	}
	if s.table != nil {
		return s.tableDecision(c, limit)
	}
	return Decision{Next: Following, Grow: !c.blameless(), Rule: NoRule, Why: "no rule matches " + c.describe() + ", fault " + c.fault()}
}

// apply carries out a rule that matched.
func apply(r *config.Rule, c Case, limit time.Duration, rnd float64) Decision {
	switch r.Action {
	case actionRetry:
		return retry(r, c, limit, rnd)
	case actionFreeze:
		return freeze(r, c, limit)
	case actionPassthrough:
		return Decision{Next: Return, Grow: !c.blameless()}
	default: // next
		return Decision{Next: Following, Grow: !c.blameless()}
	}
}

func retry(r *config.Rule, c Case, limit time.Duration, rnd float64) Decision {
	left := c.Attempts < r.MaxAttempts
	if hint, ok := hint(c, limit); ok {
		d := Decision{Next: Following, Freeze: hint, FreezeFromHint: true}
		if left && hint <= r.MaxWait {
			d.Next, d.Wait = Again, hint
		}
		return d
	}
	d := Decision{Next: Following, Grow: !c.blameless()}
	if left {
		d.Next, d.Wait = Again, backoff(r, c.Attempts, rnd)
	}
	return d
}

// backoff is base^n seconds, n being the attempts made, plus jitter, at most
// max_wait.
func backoff(r *config.Rule, n int, rnd float64) time.Duration {
	seconds := math.Pow(r.BackoffBase, float64(n)) * (1 + jitter*rnd)
	// Compared as floats: the power may be more than a Duration holds.
	if !(seconds < r.MaxWait.Seconds()) {
		return r.MaxWait
	}
	return time.Duration(seconds * float64(time.Second))
}

func freeze(r *config.Rule, c Case, limit time.Duration) Decision {
	d := length(r, c, limit)
	d.Scope = scope(r, c)
	return d
}

// length is the freeze that r says, without its scope.
func length(r *config.Rule, c Case, limit time.Duration) Decision {
	if r.FreezeGroup > 0 && r.Body != nil {
		for _, text := range captures(r, c) {
			if d, ok := captured(text, r.FreezeUnit); ok {
				return Decision{Next: Following, Freeze: bound(d, limit)}
			}
		}
	}
	if d, ok := hint(c, limit); ok {
		return Decision{Next: Following, Freeze: d, FreezeFromHint: true}
	}
	return Decision{Next: Following, Freeze: capped(r.Freeze, limit), Grow: true}
}

// number is what a captured group must hold.
var number = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)

// captured reads the length that a rule's group holds. Garbage, zero and more
// than 35 days are no length.
func captured(text string, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if !number.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	length := n * float64(unit)
	if length <= 0 || length > float64(maxHint) {
		return 0, false
	}
	return time.Duration(length), true
}

// hint is the length that the answer itself asks for, as it is used; negative
// ones and more than 35 days are none.
func hint(c Case, limit time.Duration) (time.Duration, bool) {
	if !c.HasRetryAfter || c.RetryAfter < 0 || c.RetryAfter > maxHint {
		return 0, false
	}
	return bound(c.RetryAfter, limit), true
}

// bound makes what an upstream asked for a length to freeze.
func bound(d, limit time.Duration) time.Duration {
	return capped(max(d, minFreeze), limit)
}

func capped(d, limit time.Duration) time.Duration {
	if limit > 0 && d > limit {
		return limit
	}
	return d
}

// tableDecision is the pool's table: a listed status or any failure that is no
// status freezes for the answer's hint or the cooldown and goes on; everything
// else goes to the client.
//
// The request's own faults are told apart inside a 200 too. State of another
// account goes to the client, and so does a client's mistake that carries a
// status the table does not list. One that carries none goes on, but freezes
// nobody: no upstream is to blame for it.
func (s *Set) tableDecision(c Case, limit time.Duration) Decision {
	p := s.table
	listed := inTable(p, c.status())
	d := Decision{Next: Following, Rule: PoolTable}
	switch {
	case c.class() == "" && !listed:
		return Decision{Next: Return, Rule: PoolTable, Why: c.describe() + " is not in retry_statuses"}
	case listed:
		d.Why = c.describe() + " is in retry_statuses"
	case c.fault() == "affinity", c.blameless() && c.Embedded != 0:
		return Decision{Next: Return, Rule: PoolTable, Why: c.describe() + ", fault " + c.fault() + ", which no other upstream could cure"}
	case c.Absent:
		d.Why = c.describe() + ", at a path that may not be there: nobody is frozen"
		return d
	case c.blameless():
		d.Why = c.describe() + ", fault " + c.fault() + ", for which nobody is frozen"
		return d
	default:
		d.Why = c.describe()
	}
	if p.Cooldown <= 0 {
		return d
	}
	if h, ok := hint(c, limit); ok {
		d.Freeze, d.FreezeFromHint = h, true
	} else {
		d.Freeze = capped(p.Cooldown, limit)
	}
	return d
}
