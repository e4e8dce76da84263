// Package proc reads from Linux's /proc what a process and its children used: CPU
// time, memory, and the machine's CPU time besides. It measures processes from
// outside, so that what is measured carries nothing for it.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// maxTree bounds how many descendants of a process are looked at.
const maxTree = 200

// Tree returns pid and all its descendants that live: nginx does its work in workers.
func Tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all) && len(all) < maxTree; i++ {
		dir := fmt.Sprintf("/proc/%d/task", all[i])
		tasks, _ := os.ReadDir(dir)
		for _, t := range tasks {
			children, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
			for _, f := range bytes.Fields(children) {
				if c, err := strconv.Atoi(string(f)); err == nil {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// CPU returns the user and system time that pid and its descendants have used. The
// kernel scales both to the scheduler's exact run time, so that at most 10 ms per
// process are lost. A process that has gone counts as 0.
func CPU(pid int) time.Duration {
	var sum time.Duration
	for _, p := range Tree(pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err != nil {
			continue
		}
		sum += parseStat(stat)
	}
	return sum
}

// parseStat returns utime and stime of a line of /proc/PID/stat (proc_pid_stat(5)).
// The name of the program stands in parentheses and may hold anything.
func parseStat(line []byte) time.Duration {
	f := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(f[11]), 10, 64)
	system, _ := strconv.ParseInt(string(f[12]), 10, 64)
	return time.Duration(user+system) * tick
}

// Own returns the CPU time of this process, without its children.
func Own() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Busy returns the time that all cores together were at work since the machine
// started; idle time and what the hypervisor took are left out.
func Busy() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	var sum int64
	for i, f := range strings.Fields(line)[1:] {
		switch i {
		case 0, 1, 2, 5, 6: // user, nice, system, irq, softirq
			n, _ := strconv.ParseInt(f, 10, 64)
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// Memory is what a process and its descendants hold in RAM, in bytes.
type Memory struct {
	Now  int64 // resident; pages that several of them share count once
	Anon int64 // of that, what no file stands behind: heap and stacks; shared pages counted in each
	Peak int64 // the most since the start or the last ResetPeak, shared pages counted in each
}

// ReadMemory returns the memory of pid and its descendants.
func ReadMemory(pid int) Memory {
	var m Memory
	tree := Tree(pid)
	for _, p := range tree {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		if err != nil {
			continue
		}
		now := kilobytes(status, "VmRSS:")
		if len(tree) > 1 {
			if rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p)); err == nil {
				now = kilobytes(rollup, "Pss:")
			}
		}
		m.Now += now
		m.Anon += kilobytes(status, "RssAnon:")
		m.Peak += kilobytes(status, "VmHWM:")
	}
	return m
}

// ResetPeak makes Peak start anew from what pid and its descendants hold now.
func ResetPeak(pid int) error {
	for _, p := range Tree(pid) {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte("5"), 0); err != nil {
			return err
		}
	}
	return nil
}

// kilobytes finds a line such as "VmRSS:   1234 kB" and returns it in bytes.
func kilobytes(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == name {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return n << 10
		}
	}
	return 0
}

// Descriptors returns how many files pid has open, and how many it may have (its soft limit).
func Descriptors(pid int) (open, limit int) {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	for line := range bytes.Lines(limits) {
		if rest, ok := bytes.CutPrefix(line, []byte("Max open files")); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				limit, _ = strconv.Atoi(string(f[0]))
			}
		}
	}
	return len(files), limit
}
