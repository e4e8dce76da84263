package drill

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is what a scenario's ending is worth. The words and what they mean are
// FailoverBench's.
type Verdict string

// The verdicts, the best first.
const (
	// Pass: the client got what it should, and nobody was treated badly on the way.
	Pass Verdict = "pass"
	// Partial: the client got what it should, and something advisable was left out;
	// or an error that it should have seen was worked around.
	Partial Verdict = "partial"
	// Safe: the client got an error instead of an answer, in time and plainly one.
	Safe Verdict = "safe"
	// Fail: the client waited in vain, or got a part that looks like a whole, or an
	// upstream was hammered.
	Fail Verdict = "fail"
)

// Verdicts lists them, the best first.
var Verdicts = []Verdict{Pass, Partial, Safe, Fail}

// Attempt is one request that reached an upstream.
type Attempt struct {
	// Rank says which candidate it was: 0 is the one called first, 1 the one called
	// next, and so on.
	Rank int
	At   time.Duration // since the client asked
}

// sight is what was seen of one scenario, at both ends of the proxy.
type sight struct {
	heard    Heard
	hung     bool // the client gave up
	whole    bool // the answer is all of what one candidate said
	speaker  int  // that candidate's number; -1 without one
	rank     int  // and its rank
	released bool // words of an answer reached the client, which then was told of an error
	elapsed  time.Duration
	attempts []Attempt
	others   int  // candidates besides the one called first
	alive    bool // another request was answered afterwards
	booked   Booking
	named    string // what the proxy calls the candidate that answered
	model    string // the model that candidate was asked for
	gone     bool   // the upstream saw that the client had left
	// prefilled: somebody was asked to continue what another had begun.
	prefilled bool

	// Of a sequence: how many requests there were during the outage, how many of
	// them were answered, and how long after it the first candidate answered again;
	// negative for never.
	during, served int
	back           time.Duration
	errors         int // requests that got an error
	asked          int

	factor float64 // by which clocks were divided
}

// lead is how many attempts there were at the candidate called first.
func (s *sight) lead() (n int) {
	for _, a := range s.attempts {
		if a.Rank == 0 {
			n++
		}
	}
	return n
}

// rest is how many attempts there were at others.
func (s *sight) rest() int { return len(s.attempts) - s.lead() }

// busiest is the largest number of attempts at one candidate.
func (s *sight) busiest() (most int) {
	counts := map[int]int{}
	for _, a := range s.attempts {
		counts[a.Rank]++
		most = max(most, counts[a.Rank])
	}
	return most
}

// within is how many attempts at the candidate called first came within d of the
// first one.
func (s *sight) within(d time.Duration) (n int) {
	var first time.Duration
	for _, a := range s.attempts {
		if a.Rank != 0 {
			continue
		}
		if n == 0 {
			first = a.At
		}
		if a.At-first < s.scale(d) {
			n++
		}
	}
	return n
}

// gap is the time between the first two attempts at the candidate called first; 0
// where there is no second one.
func (s *sight) gap() time.Duration {
	var first time.Duration
	seen := false
	for _, a := range s.attempts {
		switch {
		case a.Rank != 0:
		case seen:
			return a.At - first
		default:
			first, seen = a.At, true
		}
	}
	return 0
}

func (s *sight) scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.factor)
}

// What a machine under load may add to a time: to one that is told apart from a
// somewhat longer one, and to one that is told apart from waiting in vain.
const (
	slack = 500 * time.Millisecond
	grace = 2 * time.Second
)

// in reports whether it was over within d, which is divided as the clocks were.
func (s *sight) in(d, more time.Duration) bool { return !s.hung && s.elapsed <= s.scale(d)+more }

// check is something a proxy has to do besides getting an answer.
type check struct {
	name     string // what holds, as a sentence without a subject
	advisory bool   // where it does not hold the verdict is partial, not fail
	// rescue: it can hold only where there is another candidate.
	rescue bool
	holds  func(s *sight) bool
	// because says why it may not hold; nil where nothing is known.
	because func(s *sight) string
}

// Note is a check with what came of it.
type Note struct {
	Check    string `json:"check"`
	Holds    bool   `json:"holds"`
	Advisory bool   `json:"advisory,omitempty"`
}

// judge gives the verdict, in one line why, and the checks.
func (sc Scenario) judge(s *sight) (Verdict, string, []Note) {
	var notes []Note
	var broken, advice []string
	for _, c := range sc.checks {
		if c.rescue && s.others == 0 {
			continue
		}
		n := Note{Check: c.name, Holds: c.holds(s), Advisory: c.advisory}
		notes = append(notes, n)
		short := n.Check
		if c.because != nil {
			short += c.because(s)
		}
		switch {
		case n.Holds:
		case n.Advisory:
			advice = append(advice, short)
		default:
			broken = append(broken, short)
		}
	}
	answered := s.heard.Error == ""
	switch {
	case s.hung:
		return Fail, "the client waited in vain", notes
	case answered && !s.whole && !sc.refusal:
		return Fail, "what reached the client looks whole and is not", notes
	case len(broken) > 0:
		return Fail, "should have: " + strings.Join(broken, "; "), notes
	case sc.refusal && answered:
		return Partial, "somebody else answered what was refused", notes
	case !sc.refusal && !answered && s.released:
		return Safe, "words had reached the client before it failed", notes
	case !sc.refusal && !answered && s.others == 0:
		return Safe, "there is nobody else to ask", notes
	case !sc.refusal && !answered:
		return Safe, "nobody else was asked, or could answer", notes
	case len(advice) > 0:
		return Partial, "could have: " + strings.Join(advice, "; "), notes
	}
	return Pass, "", notes
}

// saw says what the client saw, in a few words.
func (s *sight) saw(sc Scenario) string {
	switch {
	case s.asked > 0 && s.errors == 0 && !s.hung:
		return fmt.Sprintf("%d whole answers, %s", s.asked, s.comeback())
	case s.asked > 0:
		return fmt.Sprintf("%d of %d whole, %s", s.asked-s.errors, s.asked, s.comeback())
	case s.hung && s.released:
		return fmt.Sprintf("the beginning of an answer and no end within %s", brisk(s.elapsed))
	case s.hung:
		return fmt.Sprintf("nothing within %s", brisk(s.elapsed))
	case s.whole:
		return "a whole answer, from " + s.named
	case s.heard.Error == "":
		return fmt.Sprintf("%d of its words as if that were all", len(strings.Fields(s.heard.Text)))
	case s.released:
		return fmt.Sprintf("%d words, then: %s", len(strings.Fields(s.heard.Text)), s.heard.Error)
	case sc.play != nil && s.gone:
		return "left"
	}
	return s.heard.Error
}

func (s *sight) comeback() string {
	if s.back < 0 {
		return "the first never used again"
	}
	return fmt.Sprintf("the first used again %s after it was well", brisk(s.back))
}

// brisk shows a duration to a tenth of a second.
func brisk(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
