package load

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// requestTime bounds one request, streams excepted.
const requestTime = 30 * time.Second

// giveUp is after how many failed requests a worker ends before its time.
const giveUp = 100

// A Tally is what became of requests.
type Tally struct {
	Good, Bad int
	Err       error // the last that went wrong
}

func (t *Tally) count(status int, err error) bool {
	if err == nil && status == 200 {
		t.Good++
		return true
	}
	if t.Bad++; err != nil {
		t.Err = err
	} else {
		t.Err = StatusError(status)
	}
	return false
}

func (t *Tally) add(o Tally) {
	t.Good += o.Good
	t.Bad += o.Bad
	if o.Err != nil {
		t.Err = o.Err
	}
}

// Warm sends n requests over conns connections, so that what follows finds pools
// filled and code paged in.
func Warm(to Target, requests [][]byte, n, conns int) Tally {
	var left atomic.Int64
	left.Store(int64(n))
	return closed(to, requests, conns, func() bool { return left.Add(-1) >= 0 })
}

// Closed keeps conns connections busy for a time, each with its next request when
// the answer to the last is whole. Requests are taken in turn.
func Closed(to Target, requests [][]byte, conns int, d time.Duration) Tally {
	end := time.Now().Add(d)
	return closed(to, requests, conns, func() bool { return time.Now().Before(end) })
}

func closed(to Target, requests [][]byte, conns int, more func() bool) Tally {
	tallies := make([]Tally, conns)
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() {
			c := conn{to: to}
			defer c.drop()
			for k := i; more() && tallies[i].Bad < giveUp; k++ {
				tallies[i].count(c.do(requests[k%len(requests)], time.Now().Add(requestTime), nil))
			}
		})
	}
	wg.Wait()
	var all Tally
	for _, t := range tallies {
		all.add(t)
	}
	return all
}

// Serial sends a request n times, one after the other, in at most limit.
func Serial(to Target, request []byte, n int, limit time.Duration) Tally {
	c := conn{to: to}
	defer c.drop()
	var t Tally
	for end := time.Now().Add(limit); n > 0 && time.Now().Before(end); n-- {
		t.count(c.do(request, time.Now().Add(requestTime), nil))
	}
	return t
}

// Added is by how much a proxy delays requests that come at a fixed rate.
type Added struct {
	Tally
	P50, P99 time.Duration // the quantile through the proxy less the one without it
}

// Paced sends perSecond requests a second to the proxy and, half a step apart, as
// many straight to the upstream, for a time. A request's time counts from when it was
// handed out, so that waiting for a free worker counts too.
func Paced(proxy, upstream Target, body []byte, perSecond int, d time.Duration) Added {
	gap := time.Second / time.Duration(perSecond)
	n := int(d / gap)
	begin := time.Now().Add(20 * time.Millisecond)
	var through, straight paced
	var wg sync.WaitGroup
	wg.Go(func() { through = pace(proxy, proxy.Request(body), n, gap, begin) })
	wg.Go(func() { straight = pace(upstream, upstream.Request(body), n, gap, begin.Add(gap/2)) })
	wg.Wait()
	a := Added{Tally: through.Tally, P50: Quantile(through.times, .5) - Quantile(straight.times, .5), P99: Quantile(through.times, .99) - Quantile(straight.times, .99)}
	a.add(Tally{Bad: straight.Bad, Err: straight.Err})
	return a
}

type paced struct {
	Tally
	times []time.Duration
}

// pace sends n requests, gap apart, over as many as 16 connections.
func pace(to Target, request []byte, n int, gap time.Duration, begin time.Time) paced {
	const workers = 16
	due := make(chan time.Time, n)
	var mu sync.Mutex
	var all paced
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			c := conn{to: to}
			defer c.drop()
			for at := range due {
				status, err := c.do(request, time.Now().Add(requestTime), nil)
				took := time.Since(at)
				mu.Lock()
				if all.count(status, err) {
					all.times = append(all.times, took)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * gap)))
		due <- time.Now() // the timer's own lateness is nobody's
	}
	close(due)
	wg.Wait()
	return all
}

// Until sends a request again and again, on new connections, until one is answered
// with 200, and says whether that came before the limit.
func Until(to Target, request []byte, limit time.Duration, alive func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end) && alive(); {
		c := conn{to: to}
		status, err := c.do(request, time.Now().Add(5*time.Second), nil)
		c.drop()
		if err == nil && status == 200 {
			return true
		}
		time.Sleep(500 * time.Microsecond)
	}
	return false
}

// Quantile returns the p-quantile of times, which it sorts; 0 where there are none.
func Quantile(times []time.Duration, p float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[max(0, int(math.Ceil(p*float64(len(times))))-1)]
}
