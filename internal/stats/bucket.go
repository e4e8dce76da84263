package stats

import (
	"math"
	"slices"
)

// class is what one event counts as: an attempt's verdict, for a candidate; how
// a request ended, for a model.
type class uint8

const (
	abandoned class = iota
	succeeded
	failed
	empty
)

// The token figures, in the order in which they are summed and saved.
const (
	input = iota
	output
	cached
	cacheWrite
	reasoning
	total
	figures
)

// An event is one thing to book, worked out before any lock is taken.
type event struct {
	at     int64 // Unix seconds
	timed  bool  // false: the time is unknown, so it belongs to no window
	class  class
	tokens [figures]int64 // -1: not reported
	// answered says that the answer should have reported its tokens.
	answered bool
	// latency and first are microseconds; -1 where they do not count.
	latency, first         int64
	latencyCell, firstCell uint16
	froze, hedged          int64
	failure                string
	kind                   string // the failure class, of an attempt
}

// setTokens takes over what was reported. A missing total follows from its two
// parts, as it is defined as their sum; nothing else is ever derived.
func (e *event) setTokens(u Usage) {
	e.tokens = [figures]int64{input: u.Input, output: u.Output, cached: u.Cached, cacheWrite: u.CacheWrite, reasoning: u.Reasoning, total: u.Total}
	if u.Total < 0 && u.Input >= 0 && u.Output >= 0 {
		e.tokens[total] = plus(u.Input, u.Output)
	}
	for i, n := range e.tokens {
		if n < 0 {
			e.tokens[i] = -1
			continue
		}
		e.answered = true
	}
}

// setTimes takes over a whole success's durations, in microseconds.
func (e *event) setTimes(latency, first int64) {
	e.latency = max(latency, 0)
	e.latencyCell = cellOf(e.latency)
	if first > 0 {
		e.first = first
		e.firstCell = cellOf(first)
	}
}

// counts is everything that is simply summed.
type counts struct {
	classes  [empty + 1]int64
	answered int64
	sums     [figures]int64
	reported [figures]int64
	// cacheInput and cacheHits are the input and the cached tokens of those that
	// reported both.
	cacheInput, cacheHits int64
	latency               int64 // microseconds, over all successes but WebSockets
	first, firsts         int64 // microseconds, and over how many
}

func (c *counts) book(e *event) {
	c.classes[e.class]++
	if e.answered {
		c.answered++
	}
	for i, n := range e.tokens {
		if n >= 0 {
			c.sums[i] = plus(c.sums[i], n)
			c.reported[i]++
		}
	}
	if in, hits := e.tokens[input], e.tokens[cached]; in >= 0 && hits >= 0 {
		c.cacheInput = plus(c.cacheInput, in)
		c.cacheHits = plus(c.cacheHits, min(hits, in))
	}
	if e.latency >= 0 {
		c.latency = plus(c.latency, e.latency)
	}
	if e.first >= 0 {
		c.first = plus(c.first, e.first)
		c.firsts++
	}
}

func (c *counts) add(o *counts) {
	for i := range c.classes {
		c.classes[i] = plus(c.classes[i], o.classes[i])
	}
	for i := range c.sums {
		c.sums[i] = plus(c.sums[i], o.sums[i])
		c.reported[i] = plus(c.reported[i], o.reported[i])
	}
	c.answered = plus(c.answered, o.answered)
	c.cacheInput = plus(c.cacheInput, o.cacheInput)
	c.cacheHits = plus(c.cacheHits, o.cacheHits)
	c.latency = plus(c.latency, o.latency)
	c.first = plus(c.first, o.first)
	c.firsts = plus(c.firsts, o.firsts)
}

// A bucket is what happened in one stretch of time.
type bucket struct {
	// index is the stretch's number since 1970, in units of the ring's width.
	index int64
	counts
	latencyCells, firstCells histogram
}

func (b *bucket) book(e *event) {
	b.counts.book(e)
	if e.latency >= 0 {
		b.latencyCells.add(e.latencyCell, 1)
	}
	if e.first >= 0 {
		b.firstCells.add(e.firstCell, 1)
	}
}

// reset empties the bucket for another stretch and keeps its memory.
func (b *bucket) reset(index int64) {
	*b = bucket{index: index, latencyCells: b.latencyCells[:0], firstCells: b.firstCells[:0]}
}

func (b *bucket) copied() bucket {
	c := *b
	c.latencyCells, c.firstCells = slices.Clone(b.latencyCells), slices.Clone(b.firstCells)
	return c
}

func (b *bucket) add(o *bucket) {
	b.counts.add(&o.counts)
	for _, c := range o.latencyCells {
		b.latencyCells.add(c.cell, c.n)
	}
	for _, c := range o.firstCells {
		b.firstCells.add(c.cell, c.n)
	}
}

// plus adds two numbers that are not negative and stops at the largest there is:
// what upstreams report is not ours to trust.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
