package main

import (
	"io"
	"sync"
	"time"
)

// A lazyWriter collects log lines and writes them together, at the latest after
// lazyDelay: one system call for many requests instead of one for each. It is for
// files and pipes; a terminal is written at once. Nobody waits for who reads the log:
// while a write does not end, up to lazyMost bytes are collected, and what comes then
// is left out and counted.
type lazyWriter struct {
	to io.Writer
	// account is the line that says how many were left out.
	account func(lines int) []byte

	mu      sync.Mutex
	lines   []byte
	spare   []byte
	left    int           // lines left out since the last write
	writing chan struct{} // closed when what is being written has been; nil = nothing is
	timer   *time.Timer
	armed   bool
}

const (
	lazyDelay = 50 * time.Millisecond
	lazyBytes = 32 << 10
	lazyMost  = 1 << 20
	// lazyEnd bounds how long the end of the program waits for who reads the log.
	lazyEnd = 2 * time.Second
)

func newLazyWriter(to io.Writer, account func(lines int) []byte) *lazyWriter {
	w := &lazyWriter{to: to, account: account}
	w.timer = time.AfterFunc(time.Hour, w.begin)
	w.timer.Stop()
	return w
}

// Write takes a line. It never fails and never waits: a log that cannot be written
// stops nothing.
func (w *lazyWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines)+len(p) > lazyMost {
		w.left++
		return len(p), nil
	}
	w.lines = append(w.lines, p...)
	if len(w.lines) >= lazyBytes {
		w.start()
	} else if !w.armed {
		w.armed = true
		w.timer.Reset(lazyDelay)
	}
	return len(p), nil
}

// begin starts writing what has been collected.
func (w *lazyWriter) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	w.start()
}

// start is begin with the mutex held.
func (w *lazyWriter) start() {
	if w.writing == nil && len(w.lines) > 0 {
		w.writing = make(chan struct{})
		go w.write() // ends when all that has been collected is written
	}
}

func (w *lazyWriter) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lines) > 0 {
		lines := w.lines
		if w.left > 0 {
			lines = append(lines, w.account(w.left)...)
			w.left = 0
		}
		w.lines = w.spare[:0]
		w.mu.Unlock()
		_, _ = w.to.Write(lines) // where the log cannot go, nothing can be said
		w.mu.Lock()
		w.spare = lines
	}
	close(w.writing)
	w.writing = nil
}

// Flush writes what has been collected, and waits for that, but not for ever.
func (w *lazyWriter) Flush() {
	w.begin()
	w.mu.Lock()
	writing := w.writing
	w.mu.Unlock()
	if writing == nil {
		return
	}
	timer := time.NewTimer(lazyEnd)
	defer timer.Stop()
	select {
	case <-writing:
	case <-timer.C:
	}
}
