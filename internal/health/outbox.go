package health

import (
	"slices"
	"sync"
)

// maxOutbox bounds the news that wait to be told. More than that happens only while
// the store is away; then the oldest are the ones that matter least.
const maxOutbox = 1024

// A letter is one piece of news for the store.
type letter struct {
	news   News // Froze, Thawed, Trying or Tried
	key    Key
	freeze Freeze
	by     By
}

// An outbox is the queue of what a board has to tell, in order. Posting never
// blocks: a board posts while it is locked. One goroutine sends.
type outbox struct {
	mu      sync.Mutex
	letters []letter
	sending bool          // the first one; it stays here until it has been told
	dropped int64         // letters that were never told
	filled  chan struct{} // capacity 1: there may be letters
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// post adds a letter, in the place of the oldest that is not being sent if it must.
func (o *outbox) post(l letter) {
	o.mu.Lock()
	if len(o.letters) == maxOutbox {
		if o.sending {
			o.letters[1] = o.letters[0]
		}
		o.letters = o.letters[1:]
		o.dropped++
	}
	o.letters = append(o.letters, l)
	o.mu.Unlock()
	o.nudge()
}

func (o *outbox) nudge() {
	select {
	case o.filled <- struct{}{}:
	default: // who reads it will see this letter too
	}
}

// next is the oldest letter, to be sent, and false where there is none.
func (o *outbox) next() (letter, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.letters) == 0 {
		return letter{}, false
	}
	o.sending = true
	return o.letters[0], true
}

// sent ends the sending of the letter from next, which stays unless it was told.
func (o *outbox) sent(told bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending = false
	if !told {
		return
	}
	o.letters[0] = letter{} // its texts go now
	if o.letters = o.letters[1:]; len(o.letters) == 0 {
		o.letters = nil
	}
}

// holds says whether a freeze or thaw of k is still to be told. One that is being sent may
// be told already: the store answers after it has told everybody.
func (o *outbox) holds(k Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.letters
	if o.sending {
		waiting = waiting[1:]
	}
	return slices.ContainsFunc(waiting, func(l letter) bool {
		return l.news == Froze && l.freeze.Key == k || l.news == Thawed && l.key == k
	})
}

// count is how many letters were dropped, and how many are not told yet.
func (o *outbox) count() (lost int64, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped, len(o.letters)
}
