package control

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"understudy/internal/route"
	"understudy/internal/stats"
)

// Story tells how a request went, as a person would: what was planned, what became
// of every attempt and why, and what the client got. It is of several lines, without
// a line break at the end.
func (r *Request) Story() string {
	var s story
	s.head(r)
	s.plan(r)
	for i := range r.Attempts {
		if r.Omitted > 0 && i == len(r.Attempts)/2 {
			s.say("   (%s in between that are not kept)", plural(r.Omitted, "attempt"))
		}
		s.attempt(r, i)
	}
	if len(r.Attempts) > 0 {
		s.say("")
	}
	s.ending(r)
	return strings.TrimRight(s.text.String(), "\n")
}

// A story is being told.
type story struct{ text strings.Builder }

func (s *story) say(format string, a ...any) { fmt.Fprintf(&s.text, format+"\n", a...) }

func (s *story) head(r *Request) {
	what := r.Model
	switch r.Model {
	case "":
		what = "no chain"
	case route.PoolName:
		what = "the pool"
	}
	how := r.Dialect
	if r.Stream {
		how += ", a stream"
	}
	if r.Client != "" {
		how += ", client " + r.Client
	}
	s.say("%s went to %s: %s %s (%s)", r.ID, what, r.Method, r.Path, how)
	s.say("It began %s and was over after %s.", r.Start.Local().Format("2006-01-02 15:04:05"), took(r.Duration))
	if r.Ignored {
		s.say("Its endpoint is one of ignored_error_endpoints: what happened counts for nothing.")
	}
	s.say("")
}

// strategies are why a plan has its order.
var strategies = map[string]string{
	route.InOrder:    "in the order of the file",
	route.Rendezvous: "by its session key",
	route.LeastLoad:  "the least loaded first",
	"owner":          "only the owner of what it refers to",
}

func (s *story) plan(r *Request) {
	if len(r.Plan) > 0 {
		var names []string
		for i, p := range r.Plan {
			names = append(names, strconv.Itoa(i+1)+". "+called(p.Candidate, p.Model))
		}
		s.say("The plan, %s: %s.", cmp.Or(strategies[r.Strategy], r.Strategy), strings.Join(names, ", "))
	}
	for _, k := range r.Skips {
		s.say("   %s was passed over: %s", k.Candidate, k.Reason)
	}
	if len(r.Plan)+len(r.Skips) > 0 {
		s.say("")
	}
}

func called(name, model string) string {
	if model == "" || model == name {
		return name
	}
	return name + " (" + model + ")"
}

func (s *story) attempt(r *Request, i int) {
	a := &r.Attempts[i]
	when := ""
	if later := a.Start.Sub(r.Start); i > 0 && later > 0 {
		when = ", begun after " + took(float64(later)/float64(time.Millisecond))
	}
	verdict := map[string]string{stats.OK.String(): "a healthy answer", stats.Empty.String(): "an empty answer", stats.Failed.String(): "failed", stats.Abandoned.String(): "given up"}[a.Verdict]
	number := strconv.Itoa(i + 1)
	if r.Omitted > 0 && i >= len(r.Attempts)/2 {
		number = strconv.Itoa(i + 1 + r.Omitted)
	}
	s.say("%s. %s%s: %s after %s", number, called(a.Candidate, a.Model), when, verdict, took(a.Duration))
	s.phases(a)
	if a.Text != "" {
		s.say("   %s", a.Text)
	}
	if a.Rule != "" {
		s.say("   %s", decision(a))
	}
	if a.Hedged {
		s.say("   it had failed so often in a row that auto-hedge froze it for %s", span(a.FrozeSeconds))
	}
	if t := tokensOf(a.Tokens); t != "" {
		s.say("   it reported %s", t)
	}
}

// phases says how far the attempt came, and when.
func (s *story) phases(a *Attempt) {
	var list []string
	for _, p := range []struct {
		what string
		at   *float64
	}{{"connected", a.Connected}, {"headers", a.Header}, {"first byte", a.FirstByte}, {"first content", a.FirstContent}, {"released", a.Released}} {
		if p.at != nil {
			list = append(list, p.what+" after "+took(*p.at))
		}
	}
	if len(list) > 0 {
		s.say("   %s", strings.Join(list, ", "))
	}
}

// decision says which rule decided, and what followed.
func decision(a *Attempt) string {
	text := "rule '" + a.Rule + "': "
	switch a.Action {
	case "retry":
		text += "the same candidate again after " + span(a.WaitSeconds)
	case "passthrough":
		text += "the client gets this answer"
	case "freeze":
		text += "frozen for " + span(a.FrozeSeconds) + ", then the next candidate"
	default:
		text += "the next candidate"
	}
	if a.Action != "freeze" && a.FrozeSeconds > 0 && !a.Hedged {
		text += ", and frozen for " + span(a.FrozeSeconds)
	}
	if e := a.Evidence; e != nil && e.Next == "again" && a.Action != "retry" {
		text += " (it said to try again, but by then the candidate was frozen)"
	}
	return text
}

func (s *story) ending(r *Request) {
	status := strconv.Itoa(r.Status)
	switch r.Ending {
	case stats.Success.String():
		s.say("The client got the whole answer of %s, status %s%s.", r.Candidate, status, s.sent(r))
	case stats.PassedThrough.String():
		s.say("The client got the upstream's own error, status %s, as a rule wants it.", status)
	case stats.EmptyPassed.String():
		s.say("Nobody was left, so the client got the empty answer as it came, status %s.", status)
	case stats.Broken.String():
		s.say("The answer of %s broke off after it had been released: the client, who had status %s and %s, saw a broken connection.", r.Candidate, status, plural(int(r.Bytes), "byte"))
	case stats.Cancelled.String():
		s.say("The client left after %s.", took(r.Duration))
	case stats.Exhausted.String():
		if r.Status == 0 {
			s.say("Nobody was left to call: the connection was dropped, as target mode is set to do.")
			return
		}
		s.say("Nobody was left to call: the client got our own status %s.", status)
	default:
		s.say("It was refused with status %s, and nobody was called for it.", status)
	}
}

// sent says how the winner's answer went out.
func (s *story) sent(r *Request) string {
	text := ""
	if r.Released != nil {
		text += ", from " + took(*r.Released) + " on"
	}
	text += ": " + plural(int(r.Bytes), "byte")
	if t := tokensOf(r.Tokens); t != "" {
		text += ", " + t
	}
	return text
}

// tokensOf says what an answer reported; "" where it reported nothing.
func tokensOf(t Tokens) string {
	var list []string
	if t.Input != nil {
		input := strconv.FormatInt(*t.Input, 10) + " input"
		if t.Cached != nil && *t.Cached > 0 {
			input += " (" + strconv.FormatInt(*t.Cached, 10) + " cached)"
		}
		list = append(list, input)
	}
	if t.Output != nil {
		list = append(list, strconv.FormatInt(*t.Output, 10)+" output")
	}
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, " and ") + " tokens"
}

// took is a number of milliseconds for people.
func took(ms float64) string {
	switch {
	case ms < 1:
		return "less than 1 ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 60_000:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}

// span is a number of seconds for people.
func span(seconds float64) string {
	if seconds > 0 && seconds < 60 {
		return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// explain is the command: a request by its id, or the newest one.
func explain(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	id := ""
	if len(c.args) == 1 {
		id = c.args[0]
	} else if newest := c.c.Requests(Query{Limit: 1}); len(newest.Requests) == 1 {
		id = newest.Requests[0].ID
	} else {
		return "", errNoRequest
	}
	record, err := c.c.record(id)
	if err != nil {
		return "", errors.New(c.prose(err.Error()))
	}
	r := c.whole(&record)
	return r.Story(), nil
}
