package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"understudy/internal/health"
	"understudy/internal/stats"
)

// report books the request, exactly once, however it ended.
func (r *run) report() {
	r.record.End = time.Since(r.req.start)
	if r.caller != nil {
		r.caller.Spend(tokens(r.record.Usage), time.Now())
		r.caller.Settle(health.Abandoned, time.Now(), health.Strike{})
	}
	r.record.Bodies = r.kept()
	r.h.ledger.Add(r.record)
	level := slog.LevelInfo
	if r.record.Ending == stats.Exhausted && !r.req.ignored || r.record.Ending == stats.Broken {
		level = slog.LevelWarn
	}
	if !r.h.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []any{slog.String("id", r.record.ID), slog.String("model", r.redact.Quote(r.record.Model, 200)), slog.String("ending", r.record.Ending.String()),
		slog.Int("status", r.record.Status), slog.Int("attempts", len(r.record.Tries)), slog.Duration("time", r.record.End.Round(time.Millisecond))}
	if r.record.Client != "" {
		attrs = append(attrs, slog.String("client", r.record.Client))
	}
	if w := r.record.Winner; w >= 0 {
		attrs = append(attrs, slog.String("candidate", r.redact.Quote(r.record.Tries[w].Name, 200)))
	}
	if r.record.Ending == stats.Broken && r.record.Winner >= 0 {
		attrs = append(attrs, slog.String("why", r.record.Tries[r.record.Winner].Text))
	}
	if t := r.traceID(); t != "" {
		attrs = append(attrs, slog.String("traceparent", t))
	}
	r.h.log.Log(context.Background(), level, "request", attrs...)
}

// traceID is the request's traceparent, for the log; it passes through unchanged.
func (r *run) traceID() string {
	if t := r.req.header.Get("Traceparent"); len(t) == 55 {
		return r.redact.Quote(t, 60)
	}
	return ""
}

// logAttempt notes a failed attempt, with the rule that decided.
func (h *Handler) logAttempt(r *run, t *stats.Try) {
	level := slog.LevelWarn
	if r.req.ignored {
		level = slog.LevelDebug
	}
	attrs := []any{slog.String("id", r.req.id), slog.String("model", r.redact.Quote(r.chain.Model, 200)), slog.String("candidate", r.redact.Quote(t.Name, 200)),
		slog.String("why", t.Text), slog.String("action", t.Action), slog.String("rule", t.Rule)}
	if t.Wait > 0 {
		attrs = append(attrs, slog.Duration("wait", t.Wait.Round(time.Millisecond)))
	}
	if t.Froze > 0 {
		attrs = append(attrs, slog.Duration("frozen", t.Froze.Round(time.Millisecond)))
	}
	h.log.Log(context.Background(), level, "attempt failed", attrs...)
}

// mourn logs a panic, which is a fault of this program's. net/http would only tell
// its own log, which is quiet here, and nobody at all outside of a request's goroutine.
func (h *Handler) mourn(s *Snapshot, id string, fault any) {
	h.log.Error("internal error", slog.String("id", id), slog.String("panic", s.Redact.Quote(fmt.Sprint(fault), 300)), slog.String("stack", string(debug.Stack())))
}

// reportRefusal books a request that nobody was called for.
func (h *Handler) reportRefusal(q *request, a *answer) {
	s := h.snap.Load()
	h.ledger.Add(stats.Record{ID: q.id, Client: q.client, Method: q.method, Path: q.quote(s, q.path, 300), Dialect: q.endpoint.Dialect.String(),
		Stream: q.stream, Start: q.start, End: time.Since(q.start), Status: a.status, Winner: -1, Ending: stats.Refused, Usage: stats.NoUsage()})
	h.log.Info("refused", slog.String("id", q.id), slog.String("path", q.quote(s, q.path, 200)), slog.Int("status", a.status), slog.String("why", q.quote(s, a.message, 300)))
}
