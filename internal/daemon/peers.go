package daemon

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"time"

	"understudy/internal/config"
	"understudy/internal/control"
	"understudy/internal/files"
	"understudy/internal/health"
	"understudy/internal/redisstore"
)

// sharing is the store that the file names, nil where it names none, and what was
// wrong with it when the daemon was opened: then this instance stays by itself.
type sharing struct {
	config  *config.Store
	name    string
	store   *redisstore.Store
	peers   *health.Peers
	problem error
}

// share has the boards tell the other instances what they know. A store that cannot
// be used is no reason not to start.
func (d *Daemon) share(cfg *config.Store) {
	if cfg == nil {
		return
	}
	d.sharing = &sharing{config: cfg, name: instanceName()}
	s := d.sharing
	if s.store, s.problem = openStore(cfg, s.name); s.problem != nil {
		d.log.Error("the store cannot be used: this instance stays by itself until it is started again", slog.String("problem", d.safe(s.problem)))
		return
	}
	heard := func(f health.Freeze) {
		now := time.Now()
		d.handler.Heard(f, now)
		quote := d.handler.Snapshot().Redact.Quote // others may write there too
		d.log.Info("frozen by another instance", slog.String("key", quote(string(f.Key), 100)), slog.String("from", quote(f.From, 100)), slog.String("by", f.By.String()),
			slog.Duration("left", f.Until.Sub(now).Round(time.Millisecond)), slog.String("reason", quote(f.Reason, 300)))
	}
	changed := func(st health.Status) {
		if st.Up {
			d.log.Info("sharing with other instances", slog.String("instance", s.name), slog.Int("others", len(st.Names)-1))
			return
		}
		d.log.Warn("the store is away: this instance goes by what it knows, and by its share of limits", slog.String("problem", d.safe(st.Problem)))
	}
	s.peers = health.Join(s.store, s.name, heard, changed, d.board, d.handler.Callers())
}

// status gives what people see of it; nil without a store.
func (s *sharing) status() func() control.StoreStatus {
	if s == nil {
		return nil
	}
	return func() control.StoreStatus {
		out := control.StoreStatus{State: control.StoreAway, Instance: s.name, Instances: []string{s.name}}
		if s.peers == nil {
			out.Problem = s.problem.Error()
			return out
		}
		st := s.peers.Status()
		if st.Up {
			out.State = control.StoreShared
		} else if st.Problem != nil {
			out.Problem = st.Problem.Error()
		}
		since := st.Since.UTC()
		out.Since, out.Instances, out.Waiting, out.Dropped, out.Alone = &since, st.Names, int64(st.Waiting), st.Dropped, st.Alone
		return out
	}
}

// by says whether it is shared as a configuration says.
func (s *sharing) by(cfg *config.Store) bool {
	if s == nil || cfg == nil {
		return s == nil && cfg == nil
	}
	same := func(a, b config.Credential) bool {
		x, _ := a.Resolve() // what cannot be read is none
		y, _ := b.Resolve()
		return a.Source() == b.Source() && x.Equal(y)
	}
	return same(s.config.URL, cfg.URL) && same(s.config.Password, cfg.Password) && s.config.CAFile == cfg.CAFile && s.config.Prefix == cfg.Prefix
}

// safe is an error as people may see it.
func (d *Daemon) safe(err error) string {
	if err == nil {
		return ""
	}
	return d.handler.Snapshot().Redact.Quote(err.Error(), 300)
}

// run shares until ctx is done.
func (s *sharing) run(ctx context.Context) {
	if s == nil || s.peers == nil {
		return
	}
	s.peers.Run(ctx)
	_ = s.store.Close() // nothing is lost: everything has been told, or cannot be
}

// openStore makes the store that a configuration names.
func openStore(cfg *config.Store, name string) (*redisstore.Store, error) {
	where, err := cfg.URL.Resolve()
	if err != nil {
		return nil, fmt.Errorf("store.url: %w", err)
	}
	password, err := cfg.Password.Resolve()
	if err != nil {
		return nil, fmt.Errorf("the store's password: %w", err)
	}
	o := redisstore.Options{URL: where.Reveal(), Password: password.Reveal(), Prefix: cfg.Prefix, Name: name}
	if cfg.CAFile != "" {
		pem, err := files.Read(cfg.CAFile, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("store.ca_file: %w", err)
		}
		if o.RootCAs = x509.NewCertPool(); !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store.ca_file: %s holds no certificate", cfg.CAFile)
		}
	}
	return redisstore.New(o)
}

// instanceName is what the others know this process by: the machine's name, for
// people, and something that no other process has.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "understudy"
	}
	if len(host) > 48 {
		host = host[:48]
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return host + "-" + hex.EncodeToString(random[:])
}
