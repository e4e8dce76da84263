package health

import "time"

// Difference is what has happened to one key from one State to a later one of the same
// board.
type Difference struct {
	Key Key `json:"key"`
	// Freezes and Hedges are how many came.
	Freezes int64 `json:"freezes,omitempty"`
	Hedges  int64 `json:"hedges,omitempty"`
	// Streak is how many failures were added; after a success, which Succeeded says,
	// how many there are.
	Streak      int64     `json:"streak,omitempty"`
	Succeeded   bool      `json:"succeeded,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// Freeze is a freeze that was set, Lifted one that was there and is not any more.
	Freeze *Freeze `json:"freeze,omitempty"`
	Lifted *Freeze `json:"lifted,omitempty"`
}

// Since gives what has happened since an earlier state of the same board.
func (s State) Since(since State) []Difference {
	before := make(map[Key]*Saved, len(since.Entries))
	for i := range since.Entries {
		before[since.Entries[i].Key] = &since.Entries[i]
	}
	var list []Difference
	for i := range s.Entries {
		now, was := &s.Entries[i], before[s.Entries[i].Key]
		delete(before, now.Key)
		if was == nil {
			was = &Saved{}
		}
		if c, any := differ(was, now); any {
			list = append(list, c)
		}
	}
	for k, was := range before { // nothing is left of them that is worth saving
		if c, any := differ(was, &Saved{Key: k, Counters: Counters{Freezes: was.Counters.Freezes, Hedges: was.Counters.Hedges}}); any {
			list = append(list, c)
		}
	}
	return list
}

func differ(was, now *Saved) (c Difference, any bool) {
	a, b := &was.Counters, &now.Counters
	c = Difference{Key: now.Key, Freezes: b.Freezes - a.Freezes, Hedges: b.Hedges - a.Hedges, Streak: b.Streak - a.Streak}
	if c.Streak < 0 {
		c.Streak, c.Succeeded = b.Streak, true
	}
	if b.LastError != "" && !b.LastErrorAt.Equal(a.LastErrorAt) {
		c.LastError, c.LastErrorAt = b.LastError, b.LastErrorAt
	}
	switch {
	case now.Freeze == nil:
		c.Lifted = was.Freeze
	case was.Freeze == nil || !was.Freeze.Since.Equal(now.Freeze.Since) || !was.Freeze.Until.Equal(now.Freeze.Until):
		c.Freeze = now.Freeze
	}
	any = c.Freezes != 0 || c.Hedges != 0 || c.Streak != 0 || c.Succeeded || c.LastError != "" || c.Freeze != nil || c.Lifted != nil
	return c, any
}

// Apply adds what has happened at another process's board, which has begun as this
// one did. A freeze takes hold as Freeze has it, and is lifted only where it is the
// same one: what this process has seen since is newer.
func (b *Board) Apply(changes []Difference, now time.Time) {
	b.mu.Lock()
	for i := range changes {
		b.apply(&changes[i], now)
	}
	c := b.takeChanged()
	b.mu.Unlock()
	wake(c)
}

// apply adds one. b.mu is held.
func (b *Board) apply(c *Difference, now time.Time) {
	if c.Key == "" {
		return
	}
	e := b.entry(c.Key)
	e.freezes += max(c.Freezes, 0)
	e.hedges += max(c.Hedges, 0)
	if c.Succeeded {
		e.streak = 0
	}
	e.streak += max(c.Streak, 0)
	if c.LastError != "" && c.LastErrorAt.After(e.lastErrorAt) {
		e.lastError, e.lastErrorAt = clip(c.LastError), c.LastErrorAt
	}
	if c.Lifted != nil && e.freeze.By == c.Lifted.By && e.freeze.Since.Equal(c.Lifted.Since) {
		e.clear()
	}
	if c.Freeze == nil {
		return
	}
	if f := restored(c.Key, *c.Freeze, now); now.Before(f.Until) && e.yields(f, now) {
		e.freeze = f
		e.epoch++
		e.trial = nil
	}
}
