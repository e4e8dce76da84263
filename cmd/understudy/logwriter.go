package main

import (
	"io"
	"sync"
	"time"
)

// A lazyWriter collects log lines and writes them together, at the latest after
// lazyDelay: one system call for many requests instead of one for each. It is for
// files and pipes; a terminal is written at once.
type lazyWriter struct {
	to io.Writer

	mu    sync.Mutex
	lines []byte
	timer *time.Timer
	armed bool
}

const (
	lazyDelay = 50 * time.Millisecond
	lazyBytes = 32 << 10
)

func newLazyWriter(to io.Writer) *lazyWriter {
	w := &lazyWriter{to: to}
	w.timer = time.AfterFunc(time.Hour, w.Flush)
	w.timer.Stop()
	return w
}

// Write takes a line. It never fails: a log that cannot be written stops nothing.
func (w *lazyWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, p...)
	if len(w.lines) >= lazyBytes {
		w.write()
	} else if !w.armed {
		w.armed = true
		w.timer.Reset(lazyDelay)
	}
	return len(p), nil
}

// Flush writes what has been collected.
func (w *lazyWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	w.write()
}

func (w *lazyWriter) write() {
	if len(w.lines) > 0 {
		_, _ = w.to.Write(w.lines) // where the log cannot go, nothing can be said
		w.lines = w.lines[:0]
	}
}
