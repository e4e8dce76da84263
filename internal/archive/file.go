package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"understudy/internal/files"
)

// schemaVersion stands in the file's user_version. A file of another version is
// set aside like a damaged one.
const schemaVersion = 1

// The tables. A block's total counts all entries ever written, up to and with its
// own, so that what is kept is known from the first and the last row alone.
const schema = `
CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), boot INTEGER NOT NULL);
CREATE TABLE books (one INTEGER PRIMARY KEY CHECK (one = 1), boot INTEGER NOT NULL, seq INTEGER NOT NULL,
	block INTEGER NOT NULL, saved INTEGER NOT NULL, state BLOB NOT NULL);
CREATE TABLE block (n INTEGER PRIMARY KEY, boot INTEGER NOT NULL, entries INTEGER NOT NULL, total INTEGER NOT NULL,
	failed INTEGER NOT NULL, troubled INTEGER NOT NULL, ended INTEGER NOT NULL, records BLOB NOT NULL);
CREATE TABLE body (n INTEGER PRIMARY KEY, block INTEGER NOT NULL, id TEXT NOT NULL, try INTEGER NOT NULL,
	size INTEGER NOT NULL, cut INTEGER NOT NULL, bytes INTEGER NOT NULL, text BLOB NOT NULL);
CREATE INDEX body_id ON body (id);
CREATE INDEX body_block ON body (block);
`

// errVersion is why a file whose layout is another is not read.
var errVersion = errors.New("layout of another version")

// trouble is what is wrong with a file, as far as it decides what to do about it.
type trouble uint8

const (
	broken  trouble = iota // anything else: tried again
	locked                 // another process holds it: tried again
	full                   // no room: tried again
	damaged                // it will never be read: set aside
)

// troubleOf sorts an error by SQLite's result code (sqlite.org/rescode.html).
func troubleOf(err error) trouble {
	if errors.Is(err, errVersion) || errors.Is(err, errBlock) {
		return damaged
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return broken
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return locked
	case sqlite3.SQLITE_FULL:
		return full
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return damaged
	}
	return broken
}

// String says it for people.
func (t trouble) String() string {
	switch t {
	case locked:
		return "another process has locked the file"
	case full:
		return "the disk is full"
	case damaged:
		return "the file is damaged"
	}
	return "the file cannot be used"
}

// How long SQLite waits for another process's lock: a person's SELECT is over by
// then, and what is not is tried again later.
const busyTime = 200 * time.Millisecond

// open opens a file for one connection, and creates nothing. Nothing is read yet.
func open(path string, options url.Values) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	name := filepath.ToSlash(abs)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a Windows drive
	}
	options.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()))
	options.Add("_pragma", "cache_size(-512)")
	u := url.URL{Scheme: "file", Path: name, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// openWriter opens a file to be written, and makes it if there is none. Without
// fsync at every commit a crash of the process loses nothing that was committed,
// and one of the machine at most the last moments, never the file. more are further
// pragmas.
func openWriter(ctx context.Context, path string, more ...string) (_ *sql.DB, err error) {
	if err := files.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	// SQLite gives its side files the same mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	db, err := open(path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"},
		"_pragma": append([]string{"auto_vacuum(incremental)", "journal_mode(wal)", "synchronous(normal)", "secure_delete(fast)"}, more...)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	version, err := versionOf(ctx, db)
	if err != nil || version == schemaVersion {
		return db, err
	}
	if version != 0 {
		return nil, fmt.Errorf("open the archive: %w: %d, not %d", errVersion, version, schemaVersion)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("lay the archive out: %w", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)); err != nil {
		return nil, fmt.Errorf("lay the archive out: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("lay the archive out: %w", err)
	}
	return db, nil
}

// openReader opens a file that is there, to be read only; a process that writes it
// is not disturbed.
func openReader(ctx context.Context, path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	db, err := open(path, url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)"}})
	if err != nil {
		return nil, err
	}
	version, err := versionOf(ctx, db)
	switch {
	case err == nil && version == 0:
		err = fs.ErrNotExist // it is being made
	case err == nil && version != schemaVersion:
		err = fmt.Errorf("open the archive: %w: %d, not %d", errVersion, version, schemaVersion)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func versionOf(ctx context.Context, db *sql.DB) (version int, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("open the archive: %w", err)
	}
	return version, nil
}

// setAside moves a file that cannot be read out of the way, in the place of one
// that was set aside before, and says where it is now. Nobody may have it open
// here.
func setAside(path string) (aside string, err error) {
	aside = path + ".damaged"
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set the archive aside: %w", err)
	}
	// What was not yet in the file itself belongs to it.
	for _, side := range []string{"-wal", "-shm"} {
		err := os.Rename(path+side, aside+side)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(aside + side)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set the archive aside: %w", err)
		}
	}
	return aside, nil
}
