package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"understudy/bench/load"
	"understudy/bench/proc"
)

const (
	// over is how many times its capacity understudy is offered.
	over = 5
	// What is wanted: so much of the capacity is served while it lasts, and so long after
	// it all is as it was.
	goodput, recovered = .7, 1.0
	// capacityParts is in how many moments a capacity is measured.
	capacityParts = 4
	// patience is after what time a client leaves.
	patience = 10 * time.Second
	// window is over what time answers are looked at when it is asked whether all is well again.
	window = 100 * time.Millisecond
	// settled is how long a request may always take then: less is the machine's noise.
	settled = 100 * time.Millisecond
)

// overloadSizes are how long the parts of an overload take.
type overloadSizes struct {
	capacity, calm, surge, after time.Duration
}

var (
	longOverload  = overloadSizes{capacity: 4 * time.Second, calm: 3 * time.Second, surge: 15 * time.Second, after: 6 * time.Second}
	briefOverload = overloadSizes{capacity: 300 * time.Millisecond, calm: 300 * time.Millisecond, surge: time.Second, after: 1500 * time.Millisecond}
)

// A stress is what an overload consists of.
type stress struct {
	name   string
	stream load.Pattern
	fresh  int // one request of so many has a connection of its own; 0: none
	// clients are as many as keep understudy busy, for measuring its capacity.
	clients int
}

// stresses are small answers over kept connections and over fresh ones, and streams. All
// requests fail over, past some rules with expressions: one costs understudy a
// millisecond then, and the generator, on its own core, can send five times as many.
var stresses = []stress{
	{"answers, connections kept", load.Pattern{}, 0, 32},
	{"answers, each its own connection", load.Pattern{}, 1, 32},
	{"streams, half of the connections kept", load.Pattern{Deltas: 20, Gap: 10 * time.Millisecond}, 2, 400},
}

// stressRules is how many rules a failure goes past.
const stressRules = 300

// An ordeal is what an overload came to.
type ordeal struct {
	Name      string         `json:"name"`
	Capacity  float64        `json:"capacity_per_second"`
	Offered   float64        `json:"offered_per_second"`
	Fates     map[string]int `json:"fates"`
	Goodput   float64        `json:"served_share_of_capacity"`
	ServedP50 float64        `json:"served_p50_ms"`
	ServedP99 float64        `json:"served_p99_ms"`
	ShedP50   float64        `json:"shed_p50_ms"`
	ShedP99   float64        `json:"shed_p99_ms"`
	Calm      float64        `json:"before_p99_ms"`
	Recovery  float64        `json:"recovery_seconds"` // below 0: not within the time
	Before    float64        `json:"resident_before_mib"`
	Peak      float64        `json:"resident_peak_mib"`
	Cores     float64        `json:"cores"`       // of understudy, during the surge
	Rest      float64        `json:"other_cores"` // of everything else
	Why       string         `json:"why,omitempty"`
}

var fateNames = [load.Fates]string{"served", "shed", "shed without Retry-After", "refused", "cut", "late", "wrong"}

// overload offers understudy five times what it can do, and looks at what it does then
// and after.
func (b *bench) overload(ctx context.Context) error {
	sizes, asked := longOverload, stresses
	if b.smoke {
		sizes, asked = briefOverload, stresses[:1]
	}
	pinned := b.pin()
	fmt.Print(about(b))
	fmt.Println(pinned)
	var all []ordeal
	var failed error
	for _, s := range asked {
		o, err := b.endure(ctx, s, sizes)
		if err != nil {
			return err
		}
		all = append(all, o)
		failed = errors.Join(failed, o.failed())
	}
	printOrdeals(all)
	for _, o := range all {
		if o.Why != "" {
			fmt.Println(o.Name+", the last that was wrong:", o.Why)
		}
		if b.strict && (o.Goodput < goodput || o.Recovery < 0 || o.Recovery > recovered || o.Fates["shed"] == 0) {
			failed = errors.Join(failed, fmt.Errorf("%s: goodput %.2f, recovered after %.1f s, %d shed", o.Name, o.Goodput, o.Recovery, o.Fates["shed"]))
		}
	}
	return errors.Join(b.save(all), failed)
}

// printOrdeals shows what became of the requests, and how long it took.
func printOrdeals(all []ordeal) {
	became := [][]string{{"", "capacity", "offered", "served", "goodput", "shed", "mute", "refused", "cut", "late", "wrong", "unsent"},
		{"", "/s", "/s", "", "of capacity", "", "", "", "", "", "", ""}}
	took := [][]string{{"", "served p50", "p99", "shed p50", "p99", "before p99", "recovery", "resident", "peak", "cores", "others"},
		{"", "ms", "ms", "ms", "ms", "ms", "s", "MiB", "MiB", "", ""}}
	for _, o := range all {
		line := []string{o.Name, fmt.Sprintf("%.0f", o.Capacity), fmt.Sprintf("%.0f", o.Offered), fmt.Sprint(o.Fates["served"]), fmt.Sprintf("%.2f", o.Goodput)}
		for _, n := range append(fateNames[1:], "unsent") {
			line = append(line, fmt.Sprint(o.Fates[n]))
		}
		became = append(became, line)
		line = []string{o.Name}
		for _, ms := range []float64{o.ServedP50, o.ServedP99, o.ShedP50, o.ShedP99} {
			line = append(line, fmt.Sprintf("%.0f", ms))
		}
		took = append(took, append(line, fmt.Sprintf("%.1f", o.Calm), fmt.Sprintf("%.1f", o.Recovery), fmt.Sprintf("%.0f", o.Before), fmt.Sprintf("%.0f", o.Peak), fmt.Sprintf("%.2f", o.Cores), fmt.Sprintf("%.2f", o.Rest)))
	}
	align(os.Stdout, became)
	fmt.Println()
	align(os.Stdout, took)
}

// failed is an error where something came that must not come.
func (o ordeal) failed() error {
	if o.Fates["served"] == 0 || o.Fates["wrong"] > 0 || o.Capacity == 0 {
		return fmt.Errorf("%s: %d served, %d wrong: %s", o.Name, o.Fates["served"], o.Fates["wrong"], o.Why)
	}
	return nil
}

// endure puts one understudy through one stress.
func (b *bench) endure(ctx context.Context, s stress, sizes overloadSizes) (o ordeal, err error) {
	p, err := b.start(ctx, understudy("understudy", alias, twoCandidates("/fail/503/1", manyRules(stressRules))))
	if err != nil {
		return o, err
	}
	defer p.stop()
	ask := b.asks(p.to, s)
	if s.stream.Deltas > 0 {
		if ask, err = b.streamAsks(p.to, s); err != nil {
			return o, err
		}
	}
	o = ordeal{Name: s.name, Fates: map[string]int{}}
	load.Capacity(p.to, ask, s.clients, sizes.capacity/capacityParts) // warm
	for range capacityParts {
		// The best of some moments: others may want the machine in one of them.
		part, why := load.Capacity(p.to, ask, s.clients, sizes.capacity/capacityParts)
		o.Capacity, err = max(o.Capacity, part), why
	}
	if o.Capacity == 0 {
		return o, fmt.Errorf("%s: nothing was served: %w", s.name, err)
	}
	calm := b.surge(ctx, p.to, o.Capacity/2, sizes.calm, ask)
	landings, _, _ := calm.Wait()
	normal := load.Quantile(times(landings, load.Served), .99)
	o.Calm = milliseconds(normal)
	o.Before = mib(proc.ReadMemory(p.pid()).Now)
	if err := proc.ResetPeak(p.pid()); err != nil {
		return o, err
	}
	cpu, busy, at := proc.CPU(p.pid()), proc.Busy(), time.Now()
	high := b.surge(ctx, p.to, over*o.Capacity, sizes.surge, ask)
	span := time.Since(at).Seconds()
	o.Cores = (proc.CPU(p.pid()) - cpu).Seconds() / span
	o.Rest = (proc.Busy()-busy).Seconds()/span - o.Cores
	after := b.surge(ctx, p.to, o.Capacity/2, sizes.after, ask) // begins when the surge has been sent
	landings, unsent, why := high.Wait()
	o.Peak = mib(proc.ReadMemory(p.pid()).Peak)
	o.count(landings, sizes.surge)
	o.Offered = float64(len(landings)+unsent) / sizes.surge.Seconds()
	o.Fates["unsent"] = unsent
	if why != nil {
		o.Why = why.Error()
	}
	landings, _, why = after.Wait()
	if why != nil {
		o.Why = why.Error()
	}
	o.Recovery = recovery(landings, max(2*normal, settled), sizes.after).Seconds()
	if !p.lives() {
		return o, fmt.Errorf("%s: understudy has ended", s.name)
	}
	return o, ctx.Err()
}

// surge offers so many requests a second for a time, and returns when the last has
// been sent.
func (b *bench) surge(ctx context.Context, to load.Target, perSecond float64, d time.Duration, ask func(int) load.Ask) *load.Surge {
	ctx, end := context.WithTimeout(ctx, d)
	defer end()
	s := load.Begin(ctx, to, perSecond, patience, ask)
	<-ctx.Done()
	return s
}

// count counts what became of the requests; served ones count for the goodput where
// they were answered while the load was there.
func (o *ordeal) count(landings []load.Landing, span time.Duration) {
	meanwhile := 0
	for _, l := range landings {
		o.Fates[fateNames[l.Fate]]++
		if l.Fate == load.Served && l.Sent+l.Took <= span {
			meanwhile++
		}
	}
	o.Goodput = float64(meanwhile) / span.Seconds() / o.Capacity
	served, shed := times(landings, load.Served), times(landings, load.Shed)
	o.ServedP50, o.ServedP99 = milliseconds(load.Quantile(served, .5)), milliseconds(load.Quantile(served, .99))
	o.ShedP50, o.ShedP99 = milliseconds(load.Quantile(shed, .5)), milliseconds(load.Quantile(shed, .99))
}

// times are how long the requests of one fate took.
func times(landings []load.Landing, f load.Fate) (all []time.Duration) {
	for _, l := range landings {
		if l.Fate == f {
			all = append(all, l.Took)
		}
	}
	return all
}

// recovery is after what time requests are answered as ever: from then on nine of ten
// of each window are served within normal. It is negative where that never comes.
func recovery(landings []load.Landing, normal, span time.Duration) time.Duration {
	well, all := make([]int, span/window), make([]int, span/window)
	for _, l := range landings {
		at := min(int(l.Sent/window), len(all)-1)
		if all[at]++; l.Fate == load.Served && l.Took <= normal {
			well[at]++
		}
	}
	since := len(all)
	for i := len(all) - 1; i >= 0 && well[i]*10 >= all[i]*9; i-- {
		since = i
	}
	if since == len(all) {
		return -time.Second
	}
	return time.Duration(since) * window
}

// asks are requests for small answers.
func (b *bench) asks(to load.Target, s stress) func(int) load.Ask {
	request := to.Request(load.Body(alias, false))
	return func(i int) load.Ask {
		return load.Ask{Bytes: request, Status: 200, Fresh: s.fresh > 0 && i%s.fresh == 0}
	}
}

// streamAsks are requests for streams.
func (b *bench) streamAsks(to load.Target, s stress) (func(int) load.Ask, error) {
	m, err := newSoakMix(to, b.upstream, 1, time.Millisecond)
	stream := &load.Stream{Pattern: s.stream, Bytes: m.ending + s.stream.Deltas*m.delta}
	request := to.Request(load.Body(alias, true), s.stream.Header()...)
	return func(i int) load.Ask {
		return load.Ask{Bytes: request, Status: 200, Stream: stream, Fresh: s.fresh > 0 && i%s.fresh == 0}
	}, err
}

// pin gives understudy the first core and everything else the second, so that what is
// offered does not depend on what is done with it; and says whether it could.
func (b *bench) pin() string {
	if runtime.NumCPU() < 2 {
		return "all share one core"
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return "all share the cores: there is no taskset"
	}
	for _, pid := range []int{os.Getpid(), b.mock.pid()} {
		if out, err := exec.Command("taskset", "-a", "-p", "-c", "1", strconv.Itoa(pid)).CombinedOutput(); err != nil {
			return fmt.Sprintf("all share the cores: taskset: %v %s", err, out)
		}
	}
	runtime.GOMAXPROCS(1)
	b.prefix = []string{"taskset", "-c", "0"}
	return "understudy has the first core, the upstream and the generator the second"
}
