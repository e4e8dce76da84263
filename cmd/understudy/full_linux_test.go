package main

import (
	"syscall"
	"testing"
)

// smallDisk puts a disk of one megabyte at a directory, where this process may.
func smallDisk(t *testing.T, dir string) bool {
	t.Helper()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") != nil {
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}
