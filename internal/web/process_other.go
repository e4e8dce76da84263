//go:build !linux && !windows

package web

import (
	"time"

	"golang.org/x/sys/unix"
)

// begun is near enough to when the process began.
var begun = time.Now()

// read asks the system.
func (p *process) read(int) {
	p.start = float64(begun.UnixNano()) / 1e9
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		p.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		p.most = int64(min(limit.Cur, 1<<62))
	}
}
