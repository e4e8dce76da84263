package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Target is a system that the program is built for.
type Target struct{ OS, Arch string }

// String writes a target as Go does: os/arch.
func (t Target) String() string { return t.OS + "/" + t.Arch }

// targets are the systems of a release.
var targets = []Target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets reads a list such as "linux/amd64 windows/arm64"; "" is all.
func parseTargets(list string) ([]Target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []Target
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		system, arch, _ := strings.Cut(word, "/")
		t := Target{system, arch}
		if !slices.Contains(targets, t) {
			return nil, fmt.Errorf("no target %q: there are %v", word, targets)
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// A Binary is the program built for one target.
type Binary struct {
	Target Target
	Path   string
	// Info is what Go has written into it: the compiler, the settings, and the
	// modules it holds.
	Info *buildinfo.BuildInfo
}

// Name is what the program is called on its system.
func (b Binary) Name() string {
	if b.Target.OS == "windows" {
		return "understudy.exe"
	}
	return "understudy"
}

// isBuildSetting tells variables of the environment that change what Go builds.
func isBuildSetting(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	switch name {
	case "GOFLAGS", "GOEXPERIMENT", "GOOS", "GOARCH", "GOFIPS140", "GOWORK", "GODEBUG", "CGO_ENABLED":
		return true
	}
	for _, arch := range []string{"GOAMD64", "GOARM64"} {
		if name == arch {
			return true
		}
	}
	return false
}

// environment is that of a build: this one's, with everything that decides
// about the result set here.
func environment(t Target) []string {
	env := slices.DeleteFunc(os.Environ(), isBuildSetting)
	return append(env, "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
}

// flags are the arguments of go build. Where the version comes from is the release
// and never the checkout's state as Go sees it (-buildvcs): an export without .git
// gives the same program.
func flags(r Release) []string {
	return []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", strings.Join([]string{"-s", "-w", "-buildid=",
		"-X", "main.release=" + r.Version, "-X", "main.commit=" + r.Commit, "-X", "main.date=" + r.Date.Format(time.RFC3339)}, " ")}
}

// build builds the checkout in src for a target, into the directory out.
func build(ctx context.Context, src, out string, t Target, r Release) (Binary, error) {
	b := Binary{Target: t}
	b.Path = filepath.Join(out, t.OS+"_"+t.Arch, b.Name())
	args := append(append([]string{"build"}, flags(r)...), "-o", b.Path, "./cmd/understudy")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = src, environment(t)
	if said, err := cmd.CombinedOutput(); err != nil {
		return Binary{}, fmt.Errorf("build for %s: %w\n%s", t, err, said)
	}
	var err error
	if b.Info, err = buildinfo.ReadFile(b.Path); err != nil {
		return Binary{}, fmt.Errorf("build for %s: %w", t, err)
	}
	return b, nil
}

// native is the target of this machine, for what the program itself has to tell.
func native() Target { return Target{runtime.GOOS, runtime.GOARCH} }
