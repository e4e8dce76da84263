package health

import "sync"

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
// blocks: a board posts while it is locked.
type outbox struct {
	mu      sync.Mutex
	letters []letter
	dropped int64         // letters that were never told
	filled  chan struct{} // capacity 1: there may be letters
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// post adds a letter, in the place of the oldest if it must.
func (o *outbox) post(l letter) {
	o.mu.Lock()
	if len(o.letters) == maxOutbox {
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

// take hands over all letters.
func (o *outbox) take() []letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.letters
	o.letters = nil
	return all
}

// putBack returns letters that could not be told, before those posted since.
func (o *outbox) putBack(ls []letter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := append(ls[:len(ls):len(ls)], o.letters...)
	if over := len(all) - maxOutbox; over > 0 {
		all = all[over:]
		o.dropped += int64(over)
	}
	o.letters = all
}

// lost is how many letters were dropped, and waiting how many are not told yet.
func (o *outbox) count() (lost int64, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped, len(o.letters)
}
