package daemon

import (
	"context"

	"understudy/internal/archive"
)

// writing is the archive's goroutine, which an upgrade ends and, should it fail,
// begins again.
type writing struct {
	archive *archive.Archive
	cancel  context.CancelFunc
	ended   chan struct{}
}

// begin starts it.
func (w *writing) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.cancel, w.ended = cancel, ended
	go func() {
		defer close(ended)
		w.archive.Run(ctx)
	}()
}

// end waits until everything is written.
func (w *writing) end() {
	w.cancel()
	<-w.ended
}
