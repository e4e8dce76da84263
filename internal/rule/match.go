package rule

import (
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
	"understudy/internal/probe"
)

// maxText is how much of each text a regular expression searches, in bytes.
const maxText = 1 << 20

// Case is a failure as rules see it.
type Case struct {
	*probe.Failure
	// Attempts is how many attempts this request has made at this candidate,
	// the failed one included.
	Attempts int
}

// class is the failure class of c, "" where the class is the status.
func (c Case) class() string {
	if c.Kind == probe.Status {
		return ""
	}
	return c.Kind.String()
}

// status is the status that conditions compare: the answer's where that is the
// failure, or the one an error inside a 200 carries; 0 where there is none.
func (c Case) status() int {
	if c.Embedded != 0 {
		return c.Embedded
	}
	if c.Kind == probe.Status {
		return c.Status
	}
	return 0
}

// fault is the word for whose fault it is.
func (c Case) fault() string { return c.Fault.String() }

// blameless tells whether the upstream is not to blame: nothing cools down for
// the client's mistakes, nor for state that lives in another account.
func (c Case) blameless() bool {
	f := c.fault()
	return f == "client" || f == "affinity" || c.Absent
}

// matches tells whether all conditions of r hold.
func matches(r *config.Rule, c Case) bool {
	return matchesKind(r, c) && matchesFault(r, c) && matchesText(r, c)
}

// matchesKind tells whether one of r's statuses or classes is c's. An error
// inside a 200 that carries a status is of that status and of its class both.
func matchesKind(r *config.Rule, c Case) bool {
	if len(r.Statuses)+len(r.Classes) == 0 {
		return true
	}
	if s := c.status(); s != 0 && slices.Contains(r.Statuses, s) {
		return true
	}
	class := c.class()
	return class != "" && slices.Contains(r.Classes, class)
}

func matchesFault(r *config.Rule, c Case) bool {
	return len(r.Faults) == 0 || slices.Contains(r.Faults, c.fault())
}

func matchesText(r *config.Rule, c Case) bool {
	return r.Body == nil || where(r, c) != ""
}

// where names the text in which r's expression is found, "" if in none.
func where(r *config.Rule, c Case) string {
	switch {
	case r.Body.Match(c.Body[:min(len(c.Body), maxText)]):
		return "the body"
	case r.Body.MatchString(head(c.Message)):
		return "the message"
	case r.Body.MatchString(head(c.Text)):
		return "our account of the failure"
	}
	return ""
}

// captures returns what r's group holds in each text that matches, in the order
// they are searched.
func captures(r *config.Rule, c Case) []string {
	var out []string
	body := c.Body[:min(len(c.Body), maxText)]
	if m := r.Body.Find(body); len(m) > r.FreezeGroup {
		out = append(out, string(m[r.FreezeGroup]))
	}
	for _, text := range []string{c.Message, c.Text} {
		if m := r.Body.FindString(head(text)); len(m) > r.FreezeGroup {
			out = append(out, m[r.FreezeGroup])
		}
	}
	return out
}

func head(s string) string { return s[:min(len(s), maxText)] }

// Line tells what one rule has to say about a case.
type Line struct {
	Rule    string `json:"rule"`
	Origin  Origin `json:"origin"`
	Matched bool   `json:"matched"`
	Decides bool   `json:"decides"` // it is the first that matched
	Why     string `json:"why"`     // which conditions hold, or the first that does not
}

// Trace tells for every rule, in order, why it matches c or not, and last what
// happens where none does. Exactly one line decides, the one that Decide
// follows.
func (s *Set) Trace(c Case) []Line {
	out := make([]Line, 0, len(s.rules)+1)
	decided := false
	for i := range s.rules {
		e := &s.rules[i]
		why, ok := explain(&e.Rule, c)
		out = append(out, Line{Rule: e.Name, Origin: e.origin, Matched: ok, Decides: ok && !decided, Why: why})
		decided = decided || ok
	}
	last := Line{Rule: NoRule, Origin: Default, Matched: true, Decides: !decided, Why: "anything else"}
	if s.table != nil {
		last.Rule = PoolTable
		last.Why = s.tableDecision(c, 0).Why
	}
	return append(out, last)
}

// explain names the conditions of r that hold, or the first that does not.
func explain(r *config.Rule, c Case) (why string, ok bool) {
	var held []string
	if len(r.Statuses)+len(r.Classes) > 0 {
		if !matchesKind(r, c) {
			return "it is " + c.describe() + ", not " + wanted(r), false
		}
		held = append(held, c.describe())
	}
	if len(r.Faults) > 0 {
		if !matchesFault(r, c) {
			return "the fault is " + c.fault() + ", not " + strings.Join(r.Faults, " or "), false
		}
		held = append(held, "fault "+c.fault())
	}
	if r.Body != nil {
		in := where(r, c)
		if in == "" {
			return "no text matches " + pattern(r), false
		}
		held = append(held, in+" matches "+pattern(r))
	}
	if len(held) == 0 {
		return "it asks for nothing", true
	}
	return strings.Join(held, ", "), true
}

// describe names c's status and class.
func (c Case) describe() string {
	class, status := c.class(), c.status()
	switch {
	case class == "":
		return "status " + strconv.Itoa(status)
	case status != 0:
		return class + " with status " + strconv.Itoa(status)
	}
	return class
}
