package health

import (
	"context"
	"time"
)

// A Store is how instances, processes that serve the same upstreams, tell each other
// what they know: freezes, trials, and what counts for limits. No request waits for
// it to learn of a freeze: the board is local, and news go out and come in behind it
// (see Peers). Only limits are asked for while a request waits, for a moment.
//
// A Store is made for one instance, with its name. All methods may be called from
// any goroutine. None tries twice: its context bounds it, and an error says that the
// others may not have heard.
type Store interface {
	// Put tells a freeze, as the time it has left now, so that clocks need not
	// agree. The store keeps to the rules of Board.Freeze: an automatic one only
	// extends what is there and never touches a person's; a person's holds as
	// given. One without time left is not told.
	Put(ctx context.Context, f Freeze) error
	// Drop tells that k's freeze and probation are over. A person's running freeze
	// is over only by Person.
	Drop(ctx context.Context, k Key, by By) error
	// Try tells that the trial of k has begun in this instance (on), or is over.
	Try(ctx context.Context, k Key, on bool) error
	// Watch calls told, one call at a time, with what the store holds and then
	// Known, again every few seconds, and with the changes as they are made. Freezes
	// and thaws are told in the order in which the store took them, this instance's
	// own among them: who did what others undid at the same moment learns which was
	// last. Of the rest, what it did itself is not told. It connects again by itself,
	// says so when the store is Lost, and returns when ctx is done.
	Watch(ctx context.Context, told func(Change))
	// Count tells what this instance had of limited keys, and then asks for leases;
	// the grants are in the order of the asks.
	Count(ctx context.Context, had []Usage, asks []Ask) ([]Grant, error)
	// Beat says that this instance lives, and returns which others do and whether
	// the store knew this one: if not, it has forgotten what it was told.
	Beat(ctx context.Context) (Roll, error)
	// Leave says that this instance ends, and with it its trials and leases.
	Leave(ctx context.Context) error
}

// News is what a Change says.
type News uint8

const (
	// Froze: Freeze holds. Its Until is by this process's clock; one that is over
	// says that the key is on probation.
	Froze News = iota
	// Thawed: the freeze and the probation of Key were over at the time At, lifted
	// by a person or else a success (By).
	Thawed
	// Trying: the trial of Key has begun at From.
	Trying
	// Tried: the trial of Key is over at From, and has changed nothing.
	Tried
	// Room: a lease of a limited key was settled where others wait for one.
	Room
	// Gone: From has ended.
	Gone
	// Known: all that the store holds has been told; Keys are the ones it knows.
	Known
	// Lost: there is no connection, for the reason Err.
	Lost
)

// A Change is what a store tells. Which fields are set depends on its News.
type Change struct {
	News   News
	Key    Key
	From   string // the name of the instance it comes from
	Freeze Freeze
	By     By
	At     time.Time
	Keys   map[Key]bool
	Err    error
}

// Usage is what an instance has had of a limited key.
type Usage struct {
	Key  Key
	Open int // leases not settled now, all of them
	// What began, and the tokens that were spent, that the store was not told yet.
	Had []Had
}

// Had is what began and was spent so long ago, in whole seconds.
type Had struct {
	Ago    int
	Began  int
	Tokens int64
}

// Ask asks for one lease of a key.
type Ask struct {
	Key    Key
	Limits Limits
}

// Grant answers an Ask: granted where Limit is Unlimited, and then counted, else
// refused for Wait; 0 = until somebody settles.
type Grant struct {
	Limit Limit
	Wait  time.Duration
}

// Roll is who lives.
type Roll struct {
	Names []string // of all live instances, this one too, in order
	Fresh bool     // the store did not know this instance
}
