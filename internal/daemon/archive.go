package daemon

import (
	"context"
	"time"

	"understudy/internal/archive"
	"understudy/internal/config"
)

// openArchive gives the ledger what the archive holds, and has every request noted
// from here on.
func (d *Daemon) openArchive(cfg *config.Config) {
	d.archive = archive.New(archive.Options{
		Path: ArchivePath(d.bound.StateDir, d.options.ConfigPath), Ledger: d.ledger, Limits: kept(cfg), Log: d.log,
		Restored: func() { d.retain(d.handler.Snapshot()) },
	})
	d.archive.Open(context.Background())
	d.ledger.Tap(d.archive.Offer)
}

// kept is how much of the request log a configuration keeps.
func kept(cfg *config.Config) archive.Limits {
	return archive.Limits{Keep: cfg.RequestLog.Keep, Age: time.Duration(cfg.RequestLog.Days) * 24 * time.Hour}
}
