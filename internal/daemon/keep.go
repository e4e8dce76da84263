package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// A freeze is on disk soon after it was made, counters and history now and then.
const (
	saveAfterChange = 200 * time.Millisecond
	saveEvery       = 20 * time.Second
)

// keep writes the state behind the requests' backs until ctx is done.
func (d *Daemon) keep(ctx context.Context) {
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	complained := false
	for {
		changed := d.board.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			// Several freezes often come together; one writing is enough.
			timer.Reset(saveAfterChange)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
		case <-timer.C:
		}
		err := d.Save()
		if err != nil && !complained {
			d.log.Error("state", slog.String("problem", err.Error()))
		}
		complained = err != nil
		timer.Reset(saveEvery)
	}
}

// Save writes the state now: freezes, counters and history, and the owners where
// there are new ones.
func (d *Daemon) Save() error {
	d.saving.Lock()
	defer d.saving.Unlock()
	now := time.Now()
	err := saveState(d.statePath, state{Version: stateVersion, SavedAt: now.UTC(), Health: d.board.Export(now), Stats: d.ledger.Export(now)})
	book := d.handler.Owners()
	if changes := book.Changes(); changes != d.savedOwners {
		owners := replace(ownersPath(d.statePath), book.Export())
		if owners == nil {
			d.savedOwners = changes
		}
		err = errors.Join(err, owners)
	}
	return err
}
