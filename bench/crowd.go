package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"understudy/bench/load"
	"understudy/bench/proc"
)

// deltasPerSecond is what all streams of a crowd show together: streams are slow when
// there are many, so that what is measured is how many there are.
const deltasPerSecond = 5000

// crowdTime is how long a crowd is listened to.
const crowdTime = 10 * time.Second

// spare are descriptors that a process needs for other things than streams.
const spare = 100

// A gathering is what a crowd came to.
type gathering struct {
	Streams     int     `json:"streams"`
	Good        int     `json:"good"`
	Lost        int     `json:"lost"` // streams that did not end well
	Deltas      int     `json:"deltas"`
	Missing     int     `json:"missing_deltas"`
	P50         float64 `json:"delay_p50_ms"`
	P99         float64 `json:"delay_p99_ms"`
	Worst       float64 `json:"delay_worst_ms"`
	KiB         float64 `json:"kib_per_stream"`
	MiB         float64 `json:"resident_mib"`
	CPU         float64 `json:"cpu_us_per_delta"`
	Opened      float64 `json:"opened_seconds"`
	Descriptors int     `json:"descriptors"`
	Limit       int     `json:"descriptor_limit"`
	Others      float64 `json:"other_cores"`
	Why         string  `json:"why,omitempty"`
}

// gather holds n streams open through a process, listens to them for a span and
// follows them to their ends. CPU time and delays are those since all are open.
func (b *bench) gather(c contender, p *process, n int, span time.Duration) gathering {
	load.Warm(p.to, [][]byte{p.to.Request(load.Body(c.model, false))}, 50, 4)
	time.Sleep(b.sizes.settle)
	idle := proc.ReadMemory(p.pid()).Now
	gap := time.Second * time.Duration(n) / deltasPerSecond
	opening := time.Duration(n) * 2 * time.Millisecond // so that the first is still there when the last has come
	pattern := load.Pattern{Deltas: 2 + int((span+opening)/gap), Gap: gap}
	began := time.Now()
	crowd := load.Gather(p.to, load.Body(c.model, true), pattern, n)
	g := gathering{Streams: n, Opened: time.Since(began).Seconds()}
	m, before := b.meter(p), crowd.Deltas()
	time.Sleep(span / 2)
	held := proc.ReadMemory(p.pid()).Now
	time.Sleep(span / 2)
	r, shown := m.Stop(), crowd.Deltas()-before
	g.Descriptors, g.Limit = proc.Descriptors(p.pid())
	g.KiB, g.MiB = float64(held-idle)/float64(n)/(1<<10), float64(held)/(1<<20)
	g.CPU, g.Others = each(r.CPU, shown, time.Microsecond), r.Others
	s := crowd.Wait()
	g.Good, g.Lost, g.Deltas, g.Missing = s.Good, s.Bad, s.Deltas, s.Missing
	ms := func(q float64) float64 { return float64(load.Quantile(s.Delays, q)) / float64(time.Millisecond) }
	g.P50, g.P99, g.Worst = ms(.5), ms(.99), ms(1)
	if s.Err != nil {
		g.Why = s.Err.Error()
	}
	return g
}

// crowd opens -streams slow streams at once, or as many as the limit of descriptors
// allows with the two that understudy counts for each client: over HTTP/1.1 upstreams,
// and over HTTP/2 ones, where many share a connection. Without a proxy between, the same
// crowd shows what the machine makes of it.
func (b *bench) crowd(ctx context.Context) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	plain := min(b.streams, (int(limit.Max)-spare)/2)
	fmt.Print(about(b))
	if plain < b.streams {
		fmt.Printf("a process may have %d descriptors here, and understudy takes two for each client: that is %d streams\n\n", limit.Max, plain)
	}
	var all []gathering
	lines := [][]string{{"to the upstream", "streams", "ended well", "lost", "deltas", "missing", "p50", "p99", "worst", "per stream", "resident", "CPU/delta", "descriptors", "others"},
		{"", "", "", "", "", "", "ms", "ms", "ms", "KiB", "MiB", "µs", "of " + fmt.Sprint(limit.Max), "cores"}}
	var failed error
	for _, kind := range []struct {
		name    string
		streams int
		start   func(context.Context) (contender, *process, func(), error)
	}{{"none between", plain, b.noProxy}, {"HTTP/1.1", plain, b.plainCrowd}, {"HTTP/2, TLS", plain, b.secureCrowd}} {
		c, p, stop, err := kind.start(ctx)
		if err != nil {
			return err
		}
		g := b.gather(c, p, kind.streams, crowdTime)
		stop()
		all = append(all, g)
		lines = append(lines, []string{kind.name, fmt.Sprint(g.Streams), fmt.Sprint(g.Good), fmt.Sprint(g.Lost), fmt.Sprint(g.Deltas), fmt.Sprint(g.Missing),
			fmt.Sprintf("%.1f", g.P50), fmt.Sprintf("%.1f", g.P99), fmt.Sprintf("%.1f", g.Worst), fmt.Sprintf("%.1f", g.KiB), fmt.Sprintf("%.0f", g.MiB),
			fmt.Sprintf("%.1f", g.CPU), fmt.Sprint(g.Descriptors), fmt.Sprintf("%.2f", g.Others)})
		if g.Lost > 0 {
			failed = errors.Join(failed, fmt.Errorf("%s: %d streams did not end well, the last: %s", kind.name, g.Lost, g.Why))
		}
	}
	align(os.Stdout, lines)
	return errors.Join(b.save(all), failed)
}

// noProxy is the mock itself: what the machine and the generator make of a crowd.
func (b *bench) noProxy(context.Context) (contender, *process, func(), error) {
	return contender{name: "none", model: alias}, b.mock, func() {}, nil
}

// plainCrowd runs understudy over the common mock.
func (b *bench) plainCrowd(ctx context.Context) (contender, *process, func(), error) {
	c := understudy("understudy", alias, chainConfig)
	p, err := b.start(ctx, c)
	if err != nil {
		return c, nil, nil, err
	}
	return c, p, p.stop, nil
}

// secureCrowd runs understudy over a mock that speaks HTTP/2 over TLS, as the vendors do:
// many streams share a connection there.
func (b *bench) secureCrowd(ctx context.Context) (contender, *process, func(), error) {
	mock, certificate, err := b.secureMock(ctx)
	if err != nil {
		return contender{}, nil, nil, err
	}
	c := understudy("understudy", alias, func(string) string { return chainConfig("https://" + mock.to.Addr) })
	p, err := b.start(ctx, c, "SSL_CERT_FILE="+certificate)
	if err != nil {
		mock.stop()
		return c, nil, nil, err
	}
	plain := b.mock
	b.mock = mock // the meter is to know it
	return c, p, func() { p.stop(); mock.stop(); b.mock = plain }, nil
}

// secureMock runs an upstream that speaks HTTP/2 over TLS, and returns the file of its
// certificate too.
func (b *bench) secureMock(ctx context.Context) (mock *process, certificate string, err error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	certificate = filepath.Join(b.dir, "mock.pem")
	mock, err = b.spawn("mock-tls", nil, b.built("mock"), "-listen", loopback(port), "-tls", certificate)
	if err != nil {
		return nil, "", err
	}
	mock.to = load.Target{Addr: loopback(port), Path: chatPath}
	for range 200 { // the certificate must be there before understudy reads it
		if _, err = os.Stat(certificate); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return mock, certificate, nil
}
