package health

import (
	"cmp"
	"slices"
	"time"
)

// Counters is what has been counted at one key, since ever: counters survive
// reloads and restarts.
type Counters struct {
	Freezes     int64     `json:"freezes"` // times it went from not frozen to frozen, whoever froze
	Hedges      int64     `json:"hedges"`  // freezes for a streak
	Streak      int64     `json:"streak"`  // consecutive failures now
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// Counters returns k's counters.
func (b *Board) Counters(k Key) Counters {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[k]; e != nil {
		return e.counters()
	}
	return Counters{}
}

func (e *entry) counters() Counters {
	return Counters{
		Freezes: e.freezes, Hedges: e.hedges, Streak: e.streak,
		LastError: e.lastError, LastErrorAt: e.lastErrorAt,
	}
}

// State is a board as it is saved. What runs is not part of it.
type State struct {
	Entries []Saved `json:"entries"`
}

// Saved is one key of a State. A freeze that is over says that the key is on
// probation.
type Saved struct {
	Key      Key      `json:"key"`
	Freeze   *Freeze  `json:"freeze,omitempty"`
	Counters Counters `json:"counters"`
}

// Export returns what is worth keeping over a restart, by key. The times in
// it are of the wall clock.
func (b *Board) Export(now time.Time) State {
	b.mu.Lock()
	entries := make([]Saved, 0, len(b.entries))
	for k, e := range b.entries {
		s := Saved{Key: k, Counters: e.counters()}
		if e.standing(now) != Ready {
			s.Freeze = new(e.freeze)
		}
		if s.Freeze != nil || s.Counters != (Counters{}) {
			entries = append(entries, s)
		}
	}
	b.mu.Unlock()
	for i := range entries {
		s := &entries[i]
		s.Counters.LastErrorAt = wall(s.Counters.LastErrorAt)
		if f := s.Freeze; f != nil {
			f.Since, f.Until = wall(f.Since), wall(f.Until)
		}
	}
	slices.SortFunc(entries, func(x, y Saved) int { return cmp.Compare(x.Key, y.Key) })
	return State{Entries: entries}
}

// wall drops the monotonic reading, which means nothing to another process.
func wall(t time.Time) time.Time { return t.Round(0).UTC() }

// Import puts saved entries in the place of the board's own, before the board
// is used; leases under way keep their place. A freeze keeps its moment, but
// never lasts longer from now than it was meant to at all: the clock may have
// been set back since. Entries that make no sense lose what makes none.
func (b *Board) Import(s State, now time.Time) {
	b.mu.Lock()
	for _, saved := range s.Entries {
		if saved.Key == "" {
			continue
		}
		c := saved.Counters
		e := b.entry(saved.Key)
		e.freezes, e.hedges, e.streak = max(c.Freezes, 0), max(c.Hedges, 0), max(c.Streak, 0)
		e.lastError, e.lastErrorAt = clip(c.LastError), c.LastErrorAt
		e.clear()
		e.epoch++
		if saved.Freeze != nil && !saved.Freeze.Until.IsZero() {
			e.freeze = restored(saved.Key, *saved.Freeze, now)
		}
	}
	c := b.takeChanged()
	b.mu.Unlock()
	wake(c)
}

func restored(k Key, f Freeze, now time.Time) Freeze {
	f.Key = k
	f.Reason = clip(f.Reason)
	f.Length = max(f.Length, 0)
	left := f.Until.Sub(now)
	if f.Length > 0 {
		left = min(left, f.Length)
	}
	// Measured from here on by now's own clock, as in Board.Freeze.
	f.Until = now.Add(left)
	return f
}

// Retain forgets every key that has does not know, unless it is frozen or has
// requests in flight; those are kept until a later Retain. It is called after
// a new configuration is in force, and may be called at any time. has is
// called without the board being locked.
func (b *Board) Retain(has func(Key) bool, now time.Time) {
	b.mu.Lock()
	idle := make([]Key, 0, len(b.entries))
	for k, e := range b.entries {
		if e.idle(now) {
			idle = append(idle, k)
		}
	}
	b.mu.Unlock()
	gone := slices.DeleteFunc(idle, has)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range gone {
		if e := b.entries[k]; e != nil && e.idle(now) {
			delete(b.entries, k)
		}
	}
}

func (e *entry) idle(now time.Time) bool {
	return e.inFlight == 0 && e.standing(now) != Frozen
}
