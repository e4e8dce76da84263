// Command bench measures understudy beside other proxies, all in front of one fast
// upstream, on this machine: what a request, a streamed delta, an open stream and a
// large body cost. It prints medians, and ratios to Go's bare ReverseProxy of the same
// run; those may be compared between machines, microseconds may not.
//
// It needs Linux, and the Go toolchain: it builds what it runs. Nothing leaves
// loopback; every step has an end; only processes that it started are ended.
//
//	go run .                       the table (about five minutes)
//	go run . -scenario faults      the same with failovers and a frozen candidate
//	go run . -scenario scaling     curves over models, streams, bodies and rules
//	go run . -scenario crowd       ten thousand streams at once
//	go run . -scenario soak        an hour of mixed traffic, and a curve of the memory
//	go run . -scenario overload    five times what it can do
//	go run . -scenario profile     where the CPU and the memory go
//	go run . -smoke                does it run, and are all columns there?
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"understudy/bench/load"
)

// Children die with the thread that started them, and main never leaves this one.
func init() { runtime.LockOSThread() }

// options are the command line's.
type options struct {
	scenario, root, program, only, json, out string
	reps, repeat, streams                    int
	quiet                                    float64
	rate                                     float64
	limit, duration                          time.Duration
	smoke, strict                            bool
}

func main() {
	var o options
	flag.StringVar(&o.scenario, "scenario", "table", "table, faults, scaling, crowd, soak, overload or profile")
	flag.StringVar(&o.root, "root", "..", "the repository")
	flag.StringVar(&o.program, "understudy", "", "a built understudy, instead of the repository's")
	flag.StringVar(&o.only, "only", "", "rows of the table, by parts of their names between commas; the bare proxy is always there")
	flag.StringVar(&o.json, "json", "", "write everything measured to this file too; - writes it instead of the table")
	flag.StringVar(&o.out, "out", ".", "profile: the directory for the profiles")
	flag.IntVar(&o.reps, "reps", 3, "repetitions; figures are their medians")
	flag.IntVar(&o.repeat, "repeat", 2, "how often a step is done again because other processes were busy")
	flag.IntVar(&o.streams, "streams", 10000, "crowd: how many streams")
	flag.Float64Var(&o.quiet, "quiet", 0.15, "cores that other processes may use before a step is done again")
	flag.DurationVar(&o.duration, "duration", time.Hour, "soak: how long")
	flag.Float64Var(&o.rate, "rate", 120, "soak: requests a second")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "after this time no step is done again, and after twice of it nothing more is begun")
	flag.BoolVar(&o.smoke, "smoke", false, "one short repetition: fails where a figure is missing or an answer is wrong")
	flag.BoolVar(&o.strict, "strict", false, "fail where a goal is missed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench is what all scenarios share.
type bench struct {
	options
	dir      string // scratch, removed at the end
	mock     *process
	upstream load.Target // the mock
	sizes    sizes
	began    time.Time
	commit   string   // what is measured
	prefix   []string // before the command line of what is measured
}

// sizes are how much of everything a step does.
type sizes struct {
	busy           time.Duration // of load with 32 connections
	paced          time.Duration // of load at a rate
	warm           int           // requests before
	streams        int
	deltas, rounds int
	held           int
	settle         time.Duration // before memory is read
	large          int           // bodies
	body           int           // the large one, in bytes
}

var (
	whole = sizes{busy: 2 * time.Second, paced: 5 * time.Second, warm: 2000, streams: 200, deltas: 100, rounds: 2, held: 2000, settle: time.Second, large: 40, body: 8 << 20}
	brief = sizes{busy: 150 * time.Millisecond, paced: 150 * time.Millisecond, warm: 50, streams: 40, deltas: 25, rounds: 1, held: 50, settle: 50 * time.Millisecond, large: 3, body: 8 << 20}
)

func run(ctx context.Context, o options) (err error) {
	b := &bench{options: o, sizes: whole, began: time.Now()}
	if o.smoke {
		b.sizes, b.reps, b.repeat = brief, 1, 0
	}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	// Several programs are run as others than this user; nginx's workers need the way in.
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.startMock(ctx); err != nil {
		return err
	}
	defer b.mock.stop()
	switch o.scenario {
	case "table":
		err := b.table(ctx)
		if o.smoke {
			err = errors.Join(err, b.soak(ctx), b.overload(ctx))
		}
		return err
	case "faults":
		return b.faults(ctx)
	case "scaling":
		return b.scaling(ctx)
	case "crowd":
		return b.crowd(ctx)
	case "soak":
		return b.soak(ctx)
	case "overload":
		return b.overload(ctx)
	case "profile":
		return b.profile(ctx)
	}
	return fmt.Errorf("-scenario %q is none of table, faults, scaling, crowd, soak, overload and profile", o.scenario)
}

// built is where a program that build made is.
func (b *bench) built(name string) string {
	if name == "understudy" && b.program != "" {
		return b.program
	}
	return filepath.Join(b.dir, name)
}

// build makes the programs as they are shipped: static and stripped. A smoke test
// leaves out what would have everything compiled anew, beside what tests are made of.
func (b *bench) build(ctx context.Context) error {
	here := filepath.Join(b.root, "bench")
	builds := []struct{ name, dir, pkg string }{{"mock", here, "./mock"}, {"reference", here, "./reference"}, {"understudy", b.root, "./cmd/understudy"}}
	b.commit = "at " + b.program
	if out, err := exec.CommandContext(ctx, "git", "-C", b.root, "describe", "--tags", "--always", "--dirty").Output(); err == nil && b.program == "" {
		b.commit = strings.TrimSpace(string(out))
	}
	for _, x := range builds {
		if x.name == "understudy" && b.program != "" {
			continue
		}
		args, env := []string{"build", "-ldflags", "-s -w", "-o", b.built(x.name)}, os.Environ()
		if !b.smoke {
			args, env = append(args, "-trimpath"), append(env, "CGO_ENABLED=0")
		}
		if b.scenario == "profile" {
			args = append(args, "-tags", "profile")
		}
		cmd := exec.CommandContext(ctx, "go", append(args, x.pkg)...)
		cmd.Dir = x.dir
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", x.name, err, out)
		}
	}
	return nil
}

// startMock runs the upstream.
func (b *bench) startMock(ctx context.Context) error {
	var err error
	b.mock, err = b.anotherMock(ctx, "mock")
	if err == nil {
		b.upstream = b.mock.to
	}
	return err
}

// anotherMock runs one more upstream.
func (b *bench) anotherMock(ctx context.Context, name string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	to := load.Target{Addr: loopback(port), Path: chatPath}
	p, err := b.spawn(name, nil, b.built("mock"), "-listen", to.Addr)
	if err != nil {
		return nil, err
	}
	if err := p.answers(ctx, to, to.Request(load.Body("m", false)), time.Now()); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// rows are the contenders that the command line asks for, the bare proxy first. One
// that is not installed is an error, unless it was not asked for.
func (b *bench) rows() ([]contender, error) {
	var rows []contender
	var missing error
	for _, c := range contenders() {
		wanted := b.only == "" || c.name == bare
		for part := range strings.SplitSeq(b.only, ",") {
			wanted = wanted || part != "" && strings.Contains(c.name, part)
		}
		if !wanted {
			continue
		}
		if c.program(b) == "" {
			missing = errors.Join(missing, fmt.Errorf("%s is not installed: apt-get install nginx-light haproxy, or say -only understudy,with,that", c.name))
		}
		rows = append(rows, c)
	}
	return rows, missing
}

// late says whether so much time has gone that steps are not repeated, or nothing
// more is begun.
func (b *bench) late() (noRepeats, nothing bool) {
	since := time.Since(b.began)
	return since > b.limit, since > 2*b.limit
}
