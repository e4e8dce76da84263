package stats

import (
	"fmt"
	"slices"
	"time"
)

// Usage is the tokens an answer reported, in the normal form of all vendors:
// Input is everything read, cached and cache-written tokens included; Output
// includes reasoning. A negative number means "not reported", which is not 0:
// the zero Usage says that everything was reported as 0, so start from NoUsage.
type Usage struct {
	Input, Output, Cached, CacheWrite, Reasoning, Total int64
}

// NoUsage is the usage of an answer that reported nothing.
func NoUsage() Usage { return Usage{-1, -1, -1, -1, -1, -1} }

// Verdict is what one attempt turned out to be.
type Verdict uint8

// The verdicts. The zero Verdict is an abandoned attempt: one that nobody judged
// counts for nothing and against nobody.
const (
	// Abandoned: the client left, another attempt won, or a budget of our own
	// ran out. Nobody's failure; it is no attempt that "got a verdict".
	Abandoned Verdict = iota
	// OK: a healthy answer, whole.
	OK
	// Empty: a well-formed answer that says nothing. It is counted apart, as
	// neither success nor failure.
	Empty
	// Failed: the upstream's failure, after release too.
	Failed
)

// String gives the verdict in one word: ok, empty, failed, abandoned.
func (v Verdict) String() string {
	switch v {
	case OK:
		return "ok"
	case Empty:
		return "empty"
	case Failed:
		return "failed"
	}
	return "abandoned"
}

// Try is one attempt: one request sent to one candidate.
type Try struct {
	// Candidate is the identity that is counted; Name and Model are what people
	// call it (its name in the chain, and the real model that was asked for).
	Candidate, Name, Model string
	// Start is when the attempt began.
	Start time.Time
	// The phases, measured from Start; 0 means "never came to that".
	Connected, Header, FirstByte, FirstContent, Released, End time.Duration
	Verdict                                                   Verdict
	// Status is the answer's HTTP status; 0 without an answer.
	Status int
	// Class is the failure class, Fault whose fault it was, Rule the rule that
	// decided and Action what it said; "" where there was no failure.
	Class, Fault, Rule, Action string
	// Text is the failure for people. The caller has redacted it.
	Text string
	// Wait is how long the request waited after this attempt; Froze for how long
	// the candidate was frozen because of it, 0 if it was not.
	Wait, Froze time.Duration
	// Hedged says that this failure froze the candidate by auto-hedge.
	Hedged bool
	// Usage is what this attempt's answer reported, a failed one's too: it may
	// have been billed.
	Usage Usage
	// Bytes is how much of the answer's body was read.
	Bytes int64
	// Failure is what rules saw and said; nil where no rule was asked.
	Failure *Failure
}

// Failure is a failed attempt as rules saw it, and what they said, so that it can
// be put to other rules later. The caller has taken the secrets out of its texts.
type Failure struct {
	// Kind is "status" or a failure class, Phase how far the attempt had come.
	Kind, Phase string
	// Embedded is the status that an error inside a 2xx answer carried; 0 = none.
	Embedded int
	// Unreached says that there was no connection.
	Unreached bool
	// Code and Message are the upstream's words, Account is ours.
	Code, Message, Account string
	// Body is what the answer said of its failure, cut short where Cut says so. It
	// is "" for answers that say something else, such as a stream that broke off.
	Body string
	Cut  bool
	// Errored, Empty and WellFormed are what was found out about the answer.
	Errored, Empty, WellFormed bool
	// RetryAfter is the wait that the answer asked for, where HasRetryAfter is set.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Number counts the request's attempts at this candidate up to this one.
	Number int
	// Next, Wait and Freeze are what the rule said by itself: "following", "again"
	// or "return", and for how long. What came of it are the Try's Action, Wait
	// and Froze.
	Next         string
	Wait, Freeze time.Duration
	// Scope is how far Freeze reached.
	Scope string
}

// Planned is one candidate in the order that a request's plan had.
type Planned struct {
	Candidate, Name, Model string
	Tier                   int // from 1
}

// Bodies are what went over the wire for one request, where somebody wants them
// kept. Nobody has taken the secrets out yet: Hide does, and may be called once
// the request is over, on any one goroutine.
type Bodies struct {
	// Request is the client's body, decoded.
	Request Body
	// Answers are those of the attempts, decoded, as far as they were read.
	Answers []Answer
	Hide    func([]byte) []byte `json:"-"`
}

// Body is the beginning of a body, and how long it was in all. A longer Text
// than what is to be kept lets Hide see a secret that the end would cut in two.
type Body struct {
	Text []byte
	Size int64
}

// Answer is the body that an attempt, by its index in Tries, was answered with.
type Answer struct {
	Try int
	Body
}

// Skip is a candidate that was left out of a request's plan.
type Skip struct {
	Candidate, Name, Reason string
	// Left is how long the reason still held; 0 where it has no end.
	Left time.Duration
}

// MarshalText gives the same word as String, so that JSON shows words.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the word that MarshalText wrote.
func (v *Verdict) UnmarshalText(text []byte) error {
	for _, known := range []Verdict{Abandoned, OK, Empty, Failed} {
		if known.String() == string(text) {
			*v = known
			return nil
		}
	}
	return fmt.Errorf("unknown verdict %q", text)
}

// Ending is how a client's request ended.
type Ending uint8

// The endings. The zero Ending is Refused, so that a request which broke down
// before anything was decided is nobody's success and nobody's failure.
const (
	// Refused: we answered ourselves, and no chain had a say in it.
	Refused Ending = iota
	// Success: a healthy answer went out whole.
	Success
	// PassedThrough: an upstream's error went to the client, by rule.
	PassedThrough
	// EmptyPassed: nobody was left, and an empty but well-formed answer went out.
	EmptyPassed
	// Exhausted: all candidates failed or were passed over.
	Exhausted
	// Broken: the answer broke after release.
	Broken
	// Cancelled: the client left.
	Cancelled
)

// String gives the ending in one word, as the journal and the metrics name it.
func (e Ending) String() string {
	switch e {
	case Success:
		return "success"
	case PassedThrough:
		return "passed_through"
	case EmptyPassed:
		return "empty"
	case Exhausted:
		return "exhausted"
	case Broken:
		return "broken"
	case Cancelled:
		return "cancelled"
	}
	return "refused"
}

// MarshalText gives the same word as String, so that JSON shows words.
func (e Ending) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the word that MarshalText wrote.
func (e *Ending) UnmarshalText(text []byte) error {
	for known := Refused; known <= Cancelled; known++ {
		if known.String() == string(text) {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("unknown ending %q", text)
}

// Record is one finished client request. Once it was given to the ledger nobody
// writes to its slices any more. Its strings are kept for a while, so they must
// not be cut out of something big, such as a request's body.
type Record struct {
	ID string
	// Model is the virtual model's name, or "*" for the pool; "" for requests
	// that never found one.
	Model string
	// Client is the name of the client key used, "" without keys.
	Client string
	// Method, Path (without its query) and Dialect are the request's own.
	Method, Path, Dialect string
	// Stream says that the client asked for a stream.
	Stream bool
	// Ignored says that the endpoint is one that statistics ignore.
	Ignored bool
	// Start is when the request was admitted.
	Start time.Time
	// Released, FirstContent and End are measured from Start; 0 means "never",
	// but for End, which a request always has.
	Released, FirstContent, End time.Duration
	// Status is what was sent to the client; 0 if nothing was.
	Status int
	// Strategy is how the plan's order came about, and Plan that order, with the
	// candidates that were skipped in it. Requests may share it.
	Strategy string
	Plan     []Planned
	Tries    []Try
	Skips    []Skip
	// Omitted counts tries that the journal left out of the middle of Tries, to
	// bound what one request may occupy. Only the ledger sets it.
	Omitted int
	// Winner is the index in Tries of the attempt whose answer went out; -1 if
	// none did, or if it is among the omitted.
	Winner int
	Ending Ending
	// Usage is the winner's; NoUsage without one.
	Usage Usage
	// Bytes is how much body was sent to the client.
	Bytes int64
	// Bodies is nil unless they are to be kept. The ledger keeps none: it hands
	// them to the tap.
	Bodies *Bodies
}

// Failed says whether the client got anything but a healthy answer. One that left
// has not failed.
func (r *Record) Failed() bool { return r.Ending != Success && r.Ending != Cancelled }

// Troubled says whether some attempt failed so that rules were asked, whatever
// became of the request.
func (r *Record) Troubled() bool {
	return slices.ContainsFunc(r.Tries, func(t Try) bool { return t.Failure != nil })
}
