package stats

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// The cells of a histogram are log-linear: 16 equal steps in every octave of
// microseconds, so a value and the middle of its cell differ by at most 1/32
// (3.125 %). Below 16 µs a cell is one microsecond wide; what is longer than
// 2^39 µs (six days) stands in the last cell.
const (
	stepBits = 4
	topBit   = 38
	cells    = (topBit - stepBits + 2) << stepBits
)

// cellOf gives the cell that holds a duration in microseconds.
func cellOf(us int64) uint16 {
	if us < 1<<stepBits {
		return uint16(max(us, 0))
	}
	octave := bits.Len64(uint64(us)) - 1
	if octave > topBit {
		return cells - 1
	}
	shift := octave - stepBits
	return uint16((shift << stepBits) + int(us>>shift))
}

// middle is the duration that stands for all of a cell's.
func middle(cell int) time.Duration {
	if cell < 1<<stepBits {
		return time.Duration(cell) * time.Microsecond
	}
	shift := cell>>stepBits - 1
	low := time.Duration(cell&(1<<stepBits-1)+1<<stepBits) << shift
	return low*time.Microsecond + time.Microsecond<<shift/2
}

// A histogram counts durations. It holds only the cells that occur, in order,
// because a time bucket sees few of them; its size is bounded by their number.
type histogram []count

type count struct {
	cell uint16
	n    uint32
}

// add counts n durations of a cell.
func (h *histogram) add(cell uint16, n uint32) {
	list := *h
	// A plain loop: it is short, and a search function's closure would cost more
	// than the comparisons it saves.
	low, high := 0, len(list)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if list[mid].cell < cell {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(list) && list[low].cell == cell {
		list[low].n = uint32(min(uint64(list[low].n)+uint64(n), math.MaxUint32))
		return
	}
	*h = slices.Insert(list, low, count{cell, n})
}

// A spread is many histograms added up, for percentiles.
type spread [cells]uint64

func (s *spread) add(h histogram) {
	for _, c := range h {
		s[c.cell] += uint64(c.n)
	}
}

// total is how many durations were counted; below 2^32 × cells.
func (s *spread) total() (n int64) {
	for _, c := range s {
		n += int64(c)
	}
	return n
}

// percentiles gives the 50th, 95th and 99th percentile by nearest rank: the
// middle of the cell that holds the value which that share does not exceed.
// ok is false where nothing was counted.
func (s *spread) percentiles() (p50, p95, p99 time.Duration, ok bool) {
	total := uint64(s.total())
	if total == 0 {
		return 0, 0, 0, false
	}
	// The product does not overflow: see total.
	rank := func(percent uint64) uint64 { return (total*percent + 99) / 100 }
	r50, r95, r99 := rank(50), rank(95), rank(99)
	var seen uint64
	for cell, n := range s {
		before := seen
		seen += n
		within := func(r uint64) bool { return before < r && r <= seen }
		if within(r50) {
			p50 = middle(cell)
		}
		if within(r95) {
			p95 = middle(cell)
		}
		if within(r99) {
			p99 = middle(cell)
			break
		}
	}
	return p50, p95, p99, true
}
