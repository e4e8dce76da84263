//go:build unix

package daemon

import "syscall"

// descriptors is how many files the process may open, 0 where nobody knows. Go's
// runtime has raised the limit to what the system allows by then.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
