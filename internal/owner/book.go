// Package owner remembers which account an identifier came from: some of what an
// answer names (a stored response, a file, a batch, encrypted reasoning) lives in
// the account that made it and means nothing elsewhere.
//
// It knows identifiers, identities and models as texts. It never knows HTTP, what
// an identifier stands for, or who may be called.
package owner

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/internal/recent"
)

// Capacity is how many identifiers a Book remembers; the least recently used go.
const Capacity = 50_000

// An Owner is where an identifier came from.
type Owner struct {
	// Identity is the candidate's, 16 hex digits.
	Identity string
	// Model is the virtual model, or "*" for the pool, that was asked.
	Model string
	// At is when it was learned or last used.
	At time.Time
}

// mark stands for a client and an identifier: long ones need not be kept, and
// nobody reads them back.
type mark [16]byte

func markOf(client, id string) mark {
	sum := sha256.Sum256([]byte(client + "\x00" + id))
	return mark(sum[:16])
}

// entry is an Owner in less room.
type entry struct {
	identity, model string
	at              int64  // Unix nanoseconds
	since           uint64 // the change that learned it
}

// A Book remembers owners. Its methods may be called from any goroutine.
type Book struct {
	mu      sync.Mutex
	entries *recent.Table[mark, entry]
	changes uint64
	changed chan struct{} // closed with the next change; nil while nobody listens
}

// NewBook remembers at most so many identifiers; 0 = Capacity.
func NewBook(capacity int) *Book {
	if capacity <= 0 {
		capacity = Capacity
	}
	return &Book{entries: recent.NewTable[mark, entry](capacity)}
}

// Learn notes that id came from an owner. client separates those who must not see
// each other's; "" where there is but one.
func (b *Book) Learn(client, id string, o Owner) {
	if id == "" {
		return
	}
	m := markOf(client, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learn(m, o)
}

// learn is Learn for a mark. The lock is held.
func (b *Book) learn(m mark, o Owner) {
	b.changes++
	b.put(m, o)
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Changed is closed when something is learned next.
func (b *Book) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// put adds or renews an entry. The lock is held.
func (b *Book) put(m mark, o Owner) {
	b.entries.Put(m, entry{o.Identity, o.Model, o.At.UnixNano(), b.changes})
}

// Owner says where an id came from, and counts as its use.
func (b *Book) Owner(client, id string, now time.Time) (Owner, bool) {
	if id == "" {
		return Owner{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries.Len() == 0 {
		return Owner{}, false
	}
	e := b.entries.Use(markOf(client, id))
	if e == nil {
		return Owner{}, false
	}
	e.at = now.UnixNano()
	return Owner{Identity: e.identity, Model: e.model, At: now}, true
}

// Len is how many identifiers are remembered.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries.Len()
}

// Changes counts what was learned, so that a keeper knows whether to write.
func (b *Book) Changes() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes
}

// ErrDamaged is wrapped by Import's error for bytes that no Export made.
var ErrDamaged = errors.New("damaged list of owners")

const magic = "understudy owners 1\n"

// Export gives everything remembered as bytes, the least recently used first.
// Identifiers are in it only as hashes.
func (b *Book) Export() []byte {
	out, _ := b.Since(0)
	return out
}

// Since is Export for what was learned after so many changes, and how many there have
// been: with 0 it is everything.
func (b *Book) Since(changes uint64) (data []byte, upTo uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []byte(magic)
	for m, v := range b.entries.All() {
		if changes > 0 && v.since <= changes {
			continue
		}
		out = append(out, m[:]...)
		out = binary.BigEndian.AppendUint64(out, uint64(time.Unix(0, v.at).Unix()))
		id, err := hex.DecodeString(v.identity)
		if err != nil || len(id) != 8 {
			id = make([]byte, 8)
		}
		out = append(out, id...)
		model := v.model[:min(len(v.model), 1<<16-1)]
		out = binary.BigEndian.AppendUint16(out, uint16(len(model)))
		out = append(out, model...)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), b.changes
}

// Import adds what Export gave. An error leaves the Book as it was.
func (b *Book) Import(data []byte) error { return b.read(data, b.put) }

// Learned is Import for what another process has learned since: it counts as a change.
func (b *Book) Learned(data []byte) error { return b.read(data, b.learn) }

func (b *Book) read(data []byte, into func(mark, Owner)) error {
	if len(data) < len(magic)+sha256.Size || string(data[:len(magic)]) != magic {
		return fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) {
		return fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	body = body[len(magic):]
	type learned struct {
		mark  mark
		owner Owner
	}
	var all []learned
	for len(body) > 0 {
		const fixed = 16 + 8 + 8 + 2
		if len(body) < fixed {
			return fmt.Errorf("%w: it ends within an entry", ErrDamaged)
		}
		n := int(binary.BigEndian.Uint16(body[fixed-2:]))
		if len(body) < fixed+n {
			return fmt.Errorf("%w: it ends within an entry", ErrDamaged)
		}
		all = append(all, learned{mark: mark(body[:16]), owner: Owner{
			At: time.Unix(int64(binary.BigEndian.Uint64(body[16:])), 0), Identity: hex.EncodeToString(body[24:32]), Model: string(body[fixed : fixed+n])}})
		body = body[fixed+n:]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range all {
		into(e.mark, e.owner)
	}
	return nil
}
