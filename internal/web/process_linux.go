package web

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is how many of /proc's a second has: USER_HZ, 100 on every architecture that Go
// knows (proc_pid_stat(5), time(7)).
const ticks = 100

// read reads /proc (proc_pid_stat(5)).
func (p *process) read(pid int) {
	dir := "/proc/" + strconv.Itoa(pid)
	if fds, err := os.ReadDir(dir + "/fd"); err == nil {
		p.open = int64(len(fds)) - 1 // without the one it was read by
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		p.most = int64(min(limit.Cur, 1<<62))
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil {
		p.room = float64(limit.Cur)
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return
	}
	// Behind the name, which may hold anything, stands the third field.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	field := func(n int) int64 {
		if n-3 >= len(fields) {
			return -1
		}
		v, err := strconv.ParseInt(string(fields[n-3]), 10, 64)
		if err != nil {
			return -1
		}
		return v
	}
	if user, system := field(14), field(15); user >= 0 && system >= 0 {
		p.cpu = time.Duration(user+system) * time.Second / ticks
	}
	p.virtual = field(23)
	if pages := field(24); pages >= 0 {
		p.resident = pages * int64(os.Getpagesize())
	}
	if begun, boot := field(22), bootTime(); begun >= 0 && boot > 0 {
		p.start = boot + float64(begun)/ticks
	}
}

// bootTime is when the system began, in seconds since 1970; 0 where it does not say.
func bootTime() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(stat) {
		if text, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			v, _ := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
			return v
		}
	}
	return 0
}
