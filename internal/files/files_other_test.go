//go:build !windows

package files

import (
	"os"
	"testing"
)

// private fails where others than the owner may do anything.
func private(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}
