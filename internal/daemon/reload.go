package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
)

// An ask is something that the goroutine which owns the configuration does, one
// after another.
type ask struct {
	do    func() error
	reply chan error
}

// own is the one goroutine that changes what is served.
func (d *Daemon) own(ctx context.Context) {
	for {
		var tick <-chan time.Time
		var timer *time.Timer
		if poll := d.handler.Snapshot().Config.Server.ReloadPoll; poll > 0 {
			timer = time.NewTimer(poll)
			tick = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-d.handed:
			return // the heir reads the file from here on
		case a := <-d.asks:
			a.reply <- a.do()
		case <-tick:
			_ = d.reload(false) // told to the log and the status
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// request has the owner do something, and waits for it.
func (d *Daemon) request(ctx context.Context, do func() error) error {
	a := ask{do, make(chan error, 1)}
	select {
	case d.asks <- a:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-a.reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reload reads the file again, whether or not it has changed. An error leaves the
// former configuration in place.
func (d *Daemon) Reload(ctx context.Context) error {
	return d.request(ctx, func() error { return d.reload(true) })
}

// Edit changes the file: it is read, edited, checked whole, written so that its
// mode stays and nobody's change is overwritten, and applied. An edit that does not
// give a usable configuration changes nothing. who is for the log.
func (d *Daemon) Edit(ctx context.Context, who string, edit func(config.Source) (config.Source, error)) (needsRestart []string, err error) {
	err = d.request(ctx, func() error {
		src, err := config.Read(d.options.ConfigPath)
		if err != nil {
			return err
		}
		edited, err := edit(src)
		if err != nil {
			return err
		}
		snap, _, err := compile(edited)
		if err == nil {
			err = d.stillMayListen(snap.Config)
		}
		if err != nil {
			return err
		}
		if err := edited.Write(); err != nil {
			return err
		}
		d.log.Info("configuration edited", slog.String("by", who))
		return d.reload(true)
	})
	return d.Status().NeedsRestart, err
}

// reload reads the file and, if it is good, swaps it in. Bytes that were tried
// before are not tried again unless forced, so that one mistake is told once.
func (d *Daemon) reload(forced bool) error {
	src, err := config.Read(d.options.ConfigPath)
	d.mu.Lock()
	same := src.Hash == d.tried
	if err != nil {
		d.tried = [32]byte{} // whatever comes back is tried, the same bytes too
	}
	d.mu.Unlock()
	if err != nil {
		return d.failed(err, forced)
	}
	if same && !forced {
		return nil
	}
	d.options.Manager.Reloading()
	defer func() { d.options.Manager.Ready(d.standing()) }()
	snap, warnings, err := compile(src)
	if err == nil {
		err = d.stillMayListen(snap.Config)
	}
	d.mu.Lock()
	d.tried = src.Hash
	d.mu.Unlock()
	if err != nil {
		return d.failed(err, true)
	}
	// From here on nothing can fail.
	d.handler.Swap(snap)
	d.archive.SetLimits(kept(snap.Config))
	d.retain(snap)
	restart := d.differs(snap.Config)
	d.mu.Lock()
	d.status = Status{Path: d.options.ConfigPath, LoadedAt: time.Now(), Hash: src.Hash, NeedsRestart: restart, Warnings: lines(warnings)}
	d.mu.Unlock()
	for _, w := range warnings {
		d.log.Warn("configuration", slog.String("problem", w.String()))
	}
	d.log.Info("configuration loaded", slog.Int("virtual_models", len(snap.Routes.Names())), slog.Any("needs_restart", restart))
	return nil
}

// standing is a line for the service manager.
func (d *Daemon) standing() string {
	if d.Status().Error != "" {
		return "the configuration on disk cannot be used, the former one goes on; serving on " + d.Addr()
	}
	return "serving on " + d.Addr()
}

// watch answers the service manager's watchdog for as long as the goroutine that owns
// the configuration does its work.
func (d *Daemon) watch(ctx context.Context) {
	every := d.options.Manager.Watchdog()
	if every <= 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if d.request(ctx, func() error { return nil }) == nil {
			d.options.Manager.Alive()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// failed notes a reload that went wrong; the former configuration goes on.
func (d *Daemon) failed(err error, tell bool) error {
	d.mu.Lock()
	tell = tell || d.status.Error != err.Error()
	d.status.Error = err.Error()
	d.mu.Unlock()
	if tell {
		if problems, ok := errors.AsType[Problems](err); ok {
			for _, p := range problems {
				d.log.Error("configuration not loaded, the former one goes on", slog.String("problem", p.String()))
			}
		} else {
			d.log.Error("configuration not loaded, the former one goes on", slog.String("problem", err.Error()))
		}
	}
	return err
}

// stillMayListen refuses a configuration that would open the running listeners to
// a network.
func (d *Daemon) stillMayListen(cfg *config.Config) error {
	former := d.handler.Snapshot().Config
	if len(former.Clients) > 0 && len(cfg.Clients) == 0 || !former.Server.AdminToken.IsZero() && cfg.Server.AdminToken.IsZero() {
		return d.mayListen(cfg)
	}
	return nil
}

// differs names the settings that take a restart to change.
func (d *Daemon) differs(cfg *config.Config) (names []string) {
	s := d.listening(cfg.Server)
	for name, other := range map[string]bool{
		"host": s.Host != d.bound.Host, "port": s.Port != d.bound.Port, "admin": s.Admin != d.bound.Admin, "max_connections": s.MaxConnections != d.bound.MaxConnections,
		"state_dir": s.StateDir != d.bound.StateDir, "tls_cert": s.TLSCert != d.bound.TLSCert, "tls_key": s.TLSKey != d.bound.TLSKey,
		"store": !d.sharing.by(cfg.Store),
	} {
		if other {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// retain forgets what belongs to identities and models that are gone.
func (d *Daemon) retain(snap *proxy.Snapshot) {
	chains := snap.Routes.Chains()
	models := map[string]bool{}
	ids := map[string]bool{}
	kept := map[health.Key]bool{}
	for _, chain := range chains {
		models[chain.Model] = true
		for _, tier := range chain.Tiers {
			for _, c := range tier {
				ids[string(c.ID)] = true
				own, wider := proxy.Keys(&c)
				for _, k := range append(wider, own) {
					kept[k] = true
				}
			}
		}
	}
	now := time.Now()
	d.board.Retain(func(k health.Key) bool { return kept[k] }, now)
	d.ledger.Retain(func(id string) bool { return ids[id] }, func(model string) bool { return models[model] })
}

// Status is how the last reload went.
func (d *Daemon) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.NeedsRestart, s.Warnings = slices.Clone(s.NeedsRestart), slices.Clone(s.Warnings)
	return s
}

func lines(problems Problems) (out []string) {
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}
