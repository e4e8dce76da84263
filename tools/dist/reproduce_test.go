package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copied is the checkout, with what is not committed, in another directory.
func copied(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "elsewhere")
	for _, name := range strings.Split(strings.TrimRight(command(t, checkout, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(checkout, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil { // other modes than in the checkout
			t.Fatal(err)
		}
	}
	return dir
}

// TestBuiltTwice: the same commit, built in another directory without git, gives the
// same bytes; under `make dist-verify` on all systems and with an empty cache, so
// that everything is compiled anew.
func TestBuiltTwice(t *testing.T) {
	first := made(t)
	src, out := copied(t), t.TempDir()
	again := first.binaries[:1]
	if fromScratch {
		again = first.binaries
		t.Setenv("GOCACHE", t.TempDir())
	}
	for _, b := range again {
		second, err := build(t.Context(), src, out, b.Target, sample)
		if err != nil {
			t.Fatal(err)
		}
		one, err := os.ReadFile(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(second.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s: two builds differ: %s and %s", b.Target, sum(one), sum(two))
		}
	}
}

func sum(data []byte) string { return Artifact{Data: data}.SHA256() }

// TestNoPlaceInside: the program holds no directory of the machine that built it.
// Two builds that share a cache would agree on one.
func TestNoPlaceInside(t *testing.T) {
	here, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	places := []string{here, made(t).dir}
	for _, name := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, strings.TrimSpace(string(out)))
	}
	for _, b := range made(t).binaries {
		data, err := os.ReadFile(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range places {
			// GOROOT may be a name that Go's own library has in a text: what would give
			// the machine away is a file below it.
			if len(place) < 2 || bytes.Contains(data, []byte(place+"/src/")) || place != places[2] && bytes.Contains(data, []byte(place)) {
				t.Errorf("%s holds %q", b.Target, place)
			}
		}
	}
}

// TestPackedTwice: the same programs, packed with another directory for temporary
// files and in another time zone, give the same release.
func TestPackedTwice(t *testing.T) {
	first := made(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	again, err := assemble(sample, first.binaries, first.extras)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(first.list) {
		t.Fatalf("%d files, then %d", len(first.list), len(again))
	}
	for i, a := range first.list {
		if again[i].Name != a.Name || !bytes.Equal(again[i].Data, a.Data) {
			t.Errorf("%s differs from %s", again[i].Name, a.Name)
		}
	}
}
