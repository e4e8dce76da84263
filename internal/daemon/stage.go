package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

// A Stage is a proxy for a while: the real handler on a free port of 127.0.0.1, for
// a configuration that stands in no file. It keeps no state, reloads nothing and has
// no admin listener.
type Stage struct {
	handler    *proxy.Handler
	transports *proxy.Transports
	listener   net.Listener
	server     *http.Server
	served     chan error
}

// Raise opens a stage and serves on it until Close.
func Raise(cfg *config.Config) (*Stage, error) {
	snap, err := proxy.Compile(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	s := &Stage{transports: &proxy.Transports{}, listener: l, served: make(chan error, 1)}
	s.handler = proxy.New(snap, health.NewBoard(), stats.NewLedger(stats.DefaultJournal), s.transports, log, rand.Float64)
	s.server = &http.Server{Handler: s.handler, ReadHeaderTimeout: 30 * time.Second, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() { s.served <- s.server.Serve(l) }() // ends with Close
	return s, nil
}

// Addr is the address it listens on, "host:port".
func (s *Stage) Addr() string { return s.listener.Addr().String() }

// settleEvery is how often Latest looks whether requests are still running.
const settleEvery = 2 * time.Millisecond

// Latest waits until no request is running and returns the record of the one that
// ended last; false where none has ended before ctx did.
func (s *Stage) Latest(ctx context.Context) (stats.Sequenced, bool) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for s.handler.Ledger().Totals().InFlight > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return stats.Sequenced{}, false
		}
	}
	latest := s.handler.Ledger().Latest(1, nil)
	if len(latest) == 0 {
		return stats.Sequenced{}, false
	}
	return latest[0], true
}

// Close breaks off what still runs and closes every connection.
func (s *Stage) Close() error {
	err := s.server.Close()
	s.transports.CloseIdle()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
