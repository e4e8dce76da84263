package stats

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The rings of a series. A window is read from the finest ring that reaches back
// far enough, so its edge is off by at most one width, always inwards: nothing
// older than the window is ever counted.
const (
	shortWidth  = 10      // seconds; sixty of them are ten minutes
	middleWidth = 60      // seconds; sixty of them are an hour
	longWidth   = 10 * 60 // seconds; the history's cells
)

// HistoryCells is how many cells the history has: 24 hours of ten minutes.
const HistoryCells = 144

// maxText bounds, in bytes, any text of a failure that is kept.
const maxText = 1024

// A series is the books of one candidate or one model.
type series struct {
	// model says whose books these are; it never changes.
	model bool

	mu     sync.Mutex // guards all below
	all    bucket     // since the beginning
	short  ring
	middle ring
	long   ring
	minute minute
	frozen frozen

	freezes, hedges, streak int64
	failed                  map[string]int64 // by class
	lastError               string
	lastErrorAt             time.Time
}

func newSeries(model bool) *series {
	return &series{
		model:  model,
		short:  newRing(shortWidth, 60),
		middle: newRing(middleWidth, 60),
		long:   newRing(longWidth, HistoryCells),
	}
}

func (s *series) rings() [3]*ring { return [3]*ring{&s.short, &s.middle, &s.long} }

// book enters an event everywhere it belongs.
func (s *series) book(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.book(e)
	s.freezes += e.froze
	s.hedges += e.hedged
	switch e.class {
	case succeeded:
		s.streak = 0
	case failed:
		s.streak++
		if !s.model {
			s.fail(e.kind, 1)
		}
	}
	if e.failure != "" {
		// Attempts are booked when their request ends, so an older one may come
		// after a newer one.
		if at := time.Unix(e.at, 0); !e.timed || !at.Before(s.lastErrorAt) {
			s.lastError = e.failure
			s.lastErrorAt = time.Time{}
			if e.timed {
				s.lastErrorAt = at
			}
		}
	}
	if !e.timed {
		return
	}
	for _, r := range s.rings() {
		if b := r.slot(e.at); b != nil {
			b.book(e)
		}
	}
	s.minute.book(e)
}

// forget drops everything booked for later than a second.
func (s *series) forget(after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings() {
		r.forget(after)
	}
	s.minute.forget(after)
	if s.lastErrorAt.Unix() > after {
		s.lastErrorAt = time.Unix(after, 0)
	}
}

// clip bounds a text that is kept. It cuts between runes, and copies what it cut
// so that the rest is not kept alive.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	const more = "…"
	end := maxText - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end] + more)
}
