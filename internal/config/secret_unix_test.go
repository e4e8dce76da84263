//go:build unix

package config

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe that nobody writes to is no key, and nobody waits for it.
func TestAKeyFileThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := readSecretFile(path); !errors.Is(err, ErrMissing) || key != "" {
		t.Errorf("%q, %v", key, err)
	}
}
