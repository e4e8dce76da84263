package proxy

import (
	"fmt"
	"net/http"
	"time"

	"understudy/internal/health"
	"understudy/internal/route"
	"understudy/internal/stats"
)

// limitsOf are a candidate's own.
func limitsOf(c *route.Candidate) health.Limits {
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

// queues is how a walk waits for room at candidates that have as many requests in
// flight as they may (queue_timeout).
type queues struct {
	room <-chan struct{}                // closed when there may be room; nil while nobody waits
	ends map[*route.Candidate]time.Time // when the wait for each is over
}

// room is to be had before the candidate is asked for its lease; nil where nobody
// would wait for it.
func (w *walk) room(c *route.Candidate) <-chan struct{} {
	if c.MaxParallel == 0 || w.s.Config.Server.QueueTimeout <= 0 {
		return nil
	}
	return w.h.board.Room()
}

// queueUp has a candidate that is at its limit waited for, where that is a matter of
// room and the time for it is not over. It is false where it is passed over.
func (w *walk) queueUp(c *route.Candidate, n int, refusal health.Refusal, room <-chan struct{}, now time.Time) bool {
	end, waited := w.queues.ends[c]
	if !waited {
		end = now.Add(w.s.Config.Server.QueueTimeout)
	}
	if refusal.Limit != health.Parallel || room == nil || !now.Before(end) {
		w.limited(c, refusal)
		return false
	}
	if !waited {
		if w.queues.ends == nil {
			w.queues.ends = map[*route.Candidate]time.Time{}
		}
		w.queues.ends[c] = end
	}
	w.queues.room = room
	w.waiting = append(w.waiting, &seat{c: c, n: n, due: end, queued: true})
	return true
}

// roomed tries again for whoever waits for room.
func (w *walk) roomed() {
	w.queues.room = nil
	var queued, others []*seat
	for _, s := range w.waiting {
		if s.queued {
			queued = append(queued, s)
		} else {
			others = append(others, s)
		}
	}
	w.waiting = others
	for _, s := range queued {
		w.start(s.c, s.n)
	}
}

// limited notes a candidate that a limit of ours kept this request from.
func (w *walk) limited(c *route.Candidate, refusal health.Refusal) {
	w.skip(c, "at its limit of "+atLimit(limitsOf(c), refusal.Limit), 0)
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
