package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"understudy/bench/load"
	"understudy/bench/proc"
)

// The concurrency of the load, and the rate at which delay is measured.
const (
	connections = 32
	perSecond   = 200
)

// A step measures one thing of a contender that has just been started.
type step struct {
	name string
	do   func(b *bench, c contender, p *process) (outcome, error)
}

// An outcome is what a step came to.
type outcome struct {
	Figures map[string]float64 `json:"figures"` // by the columns' keys
	Bad     int                `json:"bad"`     // answers that were wrong
	Why     string             `json:"why,omitempty"`
	Others  float64            `json:"other_cores"` // what processes that have no part in this used meanwhile
	Again   int                `json:"repeated,omitempty"`
}

// count takes over what became of the requests.
func (o *outcome) count(t load.Tally) {
	if o.Bad += t.Bad; t.Err != nil {
		o.Why = t.Err.Error()
	}
}

// steps are what makes up a row.
func steps() []step {
	return []step{{"requests", busy}, {"delay", delay}, {"streams", streams}, {"held", held}, {"large", large}}
}

// measure does a step on a fresh process, and again while others were busy; the
// quietest counts.
func (b *bench) measure(ctx context.Context, c contender, s step) (outcome, error) {
	var best outcome
	for try := 0; ; try++ {
		o, err := b.once(ctx, c, s)
		if err != nil {
			return o, fmt.Errorf("%s, %s: %w", c.name, s.name, err)
		}
		o.Again = try
		if try == 0 || o.Bad <= best.Bad && o.Others < best.Others {
			o, best = best, o
		}
		best.Again = try
		late, _ := b.late()
		if best.Others <= b.quiet || try >= b.repeat || late {
			return best, nil
		}
	}
}

func (b *bench) once(ctx context.Context, c contender, s step) (outcome, error) {
	p, err := b.start(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	o, err := s.do(b, c, p)
	if err == nil && !p.lives() {
		err = fmt.Errorf("it has ended: %w", <-p.done)
	}
	if o.Figures == nil {
		o.Figures = map[string]float64{}
	}
	o.Figures["start"] = float64(p.ready) / 1e6
	return o, err
}

func (b *bench) meter(p *process) *proc.Meter { return proc.Start(p.pid(), b.mock.pid()) }

// busy is the CPU time of a small request, with 32 connections that never rest.
func busy(b *bench, c contender, p *process) (outcome, error) {
	var o outcome
	requests := [][]byte{p.to.Request(load.Body(c.model, false))}
	o.count(load.Warm(p.to, requests, b.sizes.warm, connections))
	m := b.meter(p)
	t := load.Closed(p.to, requests, connections, b.sizes.busy)
	r := m.Stop()
	o.count(t)
	o.Others = r.Others
	o.Figures = map[string]float64{"request": each(r.CPU, t.Good, time.Microsecond)}
	return o, nil
}

// delay is by how much requests come later than straight from the upstream.
func delay(b *bench, c contender, p *process) (outcome, error) {
	var o outcome
	body := load.Body(c.model, false)
	// At this rate a process that has just begun is at its beginning for seconds.
	o.count(load.Warm(p.to, [][]byte{p.to.Request(body)}, b.sizes.warm/2, 4))
	m := b.meter(p)
	a := load.Paced(p.to, b.upstream, body, perSecond, b.sizes.paced)
	o.Others = m.Stop().Others
	o.count(a.Tally)
	o.Figures = map[string]float64{"delay": float64(a.P50) / float64(time.Microsecond), "delay99": float64(a.P99) / float64(time.Microsecond)}
	return o, nil
}

// streams is the CPU time of a delta, with many streams at once.
func streams(b *bench, c contender, p *process) (outcome, error) {
	var o outcome
	o.count(load.Warm(p.to, [][]byte{p.to.Request(load.Body(c.model, false))}, b.sizes.warm/10, connections))
	pattern := load.Pattern{Deltas: b.sizes.deltas, Gap: 10 * time.Millisecond}
	m := b.meter(p)
	s := load.Streams(p.to, load.Body(c.model, true), pattern, b.sizes.streams, b.sizes.rounds, min(time.Second, time.Duration(b.sizes.deltas)*pattern.Gap))
	r := m.Stop()
	o.count(s.Tally)
	o.Others = r.Others
	o.Figures = map[string]float64{"delta": each(r.CPU, s.Deltas, time.Microsecond), "delta99": float64(load.Quantile(s.Delays, .99)) / float64(time.Microsecond)}
	return o, nil
}

// held is the memory of a process that does nothing, and of each stream that is open.
func held(b *bench, c contender, p *process) (outcome, error) {
	var o outcome
	time.Sleep(b.sizes.settle)
	before := proc.ReadMemory(p.pid()).Now
	m := b.meter(p)
	g := load.Gather(p.to, load.Body(c.model, true), load.Pattern{Deltas: 30, Gap: 2 * time.Second}, b.sizes.held)
	time.Sleep(b.sizes.settle)
	after := proc.ReadMemory(p.pid()).Now
	o.Others = m.Stop().Others
	o.Figures = map[string]float64{"idle": float64(before) / (1 << 20)}
	if g.Open() > 0 {
		o.Figures["stream"] = float64(after-before) / float64(g.Open()) / (1 << 10)
	}
	if err := g.Leave(); err != nil {
		o.Bad, o.Why = b.sizes.held-g.Open(), err.Error()
	}
	return o, nil
}

// large is what a large body costs, one at a time.
func large(b *bench, c contender, p *process) (outcome, error) {
	var o outcome
	request := p.to.Request(load.ImageBody(c.model, b.sizes.body))
	if err := proc.ResetPeak(p.pid()); err != nil {
		return o, err
	}
	before := proc.ReadMemory(p.pid()).Peak
	o.count(load.Serial(p.to, request, 2, time.Minute))
	m := b.meter(p)
	t := load.Serial(p.to, request, b.sizes.large, time.Minute)
	r := m.Stop()
	o.count(t)
	o.Others = r.Others
	o.Figures = map[string]float64{"large": each(r.CPU, t.Good, time.Millisecond), "peak": float64(proc.ReadMemory(p.pid()).Peak-before) / float64(b.sizes.body)}
	return o, nil
}

// each is a time shared among n, in a unit.
func each(d time.Duration, n int, unit time.Duration) float64 {
	return float64(d) / float64(max(n, 1)) / float64(unit)
}

// size is a program's, in MiB.
func size(path string) (float64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / (1 << 20), nil
}
