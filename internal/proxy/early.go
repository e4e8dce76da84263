package proxy

import (
	"net/http"
	"time"
)

// earlyEvery is after how long of holding a client is told that it is not
// forgotten, and how often from then on.
const earlyEvery = 15 * time.Second

// early keeps a client from giving up while an event stream is held until it is
// whole: after a while 200 and a comment go out, and a comment again and again.
// From then on an error can only be told within the stream. A nil early does
// nothing. It belongs to the walk's goroutine, but for announce.
type early struct {
	w     http.ResponseWriter
	id    string
	held  chan struct{} // bytes have begun to be held
	timer *time.Timer
	sent  bool
	dead  bool // the client takes nothing any more
}

func newEarly(w http.ResponseWriter, id string) *early {
	return &early{w: w, id: id, held: make(chan struct{}, 1)}
}

// announce says that bytes of an event stream have begun to be held.
func (e *early) announce() {
	select {
	case e.held <- struct{}{}:
	default:
	}
}

// holding receives that news.
func (e *early) holding() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.held
}

// begin starts the clock, once.
func (e *early) begin() {
	if e.timer == nil {
		e.timer = time.NewTimer(earlyEvery)
	}
}

// tick receives when the client is to hear something.
func (e *early) tick() <-chan time.Time {
	if e == nil || e.timer == nil {
		return nil
	}
	return e.timer.C
}

// comment sends a comment line, and before the first one the head.
func (e *early) comment() {
	e.timer.Reset(earlyEvery)
	if e.dead {
		return
	}
	if !e.sent {
		e.sent = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		h.Set("X-Understudy-Request-Id", e.id)
		e.w.WriteHeader(http.StatusOK)
	}
	if _, err := e.w.Write([]byte(": understudy holds the answer until it is whole\n\n")); err != nil {
		e.dead = true
		return
	}
	e.dead = http.NewResponseController(e.w).Flush() != nil
}

// begun says whether the answer's head has gone out.
func (e *early) begun() bool { return e != nil && e.sent }

// end stops the clock.
func (e *early) end() {
	if e != nil && e.timer != nil {
		e.timer.Stop()
	}
}
