package console

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *history {
	t.Helper()
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t *testing.T, h *history, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := h.add(line); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoryGoesBackAndForth(t *testing.T) {
	h := open(t, "")
	add(t, h, "one", "two", "two", "  ", " three ")
	at := func(line string, ok bool) string { return fmt.Sprint(line, " ", ok) }
	for i, step := range []struct{ got, want string }{
		{at(h.earlier("dra")), "three true"},
		{at(h.earlier("three")), "two true"},
		{at(h.earlier("two")), "one true"},
		{at(h.earlier("one")), " false"},
		{at(h.later()), "two true"},
		{at(h.later()), "three true"},
		{at(h.later()), "dra true"}, // what was being typed
		{at(h.later()), " false"},
	} {
		if step.got != step.want {
			t.Errorf("step %d: %q, want %q", i, step.got, step.want)
		}
	}
}

func TestHistorySurvivesWithoutItsSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "console-history")
	h := open(t, path)
	add(t, h, "vm", "cand add a base_url=http://x model=m api_key=sk-proj-abcdefghijklmnop1234", "freeze ls")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "vm\ncand add a base_url=http://x model=m api_key=sk-pro***1234\nfreeze ls\n"; string(text) != want {
		t.Errorf("kept is %q", text)
	}
	if runtime.GOOS != "windows" {
		for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v, want %v", p, info.Mode(), err, want)
			}
		}
	}
	if again := open(t, path); strings.Join(again.lines, "|") != strings.Join(h.lines, "|") || len(again.lines) != 3 {
		t.Errorf("read back: %q", again.lines)
	}
}

// A file that others could read before is closed to them.
func TestHistoryClosesItsFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(t.TempDir(), "console-history")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, path), "new")
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console-history")
	var text strings.Builder
	for i := range 2*maxHistory + 1 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, path)
	if len(h.lines) != maxHistory || h.lines[0] != fmt.Sprint("line ", maxHistory+1) {
		t.Errorf("%d lines from %s", len(h.lines), h.lines[0])
	}
	cut, err := os.ReadFile(path)
	if err != nil || strings.Count(string(cut), "\n") != maxHistory {
		t.Errorf("%d lines are kept, %v", strings.Count(string(cut), "\n"), err)
	}
	add(t, h, "the newest")
	if len(h.lines) != maxHistory || h.lines[maxHistory-1] != "the newest" {
		t.Errorf("%d lines up to %s", len(h.lines), h.lines[len(h.lines)-1])
	}
}

// Whatever somebody wrote into the file, nothing of it gets at the terminal.
func TestHistoryIsCleanedWhenRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console-history")
	if err := os.WriteFile(path, []byte("a\x1b[2Jb\r\n\n\xff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := open(t, path); strings.Join(h.lines, "|") != "a?[2Jb|?" {
		t.Errorf("%q", h.lines)
	}
}

func TestHistoryThatCannotBeKeptIsToldOnceAndWorks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := openHistory(filepath.Join(file, "console-history")) // no directory
	if err == nil {
		err = h.add("one")
	}
	if err == nil {
		t.Fatal("nobody told")
	}
	if err := h.add("two"); err != nil {
		t.Error("told twice")
	}
	if line, ok := h.earlier(""); !ok || line != "two" {
		t.Error("it does not work for now")
	}
}

func TestHistoryFinds(t *testing.T) {
	h := open(t, "")
	add(t, h, "freeze add a 1 60", "vm", "freeze ls")
	if at := h.find("freeze", len(h.lines)); at != 2 {
		t.Error(at)
	}
	if at := h.find("freeze", 2); at != 0 {
		t.Error(at)
	}
	if at := h.find("nothing", 3); at != -1 {
		t.Error(at)
	}
}
