package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/internal/archive"
	"understudy/internal/daemon"
	"understudy/internal/web"
)

// With a disk that is full requests are served as fast as with one that is not, and
// what could not be noted is counted.
func TestAFullDiskHoldsUpNobody(t *testing.T) {
	first, second := actors(t)
	begin := func(state string) *daemon.Daemon {
		path := filepath.Join(t.TempDir(), "understudy.yaml")
		text := cast(fmt.Sprintf("server: {port: 0, admin: 127.0.0.1:0, state_dir: %q, auto_hedge_threshold: 0}\nrequest_log: {bodies: all}", state), first, second)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		d, err := daemon.Open(daemon.Options{ConfigPath: path, Log: log, AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control("test"), log) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(ctx, ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return d
	}
	// measure gives the 99th percentile of so many requests.
	measure := func(d *daemon.Daemon, requests int) time.Duration {
		c := &crowd{t: t, proxy: d.Addr()}
		var mu sync.Mutex
		var took []time.Duration
		var wg sync.WaitGroup
		const clients = 4
		for w := range clients {
			wg.Go(func() {
				one := client{crowd: c}
				for n := range requests / clients {
					began := time.Now()
					one.ask(t.Context(), []plot{well, saved, deserted}[(n+w)%3])
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
				if one.conn != nil {
					one.conn.Close()
				}
			})
		}
		wg.Wait()
		if n := c.strange.Load(); n > 0 {
			t.Errorf("%d answers were not what the plot foresees", n)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}

	small := t.TempDir()
	if smallDisk(t, small) {
		f, err := os.Create(filepath.Join(small, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		for size := 1 << 16; size > 0; {
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
		f.Close()
	} else if err := os.WriteFile(filepath.Join(small, "state"), nil, 0o600); err != nil {
		t.Fatal(err) // nothing can be made in what is no directory
	}
	full, roomy := begin(filepath.Join(small, "state")), begin(t.TempDir())
	// In turn, so that whatever else the machine does meets both; the best of each
	// is what the disk has to do with.
	rounds, requests := 6, 1500
	if raceDetector { // which takes its time
		rounds, requests = 3, 1000
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		for i, d := range []*daemon.Daemon{roomy, full} {
			best[i] = min(best[i], measure(d, requests))
		}
	}
	t.Logf("99 of 100 requests took at most %v with room on the disk, and %v without", best[0], best[1])
	if best[1] > 2*best[0]+5*time.Millisecond {
		t.Errorf("with a full disk 99 of 100 requests took %v, with room on it %v", best[1], best[0])
	}
	if v := state(t, "http://"+full.AdminAddr()); v.Archive.State != string(archive.Waiting) || v.Archive.Problem == "" || v.Archive.Written != 0 || (v.Archive.Dropped > 0) != (rounds*requests > 2*4096) || v.Totals.Requests != int64(rounds*requests) {
		t.Errorf("%+v %+v", v.Archive, v.Totals)
	}
	if v := state(t, "http://"+roomy.AdminAddr()); v.Archive.Problem != "" || v.Totals.Requests != int64(rounds*requests) {
		t.Errorf("%+v %+v", v.Archive, v.Totals)
	}
}
