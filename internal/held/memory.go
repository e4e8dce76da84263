package held

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// leastDefault is the smallest limit that is set by itself.
const leastDefault = 16 << 20

// Default is the limit where the configuration names none: a quarter of the memory
// that the process may use, at least 16 MiB; 0 = nobody knows how much that is.
func Default() int64 {
	m := Memory()
	if m <= 0 {
		return 0
	}
	return max(m/4, leastDefault)
}

// Memory is how much memory the process may use, in bytes: the least of GOMEMLIMIT,
// what its control group allows (version 2 or 1) and what the machine has; 0 where
// nobody knows.
func Memory() int64 {
	m := least(physical(os.ReadFile), groups(os.ReadFile))
	// A negative limit only asks for it.
	if limit := debug.SetMemoryLimit(-1); limit > 0 && limit < math.MaxInt64 {
		m = least(m, limit)
	}
	return m
}

// least is the smaller of two amounts of which 0 is unknown.
func least(a, b int64) int64 {
	switch {
	case a <= 0:
		return b
	case b <= 0:
		return a
	}
	return min(a, b)
}

// readFile is os.ReadFile, or a test's.
type readFile func(name string) ([]byte, error)

// physical is the machine's memory, as Linux tells it.
func physical(read readFile) int64 {
	text, err := read("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// groups is what the process' control groups allow, the tightest one up to the root:
// memory.max of version 2, memory.limit_in_bytes of version 1.
func groups(read readFile) (tightest int64) {
	text, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the path may be the host's; the root is the container's own. It
		// is Linux' with its slashes, also where the program is another system's (Wine).
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if limit, err := read(root + strings.TrimSuffix(group, "/") + "/" + name); err == nil {
				n, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64)
				// Version 1 says "none" by a number that is almost the largest.
				if err == nil && n > 0 && n < math.MaxInt64/2 {
					tightest = least(tightest, n)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return tightest
}
