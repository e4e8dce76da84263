package control

import (
	"time"

	"understudy/internal/proxy"
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
	// After keeps only requests with a higher sequence number: those that finished
	// since, in this process.
	After uint64
	// Before is the id of a request: only older ones are given. Where it is not kept
	// nothing is.
	Before string
	// Troubled keeps only the requests in which some attempt failed, whatever became
	// of them.
	Troubled bool
	// Trail gives them with their attempts and skips.
	Trail bool
}

// wants says whether a record is asked for, its place apart.
func (q *Query) wants(r *stats.Record) bool {
	return (q.Model == "" || r.Model == q.Model) && (q.Failed == nil || r.Failed() == *q.Failed) && (!q.Troubled || r.Troubled())
}

// MaxRequests is the most that one Query gives.
const MaxRequests = 1000

// Requests is an answer to a Query.
type Requests struct {
	// Requests are the newest first, without their attempts unless Query.Trail asks
	// for them.
	Requests []Request `json:"requests"`
	// Sequence is the number of the newest finished request.
	Sequence uint64 `json:"sequence"`
	// Dropped is how many after Query.After are no longer kept.
	Dropped uint64 `json:"dropped"`
	// Problem is why requests on disk may be missing; "" = none are.
	Problem string `json:"problem,omitempty"`
}

// Request is one finished request of a client. Durations are milliseconds; nil is
// "never".
type Request struct {
	ID string `json:"id"`
	// Sequence is its place in the journal; 0 in an answer to Request, and for those
	// that the journal has no longer.
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
	// Strategy is how the plan's order came about: order, rendezvous, least load or
	// owner. Plan is that order, and Attempts and Skips are the decision trail.
	Strategy string    `json:"strategy,omitempty"`
	Plan     []Planned `json:"plan,omitempty"`
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
	// Evidence is what the rules saw; nil where none was asked.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Planned is one candidate of a request's plan.
type Planned struct {
	Candidate string `json:"candidate"`
	Identity  string `json:"identity"`
	Model     string `json:"model"`
	Tier      int    `json:"tier"`
}

// Evidence is a failure as rules saw it, and what they said, so that it can be put
// to other rules. Its texts hold no secret, but they are as they came: who shows
// them escapes them.
type Evidence struct {
	Kind      string `json:"kind"` // status, or a failure class
	Phase     string `json:"phase"`
	Embedded  int    `json:"embedded_status,omitempty"`
	Unreached bool   `json:"unreached,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	Account   string `json:"account,omitempty"`
	// Body is what the answer said; BodyCut says that it said more.
	Body       string `json:"body,omitempty"`
	BodyCut    bool   `json:"body_cut,omitempty"`
	Errored    bool   `json:"errored,omitempty"`
	Empty      bool   `json:"empty,omitempty"`
	WellFormed bool   `json:"well_formed,omitempty"`
	// RetryAfterSeconds is what the answer asked for; nil = nothing.
	RetryAfterSeconds *float64 `json:"retry_after_seconds,omitempty"`
	// Number counts the request's attempts at this candidate up to this one.
	Number int `json:"number"`
	// Next (following, again, return), WaitSeconds, FreezeSeconds and Scope are what
	// the rule said by itself.
	Next          string  `json:"next"`
	WaitSeconds   float64 `json:"wait_seconds,omitempty"`
	FreezeSeconds float64 `json:"freeze_seconds,omitempty"`
	Scope         string  `json:"scope,omitempty"`
}

// Skip is a candidate that was passed over.
type Skip struct {
	Candidate   string  `json:"candidate"`
	Identity    string  `json:"identity"`
	Reason      string  `json:"reason"`
	SecondsLeft float64 `json:"seconds_left"`
}

// Requests lists finished requests that are still kept, the newest first: those of
// the journal, and then those on disk.
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
	add := func(r *stats.Record, sequence uint64) {
		one := b.request(r, sequence)
		if q.Trail {
			b.trail(&one, r)
		}
		out.Requests = append(out.Requests, one)
	}
	passed := q.Before == ""
	newest := ledger.Latest(limit, func(r *stats.Record) bool {
		here := passed
		passed = passed || r.ID == q.Before
		return here && q.wants(r)
	})
	for i := range newest {
		if newest[i].Seq > q.After {
			add(&newest[i].Record, newest[i].Seq)
		}
	}
	if len(newest) >= limit || q.After > 0 {
		return out
	}
	s := Selection{Failed: q.Failed, Troubled: q.Troubled}
	if !passed {
		s.Before = q.Before
	}
	err := c.older(s, func(r *stats.Record) bool {
		if q.wants(r) {
			add(r, 0)
		}
		return len(out.Requests) < limit
	})
	if err != nil {
		out.Problem = b.prose(err.Error())
	}
	return out
}

// Request gives a finished request with its decision trail, as long as it is kept.
func (c *Control) Request(id string) (Request, bool) {
	record, err := c.record(id)
	if err != nil {
		return Request{}, false
	}
	b := c.builder()
	return b.whole(&record), true
}

// Describe gives a record as people may see it, by a configuration's secrets: for
// an archive that no process is writing.
func Describe(s *proxy.Snapshot, r *stats.Record) Request {
	b := &builder{s: s}
	return b.whole(r)
}

// whole is a request with its decision trail.
func (b *builder) whole(r *stats.Record) Request {
	out := b.request(r, 0)
	b.trail(&out, r)
	return out
}

func (b *builder) trail(out *Request, r *stats.Record) {
	out.Omitted, out.Strategy = r.Omitted, r.Strategy
	out.Attempts, out.Skips = []Attempt{}, []Skip{}
	for i := range r.Tries {
		out.Attempts = append(out.Attempts, b.attempt(&r.Tries[i]))
	}
	for _, s := range r.Skips {
		out.Skips = append(out.Skips, Skip{Candidate: b.name(s.Name), Identity: s.Candidate, Reason: b.prose(s.Reason), SecondsLeft: s.Left.Seconds()})
	}
	for _, p := range r.Plan {
		out.Plan = append(out.Plan, Planned{Candidate: b.name(p.Name), Identity: p.Candidate, Model: b.name(p.Model), Tier: p.Tier})
	}
}

func (b *builder) request(r *stats.Record, sequence uint64) Request {
	out := Request{
		ID: b.name(r.ID), Sequence: sequence, Model: b.name(r.Model), Client: b.name(r.Client), Method: b.name(r.Method), Path: b.prose(r.Path),
		Dialect: r.Dialect, Stream: r.Stream, Ignored: r.Ignored, Start: r.Start.UTC(),
		Released: reached(r.Released), FirstContent: reached(r.FirstContent), Duration: *milliseconds(&r.End),
		Status: r.Status, Ending: r.Ending.String(), Failed: r.Failed(), Tokens: usage(r.Usage), Bytes: r.Bytes,
		AttemptCount: len(r.Tries) + r.Omitted, SkipCount: len(r.Skips),
	}
	if r.Winner >= 0 && r.Winner < len(r.Tries) {
		out.Candidate = b.name(r.Tries[r.Winner].Name)
	}
	return out
}

func (b *builder) attempt(t *stats.Try) Attempt {
	return Attempt{
		Evidence:  b.evidence(t.Failure),
		Candidate: b.name(t.Name), Identity: t.Candidate, Model: b.name(t.Model), Start: t.Start.UTC(),
		Connected: reached(t.Connected), Header: reached(t.Header), FirstByte: reached(t.FirstByte),
		FirstContent: reached(t.FirstContent), Released: reached(t.Released), Duration: *milliseconds(&t.End),
		Verdict: t.Verdict.String(), Status: t.Status, Class: t.Class, Fault: t.Fault, Rule: b.name(t.Rule), Action: t.Action, Text: b.prose(t.Text),
		WaitSeconds: t.Wait.Seconds(), FrozeSeconds: t.Froze.Seconds(), Hedged: t.Hedged, Tokens: usage(t.Usage), Bytes: t.Bytes,
	}
}

func (b *builder) evidence(f *stats.Failure) *Evidence {
	if f == nil {
		return nil
	}
	e := &Evidence{
		Kind: f.Kind, Phase: f.Phase, Embedded: f.Embedded, Unreached: f.Unreached,
		Code: b.s.Redact.Hide(f.Code), Message: b.s.Redact.Hide(f.Message), Account: b.s.Redact.Hide(f.Account), Body: b.s.Redact.Hide(f.Body), BodyCut: f.Cut,
		Errored: f.Errored, Empty: f.Empty, WellFormed: f.WellFormed, Number: f.Number,
		Next: f.Next, WaitSeconds: f.Wait.Seconds(), FreezeSeconds: f.Freeze.Seconds(), Scope: f.Scope,
	}
	if f.HasRetryAfter {
		e.RetryAfterSeconds = new(f.RetryAfter.Seconds())
	}
	return e
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
