package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy/internal/health"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// Limits are a candidate's own.
func Limits(c *route.Candidate) health.Limits {
	return health.Limits{Parallel: c.MaxParallel, RPM: c.RPM, TPM: c.TPM}
}

// tokens is what an answer counts for against a limit; 0 where nothing was reported.
func tokens(u stats.Usage) int64 {
	if u.Total >= 0 {
		return u.Total
	}
	return max(u.Input, 0) + max(u.Output, 0)
}

// callerKey is a client on the board of clients.
func callerKey(name string) health.Key { return health.Key("c:" + name) }

// admitted lets a client in within its limits; without a client, or without limits,
// there is no lease and nothing to settle.
func (h *Handler) admitted(q *request) (*health.Lease, *answer) {
	if q.clientOf == nil || q.clientOf.limits == (health.Limits{}) {
		return nil, nil
	}
	l := q.clientOf.limits
	lease, refusal, ok := h.callers.Enter(callerKey(q.client), l, time.Now(), false)
	if ok {
		return lease, nil
	}
	return nil, &answer{status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "rate_limit_exceeded", retry: max(refusal.Wait, time.Second),
		message: "this client key is at its limit of " + atLimit(l, refusal.Limit)}
}

// atLimit names a limit for people.
func atLimit(l health.Limits, which health.Limit) string {
	switch which {
	case health.RPM:
		return fmt.Sprintf("%d requests a minute (%s)", l.RPM, which)
	case health.TPM:
		return fmt.Sprintf("%d tokens a minute (%s)", l.TPM, which)
	}
	return fmt.Sprintf("%d requests at once (%s)", l.Parallel, which)
}

// A queueing is how a walk waits for room, where everybody who is left is at a limit
// of ours (queue_timeout).
type queueing struct {
	full    []*seat // passed over for a limit
	place   *health.Place
	began   time.Time       // when it first waited; zero = it has not
	due     time.Time       // when to look again
	changed <-chan struct{} // closed when freezes change
}

// ready receives when there is a lease; nil while nobody waits.
func (q *queueing) ready() <-chan struct{} {
	if q.place == nil {
		return nil
	}
	return q.place.Ready()
}

// full notes a candidate that is at its limit, for when nobody else is left.
func (w *walk) full(c *route.Candidate, n int, refusal health.Refusal) {
	w.limited(c, refusal)
	w.queueing.full = append(w.queueing.full, &seat{c: c, n: n})
}

// limits are a candidate's as they hold now, in whatever snapshot.
func (w *walk) limits(c *route.Candidate) health.Limits {
	if current := w.h.snap.Load(); current != w.s {
		if k := current.keys[c.ID]; k != nil {
			return k.limits
		}
	}
	return Limits(c)
}

// inLine says whether to wait for room at those that are at their limit, now that
// nobody else is left: within queue_timeout, and only as long as that may help.
func (w *walk) inLine(now time.Time) bool {
	q, timeout := &w.queueing, w.s.Config.Server.QueueTimeout
	if w.why != "" || len(q.full) == 0 || timeout <= 0 {
		return false
	}
	if w.spent() {
		w.outOfLine("")
		w.stop(chainSpent)
		return false
	}
	if q.began.IsZero() {
		q.began = now
	}
	end := q.began.Add(timeout)
	if q.place == nil {
		wants := make([]health.Want, len(q.full))
		for i, s := range q.full {
			keys := w.s.keys[s.c.ID]
			wants[i] = health.Want{Key: keys.own, Limits: w.limits(s.c), Wider: keys.wider}
		}
		q.place = w.h.board.Wait(w.req.whose(), now, wants...)
	}
	q.changed = w.h.board.Changed()
	q.due = end
	helps := false
	for i, refusal := range q.place.Look(now) {
		c := q.full[i].c
		switch freeze := refusal.Freeze; {
		case freeze.Until.After(now):
			w.line(c, frozenFor(freeze, now))
			helps = helps || freeze.Until.Before(end)
			q.due = earlier(q.due, freeze.Until)
		case refusal.Limit != health.Unlimited:
			w.limited(c, refusal)
			if refusal.Wait > 0 {
				q.due = earlier(q.due, now.Add(refusal.Wait))
			}
			helps = helps || refusal.Wait == 0 || refusal.Wait < end.Sub(now)
		}
	}
	select {
	case <-q.place.Ready():
		return true
	default:
	}
	if !helps || !now.Before(end) {
		waited := now.Sub(q.began)
		if waited <= 0 {
			w.outOfLine("")
		} else {
			w.outOfLine("; no room in " + waited.Round(time.Millisecond).String())
		}
		return false
	}
	return true
}

// earlier is the first of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// outOfLine gives the place up, and with it a lease that nobody has taken. The trail
// says what the waiting came to.
func (w *walk) outOfLine(account string) {
	q := &w.queueing
	if q.place != nil {
		if lease, _ := q.place.Leave(); lease != nil {
			lease.Settle(health.Abandoned, time.Now(), health.Strike{})
		}
		q.place = nil
	}
	for _, s := range q.full {
		w.remark(s.c, account)
	}
}

// called makes the attempt for which there is room now.
func (w *walk) called(now time.Time) {
	q := &w.queueing
	lease, i := q.place.Leave()
	q.place = nil
	s := q.full[i]
	q.full = slices.Delete(q.full, i, i+1)
	w.remark(s.c, "; room after "+now.Sub(q.began).Round(time.Millisecond).String())
	id, missing := identify(s.c)
	switch {
	case missing != "":
		w.skip(s.c, missing+" is not set", 0)
	case w.spent():
		w.stop(chainSpent)
	case w.chain.Pool && w.round >= w.s.Config.Pool.MaxAttempts:
		w.stop("max_attempts is used up")
	default:
		w.attempt(&seat{c: s.c, n: s.n + 1, lease: lease, id: id})
		return
	}
	lease.Settle(health.Abandoned, now, health.Strike{})
}

// remark adds to the reason for which a candidate was passed over.
func (w *walk) remark(c *route.Candidate, account string) {
	for i := range w.record.Skips {
		if s := &w.record.Skips[i]; s.Candidate == string(c.ID) && account != "" {
			s.Reason += account
		}
	}
}

// limited notes a candidate that a limit of ours kept this request from.
func (w *walk) limited(c *route.Candidate, refusal health.Refusal) {
	w.skip(c, "at its limit of "+atLimit(w.limits(c), refusal.Limit), 0)
	for i := range w.lines {
		if w.lines[i].candidate == c && w.lines[i].tries == 0 {
			w.lines[i].limited, w.lines[i].back = true, time.Now().Add(max(refusal.Wait, time.Second))
		}
	}
}

// limitedThroughout says whether nobody was called because limits of ours stood
// before every candidate that is switched on, and when the first of them ends.
func (r *run) limitedThroughout() (wait time.Duration, ok bool) {
	for _, l := range r.lines {
		switch {
		case !l.candidate.Enabled:
		case !l.limited:
			return 0, false
		default:
			if left := max(time.Until(l.back), time.Second); !ok || left < wait {
				wait, ok = left, true
			}
		}
	}
	return wait, ok
}
