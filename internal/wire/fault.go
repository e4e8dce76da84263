package wire

import (
	"fmt"
	"time"
)

// A Fault says whose fault a failed answer is. It decides who else is worth asking
// and what has to cool down.
type Fault uint8

// The faults, with what cools down after each.
const (
	FaultNone       Fault = iota // no failure
	FaultClient                  // the request itself is bad; nothing cools down
	FaultAffinity                // state of another account or model; nothing cools down
	FaultCredential              // the key or account is bad; the key, until a person looks
	FaultQuota                   // money or a long window is used up; the key, for long
	FaultRate                    // a speed limit that clears within minutes; the key, as stated
	FaultCapacity                // the provider is overloaded; upstream and model, shortly
	FaultModel                   // the upstream lacks the model; upstream and model, for long
	FaultServer                  // anything else that broke; the upstream, shortly and growing
)

var faultNames = [...]string{"none", "client", "affinity", "credential", "quota", "rate", "capacity", "model", "server"}

// String returns the word that configuration files and people use for f.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// ParseFault returns the fault of that word, and false for any other word. "none"
// is no fault that a rule could name.
func ParseFault(word string) (Fault, bool) {
	for i, name := range faultNames {
		if i > 0 && name == word {
			return Fault(i), true
		}
	}
	return FaultNone, false
}

// Failed is what an error answer says.
type Failed struct {
	// Fault says whose fault it is; never FaultNone.
	Fault Fault
	// Status is the status the body carries where the answer came as a success,
	// else the answer's own.
	Status int
	// Code and Type are the vendor's names for the error, "" where it has none. A
	// number is given in decimal.
	Code, Type string
	// Message is the vendor's text, decoded. It is as hostile as the upstream.
	Message string
	// RetryAfter is how long the answer says to wait, where HasRetryAfter is true:
	// 0 for "now" and for a time that has passed, at most 35 days.
	RetryAfter    time.Duration
	HasRetryAfter bool
}
