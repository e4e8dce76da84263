package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"understudy/internal/health"
	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/stats"
	"understudy/internal/wire"
)

// A walk goes along a chain once. Its loop owns every decision; attempts only
// report. One attempt at a time is plain failover; with a hedge another one starts
// beside a silent one, on the same path.
type walk struct {
	*run
	ctx      context.Context
	queue    []*route.Candidate
	passed   []*route.Candidate       // on probation with the trial taken: only where nobody is left
	last     bool                     // the queue is passed, now
	made     map[*route.Candidate]int // attempts made at those that are in the queue again
	running  []*seat
	waiting  []*seat       // until they are tried again
	lost     []*seat       // given up, and not ended yet
	reported []report      // of attempts made in line
	reports  chan report   // of those that run beside this; nil while none has been made
	proved   chan struct{} // some held answer has shown to be good; nil where nobody hedges
	width    int           // attempts at once: 1, and one more for every hedge begun
	hedgeAt  time.Time     // when the next attempt starts beside the running ones; zero = never
	queueing queueing      // for room, where everybody who is left is at a limit
	most     int           // candidates in the plan
	few      [1]report     // where reported begins
	one      [1]*seat      // where running begins
}

// seat is one candidate's turn in a walk.
type seat struct {
	c        *route.Candidate
	n        int // attempts made here, the running one included
	lease    *health.Lease
	id       identity
	m        *marks
	learn    *learner
	budget   probe.Budget // of the running attempt
	clock    *probe.Clock // runs it
	delivery probe.Delivery
	due      time.Time // when it is tried again
}

// report is what an attempt came to.
type report struct {
	seat *seat
	x    *probe.Exchange
	up   *upgraded
	f    *probe.Failure
}

// walk goes along the chain once, in the plan's order.
func (r *run) walk(ctx context.Context) result {
	plan := r.chain.Plan(r.sticky, r.h.load, r.reason)
	r.round, r.why = 0, ""
	r.order = plan.Order
	for _, skip := range plan.Skips {
		left := time.Duration(0)
		if skip.Reason != route.ReasonDisabled {
			left = r.thaw(skip.ID)
		}
		r.skip(skip.Candidate, skip.Reason, left)
	}
	r.stay(&plan, time.Now())
	refusal := r.bind(&plan)
	r.planned(&plan)
	if refusal != nil {
		return result{answer: refusal}
	}
	w := &walk{run: r, ctx: ctx, width: 1, most: len(plan.Steps)}
	w.reported, w.running = w.few[:0], w.one[:0]
	w.queue = make([]*route.Candidate, 0, len(plan.Steps))
	if w.hedge != nil {
		w.proved = make(chan struct{}, 1)
	}
	if len(plan.Steps) == 0 && r.s.Config.Server.WhenAllFrozen == "try_soonest" {
		w.soonest()
	}
	for _, step := range plan.Steps {
		w.queue = append(w.queue, step.Candidate)
	}
	return w.loop()
}

// loop starts attempts and decides on what they report, until there is a result.
func (w *walk) loop() result {
	defer func() {
		if w.queueing.place != nil {
			w.outOfLine("") // whatever happened: a lease that nobody takes would never be settled
		}
	}()
	for {
		for len(w.running)+len(w.waiting) < w.width && w.startNext() {
			// One attempt, or as many at once as hedges have begun.
		}
		if len(w.running)+len(w.waiting) == 0 && !w.inLine(time.Now()) {
			w.cancelRest(probe.ErrHedgeLost) // what was given up may not have ended yet
			return result{exhausted: true}
		}
		rep, ok := w.wait()
		if w.ctx.Err() != nil {
			w.outOfLine("")
			if ok {
				w.settle(rep)
			}
			w.cancelRest(probe.ErrClientGone)
			return result{gone: true}
		}
		if !ok {
			continue
		}
		res := w.judge(rep)
		w.note(rep.seat.m.kept)
		if !res.exhausted {
			w.cancelRest(probe.ErrHedgeLost)
			return res
		}
		if w.why != "" {
			w.cancelRest(probe.ErrChainSpent)
			return result{exhausted: true}
		}
	}
}

// wait waits for a report, or does what comes due before one.
func (w *walk) wait() (report, bool) {
	if len(w.reported) > 0 {
		rep := w.reported[0]
		w.reported = slices.Delete(w.reported, 0, 1)
		return rep, !w.buried(rep)
	}
	var due <-chan time.Time
	if at := w.nextDue(); !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case rep := <-w.reports:
		return rep, !w.buried(rep)
	case <-w.ctx.Done():
	case <-w.proved:
		w.crown(time.Now())
	case <-w.early.holding():
		w.early.begin()
	case <-w.early.tick():
		w.early.comment()
	case <-due:
		w.resume(time.Now())
	case <-w.queueing.ready():
		w.called(time.Now())
	case <-w.queueing.changed: // the loop looks again
	}
	return report{}, false
}

// nextDue is the moment at which something is to be done without a report.
func (w *walk) nextDue() (at time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, s := range w.waiting {
		sooner(s.due)
	}
	if w.queueing.place != nil {
		sooner(w.queueing.due)
	}
	if len(w.waiting) > 0 || w.queueing.place != nil {
		sooner(w.deadline)
	}
	sooner(w.hedgeAt)
	return at
}

// resume does what has come due: retries, and the attempt beside a silent one.
func (w *walk) resume(now time.Time) {
	for _, s := range slices.Clone(w.waiting) {
		if w.spent() {
			w.waiting = nil
			w.stop(chainSpent)
			return
		}
		if s.due.After(now) {
			continue
		}
		w.waiting = slices.DeleteFunc(w.waiting, func(o *seat) bool { return o == s })
		w.start(s.c, s.n)
	}
	if !w.hedgeAt.IsZero() && !now.Before(w.hedgeAt) {
		w.beside(now)
	}
}

// startNext starts an attempt at the next candidate that can be had. It is false
// when nobody is left, or the walk has to end.
func (w *walk) startNext() bool {
	for w.why == "" {
		if len(w.queue) == 0 {
			if len(w.passed) == 0 {
				return false
			}
			w.queue, w.passed, w.last = w.passed, nil, true
		}
		c := w.queue[0]
		w.queue = w.queue[1:]
		if w.start(c, w.made[c]) {
			return true
		}
	}
	return false
}

// start makes the attempt after the n-th at a candidate, unless it has to be
// passed over, or the walk has to end.
func (w *walk) start(c *route.Candidate, n int) bool {
	switch {
	case w.spent():
		w.stop(chainSpent)
		return false
	case w.chain.Pool && w.round >= w.s.Config.Pool.MaxAttempts:
		w.stop("max_attempts is used up")
		return false
	}
	taken := w.take(c, n)
	if taken == nil {
		return false
	}
	w.attempt(taken)
	return true
}

// take takes a candidate's lease for the attempt after the n-th; nil where it has to
// be passed over.
func (w *walk) take(c *route.Candidate, n int) *seat {
	id, missing := identify(c)
	if missing != "" {
		w.skip(c, missing+" is not set", 0)
		return nil
	}
	if w.req.upgrade && !w.s.mayUpgrade(c) {
		w.skip(c, "WebSocket is off there", 0)
		return nil
	}
	now := time.Now()
	keys := w.s.keys[c.ID]
	lease, refusal, ok := w.h.board.Enter(keys.own, w.limits(c), now, w.last, keys.wider...)
	switch freeze := refusal.Freeze; {
	case ok:
		return &seat{c: c, n: n + 1, lease: lease, id: id}
	case refusal.Limit != health.Unlimited:
		w.full(c, n, refusal)
	case freeze.Until.After(now):
		w.skip(c, frozenFor(freeze, now), freeze.Until.Sub(now))
	default:
		w.passed = append(w.passed, c)
		w.remember(c, n)
	}
	return nil
}

// remember notes the attempts made at a candidate that comes into the queue again.
func (w *walk) remember(c *route.Candidate, n int) {
	if n == 0 {
		return
	}
	if w.made == nil {
		w.made = map[*route.Candidate]int{}
	}
	w.made[c] = n
}

// soonest starts the one attempt at the frozen candidate that is nearest its thaw,
// of those that can be called at all.
func (w *walk) soonest() {
	now := time.Now()
	var nearest *seat
	var thaw time.Time
	for _, step := range w.order {
		freeze, frozen := w.frozen(step.ID, now)
		if !frozen || !step.Enabled || w.req.upgrade && !w.s.mayUpgrade(step.Candidate) || nearest != nil && !freeze.Until.Before(thaw) {
			continue
		}
		if id, missing := identify(step.Candidate); missing == "" {
			nearest, thaw = &seat{c: step.Candidate, n: 1, id: id}, freeze.Until
		}
	}
	if nearest != nil {
		keys := w.s.keys[nearest.c.ID]
		nearest.lease = w.h.board.Seize(keys.own, now, keys.wider...)
		w.attempt(nearest)
	}
}

// attempt sends a seat's request and has it report: in line where this is the only
// attempt and nothing else can come due, else on a goroutine of its own.
func (w *walk) attempt(s *seat) {
	w.prepare(s)
	if w.hedge == nil && w.early == nil {
		w.reported = append(w.reported, w.perform(s))
		return
	}
	if len(w.running) == 1 {
		w.armHedge(s.m.start)
	}
	if w.reports == nil {
		// Everybody may be asked once more while an attempt that was given up still ends.
		w.reports = make(chan report, 2*w.most+2)
	}
	go func() { w.reports <- w.perform(s) }() // ends with the attempt; its report always has room
}

// prepare has a seat's attempt begin.
func (w *walk) prepare(s *seat) {
	w.req.memory.hold() // until it has been performed, however long the request lives
	w.redact.know(s.id.secrets)
	w.redact.know(s.id.hidden)
	w.show(s.id.secrets)
	w.begun(s.c)
	w.round++
	s.m, s.learn = &marks{start: time.Now(), kept: w.bodies.collect()}, w.learn(s.c)
	s.budget = w.budget(s.c)
	s.clock = probe.NewClock(w.ctx, &s.budget)
	s.delivery = w.delivered()
	s.delivery.Mute = s.budget.Total
	w.running = append(w.running, s)
	if w.hedge != nil {
		s.m.progress = new(probe.Progress)
		s.delivery.Proved = func() {
			select {
			case w.proved <- struct{}{}:
			default: // the walk will look at everybody
			}
		}
	}
}

// perform makes a seat's attempt. Of the walk it touches nothing but what never changes.
func (w *walk) perform(s *seat) (rep report) {
	rep.seat = s
	defer w.req.memory.release()
	defer func() {
		if fault := recover(); fault != nil {
			s.clock.Cancel(nil)
			w.h.mourn(w.s, w.req.id, fault)
			rep = report{seat: s, f: &probe.Failure{Kind: probe.BadStream, Phase: probe.Probe, Fault: wire.FaultServer, Text: "an internal error while it was tried"}}
		}
	}()
	if w.req.upgrade {
		rep.up, rep.f = w.h.handshake(w.s, w.req, w.chain, s)
	} else {
		rep.x, rep.f = w.h.attempt(w.s, w.req, w.chain, s)
	}
	return rep
}

// judge takes a report: the answer to release, or what follows from a failure.
func (w *walk) judge(rep report) result {
	s := rep.seat
	w.running = slices.DeleteFunc(w.running, func(o *seat) bool { return o == s })
	now := time.Now()
	t := s.entry(now)
	if rep.up != nil {
		t.Status, t.Verdict = http.StatusSwitchingProtocols, stats.OK
		w.record.Tries = append(w.record.Tries, t)
		return result{won: &won{upgraded: rep.up, candidate: s.c, lease: s.lease, try: len(w.record.Tries) - 1, learner: s.learn}}
	}
	if rep.x != nil {
		t.Status, t.Verdict = rep.x.Status, stats.OK
		t.FirstByte, t.FirstContent = since(s.m.start, rep.x.FirstByte), since(s.m.start, rep.x.FirstContent)
		w.record.Tries = append(w.record.Tries, t)
		return result{won: &won{exchange: rep.x, candidate: s.c, lease: s.lease, try: len(w.record.Tries) - 1, learner: s.learn}}
	}
	f := rep.f
	t.FirstByte, t.FirstContent = since(s.m.start, f.FirstByte), since(s.m.start, f.FirstContent)
	if f.Usage != nil {
		t.Usage = stats.Usage(*f.Usage)
		s.lease.Spend(tokens(t.Usage), now)
	}
	if errors.Is(f.Cause, probe.ErrChainSpent) {
		// Our own budget ended it: that says nothing about the upstream.
		s.lease.Settle(health.Abandoned, now, health.Strike{})
		t.Verdict, t.Text = stats.Abandoned, f.Text
		w.record.Tries = append(w.record.Tries, t)
		f.Close()
		w.line(s.c, "cut off: "+f.Text)
		return w.stop(chainSpent)
	}
	res, wait, again := w.decide(s, f, t, now)
	if again {
		s.due = now.Add(wait)
		w.waiting = append(w.waiting, s)
		return result{exhausted: true}
	}
	return res
}

// settle ends a report that nobody needs any more.
func (w *walk) settle(rep report) {
	s := rep.seat
	w.running = slices.DeleteFunc(w.running, func(o *seat) bool { return o == s })
	w.abandon(s, rep, "the client left")
}

// cancelRest ends the attempts that still run: nobody's failure. They are drained
// in the background, since a connection may take a moment to end.
func (w *walk) cancelRest(cause error) {
	w.cut(w.running, cause)
	for _, rep := range w.reported {
		w.buried(rep)
	}
	w.reported = nil
	if len(w.lost) == 0 {
		return
	}
	lost, reports := len(w.lost), w.reports
	w.lost = nil
	go func() { // ends when the attempts have, which their cancelling sees to
		for range lost {
			(<-reports).bury()
		}
	}()
}

// cut gives attempts up.
func (w *walk) cut(seats []*seat, cause error) {
	for _, s := range slices.Clone(seats) {
		s.clock.Cancel(cause)
		t := s.entry(time.Now())
		t.Verdict, t.Text = stats.Abandoned, cause.Error()
		w.record.Tries = append(w.record.Tries, t)
		w.line(s.c, "cut off: "+t.Text)
		w.running = slices.DeleteFunc(w.running, func(o *seat) bool { return o == s })
		w.lost = append(w.lost, s)
	}
}

// buried says that a report was of an attempt that had been given up, and ends it.
func (w *walk) buried(rep report) bool {
	i := slices.Index(w.lost, rep.seat)
	if i < 0 {
		return false
	}
	w.lost = slices.Delete(w.lost, i, i+1)
	rep.bury()
	return true
}

// bury ends an attempt that was given up: it says nothing about its upstream.
func (rep report) bury() {
	rep.drop()
	rep.seat.lease.Settle(health.Abandoned, time.Now(), health.Strike{})
}

// abandon books an attempt that ended because the client left.
func (w *walk) abandon(s *seat, rep report, why string) {
	now := time.Now()
	s.lease.Settle(health.Abandoned, now, health.Strike{})
	t := s.entry(now)
	t.Verdict, t.Text = stats.Abandoned, why
	w.record.Tries = append(w.record.Tries, t)
	w.note(s.m.kept)
	rep.drop()
}

// drop closes what a report holds.
func (rep report) drop() {
	if rep.x != nil {
		rep.x.Close()
	}
	if rep.up != nil {
		rep.up.close()
	}
	rep.f.Close()
}

// entry begins the record of a seat's attempt.
func (s *seat) entry(now time.Time) stats.Try {
	return stats.Try{Candidate: string(s.c.ID), Name: s.c.Name, Model: s.c.Model, Start: s.m.start, End: now.Sub(s.m.start),
		Connected: time.Duration(s.m.connected.Load()), Header: time.Duration(s.m.header.Load()), Usage: stats.NoUsage()}
}
