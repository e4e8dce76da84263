package control

import (
	"fmt"
	"time"
)

// StoreStatus is how this instance stands with those that share its store.
type StoreStatus struct {
	// State is shared, or away: then this instance goes by what it knows, and by its
	// share of the limits; "" where no store is configured.
	State string `json:"state"`
	// Problem says why it is away, and Since since when it is as it is.
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since"`
	// Instance is what the others know this one by; Instances are all that lived when
	// they were last heard of, this one too.
	Instance  string   `json:"instance"`
	Instances []string `json:"instances"`
	// Waiting are the news for the others that could not be told yet, Dropped those
	// that never will be, and Alone the requests whose limits were decided by this
	// instance's share.
	Waiting int64 `json:"waiting"`
	Dropped int64 `json:"dropped"`
	Alone   int64 `json:"alone"`
}

// The states of a store.
const (
	StoreShared = "shared"
	StoreAway   = "away"
)

// store is the status as people may see it.
func (b *builder) store() StoreStatus {
	out := StoreStatus{Instances: []string{}}
	if b.c.deps.Store == nil {
		return out
	}
	s := b.c.deps.Store()
	out, s.Instances = s, append(out.Instances, s.Instances...)
	out.Problem, out.Instance = b.prose(s.Problem), b.name(s.Instance)
	out.Instances = s.Instances
	for i, name := range out.Instances {
		out.Instances[i] = b.name(name)
	}
	return out
}

// storeText tells of the store in the overview; "" where there is none.
func storeText(s *StoreStatus) string {
	others := len(s.Instances) - 1
	switch {
	case s.State == StoreShared && others == 1:
		return "\nstore: shared with 1 other instance"
	case s.State == StoreShared:
		return fmt.Sprintf("\nstore: shared with %d other instances", max(others, 0))
	case s.State == StoreAway && s.Problem == "":
		return "\nstore: not reached yet"
	case s.State == StoreAway:
		return "\nstore: away, so this instance goes by what it knows: " + s.Problem
	}
	return ""
}
