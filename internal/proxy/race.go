package proxy

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// race finds the answer: along the chain once, and in target mode again and again.
func (r *run) race(ctx context.Context) result {
	if d := r.s.Config.Server.ChainTimeout; d > 0 {
		r.deadline = time.Now().Add(d) // from admission: how long a client uploads is its own affair
	}
	res := r.walk(ctx)
	if res.exhausted && r.empty == nil && !r.onlyClients() && r.h.target.On() && !r.req.ignored {
		res = r.insist(ctx)
	}
	if !res.exhausted {
		return res
	}
	return r.last()
}

// onlyClients says whether every called candidate failed by the client's fault.
func (r *run) onlyClients() bool { return r.clients != nil && !r.others }

// last is what goes to the client when nobody is left: never worse than what it
// would have got without a proxy.
func (r *run) last() result {
	switch {
	case r.empty != nil:
		k := r.empty
		r.empty = nil
		return result{pass: k}
	case r.onlyClients():
		k := r.clients
		r.clients = nil
		return result{pass: k}
	}
	return result{answer: r.exhausted(r.why)}
}

// A Target is the switch of target mode, which outlives snapshots and is off after
// a restart. Its zero value is off.
type Target struct {
	mu  sync.Mutex
	off chan struct{} // closed when it is switched off; nil while it is off
}

// On says whether target mode is on.
func (t *Target) On() bool { return t.ends() != nil }

// ends is closed when target mode is switched off; nil where it is off already.
func (t *Target) ends() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.off
}

// Set switches it and returns what it was. Requests that wait for their next round
// end at once when it is switched off.
func (t *Target) Set(on bool) (before bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.off != nil
	switch {
	case on && !before:
		t.off = make(chan struct{})
	case before && !on:
		close(t.off)
		t.off = nil
	}
	return before
}

// insist is target mode: the chain is walked again from its head until somebody
// answers, a person switches it off, the client leaves, or the time is up. A
// running round ends first. chain_timeout does not count in it.
func (r *run) insist(ctx context.Context) result {
	server := &r.s.Config.Server
	end := time.Now().Add(server.TargetMaxWait)
	r.deadline = time.Time{}
	for {
		if !r.rest(ctx, end, server.TargetInterval) {
			return result{gone: true}
		}
		if !r.h.target.On() {
			return result{exhausted: true}
		}
		if !time.Now().Before(end) {
			return result{answer: r.untargeted()}
		}
		// What a candidate of an earlier round said does not answer for this one.
		if r.others = false; r.clients != nil {
			r.clients.failure.Close()
			r.clients = nil
		}
		if res := r.walk(ctx); !res.exhausted || r.empty != nil || r.onlyClients() {
			return res
		}
	}
}

// rest waits for the next round: for the interval, or, where everything is frozen,
// for the soonest thaw or an unfreeze, and never beyond end, nor when target mode is
// switched off. It is false when the client has left.
func (r *run) rest(ctx context.Context, end time.Time, interval time.Duration) bool {
	next, slept := time.Now().Add(interval), false
	for {
		changed, off := r.h.board.Changed(), r.h.target.ends()
		now, at := time.Now(), next
		if r.allFrozen() {
			slept, at = true, now.Add(r.soonest())
		} else if slept {
			return true
		}
		if end.Before(at) {
			at = end
		}
		if off == nil || !now.Before(at) {
			return true
		}
		timer := time.NewTimer(at.Sub(now))
		select {
		case <-timer.C:
		case <-changed:
		case <-off:
		case <-r.early.tick():
			r.early.comment()
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// allFrozen says whether nobody in the chain can be called now, and somebody can
// when freezes are over.
func (r *run) allFrozen() bool {
	plan := r.chain.Plan("", r.h.load, r.reason)
	return len(plan.Steps) == 0 && r.soonest() > 0
}

// untargeted is the answer when target mode's time is up.
func (r *run) untargeted() *answer {
	a := r.exhausted("target mode's time is up")
	switch r.s.Config.Server.TargetTimeoutAction {
	case "return_429":
		a.status, a.code = http.StatusTooManyRequests, "target_mode_all_unavailable"
	case "return_502":
		a.status, a.code = http.StatusBadGateway, "target_mode_all_unavailable"
	case "drop_connection":
		a.status = 0
	default:
		a.status, a.code = http.StatusGatewayTimeout, "target_mode_gateway_timeout"
	}
	a.kind = a.code
	return a
}
