//go:build unix

package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/health"
	"understudy/internal/redisstore/redistest"
)

// most is what a limit may cost a request, whatever becomes of Redis.
const most = 5 * time.Millisecond

// TestNoLimitWaitsForRedis takes a real Redis away in every way while limits are asked
// for without a pause. Nobody is refused for it, and nobody waits longer than most;
// what the machine itself was late by, measured beside it, does not count.
func TestNoLimitWaitsForRedis(t *testing.T) {
	server := redistest.Start(t)
	link := redistest.NewLink(t, server.Addr())
	s, err := New(Options{URL: "redis://" + link.Addr(), Prefix: "p:", Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	board := health.NewBoard()
	states := make(chan health.Status, 100)
	peers := health.Join(s, "one", nil, func(st health.Status) { states <- st }, board)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { peers.Run(ctx) })
	defer func() {
		cancel()
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	until := func(up bool) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case st := <-states:
				if st.Up == up {
					return
				}
			case <-deadline:
				t.Fatalf("up: %v is never told: %+v", up, peers.Status())
			}
		}
	}
	until(true)

	var stop atomic.Bool
	var asked, slow, late atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for !stop.Load() {
				began := time.Now()
				l, refusal, ok := board.Enter("u:00ff", health.Limits{Parallel: 100, RPM: 10_000_000}, began, false)
				took := time.Since(began)
				asked.Add(1)
				if !ok {
					t.Errorf("refused: %+v", refusal)
					return
				}
				if took > most {
					slow.Add(1)
				}
				l.Settle(health.OK, time.Now(), health.Strike{})
				// The same wait without Redis: what is over is the machine's.
				began = time.Now()
				<-time.After(health.Patience)
				if time.Since(began) > most {
					late.Add(1)
				}
			}
		})
	}
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"killed", server.Kill, server.Restart},
		{"paused", server.Pause, server.Resume},
		{"cut off", link.Cut, link.Mend},
	} {
		before := asked.Load()
		outage.begin()
		until(false)
		outage.end()
		until(true)
		t.Logf("%s: %d asked", outage.name, asked.Load()-before)
	}
	server.Flush()
	stop.Store(true)
	load.Wait()
	t.Logf("%d asked, %d of them waited more than %v, as did %d of as many without Redis; %d were decided alone",
		asked.Load(), slow.Load(), most, late.Load(), peers.Status().Alone)
	if n := slow.Load(); n > 2*late.Load()+asked.Load()/200 {
		t.Errorf("%d of %d waited more than %v, %d without Redis", n, asked.Load(), most, late.Load())
	}
}

func BenchmarkLimitWithRedis(b *testing.B) {
	server := redistest.Start(b)
	s, err := New(Options{URL: "redis://" + server.Addr(), Prefix: "p:", Name: "one"})
	if err != nil {
		b.Fatal(err)
	}
	board := health.NewBoard()
	up := make(chan struct{}, 100)
	peers := health.Join(s, "one", nil, func(st health.Status) {
		if st.Up {
			up <- struct{}{}
		}
	}, board)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { peers.Run(ctx) })
	<-up
	b.ReportAllocs()
	for b.Loop() {
		l, _, ok := board.Enter("u:00ff", health.Limits{Parallel: 100}, time.Now(), false)
		if !ok {
			b.Fatal("refused")
		}
		l.Settle(health.OK, time.Now(), health.Strike{})
	}
	b.ReportMetric(float64(peers.Status().Alone), "alone")
	cancel()
	wg.Wait()
}
