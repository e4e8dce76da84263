package health

import (
	"hash/fnv"
	"slices"
	"time"
)

// headStart is by how much an instance waits for each one before it in line to take
// a trial: longer than news travel, so that only one takes it.
const headStart = 150 * time.Millisecond

// hear applies what another instance tells, and returns the freeze that took hold
// here by it, if one did.
func (b *Board) hear(c Change, now time.Time) (Freeze, bool) {
	b.mu.Lock()
	var woken chan struct{}
	var took bool
	switch c.News {
	case Froze:
		if took = b.hearFreeze(c, now); took {
			woken = b.takeChanged()
		}
	case Thawed:
		if e := b.entries[c.Key]; e != nil && e.thawedBy(c, now) {
			if e.standing(now) == Frozen {
				woken = b.takeChanged()
			}
			e.clear()
		} else if e != nil && e.trying == c.From {
			e.trying, e.tried = "", now
		}
	case Trying:
		if e := b.entries[c.Key]; e != nil && e.standing(now) != Ready {
			e.trying, e.tried = c.From, now
		}
	case Tried:
		if e := b.entries[c.Key]; e != nil && e.trying == c.From {
			e.trying, e.tried = "", now
		}
	}
	b.mu.Unlock()
	wake(woken)
	return c.Freeze, took
}

// echo applies what the store took from this instance, where others have been heard
// since it was done here: the store has put them in order, and they were before it.
func (b *Board) echo(c Change, now time.Time) {
	b.mu.Lock()
	var woken chan struct{}
	e := b.entries[c.Key]
	switch {
	case e == nil:
	case c.News == Thawed && e.freeze.From != "" && e.thawedBy(c, now):
		if e.standing(now) == Frozen {
			woken = b.takeChanged()
		}
		e.clear()
	case c.News == Froze && (e.freeze.From != "" || e.standing(now) != Frozen):
		if b.hearFreeze(c, now) {
			woken = b.takeChanged()
		}
	}
	b.mu.Unlock()
	wake(woken)
}

// room notes that there may be room where another instance's leases kept out.
func (b *Board) room(now time.Time) {
	b.mu.Lock()
	for _, e := range b.entries {
		if e.meter != nil && e.meter.shut.limit == Parallel {
			e.meter.shut = shut{}
		}
	}
	b.mu.Unlock()
	b.serveAll(now)
}

// hearFreeze puts another instance's freeze in place, as far as it yields here. b.mu
// is held.
func (b *Board) hearFreeze(c Change, now time.Time) bool {
	f := c.Freeze
	f.Key, f.Reason = c.Key, clip(f.Reason)
	e := b.entry(c.Key)
	if !now.Before(f.Until) {
		// On probation there, which is news only where nothing is known.
		if e.freeze.Until.IsZero() && e.epoch == 0 {
			e.freeze, e.epoch = f, 1
		}
		return false
	}
	if !e.yields(f, now) {
		return false
	}
	if e.standing(now) != Frozen {
		e.freezes++
	}
	e.clear()
	e.freeze = f
	e.epoch++
	return true
}

// thawedBy tells whether a thaw that the store tells of ends what stands here: not a
// freeze of this instance's that is younger (of what was heard, what is heard first is
// older), nor a person's where nobody but a success has lifted it.
func (e *entry) thawedBy(c Change, now time.Time) bool {
	if e.freeze.Until.IsZero() || e.freeze.From == "" && e.freeze.Since.After(c.At) {
		return false
	}
	return c.By == Person || e.freeze.By != Person || e.standing(now) != Frozen
}

// elsewhere tells whether the trial of e, which is on probation, is left to another
// instance: one that has it, or one before this one in line. b.mu is held.
func (b *Board) elsewhere(e *entry, now time.Time) bool {
	if b.peers == nil {
		return false
	}
	if e.trying != "" {
		return true
	}
	free := e.freeze.Until
	if e.tried.After(free) {
		free = e.tried
	}
	return now.Before(free.Add(time.Duration(b.peers.place(e.freeze.Key)) * headStart))
}

// orphan ends the trials of instances that are gone. heard says that an instance
// that has begun one only just now is not to be doubted yet.
func (b *Board) orphan(gone func(name string) bool, heard time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.trying != "" && gone(e.trying) && !e.tried.After(heard) {
			e.trying = ""
		}
	}
}

// post queues news for the others; without any it does nothing. b.mu is held, so
// that news stand in the order of what happened.
func (b *Board) post(l letter) {
	if b.peers != nil {
		b.peers.out.post(l)
	}
}

// inOrder puts names in the order in which they take a key's trials: another one for
// every key, so that no instance does all the trying.
func inOrder(names []string, k Key) []string {
	rank := func(name string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(name))
		h.Write([]byte{0})
		h.Write([]byte(k))
		return h.Sum64()
	}
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(x, y string) int {
		a, b := rank(x), rank(y)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return sorted
}
