package stats

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCellMiddleIsWithinTheStatedError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(0, 1<<39-1).Draw(t, "us")
		got := middle(int(cellOf(us))).Seconds() * 1e6
		// A value that was cut to whole microseconds is up to one more of them.
		if off := math.Abs(got - float64(us)); off > float64(us)/32+1e-6 {
			t.Fatalf("%d µs stands as %g µs, off by %.2f %%", us, got, 100*off/float64(us))
		}
	})
}

func TestCellsAreInOrderAndWithinBounds(t *testing.T) {
	last := uint16(0)
	for us := int64(0); us < math.MaxInt64/2; us += us/40 + 1 {
		cell := cellOf(us)
		if cell < last || cell >= cells {
			t.Fatalf("cell of %d µs is %d after %d", us, cell, last)
		}
		last = cell
	}
	for us, want := range map[int64]uint16{-1: 0, math.MinInt64: 0, 0: 0, 15: 15, 16: 16, 31: 31, 32: 32, 1<<39 - 1: cells - 1, 1 << 39: cells - 1, math.MaxInt64: cells - 1} {
		wantEqual(t, "cell", cellOf(us), want)
	}
}

func TestPercentilesAreNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 600_000_000), 1, 300).Draw(t, "µs")
		var h histogram
		for _, us := range values {
			h.add(cellOf(us), 1)
		}
		if !slices.IsSortedFunc(h, func(a, b count) int { return int(a.cell) - int(b.cell) }) {
			t.Fatal("cells out of order")
		}
		var s spread
		s.add(h)
		p50, p95, p99, ok := s.percentiles()
		if !ok {
			t.Fatal("nothing counted")
		}
		slices.Sort(values)
		for percent, got := range map[int]time.Duration{50: p50, 95: p95, 99: p99} {
			rank := int(math.Ceil(float64(len(values)) * float64(percent) / 100))
			want := time.Duration(values[rank-1]) * time.Microsecond
			if off := (got - want).Abs(); off > want/32+time.Nanosecond {
				t.Fatalf("p%d = %v, want %v", percent, got, want)
			}
		}
	})
}

func TestPercentilesOfNothingAreUnknown(t *testing.T) {
	var s spread
	if _, _, _, ok := s.percentiles(); ok {
		t.Error("percentiles of nothing")
	}
}

func TestHistogramCellStopsAtItsLargestCount(t *testing.T) {
	h := histogram{{cell: 7, n: math.MaxUint32 - 1}}
	h.add(7, 5)
	wantEqual(t, "count", h[0].n, uint32(math.MaxUint32))
}
