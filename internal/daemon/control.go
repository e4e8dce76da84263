package daemon

import (
	"context"
	"encoding/hex"
	"time"

	"understudy/internal/control"
)

// Control is what people see and command of this daemon.
func (d *Daemon) Control(version string) *control.Control {
	return control.New(control.Deps{
		Handler: d.handler, Started: d.started, Version: version, Log: d.log, Admin: d.bound.Admin, Proxy: d.Addr(),
		Status: func() control.Status {
			s := d.Status()
			return control.Status{Path: s.Path, LoadedAt: s.LoadedAt, Hash: hex.EncodeToString(s.Hash[:]), Error: s.Error, NeedsRestart: s.NeedsRestart, Warnings: s.Warnings}
		},
		Upgrade: func() control.Upgrade {
			s := d.UpgradeStatus()
			u := control.Upgrade{Running: s.Running, Problem: s.Problem, Former: s.Former, FormerInFlight: s.FormerInFlight}
			if s.Problem != "" {
				u.FailedAt = new(s.FailedAt.UTC())
			}
			return u
		},
		Archive: d.requestLog(),
		Store:   d.sharing.status(),
		Rush: func() control.Rush {
			on, turned := d.rush.seen(time.Now())
			return control.Rush{On: on, TurnedAway: turned}
		},
		Reload: d.Reload,
		Edit:   d.Edit,
		Save:   func(context.Context) error { return d.Save() },
		Quit:   d.Quit,
	})
}
