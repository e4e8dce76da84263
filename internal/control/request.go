package control

import (
	"time"

	"understudy/internal/stats"
)

// Query says which finished requests are asked for.
type Query struct {
	// Limit is the most to give; at most MaxRequests, which 0 stands for too.
	Limit int
	// Model is a virtual model, "*" for the pool; "" is all.
	Model string
	// Failed, where it is not nil, keeps only the requests that ended in
	// anything but a healthy answer or the client's leaving, or only the others.
	Failed *bool
	// After keeps only requests with a higher sequence number.
	After uint64
}

// MaxRequests is the most that one Query gives.
const MaxRequests = 1000

// Requests is an answer to a Query.
type Requests struct {
	// Requests are the newest first, without their attempts.
	Requests []Request `json:"requests"`
	// Sequence is the number of the newest finished request.
	Sequence uint64 `json:"sequence"`
	// Dropped is how many after Query.After are no longer kept.
	Dropped uint64 `json:"dropped"`
}

// Request is one finished request of a client. Durations are milliseconds; nil is
// "never".
type Request struct {
	ID string `json:"id"`
	// Sequence is its place in the journal; 0 in an answer to Request.
	Sequence uint64 `json:"sequence,omitempty"`
	// Model is "" for a request that never found its chain.
	Model        string    `json:"virtual_model"`
	Client       string    `json:"client"`
	Method       string    `json:"method"`
	Path         string    `json:"path"`
	Dialect      string    `json:"dialect"`
	Stream       bool      `json:"stream"`
	Ignored      bool      `json:"ignored"`
	Start        time.Time `json:"start"`
	Released     *float64  `json:"released_ms"`
	FirstContent *float64  `json:"first_content_ms"`
	Duration     float64   `json:"duration_ms"`
	// Status is what the client got; 0 if nothing was sent.
	Status int    `json:"status"`
	Ending string `json:"ending"`
	Failed bool   `json:"failed"`
	// Candidate is the name of the one whose answer went out, "" if none did.
	Candidate    string `json:"candidate"`
	Tokens       Tokens `json:"tokens"`
	Bytes        int64  `json:"bytes"`
	AttemptCount int    `json:"attempt_count"`
	SkipCount    int    `json:"skip_count"`
	// Attempts and Skips are the decision trail, in order.
	Attempts []Attempt `json:"attempts,omitempty"`
	Skips    []Skip    `json:"skips,omitempty"`
	// Omitted is how many attempts were left out of the middle of Attempts.
	Omitted int `json:"omitted_attempts,omitempty"`
}

// Attempt is one attempt of a Request, with what was decided after it.
type Attempt struct {
	Candidate string    `json:"candidate"`
	Identity  string    `json:"identity"`
	Model     string    `json:"model"`
	Start     time.Time `json:"start"`
	// The phases, in milliseconds from Start; nil where it never came to that.
	Connected    *float64 `json:"connected_ms"`
	Header       *float64 `json:"header_ms"`
	FirstByte    *float64 `json:"first_byte_ms"`
	FirstContent *float64 `json:"first_content_ms"`
	Released     *float64 `json:"released_ms"`
	Duration     float64  `json:"duration_ms"`
	Verdict      string   `json:"verdict"` // ok, empty, failed, abandoned
	Status       int      `json:"status"`  // 0 without an answer
	Class        string   `json:"class"`
	Fault        string   `json:"fault"`
	// Rule decided, and Action is what it said.
	Rule   string `json:"rule"`
	Action string `json:"action"`
	Text   string `json:"text"`
	// WaitSeconds is how long the request waited afterwards, FrozeSeconds for
	// how long the candidate was frozen; Hedged says that auto-hedge did it.
	WaitSeconds  float64 `json:"wait_seconds"`
	FrozeSeconds float64 `json:"froze_seconds"`
	Hedged       bool    `json:"hedged"`
	Tokens       Tokens  `json:"tokens"`
	Bytes        int64   `json:"bytes"`
}

// Skip is a candidate that was passed over.
type Skip struct {
	Candidate   string  `json:"candidate"`
	Identity    string  `json:"identity"`
	Reason      string  `json:"reason"`
	SecondsLeft float64 `json:"seconds_left"`
}

// Requests lists finished requests that are still kept, the newest first.
func (c *Control) Requests(q Query) Requests {
	limit := q.Limit
	if limit <= 0 || limit > MaxRequests {
		limit = MaxRequests
	}
	b := c.builder()
	ledger := c.deps.Handler.Ledger()
	out := Requests{Requests: []Request{}, Sequence: ledger.Seq()}
	if q.After > 0 {
		_, out.Dropped = ledger.Since(q.After, 0)
	}
	newest := ledger.Latest(limit, func(r *stats.Record) bool {
		return (q.Model == "" || r.Model == q.Model) && (q.Failed == nil || failed(r) == *q.Failed)
	})
	for i := range newest {
		if newest[i].Seq > q.After {
			out.Requests = append(out.Requests, b.request(&newest[i].Record, newest[i].Seq))
		}
	}
	return out
}

// Request gives a finished request with its decision trail, as long as it is kept.
func (c *Control) Request(id string) (Request, bool) {
	record, ok := c.deps.Handler.Ledger().Find(id)
	if !ok {
		return Request{}, false
	}
	b := c.builder()
	r := b.request(&record, 0)
	r.Omitted = record.Omitted
	r.Attempts, r.Skips = []Attempt{}, []Skip{}
	for i := range record.Tries {
		r.Attempts = append(r.Attempts, b.attempt(&record.Tries[i]))
	}
	for _, s := range record.Skips {
		r.Skips = append(r.Skips, Skip{Candidate: b.name(s.Name), Identity: s.Candidate, Reason: b.prose(s.Reason), SecondsLeft: s.Left.Seconds()})
	}
	return r, true
}

// failed says whether the client got anything but a healthy answer. One that left
// has not failed.
func failed(r *stats.Record) bool { return r.Ending != stats.Success && r.Ending != stats.Cancelled }

func (b *builder) request(r *stats.Record, sequence uint64) Request {
	out := Request{
		ID: b.name(r.ID), Sequence: sequence, Model: b.name(r.Model), Client: b.name(r.Client), Method: b.name(r.Method), Path: b.prose(r.Path),
		Dialect: r.Dialect, Stream: r.Stream, Ignored: r.Ignored, Start: r.Start.UTC(),
		Released: reached(r.Released), FirstContent: reached(r.FirstContent), Duration: *milliseconds(&r.End),
		Status: r.Status, Ending: r.Ending.String(), Failed: failed(r), Tokens: usage(r.Usage), Bytes: r.Bytes,
		AttemptCount: len(r.Tries) + r.Omitted, SkipCount: len(r.Skips),
	}
	if r.Winner >= 0 && r.Winner < len(r.Tries) {
		out.Candidate = b.name(r.Tries[r.Winner].Name)
	}
	return out
}

func (b *builder) attempt(t *stats.Try) Attempt {
	return Attempt{
		Candidate: b.name(t.Name), Identity: t.Candidate, Model: b.name(t.Model), Start: t.Start.UTC(),
		Connected: reached(t.Connected), Header: reached(t.Header), FirstByte: reached(t.FirstByte),
		FirstContent: reached(t.FirstContent), Released: reached(t.Released), Duration: *milliseconds(&t.End),
		Verdict: t.Verdict.String(), Status: t.Status, Class: t.Class, Fault: t.Fault, Rule: b.name(t.Rule), Action: t.Action, Text: b.prose(t.Text),
		WaitSeconds: t.Wait.Seconds(), FrozeSeconds: t.Froze.Seconds(), Hedged: t.Hedged, Tokens: usage(t.Usage), Bytes: t.Bytes,
	}
}

// reached is a phase in milliseconds; nil where it was never reached.
func reached(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	return milliseconds(&d)
}

// usage is what one answer reported.
func usage(u stats.Usage) Tokens {
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return Tokens{Input: known(u.Input), Output: known(u.Output), Cached: known(u.Cached), Total: known(u.Total)}
}
