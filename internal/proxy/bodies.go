package proxy

import (
	"bytes"

	"understudy/internal/probe"
	"understudy/internal/stats"
)

// keptBody bounds, in bytes, what is kept of one body. Somewhat more is collected, so
// that a secret at its end is seen whole.
const keptBody = 1 << 20

// bodies are what one request keeps of what went over the wire; nil keeps nothing and
// costs nothing.
type bodies struct {
	failed  bool // of failed attempts only
	answers []keptAnswer
}

type keptAnswer struct {
	try  int
	kept *probe.Kept
}

// newBodies says whose bodies a configuration keeps.
func newBodies(mode string) *bodies {
	if mode == "failed" || mode == "all" {
		return &bodies{failed: mode == "failed"}
	}
	return nil
}

// collect is what collects the next answer.
func (b *bodies) collect() *probe.Kept {
	if b == nil {
		return nil
	}
	return probe.Keep(keptBody + hideAhead)
}

// note takes what was collected of the attempt that was recorded last. It has
// reported, so that nobody but this request's goroutine reads its answer any more.
func (r *run) note(kept *probe.Kept) {
	if r.bodies != nil && kept != nil {
		r.bodies.answers = append(r.bodies.answers, keptAnswer{len(r.record.Tries) - 1, kept})
	}
}

// kept is what is kept of the bodies, now that the request is over; nil without any.
func (r *run) kept() *stats.Bodies {
	b := r.bodies
	if b == nil || r.record.Ignored {
		return nil
	}
	bad := func(try int) bool {
		v := r.record.Tries[try].Verdict
		return v == stats.Failed || v == stats.Empty
	}
	out := new(stats.Bodies)
	some := !b.failed || r.record.Failed()
	for _, a := range b.answers {
		if b.failed && !bad(a.try) {
			continue
		}
		some = true
		if a.kept.Size > 0 {
			out.Answers = append(out.Answers, stats.Answer{Try: a.try, Body: stats.Body{Text: a.kept.Text, Size: a.kept.Size}})
		}
	}
	if !some {
		return nil
	}
	// Copied, so that a large body does not stay in memory for its beginning.
	body := r.req.body
	out.Request = stats.Body{Text: bytes.Clone(body[:min(len(body), keptBody+hideAhead)]), Size: int64(len(body))}
	// The redactor goes along, not the request.
	redact := r.redact
	out.Hide = func(text []byte) []byte { return []byte(redact.Hide(string(text))) }
	return out
}
