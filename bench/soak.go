package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy/bench/curve"
	"understudy/bench/load"
)

const (
	// flat is how much what lives may grow in the last half, in MiB an hour, and be called
	// flat: ten bytes lost per request come to more. It is read off the size to which the
	// collector lets the heap grow, which is what lived at the last collection and 64 MiB:
	// resident memory rises and falls by twenty between two collections, and the trend of
	// half an hour of that is known to ten MiB an hour at best.
	flat = 4.0
	// steady is how much larger the median of resident memory may be in the last half than
	// in the first, in which tables and windows are filled.
	steady = 1.1
	// drained is how long after the last answer everything must have been given back.
	drained = 15 * time.Second
	// goroutinesLeft is how many more goroutines there may be after than before: those of
	// upstream connections that are kept.
	goroutinesLeft = 40
)

// soakSizes are how often things happen in a soak.
type soakSizes struct {
	sample, reload time.Duration
	large          int           // one request of so many has a large body
	unit           time.Duration // between the deltas of the fastest streams
}

var (
	longSoak  = soakSizes{sample: 10 * time.Second, reload: time.Minute, large: 1200, unit: 10 * time.Millisecond}
	briefSoak = soakSizes{sample: 300 * time.Millisecond, reload: time.Second, large: 100, unit: 100 * time.Microsecond}
)

// soaked is what a soak came to.
type soaked struct {
	About    string         `json:"about"`
	Verdict  soakVerdict    `json:"verdict"`
	Kinds    map[string]int `json:"good_by_kind"`
	Failures []string       `json:"failures"`
	Samples  []sample       `json:"samples"`
	Curves   []*curve.Curve `json:"curves"`
}

// A soakVerdict says whether nothing went wrong and memory stayed where it was.
type soakVerdict struct {
	Good       int     `json:"good"`
	Failed     int     `json:"failed"`
	First      float64 `json:"resident_median_first_half_mib"`
	Last       float64 `json:"resident_median_last_half_mib"`
	Slope      float64 `json:"resident_last_half_mib_per_hour"`
	LiveSlope  float64 `json:"live_last_half_mib_per_hour"`
	Cores      float64 `json:"cores"`
	Reloads    int     `json:"reloads"`
	Leftovers  string  `json:"leftovers,omitempty"` // what was not given back after
	Goroutines [2]int  `json:"goroutines_before_and_after"`
}

// soak has understudy serve mixed traffic at a fixed rate for -duration, all answers
// checked, and watches what it uses.
func (b *bench) soak(ctx context.Context) error {
	sizes, duration, rate := longSoak, b.duration, b.rate
	if b.smoke {
		sizes, duration, rate = briefSoak, 3*time.Second, 100
	}
	s, stop, err := b.startSoak(ctx)
	if err != nil {
		return err
	}
	defer stop()
	mix, err := newSoakMix(s.p.to, b.upstream, 1, sizes.unit)
	if err != nil {
		return err
	}
	fmt.Printf("understudy %s, %v of %g requests a second\n", b.commit, duration, rate)
	before := s.look(ctx, nil)
	traffic, end := context.WithTimeout(ctx, duration)
	defer end()
	s.flow = load.Open(traffic, s.p.to, rate, func() load.Ask { return mix.next(sizes.large) })
	samples := s.watch(traffic, sizes)
	kinds, failures := s.flow.Wait()
	after, left := s.drain(ctx, before)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	result := soaked{About: about(b), Kinds: map[string]int{}, Failures: append(failures, s.faults...), Samples: samples}
	for name, t := range kinds {
		result.Kinds[name] = t.Good
		result.Verdict.Good += t.Good
		result.Verdict.Failed += t.Bad
	}
	result.judge(left, before, after)
	result.draw()
	result.print()
	if err := b.save(result); err != nil {
		return err
	}
	return result.failed(b.smoke)
}

// judge works out what the samples say.
func (r *soaked) judge(left string, before, after sample) {
	v := &r.Verdict
	v.Leftovers, v.Goroutines = left, [2]int{before.Goroutines, after.Goroutines}
	if len(r.Samples) == 0 {
		return
	}
	half, last := len(r.Samples)/2, r.Samples[len(r.Samples)-1]
	resident := points(r.Samples, func(s sample) float64 { return s.Resident })
	live := points(r.Samples, func(s sample) float64 { return s.HeapGoal })
	v.First, v.Last = curve.Middle(resident[:half]), curve.Middle(resident[half:])
	v.Slope, v.LiveSlope = 60*curve.Trend(resident[half:]), 60*curve.Trend(live[half:])
	v.Reloads = after.Reloads
	v.Cores = (last.CPU - before.CPU) / (last.Minutes * 60)
}

// points are one figure of the samples over minutes.
func points(samples []sample, of func(sample) float64) (all []curve.Point) {
	for _, s := range samples {
		all = append(all, curve.Point{X: s.Minutes, Y: of(s)})
	}
	return all
}

// draw makes the curves of the samples.
func (r *soaked) draw() {
	memory := &curve.Curve{Name: "soak", Title: "Memory under mixed traffic", X: "minutes", YUnit: "MiB"}
	open := &curve.Curve{Name: "soak-open", Title: "What was open meanwhile", X: "minutes", YUnit: "count"}
	for _, c := range []struct {
		to   *curve.Curve
		name string
		of   func(sample) float64
	}{
		{memory, "resident", func(s sample) float64 { return s.Resident }},
		{memory, "of it heap and stacks", func(s sample) float64 { return s.Anonymous }},
		{memory, "what the heap may grow to", func(s sample) float64 { return s.HeapGoal }},
		{memory, "state directory on disk", func(s sample) float64 { return s.Disk }},
		{open, "descriptors", func(s sample) float64 { return float64(s.Descriptors) }},
		{open, "goroutines", func(s sample) float64 { return float64(s.Goroutines) }},
		{open, "requests in flight", func(s sample) float64 { return float64(s.InFlight) }},
	} {
		c.to.Add(c.name).Points = points(r.Samples, c.of)
	}
	r.Curves = []*curve.Curve{memory, open}
}

// print shows the samples by tenths of the time, the requests by kind, and the verdict.
func (r *soaked) print() {
	fmt.Print("\n", r.About)
	lines := [][]string{{"minute", "resident", "anonymous", "heap", "heap goal", "goroutines", "descriptors", "disk", "in flight", "done", "failed", "p50", "p99", "cores", "others"},
		{"", "MiB", "MiB", "MiB", "MiB", "", "", "MiB", "", "", "", "ms", "ms", "", "cores"}}
	for i := range 10 {
		at := (i+1)*len(r.Samples)/10 - 1
		if at < 0 {
			continue
		}
		s := r.Samples[at]
		lines = append(lines, []string{fmt.Sprintf("%.1f", s.Minutes), fmt.Sprintf("%.1f", s.Resident), fmt.Sprintf("%.1f", s.Anonymous), fmt.Sprintf("%.1f", s.Heap), fmt.Sprintf("%.1f", s.HeapGoal),
			fmt.Sprint(s.Goroutines), fmt.Sprint(s.Descriptors), fmt.Sprintf("%.1f", s.Disk), fmt.Sprint(s.InFlight), fmt.Sprint(s.Done), fmt.Sprint(s.Failed),
			fmt.Sprintf("%.1f", s.P50), fmt.Sprintf("%.1f", s.P99), fmt.Sprintf("%.2f", s.Cores), fmt.Sprintf("%.2f", s.Others)})
	}
	align(os.Stdout, lines)
	fmt.Println()
	lines = [][]string{{"kind", "as they should be"}}
	for _, name := range slices.Sorted(maps.Keys(r.Kinds)) {
		lines = append(lines, []string{name, fmt.Sprint(r.Kinds[name])})
	}
	align(os.Stdout, lines)
	v := r.Verdict
	fmt.Printf("\n%d requests, %d failed, %d reloads, %.2f cores of understudy\n", v.Good+v.Failed, v.Failed, v.Reloads, v.Cores)
	fmt.Printf("resident: median of the first half %.1f MiB, of the last half %.1f MiB; trend of the last half %+.1f MiB an hour\n", v.First, v.Last, v.Slope)
	fmt.Printf("what lives, by the heap goal: trend of the last half %+.1f MiB an hour\n", v.LiveSlope)
	fmt.Printf("goroutines: %d before, %d after the last answer\n", v.Goroutines[0], v.Goroutines[1])
	for _, f := range r.Failures {
		fmt.Println("failed:", f)
	}
}

// failed is an error where something went wrong. Of a smoke test's memory nothing can
// be said.
func (r *soaked) failed(smoke bool) error {
	v, err := r.Verdict, error(nil)
	if v.Failed > 0 || len(r.Failures) > 0 {
		err = fmt.Errorf("%d requests failed, and %d things are told above", v.Failed, len(r.Failures))
	}
	if len(r.Samples) == 0 || v.Good == 0 || v.Reloads == 0 {
		err = errors.Join(err, errors.New("nothing was measured"))
	}
	if v.Leftovers != "" {
		err = errors.Join(err, errors.New("not given back: "+v.Leftovers))
	}
	if !smoke && v.LiveSlope > flat {
		err = errors.Join(err, fmt.Errorf("what lives grows by %.1f MiB an hour", v.LiveSlope))
	}
	if !smoke && v.Last > steady*v.First {
		err = errors.Join(err, fmt.Errorf("resident memory grew from %.1f to %.1f MiB", v.First, v.Last))
	}
	for _, k := range soakKindsMissing(r.Kinds, smoke) {
		err = errors.Join(err, fmt.Errorf("no request went well of: %s", k))
	}
	return err
}

// soakKindsMissing names the common kinds of which there was no request.
func soakKindsMissing(good map[string]int, smoke bool) (missing []string) {
	wanted := []string{"equals", "pool", "vendor", "responses", "equals, short stream", "failover"}
	if !smoke {
		wanted = append(wanted, "responses, going on", "equals, long stream", "complete, stream", "retries", "large body", "left by the client", "left while sending", "answered with 400", "answered with 401", "answered with 502")
	}
	for _, k := range wanted {
		if good[k] == 0 {
			missing = append(missing, k)
		}
	}
	return missing
}

// A soaking is a soak under way.
type soaking struct {
	p      *process
	mocks  []*process
	admin  string // host:port
	config string // the file
	state  string // the directory in which the state directory is made
	write  func(generation int) error
	flow   *load.Flow
	loaded map[string]bool // when configurations were loaded
	faults []string        // what was wrong besides requests
	began  time.Time
}

// fault remembers what was wrong, up to some.
func (s *soaking) fault(format string, args ...any) {
	if len(s.faults) < 20 {
		s.faults = append(s.faults, time.Now().UTC().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
	}
}

// startSoak runs the upstreams and understudy. stop ends what it started.
func (b *bench) startSoak(ctx context.Context) (s *soaking, stop func(), err error) {
	s = &soaking{mocks: []*process{b.mock}, loaded: map[string]bool{}}
	var ours []*process
	stop = func() {
		for _, p := range ours {
			p.stop()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for _, name := range []string{"mock-b", "mock-c"} {
		p, err := b.anotherMock(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		ours, s.mocks = append(ours, p), append(s.mocks, p)
	}
	secure, certificate, err := b.secureMock(ctx)
	if err != nil {
		return nil, nil, err
	}
	ours, s.mocks = append(ours, secure), append(s.mocks, secure)
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	s.admin = loopback(port)
	at := func(i int) string { return s.mocks[i].to.Addr }
	c := contender{name: "understudy", model: "equals", key: soakKeys[0], program: func(b *bench) string { return b.built("understudy") },
		arrange: func(b *bench, dir string, port int) ([]string, error) {
			s.config, s.state = filepath.Join(dir, "understudy.yaml"), dir
			s.write = func(generation int) error {
				text := soakConfig(at(0), at(1), at(2), at(3), generation)
				if err := os.WriteFile(s.config+".new", []byte(text), 0o600); err != nil {
					return err
				}
				return os.Rename(s.config+".new", s.config)
			}
			return []string{"serve", "-c", s.config, "--no-repl", "--port", fmt.Sprint(port), "--admin", s.admin}, s.write(0)
		}}
	if s.p, err = b.start(ctx, c, "SSL_CERT_FILE="+certificate); err != nil {
		return nil, nil, err
	}
	ours = append(ours, s.p)
	s.began = time.Now()
	return s, stop, nil
}
