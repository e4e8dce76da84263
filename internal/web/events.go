package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams bounds how many readers of events there are at once.
	maxStreams = 128
	// heartbeat is how long a stream is silent at most.
	heartbeat = 15 * time.Second
	// maxWrite is how long a reader may take to take one event; then it is let go.
	maxWrite = 10 * time.Second
)

// events sends the number of the newest finished request, at once and whenever
// something has changed, at most four times a second. What has changed is for the
// reader to fetch: a slow one misses numbers, never the newest, and holds up
// nobody but this goroutine. It ends with the login, or the token, that opened it.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		sendError(w, http.StatusServiceUnavailable, "too many readers of events")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	signs := h.control.Changed(ctx)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	rc := http.NewResponseController(w)
	// The connection may serve other requests afterwards.
	defer rc.SetWriteDeadline(time.Time{})
	send := func(text string) bool {
		if !h.admits(r) {
			return false // since it was opened
		}
		// Where a writer knows no deadlines, it is a test's.
		if err := rc.SetWriteDeadline(time.Now().Add(maxWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		_, err := w.Write([]byte(text))
		return err == nil && rc.Flush() == nil
	}
	change := func() bool {
		n := h.control.Sequence()
		return send(fmt.Sprintf("id: %d\nevent: change\ndata: {\"sequence\":%d}\n\n", n, n))
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for alive := change(); alive; {
		select {
		case <-h.closing:
			return
		case <-ctx.Done():
			return
		case <-signs:
			alive = change()
		case <-beat.C:
			alive = send(": still here\n\n")
		}
	}
}
