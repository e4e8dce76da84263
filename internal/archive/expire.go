package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// expireAtOnce bounds how many blocks, or bodies, one transaction deletes.
const expireAtOnce = 1000

// expire deletes blocks that hold nothing that is kept any more, the oldest first.
// Those that stand for the ledger until it is saved stay.
func (a *Archive) expire(ctx context.Context, tx *sql.Tx, t *tail, now time.Time) error {
	limits := *a.limits.Load()
	oldest := int64(0)
	if limits.Age > 0 {
		oldest = now.Add(-limits.Age).UnixMilli()
	}
	last, err := lastExpired(ctx, tx, t.saved, t.total-int64(limits.Keep), oldest)
	if err != nil {
		return fmt.Errorf("tidy the archive: %w", err)
	}
	if last > 0 {
		if _, err := tx.ExecContext(ctx, "DELETE FROM block WHERE n <= ?", last); err != nil {
			return fmt.Errorf("tidy the archive: %w", err)
		}
		if t.bodies != 0 {
			if _, err := tx.ExecContext(ctx, "DELETE FROM body WHERE block <= ?", last); err != nil {
				return fmt.Errorf("tidy the archive: %w", err)
			}
			t.bodies = -1
		}
		// Pages that are free go back to the disk bit by bit.
		if _, err := tx.ExecContext(ctx, "PRAGMA incremental_vacuum(64)"); err != nil {
			return fmt.Errorf("tidy the archive: %w", err)
		}
	}
	return a.expireBodies(ctx, tx, t)
}

// lastExpired is the newest of the oldest blocks that are not kept; 0 = none.
func lastExpired(ctx context.Context, tx *sql.Tx, saved, total, ended int64) (last int64, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT n, total, ended FROM block WHERE n <= ? ORDER BY n LIMIT ?", saved, expireAtOnce)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var n, t, e int64
		if err := rows.Scan(&n, &t, &e); err != nil {
			return 0, err
		}
		if t > total && e >= ended {
			break
		}
		last = n
	}
	return last, rows.Err()
}

// expireBodies makes room for bodies where there are too many of them.
func (a *Archive) expireBodies(ctx context.Context, tx *sql.Tx, t *tail) error {
	if t.bodies < 0 {
		if err := tx.QueryRowContext(ctx, "SELECT ifnull(sum(bytes), 0) FROM body").Scan(&t.bodies); err != nil {
			return fmt.Errorf("tidy the archive: %w", err)
		}
	}
	for excess := t.bodies - maxKeptAll; excess > 0; excess = t.bodies - maxKeptAll {
		var last, freed int64
		err := tx.QueryRowContext(ctx, "SELECT max(n), sum(bytes) FROM (SELECT n, bytes FROM body ORDER BY n LIMIT 16)").Scan(&last, &freed)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM body WHERE n <= ?", last)
		}
		if err != nil {
			return fmt.Errorf("tidy the archive: %w", err)
		}
		t.bodies -= freed
	}
	return nil
}

// A querier is a transaction or the file itself.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// count notes how many entries the file holds.
func (a *Archive) count(ctx context.Context, q querier) error {
	var first, own, last int64
	err := q.QueryRowContext(ctx, "SELECT total, entries, (SELECT total FROM block ORDER BY n DESC LIMIT 1) FROM block ORDER BY n LIMIT 1").Scan(&first, &own, &last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		a.kept.Store(0)
	case err != nil:
		return fmt.Errorf("read the archive: %w", err)
	default:
		a.kept.Store(last - first + own)
	}
	return nil
}
