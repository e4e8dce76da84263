package archive

import (
	"fmt"
	"syscall"
)

// mountTmpfs needs a right that not every process has.
func mountTmpfs(dir string, size int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
