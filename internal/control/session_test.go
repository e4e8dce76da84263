package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestSessions runs the sessions of testdata, one per directory: a configuration,
// the lines that a person types, what is printed, and the file as it is afterwards.
// They run in a bubble, so that ages and times left are exact.
func TestSessions(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/typed")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no sessions", err)
	}
	for _, typed := range dirs {
		dir := filepath.Dir(typed)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			configs, err := filepath.Glob(filepath.Join(dir, "understudy.*"))
			if err != nil || len(configs) != 1 {
				t.Fatal("a session has one configuration", err)
			}
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, filepath.Base(configs[0]), read(t, configs[0]))
				var said strings.Builder
				for line := range strings.Lines(read(t, typed)) {
					line = strings.TrimSuffix(line, "\n")
					said.WriteString("> " + line + "\n")
					if out := r.run(line); out != "" {
						said.WriteString(out + "\n")
					}
				}
				expect(t, filepath.Join(dir, "printed"), said.String())
				expect(t, filepath.Join(dir, "after"), r.file())
			})
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expect compares with a file of expected output, or writes it with -update.
func expect(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want := read(t, path); got != want {
		t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}
