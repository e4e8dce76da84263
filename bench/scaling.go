package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"understudy/bench/curve"
	"understudy/bench/load"
	"understudy/bench/proc"
)

// steep is the exponent of growth between two neighbouring points from which a curve
// counts as worse than linear: what is left above 1 is for the noise.
const steep = 1.2

// A sweep measures some series over one quantity. Each of its points is measured once
// per repetition; the medians are the series.
type sweep struct {
	curves []*curve.Curve
	points []func(ctx context.Context) error
}

// scaling measures how costs grow, prints it, and says what grows worse than linearly.
func (b *bench) scaling(ctx context.Context) error {
	sweeps := []sweep{b.overModels(), b.overStreams(), b.overBodies(), b.overRules()}
	if b.smoke {
		sweeps = sweeps[3:]
	}
	var all []*curve.Curve
	for _, s := range sweeps {
		all = append(all, s.curves...)
	}
	for rep := range b.reps {
		for _, s := range sweeps {
			for i, point := range s.points {
				if err := errors.Join(ctx.Err(), point(ctx)); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%4.0f s  %d/%d  %s %d/%d\n", time.Since(b.began).Seconds(), rep+1, b.reps, s.curves[0].Name, i+1, len(s.points))
			}
		}
	}
	fmt.Print(about(b))
	lines := [][]string{{"", "", "", "", "", "grows"}}
	worse := 0
	for _, c := range all {
		lines = append(lines, []string{fmt.Sprintf("%s (%s)", c.Title, c.YUnit)})
		for _, s := range c.Series {
			s.Settle()
			line := []string{"  " + s.Name}
			for _, p := range s.Points {
				line = append(line, fmt.Sprintf("%.4g: %.4g", p.X, p.Y))
			}
			exponent := s.Steepest()
			verdict := growth(exponent)
			if c.YUnit == "ms" && strings.Contains(c.Title, "percentile") {
				verdict = "(not judged: it is the machine's as well)"
			} else if exponent > steep {
				worse++
			}
			for len(line) < 7 {
				line = append(line, "")
			}
			lines = append(lines, append(line, verdict))
		}
	}
	lines[0] = []string{"", "", "", "", "", "", "", "grows"}
	align(os.Stdout, lines)
	if worse > 0 {
		fmt.Printf("\n%d of the series grow worse than linearly: that is a fault; bench -scenario profile shows where the time goes\n", worse)
	}
	if err := b.save(map[string]any{"curves": all}); err != nil {
		return err
	}
	if b.strict && worse > 0 {
		return fmt.Errorf("%d series grow worse than linearly", worse)
	}
	return nil
}

// growth puts the exponent of the steepest piece into words.
func growth(exponent float64) string {
	switch {
	case exponent > steep:
		return fmt.Sprintf("WORSE THAN LINEARLY (x^%.1f)", exponent)
	case exponent > .7:
		return "linearly"
	case exponent > .25:
		return "less than linearly"
	}
	return "not"
}

// overModels is the number of virtual models, with chains of several lengths.
func (b *bench) overModels() sweep {
	cpu := &curve.Curve{Name: "scaling-models-cpu", Title: "CPU per request over virtual models", X: "virtual models", YUnit: "µs", LogX: true}
	memory := &curve.Curve{Name: "scaling-models-memory", Title: "Memory over virtual models, each asked", X: "virtual models", YUnit: "MiB", LogX: true, LogY: true}
	start := &curve.Curve{Name: "scaling-models-start", Title: "First answer after exec over virtual models", X: "virtual models", YUnit: "ms", LogX: true, LogY: true}
	s := sweep{curves: []*curve.Curve{cpu, memory, start}}
	for _, upstreams := range []int{1, 5, 50} {
		name := fmt.Sprintf("%d candidates each", upstreams)
		if upstreams == 1 {
			name = "1 candidate each"
		}
		perRequest, resident, first := cpu.Add(name), memory.Add(name), start.Add(name)
		for _, models := range []int{1, 10, 100, 1000} {
			s.points = append(s.points, func(ctx context.Context) error {
				names := modelNames(models)
				p, err := b.start(ctx, understudy("understudy", names[0], func(u string) string { return wideConfig(u, models, upstreams) }))
				if err != nil {
					return err
				}
				defer p.stop()
				us, err := b.smallRequests(p, names)
				x := float64(models)
				perRequest.Take(x, us)
				resident.Take(x, float64(proc.ReadMemory(p.pid()).Now)/(1<<20))
				first.Take(x, float64(p.ready)/1e6)
				return err
			})
		}
	}
	return s
}

// smallRequests is the CPU time of a small request, in microseconds; the models are
// asked for in turn.
func (b *bench) smallRequests(p *process, models []string) (float64, error) {
	requests := requestsFor(p.to, models)
	t := load.Warm(p.to, requests, max(b.sizes.warm/2, len(requests)), connections)
	m := b.meter(p)
	t2 := load.Closed(p.to, requests, connections, b.sizes.busy)
	r := m.Stop()
	if t.Bad+t2.Bad > 0 {
		return 0, fmt.Errorf("%d requests went wrong: %w", t.Bad+t2.Bad, errors.Join(t.Err, t2.Err))
	}
	return each(r.CPU, t2.Good, time.Microsecond), nil
}

// overStreams is the number of open streams, all of which together show the same
// number of deltas in a second.
func (b *bench) overStreams() sweep {
	memory := &curve.Curve{Name: "scaling-streams-memory", Title: "Memory over open streams", X: "open streams", YUnit: "MiB", LogX: true, LogY: true}
	cpu := &curve.Curve{Name: "scaling-streams-cpu", Title: fmt.Sprintf("CPU per delta over open streams, %d deltas a second in all", deltasPerSecond), X: "open streams", YUnit: "µs", LogX: true}
	delay := &curve.Curve{Name: "scaling-streams-delay", Title: "From a delta's writing to its arrival, 99th percentile", X: "open streams", YUnit: "ms", LogX: true}
	resident, perDelta, late := memory.Add("resident"), cpu.Add("CPU of understudy"), delay.Add("through understudy")
	straight := delay.Add("straight from the upstream")
	s := sweep{curves: []*curve.Curve{memory, cpu, delay}}
	for _, n := range []int{10, 100, 1000, b.reachable(10000)} {
		s.points = append(s.points, func(ctx context.Context) error {
			c, p, stop, err := b.plainCrowd(ctx)
			if err != nil {
				return err
			}
			defer stop()
			g := b.gather(c, p, n, crowdTime/2)
			if g.Lost > 0 {
				return fmt.Errorf("%d of %d streams did not end well: %s", g.Lost, n, g.Why)
			}
			x := float64(n)
			resident.Take(x, g.MiB)
			perDelta.Take(x, g.CPU)
			late.Take(x, g.P99)
			c, p, _, err = b.noProxy(ctx)
			straight.Take(x, b.gather(c, p, n, crowdTime/4).P99)
			return err
		})
	}
	return s
}

// reachable is n, or how many streams the limit of descriptors lets a process carry.
func (b *bench) reachable(n int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return n
	}
	return int(min(uint64(n), (limit.Max-spare)/2))
}

// overBodies is the size of a request's body, one at a time.
func (b *bench) overBodies() sweep {
	cpu := &curve.Curve{Name: "scaling-bodies-cpu", Title: "CPU per request over the body's size", X: "body (KiB)", YUnit: "ms", LogX: true, LogY: true}
	memory := &curve.Curve{Name: "scaling-bodies-memory", Title: "Peak of memory above idle over the body's size", X: "body (KiB)", YUnit: "MiB", LogX: true, LogY: true}
	perRequest, peak := cpu.Add("CPU of understudy"), memory.Add("peak")
	s := sweep{curves: []*curve.Curve{cpu, memory}}
	for _, kib := range []int{1, 32, 256, 1 << 10, 8 << 10, 32 << 10} {
		s.points = append(s.points, func(ctx context.Context) error {
			p, err := b.start(ctx, understudy("understudy", alias, chainConfig))
			if err != nil {
				return err
			}
			defer p.stop()
			if err := proc.ResetPeak(p.pid()); err != nil {
				return err
			}
			before := proc.ReadMemory(p.pid()).Peak
			request := p.to.Request(load.ImageBody(alias, kib<<10))
			load.Serial(p.to, request, 3, time.Minute)
			m := b.meter(p)
			t := load.Serial(p.to, request, 20000, b.sizes.busy)
			r := m.Stop()
			if t.Bad > 0 {
				return fmt.Errorf("bodies of %d KiB: %w", kib, t.Err)
			}
			perRequest.Take(float64(kib), each(r.CPU, t.Good, time.Millisecond))
			peak.Take(float64(kib), math.Max(.1, float64(proc.ReadMemory(p.pid()).Peak-before)/(1<<20)))
			return nil
		})
	}
	return s
}

// overRules is the number of rules with expressions, which matter when a request fails.
func (b *bench) overRules() sweep {
	cpu := &curve.Curve{Name: "scaling-rules-cpu", Title: "CPU per request over rules with expressions", X: "rules", YUnit: "µs", LogX: true, LogY: true}
	s := sweep{curves: []*curve.Curve{cpu}}
	for _, kind := range []struct{ name, prefix string }{{"answered at once", ""}, {"failed over, all rules tried", "/fail/503/1"}} {
		series := cpu.Add(kind.name)
		for _, n := range []int{1, 10, 100, 1000} {
			s.points = append(s.points, func(ctx context.Context) error {
				p, err := b.start(ctx, understudy("understudy", alias, twoCandidates(kind.prefix, manyRules(n))))
				if err != nil {
					return err
				}
				defer p.stop()
				us, err := b.smallRequests(p, []string{alias})
				series.Take(float64(n), us)
				return err
			})
		}
	}
	return s
}
