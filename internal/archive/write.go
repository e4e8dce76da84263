package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy/internal/stats"
)

// maxBlock is how many entries share a block: reading one entry decodes its block.
const maxBlock = 256

// maxKept bounds, in bytes, one body in the file, and maxKeptAll all of them; the
// oldest make room.
const (
	maxKept    = 1 << 20
	maxKeptAll = 1 << 30
)

// errTaken is why an archive ends: another process has opened the file to write.
var errTaken = errors.New("another process has taken the archive over")

// tail is what is known of the file without asking it.
type tail struct {
	known  bool
	block  int64 // number of the newest block, 0 without one
	total  int64 // entries ever written
	saved  int64 // the newest block when the ledger was saved: what is newer stays
	bodies int64 // bytes of bodies; -1 where it was not yet added up
}

// ready opens the file, if it is not, and restores the ledger the first time.
func (a *Archive) ready(ctx context.Context) error {
	if a.db != nil {
		return nil
	}
	db, err := openWriter(ctx, a.path, a.pragmas...)
	if err != nil {
		return err
	}
	a.db = db
	if !a.open {
		if err := a.restore(ctx, time.Now()); err != nil {
			return err
		}
		a.open = true
		a.restored()
	}
	return a.learn(ctx)
}

// learn reads where the file ends.
func (a *Archive) learn(ctx context.Context) error {
	t := tail{known: true, bodies: -1}
	err := a.db.QueryRowContext(ctx, "SELECT n, total FROM block ORDER BY n DESC LIMIT 1").Scan(&t.block, &t.total)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read the archive: %w", err)
	}
	err = a.db.QueryRowContext(ctx, "SELECT block FROM books").Scan(&t.saved)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read the archive: %w", err)
	}
	// Without bodies there is nothing to add up.
	var any bool
	if err := a.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM body)").Scan(&any); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	if !any {
		t.bodies = 0
	}
	a.tail = t
	return a.count(ctx, a.db)
}

// restore gives the ledger what the file holds: what was saved of it, and the
// entries since.
func (a *Archive) restore(ctx context.Context, now time.Time) error {
	var boot, seq, block int64
	var text []byte
	err := a.db.QueryRowContext(ctx, "SELECT boot, seq, block, state FROM books").Scan(&boot, &seq, &block, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	since, err := a.since(ctx, block, boot, uint64(seq))
	if err != nil && !errors.Is(err, errBlock) {
		return err // nothing has been taken over, so that a later try counts nothing twice
	}
	var state stats.State
	bad := json.Unmarshal(text, &state)
	if bad == nil {
		bad = a.ledger.Import(state, now)
	}
	if bad != nil {
		a.log.Warn("archive", slog.String("problem", "statistics begin anew: "+bad.Error()))
		return err
	}
	for i := range since {
		a.ledger.Replay(since[i], now)
	}
	return err
}

// since reads a process's records after a number, from the blocks after one. With
// errBlock come those before the damage.
func (a *Archive) since(ctx context.Context, block, boot int64, seq uint64) (records []stats.Record, err error) {
	rows, err := a.db.QueryContext(ctx, "SELECT records FROM block WHERE n > ? AND boot = ? ORDER BY n", block, boot)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text sql.RawBytes
		if err := rows.Scan(&text); err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		entries, err := decodeAll(text)
		for i := range entries {
			if entries[i].Seq > seq {
				records = append(records, entries[i].Record)
			}
		}
		if err != nil {
			return records, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	return records, nil
}

// write writes the batch, with the ledger where it is due, and deletes what is no
// longer kept: all of it or nothing.
func (a *Archive) write(ctx context.Context) error {
	now := time.Now()
	a.take()
	if len(a.batch) == 0 && a.db == nil && a.unsaved == 0 && a.open {
		return nil // nothing has ever happened
	}
	if err := a.ready(ctx); err != nil {
		return err
	}
	save := len(a.batch)+a.unsaved > 0 && (a.saved.IsZero() || now.Sub(a.saved) >= checkpointEvery || a.unsaved+len(a.batch) >= checkpointAfter)
	tidy := now.Sub(a.tidied) >= tidyEvery
	if len(a.batch) == 0 && !save && !tidy {
		return nil
	}
	var state []byte
	var seq uint64
	if save {
		// After the batch was taken: everything in it is in the state.
		var err error
		var s stats.State
		if last := a.last.Load(); last != nil {
			s, seq = last.state, last.seq
		} else {
			s, seq = a.ledger.Checkpoint(now)
		}
		if state, err = json.Marshal(s); err != nil {
			return fmt.Errorf("encode the statistics: %w", err)
		}
	}
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	defer tx.Rollback()
	t := a.tail
	if err := a.own(ctx, tx); err != nil {
		return err
	}
	if err := a.append(ctx, tx, &t); err != nil {
		return err
	}
	if save {
		if _, err := tx.ExecContext(ctx, "REPLACE INTO books (one, boot, seq, block, saved, state) VALUES (1, ?, ?, ?, ?, ?)",
			a.boot, int64(seq), t.block, now.UnixMilli(), state); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		t.saved = t.block
	}
	if err := a.expire(ctx, tx, &t, now); err != nil {
		return err
	}
	if err := a.count(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	a.written.Add(int64(len(a.batch)))
	a.unsaved += len(a.batch)
	a.tail, a.tidied, a.claimed = t, now, true
	if save {
		a.saved, a.unsaved = now, 0
	}
	a.forgetBatch()
	return nil
}

// own claims the file with the first writing, and finds out later whether somebody
// else has.
func (a *Archive) own(ctx context.Context, tx *sql.Tx) error {
	if !a.claimed {
		if _, err := tx.ExecContext(ctx, "REPLACE INTO owner (one, boot) VALUES (1, ?)", a.boot); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		return nil
	}
	var owner int64
	err := tx.QueryRowContext(ctx, "SELECT boot FROM owner").Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx, "REPLACE INTO owner (one, boot) VALUES (1, ?)", a.boot)
	case err == nil && owner != a.boot:
		return errTaken
	}
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// append writes the batch in blocks.
func (a *Archive) append(ctx context.Context, tx *sql.Tx, t *tail) error {
	for rest := a.batch; len(rest) > 0; {
		n := min(len(rest), maxBlock)
		if err := a.appendBlock(ctx, tx, t, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (a *Archive) appendBlock(ctx context.Context, tx *sql.Tx, t *tail, items []item) error {
	failed, troubled := 0, 0
	ended := int64(0)
	a.encoder.reset()
	for _, i := range items {
		r := &i.entry.Record
		a.encoder.add(i.entry)
		if r.Failed() {
			failed++
		}
		if r.Troubled() {
			troubled++
		}
		ended = max(ended, r.Start.Add(r.End).UnixMilli())
	}
	t.block++
	t.total += int64(len(items))
	if _, err := tx.ExecContext(ctx, "INSERT INTO block (n, boot, entries, total, failed, troubled, ended, records) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		t.block, a.boot, len(items), t.total, failed, troubled, ended, a.encoder.bytes()); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	for _, i := range items {
		if i.bodies == nil {
			continue
		}
		if err := a.appendBodies(ctx, tx, t, i); err != nil {
			return err
		}
	}
	return nil
}

// appendBodies writes the bodies of one request, without their secrets.
func (a *Archive) appendBodies(ctx context.Context, tx *sql.Tx, t *tail, i item) error {
	one := func(try int, b stats.Body) error {
		text := b.Text
		if i.bodies.Hide != nil {
			text = i.bodies.Hide(text)
		}
		cut := b.Size > int64(len(b.Text)) || len(text) > maxKept
		text = text[:min(len(text), maxKept)]
		if t.bodies >= 0 {
			t.bodies += int64(len(text))
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO body (block, id, try, size, cut, bytes, text) VALUES (?, ?, ?, ?, ?, ?, ?)", t.block, i.entry.ID, try, b.Size, cut, len(text), text)
		if err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		return nil
	}
	if err := one(-1, i.bodies.Request); err != nil {
		return err
	}
	for _, answer := range i.bodies.Answers {
		if err := one(answer.Try, answer.Body); err != nil {
			return err
		}
	}
	return nil
}
