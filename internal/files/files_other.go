//go:build !windows

package files

import (
	"os"
	"syscall"
)

// atOnce has a named pipe open although nobody writes to it.
const atOnce = syscall.O_NONBLOCK

// Replace renames a file to a name that may be taken. Whoever has the former file
// open goes on reading it.
func Replace(from, to string) error { return os.Rename(from, to) }

// MakePrivate makes a directory that only its owner can enter, and those above it
// that are missing. One that is there already stays as it is.
func MakePrivate(dir string) error { return os.MkdirAll(dir, 0o700) }

// ClosePrivate keeps a file to its owner, whatever could be done with it before.
func ClosePrivate(path string) error { return os.Chmod(path, 0o600) }
