package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"understudy/internal/stats"
)

// ErrUnknown is why there is no record, or there are no bodies, of a request: none
// is kept, or no longer.
var ErrUnknown = errors.New("no such request is kept")

// A Reader reads an archive that some process may be writing, without disturbing
// it. A file that is not there holds nothing. It may be used by any number of
// goroutines, which wait for each other.
type Reader struct {
	path string
	keep func() int

	mu sync.Mutex
	db *sql.DB // nil until something is read
}

// NewReader makes a reader of a file; keep is Limits.Keep of the configuration that
// it is written by.
func NewReader(path string, keep int) *Reader {
	return &Reader{path: path, keep: func() int { return keep }}
}

// Close closes the file. It is opened again when something is read.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db != nil {
		_ = r.db.Close() // nothing was written
		r.db = nil
	}
}

// file opens the file where it is not; nil where there is none.
func (r *Reader) file(ctx context.Context) (*sql.DB, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db != nil {
		return r.db, nil
	}
	db, err := openReader(ctx, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r.db = db
	return db, err
}

// Selection says which records are wanted; the zero one is all.
type Selection struct {
	// Before is the id of a record: only older ones are wanted. "" is all.
	Before string
	// Failed, where it is not nil, wants only those whose Failed is this.
	Failed *bool
	// Troubled wants only those that are.
	Troubled bool
}

func (s *Selection) wants(r *stats.Record) bool {
	return (s.Failed == nil || r.Failed() == *s.Failed) && (!s.Troubled || r.Troubled())
}

// where is the condition for blocks that may hold some.
func (s *Selection) where() string {
	switch {
	case s.Troubled && s.Failed != nil && *s.Failed:
		return "troubled > 0 AND failed > 0"
	case s.Troubled:
		return "troubled > 0"
	case s.Failed != nil && *s.Failed:
		return "failed > 0"
	case s.Failed != nil:
		return "failed < entries"
	}
	return "1"
}

// Walk calls visit with the kept records that are wanted, the newest first, until
// it says false. An unknown Before is ErrUnknown.
func (r *Reader) Walk(ctx context.Context, s Selection, visit func(*stats.Record) bool) error {
	db, err := r.file(ctx)
	if err != nil || db == nil {
		return err
	}
	from := int64(1) << 62
	if s.Before != "" {
		if from, _, err = r.find(ctx, db, s.Before); err != nil {
			return err
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT n, entries, total, (SELECT total FROM block ORDER BY n DESC LIMIT 1), records FROM block WHERE n <= ? AND "+s.where()+" ORDER BY n DESC", from)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	defer rows.Close()
	keep := int64(r.keep())
	for rows.Next() {
		var n, entries, total, last int64
		var text sql.RawBytes
		if err := rows.Scan(&n, &entries, &total, &last, &text); err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		list, err := decodeAll(text)
		if err != nil {
			return err
		}
		if beyond := last - keep - (total - entries); beyond > 0 {
			list = list[min(beyond, int64(len(list))):] // these only share a block with what is kept
		}
		if n == from {
			list = list[:max(0, slices.IndexFunc(list, func(e stats.Sequenced) bool { return e.ID == s.Before }))]
		}
		for _, e := range slices.Backward(list) {
			if s.wants(&e.Record) && !visit(&e.Record) {
				return nil
			}
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return nil
}

// Find gives the record of a request id, or ErrUnknown.
func (r *Reader) Find(ctx context.Context, id string) (stats.Record, error) {
	db, err := r.file(ctx)
	if err != nil {
		return stats.Record{}, err
	}
	if db == nil {
		return stats.Record{}, ErrUnknown
	}
	_, record, err := r.find(ctx, db, id)
	return record, err
}

// find gives the block that holds an id, and the record.
func (r *Reader) find(ctx context.Context, db *sql.DB, id string) (n int64, record stats.Record, err error) {
	needle := []byte(id)
	if packed, ok := packID(id); ok {
		needle = packed[:]
	}
	rows, err := db.QueryContext(ctx, "SELECT n, records FROM block WHERE instr(records, ?) > 0 ORDER BY n DESC", needle)
	if err != nil {
		return 0, record, fmt.Errorf("read the archive: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text sql.RawBytes
		if err := rows.Scan(&n, &text); err != nil {
			return 0, record, fmt.Errorf("read the archive: %w", err)
		}
		list, err := decodeAll(text)
		if err != nil {
			return 0, record, err
		}
		if i := slices.IndexFunc(list, func(e stats.Sequenced) bool { return e.ID == id }); i >= 0 {
			return n, list[i].Record, nil
		}
	}
	if err := rows.Err(); err != nil {
		return 0, record, fmt.Errorf("read the archive: %w", err)
	}
	return 0, record, ErrUnknown
}

// Body is one body that was kept, without its secrets.
type Body struct {
	// Try is the index of the attempt that was answered so; -1 is the request.
	Try int
	// Size is how long the body was in all, and Text what is kept of it, Cut at its
	// end or not; without its secrets it may be shorter all the same.
	Size int64
	Cut  bool
	Text []byte
}

// Bodies gives the bodies that are kept of a request, the request's own first;
// none are ErrUnknown.
func (r *Reader) Bodies(ctx context.Context, id string) ([]Body, error) {
	db, err := r.file(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, ErrUnknown
	}
	rows, err := db.QueryContext(ctx, "SELECT try, size, cut, text FROM body WHERE id = ? ORDER BY try", id)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer rows.Close()
	var bodies []Body
	for rows.Next() {
		var b Body
		if err := rows.Scan(&b.Try, &b.Size, &b.Cut, &b.Text); err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		bodies = append(bodies, b)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	if len(bodies) == 0 {
		return nil, ErrUnknown
	}
	return bodies, nil
}
