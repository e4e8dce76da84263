package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// stormLines is how many lines of one message a second the log takes; what is more is
// counted and told in one line. The line that tells of a finished request is always
// written unless it is a warning.
const stormLines = 100

// A stormHandler keeps a storm of the same message from filling a disk: an outage
// under load, or somebody who tries keys.
type stormHandler struct {
	slog.Handler
	*storms
}

// storms count the lines of the running second, by level and message.
type storms struct {
	mu   sync.Mutex
	seen map[storm]*stormCount
}

type storm struct {
	level   slog.Level
	message string
}

type stormCount struct {
	second time.Time // when it began
	lines  int
	left   int // left out
}

func newStormHandler(h slog.Handler) *stormHandler {
	return &stormHandler{h, &storms{seen: map[storm]*stormCount{}}}
}

// Handle implements slog.Handler.
func (h *stormHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message == "request" || h.take(storm{r.Level, r.Message}, r.Time) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

// take counts a line, and is false where it is left out.
func (h *stormHandler) take(k storm, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.seen[k]
	if c == nil { // messages are the program's own: there are few
		c = &stormCount{second: now}
		h.seen[k] = c
	}
	if now.Sub(c.second) >= time.Second && c.left == 0 {
		c.second, c.lines = now, 0
	}
	if c.lines++; c.lines <= stormLines {
		return true
	}
	if c.left++; c.left == 1 {
		time.AfterFunc(time.Second, func() { h.tell(k, c) })
	}
	return false
}

// tell says how many lines were left out, and lets the next ones through.
func (h *stormHandler) tell(k storm, c *stormCount) {
	h.mu.Lock()
	left, now := c.left, time.Now()
	c.second, c.lines, c.left = now, 0, 0
	h.mu.Unlock()
	r := slog.NewRecord(now, k.level, "lines left out", 0)
	r.AddAttrs(slog.String("like", k.message), slog.Int("lines", left))
	_ = h.Handler.Handle(context.Background(), r) // a log that cannot be written stops nothing
}

// WithAttrs implements slog.Handler.
func (h *stormHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &stormHandler{h.Handler.WithAttrs(attrs), h.storms}
}

// WithGroup implements slog.Handler.
func (h *stormHandler) WithGroup(name string) slog.Handler {
	return &stormHandler{h.Handler.WithGroup(name), h.storms}
}
