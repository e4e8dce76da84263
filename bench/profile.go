package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"understudy/bench/load"
)

// A path is one of the ways through understudy that are looked into.
type path struct {
	name   string
	config func(upstream string) string
	models []string
	drive  func(b *bench, to load.Target, models []string) load.Tally
}

// paths are the four that docs/performance.md tells of.
func paths() []path {
	return []path{
		{"request", chainConfig, []string{alias}, small},
		{"stream", chainConfig, []string{alias}, func(b *bench, to load.Target, models []string) load.Tally {
			return load.Streams(to, load.Body(models[0], true), load.Pattern{Deltas: 100, Gap: 10 * time.Millisecond}, 200, 6, time.Second).Tally
		}},
		{"large", chainConfig, []string{alias}, func(b *bench, to load.Target, models []string) load.Tally {
			return load.Serial(to, to.Request(load.ImageBody(models[0], b.sizes.body)), 300, 20*time.Second)
		}},
		{"wide", func(upstream string) string { return wideConfig(upstream, 200, 50) }, modelNames(200), small},
	}
}

// small sends small requests over 32 connections.
func small(b *bench, to load.Target, models []string) load.Tally {
	return load.Closed(to, requestsFor(to, models), connections, 4*b.sizes.busy)
}

// requestsFor are small requests, one for each model.
func requestsFor(to load.Target, models []string) (requests [][]byte) {
	for _, m := range models {
		requests = append(requests, to.Request(load.Body(m, false)))
	}
	return requests
}

// profile writes the CPU and allocation profiles of the paths into -out and prints
// their tops.
func (b *bench) profile(ctx context.Context) error {
	for _, p := range paths() {
		if b.only != "" && !strings.Contains(b.only, p.name) {
			continue
		}
		dir, err := filepath.Abs(filepath.Join(b.out, "profile-"+p.name))
		if err != nil {
			return err
		}
		if err := b.profilePath(ctx, p, dir); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for _, x := range [][]string{{"cpu.pprof", "-cum"}, {"cpu.pprof", "-flat"}, {"allocs.pprof", "-flat", "-sample_index=alloc_space"}} {
			args := append([]string{"tool", "pprof", "-top", "-nodecount=22"}, x[1:]...)
			out, err := exec.CommandContext(ctx, "go", append(args, filepath.Join(dir, x[0]))...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("go tool pprof: %w\n%s", err, out)
			}
			fmt.Printf("%s, %s\n%s\n", p.name, strings.Join(x, " "), out)
		}
	}
	return nil
}

// profilePath profiles one path into a directory.
func (b *bench) profilePath(ctx context.Context, p path, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	done := filepath.Join(dir, "done")
	_ = os.Remove(done)
	run, err := b.start(ctx, understudy("understudy", p.models[0], p.config), "UNDERSTUDY_PROFILE="+dir)
	if err != nil {
		return err
	}
	defer run.stop()
	load.Warm(run.to, requestsFor(run.to, p.models), b.sizes.warm, connections)
	if err := run.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	if t := p.drive(b, run.to, p.models); t.Good == 0 {
		return fmt.Errorf("no request went well: %w", t.Err)
	}
	if err := run.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	for range 200 {
		if _, err := os.Stat(done); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no profile came; was %s built with -tags profile?", b.built("understudy"))
}
