package proxy

import (
	"sync"
	"time"

	"understudy/internal/wire"
)

// hedgeWindow is the time over which a hedge's budget holds.
const hedgeWindow = 10

// hedgeBook counts, per virtual model, the requests and the extra attempts of the
// last ten minutes, in buckets of one minute. Its zero value is ready.
type hedgeBook struct {
	mu     sync.Mutex
	models map[string]*hedgeCount
}

type hedgeCount struct {
	minute           int64 // of the newest bucket
	requests, extras [hedgeWindow]int64
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

// add counts an extra attempt.
func (b *hedgeBook) add(model string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	c.extras[c.minute%hedgeWindow]++
}

// allow says whether one more extra attempt stays within the budget, a share of
// the requests of the last ten minutes. The first one always does: a budget of 5 %
// would else allow none in the first twenty requests.
func (b *hedgeBook) allow(model string, budget float64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open(model, now)
	var requests, extras int64
	for i := range hedgeWindow {
		requests += c.requests[i]
		extras += c.extras[i]
	}
	return extras == 0 || float64(extras+1) <= budget*float64(requests)
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
	stored, said := q.doc.Bool("store")
	if q.endpoint.Kind == wire.Responses {
		return said && !stored // the Responses API stores unless told not to
	}
	return !stored
}

// hedgeAfter is how long an attempt may be silent before another one starts beside
// it; 0 = nobody knows yet.
func (r *run) hedgeAfter(now time.Time) time.Duration {
	return r.hedge.After
}
