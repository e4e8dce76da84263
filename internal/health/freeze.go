package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// By says who froze.
type By uint8

const (
	// Rule: a rule decided on one failure.
	Rule By = iota
	// Streak: so many failures in a row.
	Streak
	// Person: somebody, by command. Nothing automatic touches such a freeze.
	Person
)

var byWords = [...]string{Rule: "rule", Streak: "streak", Person: "person"}

// String returns the word used in files and views.
func (by By) String() string {
	if int(by) < len(byWords) {
		return byWords[by]
	}
	return fmt.Sprintf("by(%d)", uint8(by))
}

// MarshalText writes the word.
func (by By) MarshalText() ([]byte, error) { return []byte(by.String()), nil }

// UnmarshalText reads the word.
func (by *By) UnmarshalText(text []byte) error {
	for i, w := range byWords {
		if w == string(text) {
			*by = By(i)
			return nil
		}
	}
	return fmt.Errorf("nobody freezes by %q", text)
}

// Freeze is a time during which a key is skipped by everybody.
type Freeze struct {
	Key    Key       `json:"key"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // the first moment at which it is over
	Reason string    `json:"reason,omitempty"`
	By     By        `json:"by"`
	// From is the instance that it comes from; "" is this one, and so is its own name
	// where the store had to tell it (see Board.echo).
	From string `json:"from,omitempty"`
	// Length is how long it was meant to last, in nanoseconds where it is
	// saved; the measure for the next one (see Again).
	Length time.Duration `json:"length"`
}

// Freeze freezes k and returns the freeze that holds afterwards. The caller
// sets Reason, By, and Until or Length (where both are set, Until holds and
// Length is only remembered); one that is over already does nothing.
//
// An automatic freeze never shortens a longer running one and never touches a
// person's. A person's freeze holds exactly as given. Trials under way lose
// their mark: their success is older than this freeze.
func (b *Board) Freeze(k Key, f Freeze, now time.Time) Freeze {
	f.Key = k
	f.Reason = clip(f.Reason)
	if f.Since.IsZero() {
		f.Since = now
	}
	if f.Until.IsZero() {
		f.Until = now.Add(f.Length)
	} else {
		// The same moment, measured by now's own clock: a step of the wall
		// clock must not stretch or end a freeze.
		left := f.Until.Sub(now)
		f.Until = now.Add(left)
		if f.Length <= 0 {
			f.Length = left
		}
	}
	b.mu.Lock()
	e := b.entry(k)
	if !now.Before(f.Until) || !e.yields(f, now) {
		f = e.freeze
		b.mu.Unlock()
		return f
	}
	if e.standing(now) != Frozen {
		e.freezes++
	}
	if f.By == Streak {
		e.hedges++
	}
	if e.trial != nil {
		b.post(letter{news: Tried, key: k})
	}
	e.clear()
	e.freeze = f
	e.epoch++
	b.post(letter{news: Froze, freeze: f})
	c := b.takeChanged()
	b.mu.Unlock()
	wake(c)
	return f
}

// yields tells whether e's freeze gives way to f.
func (e *entry) yields(f Freeze, now time.Time) bool {
	if f.By == Person || e.standing(now) != Frozen {
		return true
	}
	return e.freeze.By != Person && f.Until.After(e.freeze.Until)
}

// Again tells whoever is about to freeze k for a failure without a hint whether
// k is on probation, and how long its last freeze was meant to last: the new
// one should be twice as long. The length is 0 where the last freeze was a
// person's, since what somebody chose is no measure for what the upstream did:
// growth then starts anew. It is 0 too for a key that was never frozen or has
// succeeded since.
func (b *Board) Again(k Key, now time.Time) (last time.Duration, probation bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[k]; e != nil {
		return e.again(now)
	}
	return 0, false
}

func (e *entry) again(now time.Time) (time.Duration, bool) {
	probation := e.standing(now) == Probation
	if e.freeze.By == Person {
		return 0, probation
	}
	return e.freeze.Length, probation
}

// Thaw lifts k's freeze, whoever set it, and ends its probation. It reports
// whether k was frozen.
func (b *Board) Thaw(k Key, now time.Time) bool {
	b.mu.Lock()
	var frozen bool
	var c chan struct{}
	if e := b.entries[k]; e != nil {
		frozen = e.standing(now) == Frozen
		b.lift(k, e, Person)
	}
	if frozen {
		c = b.takeChanged()
	}
	b.mu.Unlock()
	wake(c)
	return frozen
}

// ThawAll thaws every key and returns how many were frozen.
func (b *Board) ThawAll(now time.Time) int {
	b.mu.Lock()
	n := 0
	for k, e := range b.entries {
		if e.standing(now) == Frozen {
			n++
		}
		b.lift(k, e, Person)
	}
	var c chan struct{}
	if n > 0 {
		c = b.takeChanged()
	}
	b.mu.Unlock()
	wake(c)
	return n
}

// lift ends e's freeze and probation, and tells the others if there was one. b.mu is
// held.
func (b *Board) lift(k Key, e *entry, by By) {
	if !e.freeze.Until.IsZero() {
		b.post(letter{news: Thawed, key: k, by: by})
	}
	e.clear()
}

// Freezes returns the freezes that run at now, the soonest over first.
func (b *Board) Freezes(now time.Time) []Freeze {
	b.mu.Lock()
	var fs []Freeze
	for _, e := range b.entries {
		if e.standing(now) == Frozen {
			fs = append(fs, e.freeze)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(fs, func(x, y Freeze) int {
		return cmp.Or(x.Until.Compare(y.Until), cmp.Compare(x.Key, y.Key))
	})
	return fs
}

// maxText bounds what is kept of a reason or an error, in bytes: they quote
// upstreams, and are held and saved per key.
const maxText = 1 << 10

// clip returns s, or a copy of its first maxText bytes, whole runes only.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:maxText], ""))
}
