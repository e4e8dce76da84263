//go:build unix

package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is no file is refused at once: a pipe that nobody writes to, a directory, a
// socket, a device.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", at("link to a pipe")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{at("pipe"), at("link to a pipe"), dir, "/dev/zero"} {
		if f, _, err := Open(path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
			f.Close()
		}
	}
	if _, err := Read(at("socket"), 10); err == nil {
		t.Error("a socket was read")
	}
	if _, err := Read(at("nothing"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	written(t, dir, "file", "0123456789")
	if err := os.Symlink("file", at("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		if text, err := Read(at(name), 10); err != nil || string(text) != "0123456789" {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if _, err := Read(at("file"), 9); err == nil {
		t.Error("a file was read that is too large")
	}
}
