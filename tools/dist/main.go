package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

// run is main without the process.
func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("dist", flag.ContinueOnError)
	src := set.String("src", "../..", "the checkout to build")
	out := set.String("out", "../../dist", "where the release goes")
	list := set.String("targets", "", "systems, such as \"linux/amd64 windows/amd64\"; all without it")
	repository := set.String("repository", "", "address of the repository; the formula and the manifest point there")
	builder := set.String("builder", "", "URI of who builds, for the provenance")
	version := set.String("version", "", "the version; without it git says")
	if err := set.Parse(args); err != nil {
		return err
	}
	chosen, err := parseTargets(*list)
	if err != nil {
		return err
	}
	r, err := describe(ctx, *src)
	if err != nil {
		return err
	}
	if *version != "" {
		if !semver.IsValid("v" + *version) {
			return fmt.Errorf("-version %s: a version is like 1.2.3", *version)
		}
		r.Version = *version
	}
	if r.Repository = strings.TrimSuffix(*repository, "/"); r.Repository == "" {
		r.Repository = noRepository
		fmt.Fprintf(os.Stderr, "dist: no -repository is given: the formula, the manifest and the README's links point to %s\n", noRepository)
	}
	r.Builder = cmp.Or(*builder, r.Repository+"/tools/dist")
	dir, err := os.MkdirTemp("", "understudy-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	artifacts, err := release(ctx, *src, dir, chosen, r)
	if err != nil {
		return err
	}
	if err := write(*out, artifacts); err != nil {
		return err
	}
	fmt.Printf("understudy %s, commit %.12s of %s\n", r.Version, r.Commit, r.Date.Format("2006-01-02 15:04:05 MST"))
	for _, a := range artifacts {
		fmt.Printf("  %-56s %9.1f KiB\n", a.Name, float64(len(a.Data))/1024)
	}
	return nil
}

// release builds into dir and packs. Where no chosen target runs here, one more is
// built to say what the program has to say of itself.
func release(ctx context.Context, src, dir string, chosen []Target, r Release) ([]Artifact, error) {
	var binaries []Binary
	var here *Binary
	for _, t := range chosen {
		b, err := build(ctx, src, dir, t, r)
		if err != nil {
			return nil, err
		}
		binaries = append(binaries, b)
		if t == native() {
			here = &b
		}
	}
	if here == nil {
		b, err := build(ctx, src, dir, native(), r)
		if err != nil {
			return nil, err
		}
		here = &b
	}
	x, err := gather(ctx, src, *here, r)
	if err != nil {
		return nil, err
	}
	return assemble(r, binaries, x)
}
