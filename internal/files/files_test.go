package files

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	from, to := written(t, dir, "new", "new"), written(t, dir, "file", "old")
	if err := Replace(from, to); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(to); string(text) != "new" {
		t.Errorf("holds %q", text)
	}
	if err := Replace(from, to); !os.IsNotExist(err) {
		t.Errorf("nothing to rename: %v", err)
	}
}

// TestReplaceUnderAReader: somebody who has the file open, and closes it in a while,
// does not keep it from being replaced.
func TestReplaceUnderAReader(t *testing.T) {
	dir := t.TempDir()
	from, to := written(t, dir, "new", "new"), written(t, dir, "file", "old")
	reader, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Replace(from, to) }()
	text, err := io.ReadAll(reader)
	if err != nil || string(text) != "old" {
		t.Errorf("the reader sees %q, %v", text, err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(to); string(text) != "new" {
		t.Errorf("holds %q", text)
	}
}

func TestMakePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // the second time it is there
		if err := MakePrivate(dir); err != nil {
			t.Fatal(err)
		}
	}
	private(t, dir)
	file := written(t, dir, "file", "x")
	if err := ClosePrivate(file); err != nil {
		t.Fatal(err)
	}
	private(t, file)
	if err := ClosePrivate(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there was closed")
	}
}
