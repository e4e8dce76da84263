package held

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// headroom is by how much the heap may grow between two collections.
	headroom = 64 << 20
	// leastPercent and mostPercent bound that as a part of what lives. Below the one
	// a large heap would be collected more often than Go does by itself; above the other
	// a small one would win nothing more.
	leastPercent, mostPercent = 100, 400
	// notable is the change, as a part of the percentage in force, from which on it is
	// set anew: that stops the world for some microseconds.
	notable = 1.0 / 20
)

// percentOf is the garbage collector's percentage (GOGC) where it marked so many bytes:
// what lives, stacks and globals.
func percentOf(marked uint64) int {
	return int(min(max(100*headroom/max(marked, 1), leastPercent), mostPercent))
}

// KeepHeadroom has the garbage collector let the heap grow by a fixed amount from now
// on, 64 MiB, but by no less than what lives and no more than four times of it: a small
// heap is collected less often than Go does by itself, since collecting it costs more
// than the memory, and a large one does not grow fivefold. GOGC in the environment goes
// before it, and GOMEMLIMIT bounds it as it bounds every percentage.
//
// It is for the process as a whole, and called once. stop ends it and puts back the
// percentage from before.
func KeepHeadroom() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(mostPercent)
	p := &pacer{percent: mostPercent}
	p.arm()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped = true
		debug.SetGCPercent(before)
	}
}

// A pacer sets the percentage after each collection.
type pacer struct {
	mu      sync.Mutex
	percent int // in force
	stopped bool
}

// A sentinel is nobody's: it is dead at the next collection. It has a pointer, since
// small objects without one share their memory with others and die with them.
type sentinel struct{ _ *sentinel }

// arm has collected called after the next collection.
func (p *pacer) arm() { runtime.AddCleanup(new(sentinel), (*pacer).collected, p) }

// collected adjusts the percentage to what the last collection marked.
func (p *pacer) collected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	want := percentOf(marked())
	if change := float64(want-p.percent) / float64(p.percent); change <= -notable || change >= notable {
		debug.SetGCPercent(want)
		p.percent = want
	}
	p.arm()
}

// marked is what the percentage is of: what lived at the last collection, stacks and
// globals, in bytes.
func marked() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}
