package proxy

import (
	"slices"
	"sync"
	"time"

	"understudy/internal/probe"
	"understudy/internal/stats"
	"understudy/internal/wire"
)

// hedgeWindow is the time over which a hedge's budget holds, in minutes.
const hedgeWindow = 10

// How p95 is worked out: over p95Window, and not from fewer answers than p95Least,
// of which one in twenty is one. It is worked out anew after p95Fresh.
const (
	p95Window = time.Hour
	p95Least  = 20
	p95Fresh  = 10 * time.Second
)

// hedgeAgain is after how long an attempt that speaks is looked at again: it may yet
// prove a trickle.
const hedgeAgain = time.Second

// hedgeBook counts, per virtual model, the requests and the extra attempts of the
// last ten minutes, in buckets of one minute. Its zero value is ready.
type hedgeBook struct {
	mu     sync.Mutex
	models map[string]*hedgeCount
}

type hedgeCount struct {
	minute           int64 // of the newest bucket
	requests, extras [hedgeWindow]int64

	p95   time.Duration // 0 = not known
	p95At time.Time
}

// open returns a model's counts, moved on to now. The lock is held.
func (b *hedgeBook) open(model string, now time.Time) *hedgeCount {
	if b.models == nil {
		b.models = map[string]*hedgeCount{}
	}
	c := b.models[model]
	if c == nil {
		c = &hedgeCount{minute: now.Unix() / 60}
		b.models[model] = c
	}
	minute := now.Unix() / 60
	for step := int64(0); c.minute < minute && step < hedgeWindow; step++ {
		c.minute++
		c.requests[c.minute%hedgeWindow], c.extras[c.minute%hedgeWindow] = 0, 0
	}
	c.minute = max(c.minute, minute)
	return c
}

// request counts a request that might be hedged.
func (b *hedgeBook) request(model string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	c.requests[c.minute%hedgeWindow]++
}

// take counts an extra attempt if it stays within the budget, a share of the
// requests of the last ten minutes. The first one always does: a budget of 5 %
// would else allow none in the first twenty requests.
func (b *hedgeBook) take(model string, budget float64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	var requests, extras int64
	for i := range hedgeWindow {
		requests += c.requests[i]
		extras += c.extras[i]
	}
	if extras > 0 && float64(extras+1) > budget*float64(requests) {
		return false
	}
	c.extras[c.minute%hedgeWindow]++
	return true
}

// giveBack takes back an extra attempt that nobody could be asked for.
func (b *hedgeBook) giveBack(model string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	c.extras[c.minute%hedgeWindow]--
}

// percentile is the model's p95 of the time to first content; 0 = nobody knows yet.
func (b *hedgeBook) percentile(ledger *stats.Ledger, model string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	if c.p95At.IsZero() || now.Sub(c.p95At) >= p95Fresh {
		c.p95, c.p95At = 0, now
		if w := ledger.ModelWindow(model, p95Window, now); w.Successes >= p95Least && w.FirstContent.P95 != nil {
			c.p95 = *w.FirstContent.P95
		}
	}
	return c.p95
}

// hedgeable says whether a second attempt would do no more than cost tokens: not
// for requests that create state at the upstream.
func (q *request) hedgeable() bool {
	if !q.endpoint.Generation {
		return false
	}
	if q.doc == nil {
		return true
	}
	if on, ok := q.doc.Bool("background"); ok && on {
		return false
	}
	// A conversation grows by what is answered, a container by what runs in it.
	for _, name := range []string{"conversation", "container"} {
		if raw, ok := q.doc.Raw(name); ok && string(raw) != "null" {
			return false
		}
	}
	stored, said := q.doc.Bool("store")
	if q.endpoint.Kind == wire.Responses {
		return said && !stored // the Responses API stores unless told not to
	}
	return !stored
}

// hedgeAfter is how long an attempt may show no content before another one starts
// beside it; 0 = nobody knows yet.
func (r *run) hedgeAfter(now time.Time) time.Duration {
	if r.hedge.P95 {
		return r.h.hedges.percentile(r.h.ledger, r.chain.Model, now)
	}
	return r.hedge.After
}

// armHedge sets when the running attempts, of which the newest starts now, are
// looked at to see whether another one is to start beside them.
func (w *walk) armHedge(now time.Time) {
	if w.hedge == nil || w.extras >= w.hedge.Max {
		return
	}
	if after := w.hedgeAfter(now); after > 0 {
		w.hedgeAt = now.Add(after)
	}
}

// speaks says whether an attempt shows content, and not in a trickle.
func (w *walk) speaks(s *seat, now time.Time) bool {
	return !s.m.progress.First().IsZero() && !s.m.progress.Trickles(w.chain.MinCharsPerSecond, now)
}

// beside starts an attempt beside the running ones, if none of them speaks, the
// budget allows it and somebody is left.
func (w *walk) beside(now time.Time) {
	w.hedgeAt = time.Time{}
	if len(w.running) == 0 || w.extras >= w.hedge.Max {
		return
	}
	for _, s := range w.running {
		if w.speaks(s, now) {
			if w.chain.MinCharsPerSecond > 0 {
				w.hedgeAt = now.Add(hedgeAgain)
			}
			return
		}
	}
	if !w.h.hedges.take(w.chain.Model, w.hedge.Budget, now) {
		// Not asked again: what others earn is worth more to those that have waited
		// less.
		return
	}
	if !w.startNext() {
		w.h.hedges.giveBack(w.chain.Model, now)
		return
	}
	w.extras++
	w.width++
	w.armHedge(now)
}

// crown ends the race where an attempt that is held has shown to be good: the
// others are given up then, though it may still fail. They may be asked again if it
// does, after everybody who has not been asked.
func (w *walk) crown(now time.Time) {
	for _, s := range w.running {
		if !s.m.progress.Proved() || !w.speaks(s, now) {
			continue
		}
		for _, o := range w.running {
			if o != s {
				w.queue = append(w.queue, o.c)
				w.remember(o.c, o.n-1) // the one that is given up was no failure
			}
		}
		for _, o := range w.waiting {
			w.queue = append(w.queue, o.c)
			w.remember(o.c, o.n)
		}
		w.waiting, w.width = nil, 1
		w.cut(slices.DeleteFunc(slices.Clone(w.running), func(o *seat) bool { return o == s }), probe.ErrHedgeLost)
		if w.hedgeAt = (time.Time{}); w.chain.MinCharsPerSecond > 0 {
			w.hedgeAt = now.Add(hedgeAgain)
		}
		return
	}
}
