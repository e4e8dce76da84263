//go:build unix

package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/files"
	"understudy/internal/health"
)

// The state directory and its files are their owner's alone, whatever the umask says.
func TestStateIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r.freeze("a", time.Hour, health.Rule)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.WalkDir(r.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			n++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Errorf("%d files, %v", n, err)
	}
	if text, _ := os.ReadFile(r.statePath); strings.Contains(string(text), "secret-key") {
		t.Errorf("the state holds a secret: %s", text)
	}
}

// A state file that is a named pipe is set aside; nobody waits for who writes to it.
func TestAStateFileThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state-1.json")
	for range 2 {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, warning := loadState(path); warning == nil {
			t.Error("no warning")
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
}

// A named pipe in the place of the configuration is told, and hangs nothing: neither what
// reloads, nor the end. The file that comes back is read.
func TestAConfigurationThatIsAPipe(t *testing.T) {
	text := vm(", reload_poll_interval: 0.05", "a http://127.0.0.1:1 m1")
	r := newRig(t, text).serve()
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(r.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context()); !errors.Is(err, files.ErrNotRegular) {
		t.Fatal(err)
	}
	eventually(t, "the poll tells it", func() bool { return strings.Contains(r.Status().Error, "no regular file") })
	r.write(strings.Replace(text, "vm:", "other:", 1))
	eventually(t, "the file is read", func() bool { return r.Status().Error == "" && r.Handler().Snapshot().Routes.Names()[0] == "other" })
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(r.path, 0o600); err != nil {
		t.Fatal(err)
	}
	r.stop()
}
