package held

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func enter(t *testing.T, g *Gate, n int64) *Share {
	t.Helper()
	s, err := g.Enter(t.Context(), n, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func taken(t *testing.T, g *Gate, want int64, waiting int) {
	t.Helper()
	if f := g.Figures(); f.Taken != want || f.Waiting != waiting {
		t.Errorf("%d bytes are taken and %d wait, want %d and %d", f.Taken, f.Waiting, want, waiting)
	}
}

// Who does not fit waits, in order: a small one does not go before a large one that
// came earlier, or the large one would never get in.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Limit(100)
		one, two := enter(t, &g, 60), enter(t, &g, 40)
		var mu sync.Mutex
		var order []int64
		for _, n := range []int64{70, 10, 60} {
			go func() {
				s, err := g.Enter(context.Background(), n, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
				time.AfterFunc(time.Second, s.Close)
			}()
			synctest.Wait()
		}
		taken(t, &g, 100, 3)
		two.Close()
		synctest.Wait()
		taken(t, &g, 60, 3) // 10 would fit, and 70 is before it
		one.Close()
		one.Close()
		synctest.Wait()
		taken(t, &g, 80, 1)
		<-time.After(3 * time.Second)
		taken(t, &g, 0, 0)
		if len(order) != 3 || order[2] != 60 {
			t.Errorf("in the order %v", order)
		}
	})
}

// Waiting ends with patience, with the client, or where it is in vain from the start;
// who leaves makes room for those behind.
func TestNotGettingIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Limit(100)
		one := enter(t, &g, 90)
		start := time.Now()
		if _, err := g.Enter(t.Context(), 101, time.Minute); !errors.Is(err, ErrNever) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := g.Enter(t.Context(), 11, 5*time.Second); !errors.Is(err, ErrFull) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, leave := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { _, err := g.Enter(ctx, 50, time.Minute); left <- err }()
		synctest.Wait()
		behind := make(chan *Share)
		go func() { s, _ := g.Enter(context.Background(), 10, time.Minute); behind <- s }()
		synctest.Wait()
		taken(t, &g, 90, 2)
		gone := errors.New("gone")
		leave(gone)
		if err := <-left; !errors.Is(err, gone) {
			t.Error(err)
		}
		s := <-behind
		taken(t, &g, 100, 0)
		s.Close()
		one.Close()
		taken(t, &g, 0, 0)
		if f := g.Figures(); f.Refused != 3 {
			t.Errorf("%+v", f)
		}
	})
}

// What is in grows without waiting, up to the edge; and nobody comes in above the
// limit, even one who holds nothing.
func TestGrowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Limit(100)
		one, two := enter(t, &g, 10), enter(t, &g, 0)
		if !one.Grow(90) || !two.Grow(25) || two.Grow(1) || one.Grow(1) {
			t.Error("the edge is not at 125")
		}
		if _, err := g.Enter(t.Context(), 0, time.Second); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		one.Give(500) // no more than it has
		taken(t, &g, 25, 0)
		two.Close()
		two.Give(10)
		if !two.Grow(1000) {
			t.Error("who is over is held up")
		}
		taken(t, &g, 0, 0)
		var none *Share
		if !none.Grow(1 << 40) {
			t.Error("nil counts")
		}
		none.Give(1)
		none.Close()
		// Without a limit everything is counted and nothing held up.
		g.Limit(0)
		s := enter(t, &g, 1<<40)
		if !s.Grow(1 << 40) {
			t.Error("held up without a limit")
		}
		g.Limit(100) // and one that comes later throws nobody out
		if s.Grow(1) {
			t.Error("grows over the edge")
		}
		s.Close()
		taken(t, &g, 0, 0)
	})
}

// Whatever comes and goes at once, nothing is lost and nobody hangs.
func TestGateInARace(t *testing.T) {
	var g Gate
	g.Limit(1000)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%7 == 0 {
				cancel()
			}
			defer cancel()
			s, err := g.Enter(ctx, int64(i%400), 20*time.Second)
			if err != nil {
				return
			}
			s.Grow(int64(i % 100))
			s.Give(int64(i % 50))
			s.Close()
		})
	}
	wg.Wait()
	taken(t, &g, 0, 0)
}

// How much memory there is comes from the tightest of what the system says.
func TestMemory(t *testing.T) {
	meminfo := "MemTotal:       16384256 kB\nMemFree:  1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known":       {nil, 0},
		"a machine":           {map[string]string{"/proc/meminfo": meminfo}, 16384256 << 10},
		"version 2":           {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 2, the root": {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"a host's path":       {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/../../x\n", "/sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"version 1":           {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "9:cpu:/x\n5:hugetlb,memory:/docker/1\n", "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "536870912\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 512 << 20},
		"no limit":            {map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": "5:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16384256 << 10},
	} {
		read := func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}
		if got := least(physical(read), groups(read)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// GOMEMLIMIT counts too, and the default is a quarter of what there is.
func TestDefault(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	if m, d := Memory(), Default(); m <= 0 || m > 256<<20 || d != max(m/4, leastDefault) {
		t.Errorf("%d of %d", d, m)
	}
}
