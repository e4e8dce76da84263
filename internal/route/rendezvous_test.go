package route

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Digests where rounding is delicate, with h as Python 3 computes it:
// ((u+1)/(2**64+1)).hex().
var units = []struct {
	u uint64
	h float64
}{
	{0x0, 0x1.0000000000000p-64},
	{0x1, 0x1.0000000000000p-63},
	{0x2, 0x1.8000000000000p-63},
	{0x3, 0x1.0000000000000p-62},
	{0xfffffffffffff, 0x1.0000000000000p-12},
	{0x10000000000000, 0x1.0000000000001p-12},
	{0x1fffffffffffff, 0x1.0000000000000p-11},
	{0x20000000000000, 0x1.0000000000000p-11},
	{0x20000000000001, 0x1.0000000000001p-11},
	{0x20000000000002, 0x1.0000000000001p-11},
	{0x3fffffffffffff, 0x1.0000000000000p-10},
	{0x40000000000000, 0x1.0000000000000p-10},
	{0x40000000000001, 0x1.0000000000000p-10},
	{0x40000000000002, 0x1.0000000000001p-10},
	{0x40000000000003, 0x1.0000000000001p-10},
	{0x80000000000003, 0x1.0000000000000p-9},
	{0x80000000000004, 0x1.0000000000001p-9},
	{0x7fffffffffffffff, 0x1.0000000000000p-1},
	{0x8000000000000000, 0x1.0000000000000p-1},
	{0x80000000000001ff, 0x1.0000000000000p-1},
	{0x8000000000000200, 0x1.0000000000000p-1},
	{0x80000000000003ff, 0x1.0000000000000p-1},
	{0x8000000000000400, 0x1.0000000000001p-1},
	{0x8000000000000401, 0x1.0000000000001p-1},
	{0x8000000000000bff, 0x1.0000000000001p-1},
	{0x8000000000000c00, 0x1.0000000000002p-1},
	{0xffffffffffffffff, 0x1.0000000000000p+0},
	{0xfffffffffffffffe, 0x1.0000000000000p+0},
	{0xfffffffffffffc00, 0x1.0000000000000p+0},
	{0xfffffffffffffbff, 0x1.fffffffffffffp-1},
	{0xfffffffffffffbfe, 0x1.fffffffffffffp-1},
	{0xfffffffffffff800, 0x1.fffffffffffffp-1},
	{0xfffffffffffff7ff, 0x1.fffffffffffffp-1},
	{0xfffffffffffff400, 0x1.fffffffffffffp-1},
	{0xfffffffffffff3ff, 0x1.ffffffffffffep-1},
	{0x123456789abcdef0, 0x1.23456789abcdfp-4},
	{0xfedcba9876543210, 0x1.fdb97530eca86p-1},
}

func TestUnitRoundsOnce(t *testing.T) {
	for _, tt := range units {
		if got := unit(tt.u); got != tt.h {
			t.Errorf("unit(%#x) = %x, want %x", tt.u, got, tt.h)
		}
	}
}

func TestUnitIsTheNearestFloat(t *testing.T) {
	whole := new(big.Int).Lsh(big.NewInt(1), 64)
	whole.Add(whole, big.NewInt(1))
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "u") >> rapid.IntRange(0, 63).Draw(t, "shift")
		if rapid.Bool().Draw(t, "high") {
			u = ^u
		}
		n := new(big.Int).SetUint64(u)
		n.Add(n, big.NewInt(1))
		want, _ := new(big.Rat).SetFrac(n, whole).Float64()
		if got := unit(u); got != want {
			t.Fatalf("unit(%#x) = %x, want %x", u, got, want)
		}
	})
}

func TestScoreIsBestWhereHRoundsToOne(t *testing.T) {
	if s := weighted(math.MaxUint64, 0.001); !math.IsInf(s, 1) {
		t.Errorf("score = %v, want +Inf", s)
	}
	if s := weighted(math.MaxUint64-1025, 1); math.IsInf(s, 0) || s < 1e15 {
		t.Errorf("score = %v, want the largest finite one", s)
	}
	if s := weighted(0, 1); s <= 0 || s > 1/44.0 {
		t.Errorf("score = %v, want 1/(64 ln 2)", s)
	}
}

// Reference values of the Python pool.
func TestScoreIsThePythonPools(t *testing.T) {
	for key, want := range map[string][3]float64{
		"session-42":     {3.685269086050026, 0.2418187424291605, 0.86180107901987},
		"my-session-123": {42.830471530788785, 0.6633527880059535, 3.0193744546950585},
		"会话-7":           {4.436002385531522, 1.500704635903077, 4.531672625241463},
	} {
		for i, m := range pythonPool {
			got := Score(key, m.id, m.weight)
			if math.Abs(got-want[i])/want[i] > 4e-16 {
				t.Errorf("Score(%q, %s) = %.17g, want %.17g", key, m.id, got, want[i])
			}
		}
	}
}

var pythonPool = []struct {
	id     string
	weight float64
}{{"primary", 2}, {"secondary", 1}, {"tertiary", 1}}

func TestFirstPlacesAreThePythonPools(t *testing.T) {
	first := map[string]int{}
	for i := range 10_000 {
		best, id := math.Inf(-1), ""
		for _, m := range pythonPool {
			if s := Score(fmt.Sprintf("k%d", i), m.id, m.weight); s > best {
				best, id = s, m.id
			}
		}
		first[id]++
	}
	if first["primary"] != 4911 || first["secondary"] != 2536 || first["tertiary"] != 2553 {
		t.Errorf("first places = %v, want 4911, 2536, 2553", first)
	}
}

func BenchmarkScore(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Score("0198c2f4-6d3e-7b52-9b61-0d6b9e3c2a11", "primary", 2)
	}
}
