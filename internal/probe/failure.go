package probe

import (
	"strconv"
	"time"

	"understudy/internal/wire"
)

// Kind is what an attempt's failure is, in the words that rules match.
type Kind uint8

// The kinds of failure. The zero Kind is no failure.
const (
	// Status is an answer whose HTTP status says failure.
	Status Kind = iota + 1
	// Network is a connection that could not be made, or broke while it was read.
	Network
	// BadStream is a 2xx answer that carries an error, says nothing, is cut
	// short, or is not what was asked for.
	BadStream
	// Stalled is an upstream that sent not one byte for too long.
	Stalled
	// Timeout is a spent budget: to connect, to the first content, or in all.
	Timeout
)

// String gives the failure class as configuration files spell it; "status" for
// Status, whose class is the number itself.
func (k Kind) String() string {
	switch k {
	case Status:
		return "status"
	case Network:
		return "network"
	case BadStream:
		return "bad_stream"
	case Stalled:
		return "stalled_stream"
	case Timeout:
		return "timeout"
	}
	return "none"
}

// Phase is how far an attempt had come when it failed.
type Phase uint8

// The phases of an attempt, in order.
const (
	// Dial is name look-up, TCP and TLS: nothing was sent.
	Dial Phase = iota
	// Header is from the request's first byte to the answer's head.
	Header
	// Probe is while the answer is held and read.
	Probe
	// Relay is after release: nothing can be switched any more.
	Relay
)

// String names the phase.
func (p Phase) String() string {
	switch p {
	case Dial:
		return "dial"
	case Header:
		return "header"
	case Probe:
		return "probe"
	}
	return "relay"
}

// A Failure is an attempt that did not yield an answer fit to be released. It is
// a value, made only by Judge and Classify, and never changed afterwards.
type Failure struct {
	Kind  Kind
	Phase Phase
	// Status is the answer's HTTP status; 0 without an answer.
	Status int
	// Embedded is the status (400 to 599) that an error inside a 2xx answer
	// carries; 0 where it carries none.
	Embedded int
	// Fault says whose fault it is.
	Fault wire.Fault
	// Code and Message are the upstream's words, as they came: they pass the
	// redactor before anybody sees them.
	Code, Message string
	// Text is our own account of what happened, for logs, attempts and rules.
	Text string
	// RetryAfter is the wait the upstream asked for; it counts only where
	// HasRetryAfter is set, and 0 then means "at once".
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Body is the decoded body, or the error event's data, at most 1 MiB.
	Body []byte
	// Errored says that Body is an error's own words, which a 2xx answer carried.
	Errored bool
	// Empty is a whole answer that says nothing; WellFormed one that ended by
	// its dialect's rules and may be passed on when nobody is left.
	Empty, WellFormed bool
	// FirstByte and FirstContent are when the first byte of the body and its first
	// content were read; zero = never.
	FirstByte, FirstContent time.Time
	// Usage is what the answer reported before it failed; nil without a report.
	Usage *wire.Usage
	// Unreached says that there was no connection: the host refused it, has no
	// address, fails at TLS or does not answer in time. Whatever key or model had
	// been asked for, it would have been the same.
	Unreached bool
	// Page says that a page of HTML came where JSON was due.
	Page bool
	// Ours says that this machine could not open a connection, for want of files, ports
	// or memory, or that the request was none to be sent: no upstream is to blame.
	Ours bool
	// Unsendable says the latter: sent again it would only be refused again.
	Unsendable bool
	// Absent says that the upstream has not got what was asked for, which may be the
	// client's mistake: it counts against nobody, but a rule of the file's may freeze.
	Absent bool
	// Cause is what cancelled the attempt, one of this package's errors; nil where
	// nobody did.
	Cause error
	// Held is the answer itself, for pass-through; nil without a whole one. Who
	// takes the Failure closes it.
	Held *Exchange
}

// Class is the failure class: the HTTP status as a number, or the kind.
func (f *Failure) Class() string {
	if f.Kind == Status {
		return strconv.Itoa(f.Status)
	}
	return f.Kind.String()
}

// Close releases what the failure holds. It is safe to call more than once.
func (f *Failure) Close() {
	if f != nil && f.Held != nil {
		f.Held.Close()
	}
}
