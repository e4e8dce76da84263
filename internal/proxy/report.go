package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"math"
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
	// Logger.LogAttrs would walk the stack for a place in the source that no line shows.
	var few [15]slog.Attr
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(r.summary(few[:0])...)
	_ = r.h.log.Handler().Handle(context.Background(), line) // a log that cannot be written stops nothing
}

// summary is the log line of a finished request. What an answer did not report is
// left out: no number stands for "unknown". The attributes are appended.
func (r *run) summary(attrs []slog.Attr) []slog.Attr {
	rec := &r.record
	attrs = append(attrs, slog.String("id", rec.ID), slog.String("model", r.redact.Quote(rec.Model, 200)), slog.String("ending", rec.Ending.String()),
		slog.Int("status", rec.Status), slog.Int("attempts", len(rec.Tries)), slog.Duration("took", rec.End.Round(time.Millisecond)))
	if rec.FirstContent > 0 && rec.Stream {
		attrs = append(attrs, slog.Duration("first_content", rec.FirstContent.Round(time.Millisecond)))
	}
	if rec.Client != "" {
		attrs = append(attrs, slog.String("client", rec.Client))
	}
	if w := rec.Winner; w >= 0 {
		attrs = append(attrs, slog.String("candidate", r.redact.Quote(rec.Tries[w].Name, 200)))
	}
	for _, t := range []struct {
		name string
		n    int64
	}{{"input_tokens", rec.Usage.Input}, {"output_tokens", rec.Usage.Output}, {"cached_tokens", rec.Usage.Cached}} {
		if t.n >= 0 {
			attrs = append(attrs, slog.Int64(t.name, t.n))
		}
	}
	if u := rec.Usage; u.Cached >= 0 && u.Input > 0 {
		attrs = append(attrs, slog.Float64("cache_rate", math.Round(1000*float64(u.Cached)/float64(u.Input))/1000))
	}
	if rec.Ending == stats.Broken && rec.Winner >= 0 {
		attrs = append(attrs, slog.String("why", rec.Tries[rec.Winner].Text))
	}
	if t := r.traceID(); t != "" {
		attrs = append(attrs, slog.String("traceparent", t))
	}
	return attrs
}

// traceID is the request's traceparent, for the log; it passes through unchanged.
func (r *run) traceID() string {
	if t := field(r.req.header, "Traceparent"); len(t) == 55 {
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
	attrs := []slog.Attr{slog.String("id", r.req.id), slog.String("model", r.redact.Quote(r.chain.Model, 200)), slog.String("candidate", r.redact.Quote(t.Name, 200)),
		slog.String("why", t.Text), slog.String("action", t.Action), slog.String("rule", t.Rule)}
	if t.Wait > 0 {
		attrs = append(attrs, slog.Duration("wait", t.Wait.Round(time.Millisecond)))
	}
	if t.Froze > 0 {
		attrs = append(attrs, slog.Duration("frozen", t.Froze.Round(time.Millisecond)))
	}
	h.log.LogAttrs(context.Background(), level, "attempt failed", attrs...)
}

// mourn logs a panic, which is a fault of this program's. net/http would only tell
// its own log, which is quiet here, and nobody at all outside of a request's goroutine.
func (h *Handler) mourn(s *Snapshot, id string, fault any) {
	h.log.Error("internal error", slog.String("id", id), slog.String("panic", s.Redact.Quote(fmt.Sprint(fault), 300)), slog.String("stack", string(debug.Stack())))
}

// reportRefusal books a request that nobody was called for.
func (h *Handler) reportRefusal(q *request, a *answer) {
	s := h.snap.Load()
	h.ledger.Add(stats.Record{ID: q.id, Client: q.client, Method: q.quote(s, q.method, 60), Path: q.quote(s, q.path, 300), Dialect: q.endpoint.Dialect.String(),
		Stream: q.stream, Start: q.start, End: time.Since(q.start), Status: a.status, Winner: -1, Ending: stats.Refused, Usage: stats.NoUsage()})
	h.log.Info("refused", slog.String("id", q.id), slog.String("path", q.quote(s, q.path, 200)), slog.Int("status", a.status), slog.String("why", q.quote(s, a.message, 300)))
}
