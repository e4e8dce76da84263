package probe

import (
	"sync/atomic"
	"time"

	"understudy/internal/wire"
)

// A Progress tells how much an answer has said while it is held. Its zero value is
// an answer that has said nothing; its methods may be called from any goroutine.
type Progress struct {
	first  atomic.Pointer[time.Time] // when the first content came
	chars  atomic.Int64
	other  atomic.Bool // it says something that is not counted in characters
	proved atomic.Bool
}

// note takes over what a reader has read.
func (p *Progress) note(r *wire.Reader, now time.Time) {
	chars, other := r.Said()
	if chars == 0 && !other {
		return
	}
	p.chars.Store(int64(chars))
	p.other.Store(other)
	if p.first.Load() == nil {
		p.first.Store(&now)
	}
}

// First is when the first content came; zero = never.
func (p *Progress) First() time.Time {
	if t := p.first.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Proved says that the answer has shown to be good and is only held for longer.
func (p *Progress) Proved() bool { return p.proved.Load() }

// TrickleTime is how long content must have come before its rate says anything.
const TrickleTime = 2 * time.Second

// Trickles says that content comes more slowly than so many characters a second,
// counted from the first one; 0 = never. What is no text, such as the arguments of
// a tool call, has no rate.
func (p *Progress) Trickles(rate float64, now time.Time) bool {
	first := p.first.Load()
	if rate <= 0 || first == nil || p.other.Load() {
		return false
	}
	since := now.Sub(*first)
	return since >= TrickleTime && float64(p.chars.Load()) < rate*since.Seconds()
}
