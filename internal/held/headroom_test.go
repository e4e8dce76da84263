package held

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestHeadroomIsFixedBetweenItsBounds(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		marked uint64
		want   int
	}{
		{0, 400},
		{1, 400},
		{3 * mib, 400},
		{16 * mib, 400},
		{20 * mib, 320},
		{32 * mib, 200},
		{42 * mib, 152},
		{64 * mib, 100},
		{65 * mib, 100},
		{1 << 40, 100},
		{1<<64 - 1, 100},
	} {
		if got := percentOf(c.marked); got != c.want {
			t.Errorf("%d bytes: %d %%, want %d", c.marked, got, c.want)
		}
	}
}

// The percentage follows what lives from one collection to the next, down and up again,
// and is what it was after.
func TestHeadroomFollowsWhatLives(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(73)
	defer debug.SetGCPercent(before)
	stop := KeepHeadroom()
	defer stop()
	if got := percentInForce(); got != mostPercent {
		t.Errorf("%d %% at first", got)
	}
	ballast := make([]byte, 48<<20)
	follow(t, func(percent int) bool { return 110 <= percent && percent <= 134 })
	runtime.KeepAlive(ballast)
	ballast = nil
	follow(t, func(percent int) bool { return percent == mostPercent })
	stop()
	if got := percentInForce(); got != 73 {
		t.Errorf("%d %% in the end", got)
	}
}

// GOGC in the environment goes before it.
func TestHeadroomLeavesGOGCAlone(t *testing.T) {
	t.Setenv("GOGC", "73") // only read: it had its effect when the process began
	before := debug.SetGCPercent(73)
	defer debug.SetGCPercent(before)
	defer KeepHeadroom()()
	if got := percentInForce(); got != 73 {
		t.Errorf("%d %%", got)
	}
}

// follow collects until the percentage in force is as wanted.
func follow(t *testing.T, wanted func(percent int) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !wanted(percentInForce()); runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("it stays at %d %%", percentInForce())
		}
	}
}

// percentInForce is the garbage collector's percentage, which nobody may ask for but
// by this.
func percentInForce() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}
