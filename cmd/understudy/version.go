package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// The linker sets these in releases: the version, the commit it was built from, and
// that commit's time (RFC 3339).
var release, commit, date string

// versionCommand prints the version.
type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints version, Go version and system on one line, or all that is known.
func (c *versionCommand) Run(std streams) error {
	b := thisBuild()
	if c.JSON {
		return printJSON(std.out, b)
	}
	_, err := fmt.Fprintf(std.out, "understudy %s %s %s/%s\n", b.Version, b.Go, b.OS, b.Arch)
	return err
}

// build is what is known of a binary. What nobody has said is empty.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date"` // of the commit, RFC 3339
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := describeBuild(info)
	b.OS, b.Arch = runtime.GOOS, runtime.GOARCH
	return b
}

// describeBuild puts together what the linker was told and what the toolchain noted.
func describeBuild(info *debug.BuildInfo) build {
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	b := build{
		Version:  release,
		Commit:   cmp.Or(commit, noted["vcs.revision"]),
		Date:     cmp.Or(date, noted["vcs.time"]),
		Modified: noted["vcs.modified"] == "true" || strings.HasSuffix(release, "-dirty") || strings.HasSuffix(release, "+dirty"),
		Go:       cmp.Or(info.GoVersion, runtime.Version()),
	}
	switch revision := noted["vcs.revision"]; {
	case b.Version != "":
	case len(revision) >= 12:
		b.Version = "devel-" + revision[:12]
		if b.Modified {
			b.Version += "+"
		}
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		b.Version = info.Main.Version // go install path@version
	default:
		b.Version = "devel"
	}
	return b
}

// version is the release's, else the commit the binary was built from.
func version() string { return thisBuild().Version }
