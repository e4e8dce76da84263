package daemon

import (
	"context"

	"understudy/internal/archive"
)

// writing is the archive's goroutine, which an upgrade ends and, should it fail,
// begins again.
type writing struct {
	archive *archive.Archive
	opened  chan struct{} // closed when the file is open, or cannot be now
	cancel  context.CancelFunc
	ended   chan struct{}
}

// open opens the archive, which takes milliseconds, on a goroutine of its own.
func (w *writing) open() {
	w.opened = make(chan struct{})
	go func() {
		defer close(w.opened)
		w.archive.Open(context.Background()) // ends within a moment
	}()
}

// begin starts it.
func (w *writing) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.cancel, w.ended = cancel, ended
	go func() {
		defer close(ended)
		<-w.opened
		w.archive.Run(ctx)
	}()
}

// end waits until everything is written.
func (w *writing) end() {
	w.cancel()
	<-w.ended
}
