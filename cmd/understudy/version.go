package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker in releases.
var release = ""

// versionCommand prints the version.
type versionCommand struct{}

// Run prints version, Go version and system on one line.
func (versionCommand) Run(std streams) error {
	_, err := fmt.Fprintf(std.out, "understudy %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version is the release's, else the commit the binary was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	if len(revision) >= 12 {
		return "devel-" + revision[:12] + dirty
	}
	return "devel"
}
