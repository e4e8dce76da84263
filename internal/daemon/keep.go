package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy/internal/health"
)

// A freeze is on disk soon after it was made, a counter within a second, and the
// owners, which may be many, now and then.
const (
	saveAfterChange = 200 * time.Millisecond
	saveEvery       = time.Second
	ownersEvery     = 20 * time.Second
)

// keep writes the state behind the requests' backs until ctx is done.
func (d *Daemon) keep(ctx context.Context) {
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	complained := false
	owners := time.Now()
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
		_, err := d.saveHealth(false)
		if now := time.Now(); now.Sub(owners) >= ownersEvery {
			err, owners = errors.Join(err, d.saveOwners()), now
		}
		if err != nil && !complained {
			d.log.Error("state", slog.String("problem", err.Error()))
		}
		complained = err != nil
		timer.Reset(saveEvery)
	}
}

// Save writes the state now: freezes and counters, and the owners where there are
// new ones. The archive is written by itself.
func (d *Daemon) Save() error {
	_, err := d.saveHealth(true)
	return errors.Join(err, d.saveOwners())
}

// saveHealth writes freezes and counters, unless they are on disk already and
// nobody insists, and gives what it has written. What was given to an heir is no
// longer this process's to write.
func (d *Daemon) saveHealth(insist bool) (board health.State, err error) {
	d.saving.Lock()
	defer d.saving.Unlock()
	if d.given {
		return board, nil
	}
	now := time.Now()
	board = d.board.Export(now)
	text, err := json.Marshal(board)
	if err != nil {
		return board, fmt.Errorf("encode the state: %w", err)
	}
	if !insist && bytes.Equal(text, d.savedHealth) {
		return board, nil
	}
	if err := saveState(d.statePath, state{Version: stateVersion, SavedAt: now.UTC(), Health: board}); err != nil {
		return board, err
	}
	d.savedHealth = text
	return board, nil
}

func (d *Daemon) saveOwners() error {
	d.saving.Lock()
	defer d.saving.Unlock()
	if d.given {
		return nil
	}
	book := d.handler.Owners()
	changes := book.Changes()
	if changes == d.savedOwners {
		return nil
	}
	if err := replace(ownersPath(d.statePath), book.Export()); err != nil {
		return err
	}
	d.savedOwners = changes
	return nil
}
