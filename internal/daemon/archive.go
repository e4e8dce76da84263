package daemon

import (
	"context"
	"errors"
	"time"

	"understudy/internal/archive"
	"understudy/internal/config"
	"understudy/internal/control"
	"understudy/internal/stats"
)

// newArchive makes the archive. Nothing is opened yet.
func (d *Daemon) newArchive(cfg *config.Config) *archive.Archive {
	return archive.New(archive.Options{
		Path: ArchivePath(d.bound.StateDir, d.options.ConfigPath), Ledger: d.ledger, Limits: kept(cfg), Log: d.log,
		Restored: func() { d.retain(d.handler.Snapshot()) },
	})
}

// openArchive has every request noted from here on, and the ledger given what the
// archive holds: beside the first requests, which need not wait for it (who looks at the
// statistics does), and before them in an heir, whose former process ends only once all
// is well here.
func (d *Daemon) openArchive() {
	d.ledger.Tap(d.archive.Offer)
	d.writing.open()
	if d.options.Heir != nil {
		<-d.writing.opened
	}
}

// Restored is closed once the statistics hold what the archive does, or it has proved to
// be out of reach for now.
func (d *Daemon) Restored() <-chan struct{} { return d.writing.opened }

// kept is how much of the request log a configuration keeps.
func kept(cfg *config.Config) archive.Limits {
	return archive.Limits{Keep: cfg.RequestLog.Keep, Age: time.Duration(cfg.RequestLog.Days) * 24 * time.Hour}
}

// requestLog is the archive as control reads it.
func (d *Daemon) requestLog() control.Archive {
	reader := d.archive.Reader()
	return control.Archive{
		Status: func() control.ArchiveStatus {
			s := d.archive.Status()
			out := control.ArchiveStatus{State: string(s.State), Problem: s.Problem, SetAside: s.SetAside,
				Entries: s.Entries, Written: s.Written, Dropped: s.Dropped, BodiesDropped: s.BodiesDropped}
			if !s.Since.IsZero() {
				out.Since = new(s.Since.UTC())
			}
			return out
		},
		Find: func(ctx context.Context, id string) (stats.Record, bool, error) {
			r, err := reader.Find(ctx, id)
			if errors.Is(err, archive.ErrUnknown) {
				return r, false, nil
			}
			return r, err == nil, err
		},
		Walk: func(ctx context.Context, s control.Selection, visit func(*stats.Record) bool) (bool, error) {
			err := reader.Walk(ctx, archive.Selection(s), visit)
			if errors.Is(err, archive.ErrUnknown) {
				return false, nil
			}
			return err == nil, err
		},
		Bodies: func(ctx context.Context, id string) ([]control.KeptBody, error) {
			bodies, err := reader.Bodies(ctx, id)
			if errors.Is(err, archive.ErrUnknown) {
				return nil, nil
			}
			kept := make([]control.KeptBody, 0, len(bodies))
			for _, b := range bodies {
				kept = append(kept, control.KeptBody{Attempt: b.Try + 1, Size: b.Size, Cut: b.Cut, Text: b.Text})
			}
			return kept, err
		},
	}
}
