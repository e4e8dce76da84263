package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	at, commit := time.Date(2026, 11, 30, 4, 5, 6, 0, time.UTC), "0123456789abcdef0123456789abcdef01234567"
	for name, c := range map[string]struct {
		here, before []string
		want         string
	}{
		"no tag":               {nil, nil, "0.0.0-20261130040506-0123456789ab"},
		"a tag":                {[]string{"v1.2.3"}, []string{"v1.2.3", "v1.2.2"}, "1.2.3"},
		"a later commit":       {nil, []string{"v1.2.2", "v1.2.3", "v1.10.0"}, "1.10.1-0.20261130040506-0123456789ab"},
		"after a candidate":    {nil, []string{"v1.2.3-rc.1"}, "1.2.3-rc.1.0.20261130040506-0123456789ab"},
		"a candidate":          {[]string{"v1.2.3-rc.1"}, nil, "1.2.3-rc.1"},
		"two tags":             {[]string{"v1.2.3-rc.1", "v1.2.3"}, nil, "1.2.3"},
		"tags of other things": {[]string{"vacation", "v1"}, []string{"v2", "vendor"}, "0.0.0-20261130040506-0123456789ab"},
	} {
		if got := version(c.here, c.before, at, commit); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestDescribe: version, commit and time come from git, and a checkout that was
// changed says so.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-30T05:05:06+0100", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "one")
	r, err := describe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := "0.0.0-20261130040506-" + r.Commit[:12]; r.Version != want || r.Date.Format(time.RFC3339) != "2026-11-30T04:05:06Z" || len(r.Commit) != 40 {
		t.Errorf("%+v, want %s", r, want)
	}
	if r.Tag() != r.Commit {
		t.Errorf("its files are at %s", r.Tag())
	}
	run("tag", "v0.1.0")
	if r, err = describe(t.Context(), dir); err != nil || r.Version != "0.1.0" || r.Tag() != "v0.1.0" {
		t.Errorf("%+v %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err = describe(t.Context(), dir); err != nil || r.Version != "0.1.0+dirty" || r.Tag() != r.Commit {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := describe(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "git rev-parse") {
		t.Errorf("no checkout: %v", err)
	}
}

func TestTargets(t *testing.T) {
	if all, err := parseTargets(""); err != nil || len(all) != 6 {
		t.Errorf("%v %v", all, err)
	}
	if two, err := parseTargets("linux/amd64, windows/arm64"); err != nil || len(two) != 2 || two[1] != (Target{"windows", "arm64"}) {
		t.Errorf("%v %v", two, err)
	}
	if _, err := parseTargets("plan9/amd64"); err == nil || !strings.Contains(err.Error(), "plan9/amd64") {
		t.Error(err)
	}
}

// TestNothingOfTheMachineDecides: what a developer has set for Go's builds changes
// nothing here.
func TestNothingOfTheMachineDecides(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=odd")
	t.Setenv("GOAMD64", "v4")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOEXPERIMENT", "jsonv2")
	last := map[string]string{}
	for _, variable := range environment(Target{"linux", "amd64"}) {
		name, value, _ := strings.Cut(variable, "=")
		last[name] = value
	}
	for name, want := range map[string]string{"GOFLAGS": "", "GOAMD64": "v1", "CGO_ENABLED": "0", "GOEXPERIMENT": "", "GOOS": "linux", "GOARCH": "amd64"} {
		if last[name] != want {
			t.Errorf("%s is %q", name, last[name])
		}
	}
}

// TestWriteKeepsForeignFiles: a directory with files of somebody else's is refused,
// and nothing in it goes.
func TestWriteKeepsForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "site"), 0o755); err != nil {
		t.Fatal(err)
	}
	list := []Artifact{{Name: "understudy_1.2.3_linux_amd64.tar.gz", Data: []byte("x")}, {Name: sumsName, Data: []byte("y")}}
	if err := write(dir, list); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, list[1:]); err != nil { // over the former one
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%d files", len(left))
	}
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, list); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("%d files", len(left))
	}
}

// TestNotes: a release tells what the changelog says of it, and of nothing else.
func TestNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CHANGELOG.md")
	if err := os.WriteFile(file, []byte("# Changelog\n\n## Unreleased\n\n- later\n\n## 1.2.3 (2026-11-30)\n\n- now\n- and\n\n## 1.2.30\n\n- before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := command(t, checkout, "sh", "tools/notes.sh", "1.2.3", file); got != "- now\n- and\n" {
		t.Errorf("%q", got)
	}
	if got := command(t, checkout, "sh", "tools/notes.sh", "1.2.30", file); got != "- before\n" {
		t.Errorf("%q", got)
	}
	if out, err := exec.Command("sh", checkout+"/tools/notes.sh", "1.2", file).Output(); err == nil {
		t.Errorf("of a version that is not there: %s", out)
	}
}
