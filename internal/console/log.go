package console

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLogLines bounds the lines that wait for a terminal.
const maxLogLines = 1000

// Log stands between a logger and the terminal. While a console has the terminal it
// keeps the lines for it, dropping the oldest ones when they are too many; otherwise
// it writes them on. It is safe for concurrent use, and while a console has it, a
// Write never waits.
type Log struct {
	mu       sync.Mutex
	to       io.Writer
	attached bool
	lines    []string
	dropped  int
	ready    chan struct{} // capacity 1: there is something to take
}

// NewLog makes a Log that writes to w while no console is there.
func NewLog(w io.Writer) *Log { return &Log{to: w, ready: make(chan struct{}, 1)} }

// Write takes one or more whole lines.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.attached {
		return l.to.Write(p)
	}
	for line := range bytes.Lines(p) {
		l.lines = append(l.lines, string(bytes.TrimRight(line, "\r\n")))
	}
	if over := len(l.lines) - maxLogLines; over > 0 {
		l.lines = append(l.lines[:0], l.lines[over:]...)
		l.dropped += over
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
	return len(p), nil
}

// attach keeps the lines from now on.
func (l *Log) attach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attached = true
}

// detach writes lines on again, first those that were kept.
func (l *Log) detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attached = false
	lines := l.lines
	if l.dropped > 0 {
		lines = append([]string{droppedText(l.dropped)}, lines...)
	}
	l.lines, l.dropped = nil, 0
	for _, line := range lines {
		// The log has nobody to tell that it cannot be written.
		_, _ = io.WriteString(l.to, line+"\n")
	}
}

func droppedText(n int) string {
	if n == 1 {
		return "(1 log line dropped: the terminal took none)"
	}
	return fmt.Sprintf("(%d log lines dropped: the terminal took none)", n)
}

// take hands out what is kept, and how many lines before it were dropped.
func (l *Log) take() (lines []string, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, dropped = l.lines, l.dropped
	l.lines, l.dropped = nil, 0
	return lines, dropped
}
