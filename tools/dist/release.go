package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// A Release is what is the same for everything in it.
type Release struct {
	// Version is a semantic version without "v": the tag's, or one like those Go
	// makes up for commits, which sort before the next tag and by time.
	Version string
	// Commit is the full hash of the commit, and Date its time, in UTC.
	Commit string
	Date   time.Time
	// Repository is where the project lives, https and without a slash at its end.
	Repository string
	// Builder is the URI of who builds, for the provenance.
	Builder string
}

// noRepository is what files point to that need an address when none is given: a
// name that never leads anywhere.
const noRepository = "https://understudy.invalid/understudy"

// Download is where a file of the release can be had.
func (r Release) Download(file string) string {
	return r.Repository + "/releases/download/" + r.Tag() + "/" + file
}

// Tag is the name of the release's tag, or where there is none the commit's.
func (r Release) Tag() string {
	if r.tagged() {
		return "v" + r.Version
	}
	return r.Commit
}

func (r Release) tagged() bool {
	return !module.IsPseudoVersion("v"+r.Version) && semver.Build("v"+r.Version) == ""
}

// describe reads a Release from the git checkout in dir. A checkout with changes
// that are not committed gets a version that ends in "+dirty".
func describe(ctx context.Context, dir string) (Release, error) {
	commit, err := git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return Release{}, err
	}
	seconds, err := git(ctx, dir, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return Release{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Release{}, fmt.Errorf("git: the commit's time %q: %w", seconds, err)
	}
	tags, err := git(ctx, dir, "tag", "--merged", "HEAD", "--list", "v*")
	if err != nil {
		return Release{}, err
	}
	here, err := git(ctx, dir, "tag", "--points-at", "HEAD", "--list", "v*")
	if err != nil {
		return Release{}, err
	}
	changes, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return Release{}, err
	}
	r := Release{Commit: commit, Date: time.Unix(unix, 0).UTC()}
	r.Version = version(strings.Fields(here), strings.Fields(tags), r.Date, commit)
	if changes != "" {
		r.Version += "+dirty"
	}
	return r, nil
}

// version is the highest of the tags at the commit, or else a pseudo-version after
// the highest of those before it. Tags that are no semantic versions say nothing.
func version(here, before []string, at time.Time, commit string) string {
	if v := highest(here); v != "" {
		return strings.TrimPrefix(v, "v")
	}
	older := highest(before)
	major := semver.Major(older)
	if major == "" {
		major = "v0"
	}
	return strings.TrimPrefix(module.PseudoVersion(major, older, at, commit[:12]), "v")
}

func highest(tags []string) string {
	best := ""
	for _, tag := range tags {
		if semver.IsValid(tag) && semver.Canonical(tag) == tag && (best == "" || semver.Compare(tag, best) > 0) {
			best = tag
		}
	}
	return best
}

// git runs git in dir and gives what it prints, without white space around it.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
