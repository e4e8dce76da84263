package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/rule"
	"understudy/internal/stats"
	"understudy/internal/wire"
)

// A run is one request on its way through one chain: what has been tried and what
// is kept for the end. It belongs to one goroutine.
type run struct {
	h     *Handler
	s     *Snapshot
	req   *request
	chain *route.Chain
	rules *rule.Set

	record   stats.Record
	caller   *health.Lease // the client's, where it has limits
	redact   quoter
	bodies   *bodies
	deadline time.Time // chain_timeout; zero = none
	sticky   string    // the session key
	hedge    *config.Hedge
	extras   int       // attempts begun beside others
	ours     [3]string // values of the headers that are ours
	shown    []string  // credentials of the configuration's that upstreams have been shown
	showing  [2]string // where those lie, if they are no more
	deliver  string    // stream, complete or window
	early    *early    // delivery complete: tells the client that it is not forgotten

	round   int   // attempts made since the chain was last begun
	empty   *kept // the first well-formed empty answer
	clients *kept // the last failure that was the client's own fault
	others  bool  // some candidate failed for another reason
	order   []route.Step
	lines   []line // what became of candidates; those of order without one were not reached
	why     string // what ended the walk before its end; "" = nothing did
}

// kept is a failure whose answer may still go to the client.
type kept struct {
	failure   *probe.Failure
	candidate *route.Candidate
	try       int
}

// line says, for people, what became of a candidate.
type line struct {
	candidate *route.Candidate
	text      string
	tries     int
	frozen    bool // passed over for a freeze, which the text tells as it was then
	limited   bool // passed over for a limit of ours, until back
	back      time.Time
}

// A result is what a walk along the chain came to: exactly one field is set.
type result struct {
	won       *won
	pass      *kept   // goes to the client as it came
	answer    *answer // ours
	gone      bool    // the client has left
	exhausted bool    // nobody is left
}

// won is the answer to release, with the lease that its upstream still holds.
type won struct {
	exchange  *probe.Exchange
	upgraded  *upgraded // instead of an exchange, where the client asked for a WebSocket
	candidate *route.Candidate
	lease     *health.Lease
	try       int
	learner   *learner
}

func key(id route.ID) health.Key { return health.Key("u:" + string(id)) }

// chainSpent is why a walk ends early when chain_timeout is over.
const chainSpent = "the time for all attempts (chain_timeout) is used up"

// stop ends the walk before its end.
func (r *run) stop(why string) result {
	r.why = why
	return result{exhausted: true}
}

// decide settles a failed attempt by the rules. again says that the same candidate is
// to be tried once more, after that wait; then there is no result.
func (r *run) decide(s *seat, f *probe.Failure, t stats.Try, now time.Time) (_ result, wait time.Duration, again bool) {
	c, lease, n := s.c, s.lease, s.n
	max := r.s.Config.Server.FreezeMax
	d := r.rules.Decide(rule.Case{Failure: f, Attempts: n}, max, r.h.rand())
	if f.Ours {
		d.Freeze = 0 // whatever a rule says: it would freeze who has done nothing
	}
	account := r.account(f)
	t.Verdict, t.Status, t.Class, t.Fault, t.Rule, t.Text = stats.Failed, f.Status, f.Class(), f.Fault.String(), d.Rule, account
	if f.Empty && f.WellFormed {
		t.Verdict = stats.Empty
	}
	t.Failure = r.evidence(f, d, n)
	gaveUp := r.freeze(c, lease, f, d, account, now, &t)
	outcome := health.Failed
	if blameless(f) {
		outcome = health.Abandoned // it says nothing about the upstream, and passes a trial on
	}
	lease.Settle(outcome, now, r.strike(t.Verdict == stats.Failed, account))
	wait, again = d.Wait, d.Next == rule.Again && !gaveUp && !f.Unsendable
	if left := r.thaw(c.ID); again && left > wait {
		// Frozen, by whomever, for longer than this request would wait: a retry
		// would only be refused. A little longer it waits all the same.
		again, wait = left-wait <= time.Second, left
	}
	switch {
	case again:
		t.Action, t.Wait = "retry", wait
	case d.Next == rule.Return:
		t.Action = "passthrough"
	case t.Froze > 0:
		t.Action = "freeze"
	default:
		t.Action = "next"
	}
	r.record.Tries = append(r.record.Tries, t)
	r.line(c, account)
	r.h.logAttempt(r, &t)

	k := &kept{failure: f, candidate: c, try: len(r.record.Tries) - 1}
	switch t.Action {
	case "passthrough":
		return r.pass(k), 0, false
	case "retry":
		f.Close()
		return result{}, wait, true
	}
	r.keep(k)
	return result{exhausted: true}, 0, false
}

// blameless says that a failure is not the upstream's: nobody cools down for it.
func blameless(f *probe.Failure) bool {
	return f.Ours || f.Absent || f.Fault == wire.FaultClient || f.Fault == wire.FaultAffinity
}

// shortestFreeze is the shortest that there is by itself.
const shortestFreeze = time.Second

// freeze puts the freezes that follow a failure on the board, before the lease is
// settled so that no trial slips in between. It is true where the candidate has
// failed so often that a retry has to give up.
func (r *run) freeze(c *route.Candidate, lease *health.Lease, f *probe.Failure, d rule.Decision, account string, now time.Time, t *stats.Try) (gaveUp bool) {
	keys := r.s.keys[c.ID]
	at := keys.at(d.Scope)
	freezes := map[health.Key]health.Freeze{}
	add := func(at health.Key, f health.Freeze) {
		if f.Length > freezes[at].Length {
			freezes[at] = f
		}
	}
	add(at, health.Freeze{Length: d.Freeze, By: health.Rule, Reason: account})
	if !blameless(f) {
		if d.Freeze == 0 {
			at = keys.at(rule.Evidence(rule.Case{Failure: f}))
		}
		for _, k := range []health.Key{at, keys.own} {
			previous, onProbation := lease.Again(k, now)
			if onProbation && (d.Grow || d.Freeze == 0) {
				// The trial failed and nobody says for how long: frozen again, in
				// chains for twice the time. After a person's freeze, which is no
				// measure for this, growth begins with the shortest. A failure that
				// does not speak for the whole host or key passes their trial on.
				if !r.chain.Pool {
					previous = max(2*previous, shortestFreeze)
				}
				add(k, health.Freeze{Length: min(max(d.Freeze, previous), r.s.Config.Server.FreezeMax), By: health.Rule, Reason: account})
			}
		}
		if hedge, enough := r.enough(lease, account); enough && !(f.Empty && f.WellFormed) {
			gaveUp = true
			t.Hedged = hedge.Length > freezes[keys.own].Length
			add(keys.own, hedge)
		}
	}
	for at, freeze := range freezes {
		t.Froze = max(t.Froze, r.put(c, at, freeze, now))
	}
	return gaveUp
}

// enough says whether one more failure makes as many in a row as auto-hedge allows,
// and gives the freeze that follows from them.
func (r *run) enough(lease *health.Lease, account string) (health.Freeze, bool) {
	server := &r.s.Config.Server
	n := lease.Streak() + 1
	return health.Freeze{Length: min(server.AutoHedge, server.FreezeMax), By: health.Streak,
			Reason: fmt.Sprintf("%d failures in a row, the last: %s", n, account)},
		r.strikes() && server.AutoHedgeThreshold > 0 && n >= server.AutoHedgeThreshold
}

// strikes says whether failures count towards auto-hedge here.
func (r *run) strikes() bool { return !r.chain.Pool && !r.req.ignored }

// strike is what a failure weighs; one of an ignored endpoint nothing at all.
func (r *run) strike(counts bool, account string) health.Strike {
	if r.req.ignored {
		return health.Strike{}
	}
	return health.Strike{Counts: counts && r.strikes(), Error: account}
}

// pass hands a failed answer to the client, as far as there is one: an answer with
// its status, the error inside a 2xx answer, or a well-formed empty one. What was cut
// short, or is no answer to what was asked, is none.
func (r *run) pass(k *kept) result {
	f := k.failure
	if f.Kind == probe.Status && f.Held != nil || f.Errored || f.Empty && f.WellFormed {
		return result{pass: k}
	}
	f.Close()
	r.others = true
	return result{answer: r.exhausted("a rule ends the request here, and there is no answer to pass on")}
}

// keep remembers what may still go to the client when nobody is left.
func (r *run) keep(k *kept) {
	f := k.failure
	switch {
	case f.Empty && f.WellFormed && r.empty == nil:
		r.empty = k
		r.others = true
		return
	case f.Fault == wire.FaultClient && (f.Errored || f.Held != nil):
		if r.clients != nil {
			r.clients.failure.Close()
		}
		r.clients = k
		return
	}
	r.others = true
	f.Close()
}

// drop closes whatever was kept and is not needed any more.
func (r *run) drop() {
	for _, k := range []*kept{r.empty, r.clients} {
		if k != nil {
			k.failure.Close()
		}
	}
	r.empty, r.clients = nil, nil
}

// account is one line on a failure, fit for anybody's eyes.
func (r *run) account(f *probe.Failure) string {
	text := f.Text
	if f.Kind != probe.Status {
		text = f.Class() + ": " + f.Text
	}
	if f.Fault != wire.FaultServer || f.Kind == probe.Status {
		text += " (" + f.Fault.String() + ")"
	}
	if f.Code != "" {
		text += " " + f.Code
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return r.redact.Quote(text, 300)
}

// begun notes that an attempt at a candidate has begun.
func (r *run) begun(c *route.Candidate) {
	r.line(c, "under way")
	for i := range r.lines {
		if r.lines[i].candidate == c {
			r.lines[i].tries++
		}
	}
}

// line notes what became of a candidate's attempt.
func (r *run) line(c *route.Candidate, text string) {
	for i := range r.lines {
		if r.lines[i].candidate == c {
			r.lines[i].text, r.lines[i].frozen, r.lines[i].limited = text, false, false
			return
		}
	}
	r.lines = append(r.lines, line{candidate: c, text: text})
}

// skip notes a candidate that was not called, once per request. left is how long it
// stays frozen where that is why; 0 = for another reason.
func (r *run) skip(c *route.Candidate, reason string, left time.Duration) {
	if slices.ContainsFunc(r.lines, func(l line) bool { return l.candidate == c }) {
		return
	}
	r.lines = append(r.lines, line{candidate: c, text: reason, frozen: left > 0})
	r.record.Skips = append(r.record.Skips, stats.Skip{Candidate: string(c.ID), Name: c.Name, Reason: reason, Left: left})
}

// attempts are the lines for the exhausted answer: one per candidate, in the plan's
// order, with the time that the frozen ones have left now.
func (r *run) attempts() []string {
	out := make([]string, 0, len(r.order))
	for _, step := range r.order {
		l := line{candidate: step.Candidate, text: "not tried"}
		if i := slices.IndexFunc(r.lines, func(l line) bool { return l.candidate == step.Candidate }); i >= 0 {
			l = r.lines[i]
		}
		if reason, still := r.reason(step.ID); l.frozen && still {
			l.text = reason
		}
		name := l.candidate.Name
		if l.candidate.Model != "" && l.candidate.Model != name {
			name += " (" + l.candidate.Model + ")"
		}
		text := name + ": " + l.text
		if l.tries > 1 {
			text += fmt.Sprintf(" (%d attempts)", l.tries)
		}
		out = append(out, text)
	}
	return out
}

// exhausted is the answer when no candidate is left.
func (r *run) exhausted(why string) *answer {
	a := &answer{status: http.StatusBadGateway, kind: "upstream_all_failed", code: "upstream_all_failed", model: r.chain.Model, attempts: r.attempts(), retry: r.soonest()}
	what := "virtual model '" + r.chain.Model + "'"
	if r.chain.Pool {
		what = "the pool"
		if r.frozenThroughout() {
			a.status = http.StatusServiceUnavailable
		}
	}
	if wait, limited := r.limitedThroughout(); limited {
		a.status, a.retry = http.StatusTooManyRequests, wait
	}
	a.message = "no upstream of " + what + " gave an answer"
	if why != "" {
		a.message += ": " + why
	}
	return a
}

// frozenThroughout says whether nobody was called because everybody was frozen; who
// is switched off does not matter.
func (r *run) frozenThroughout() bool {
	frozen := false
	for _, l := range r.lines {
		frozen = frozen || l.frozen
		if !l.frozen && l.candidate.Enabled {
			return false
		}
	}
	return frozen
}

// left is what remains of chain_timeout; 0 = no bound.
func (r *run) left() time.Duration {
	if r.deadline.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(r.deadline))
}

func (r *run) spent() bool { return !r.deadline.IsZero() && !time.Now().Before(r.deadline) }

// frozenFor says why a candidate was passed over, and for how long it will be.
func frozenFor(f health.Freeze, now time.Time) string {
	return fmt.Sprintf("frozen, %d s left: %s", wholeSeconds(f.Until.Sub(now)), f.Reason)
}

func since(start, t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(start)
}
