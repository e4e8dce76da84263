package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatABuildIs(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name                  string
		release, commit, date string
		info                  debug.BuildInfo
		want                  build
	}{
		{name: "nobody said anything", info: debug.BuildInfo{GoVersion: "go1"}, want: build{Version: "devel", Go: "go1"}},
		{name: "built in a working copy", info: debug.BuildInfo{GoVersion: "go1", Settings: vcs}, want: build{Version: "devel-0123456789ab+", Commit: "0123456789abcdef", Date: "2026-01-02T03:04:05Z", Modified: true, Go: "go1"}},
		{name: "installed as a module", info: debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Version: "v1.2.3"}}, want: build{Version: "v1.2.3", Go: "go1"}},
		{name: "a release", release: "v1.0.0", commit: "fedcba", date: "2026-02-03T04:05:06Z", info: debug.BuildInfo{GoVersion: "go1"}, want: build{Version: "v1.0.0", Commit: "fedcba", Date: "2026-02-03T04:05:06Z", Go: "go1"}},
		{name: "made by make in a changed copy", release: "v1.0.0-dirty", info: debug.BuildInfo{GoVersion: "go1", Settings: vcs[:2]}, want: build{Version: "v1.0.0-dirty", Commit: "0123456789abcdef", Date: "2026-01-02T03:04:05Z", Modified: true, Go: "go1"}},
		{name: "a release made in a changed copy", release: "1.0.0+dirty", info: debug.BuildInfo{GoVersion: "go1"}, want: build{Version: "1.0.0+dirty", Modified: true, Go: "go1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func(r, m, d string) { release, commit, date = r, m, d }(release, commit, date)
			release, commit, date = c.release, c.commit, c.date
			if diff := cmp.Diff(c.want, describeBuild(&c.info)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is given to the linker are names of variables here: to it a misspelt one is no
// error, and the version would be missing.
func TestTheLinkersNames(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../Makefile", "../../tools/*", "../../tools/*/*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	found := 0
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.IsDir() || info.Size() > 1<<20 {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`-X[ ",]+main\.(\w+)=`).FindAllSubmatch(text, -1) {
			if found++; !slices.Contains([]string{"release", "commit", "date"}, string(m[1])) {
				t.Errorf("%s sets main.%s, which is no variable", path, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("nothing sets the version")
	}
}

// What a program reads has every key, known or not.
func TestTheVersionAsJSON(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"version", "--json"}, streams{strings.NewReader(""), &out, &out}); code != exitOK {
		t.Fatal(code, out.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"arch", "commit", "date", "go", "modified", "os", "version"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	if got["os"] != runtime.GOOS || got["arch"] != runtime.GOARCH || got["go"] != runtime.Version() || got["version"] != version() {
		t.Error(got)
	}
}
