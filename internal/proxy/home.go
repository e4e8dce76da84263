package proxy

import (
	"crypto/sha256"
	"strconv"
	"sync"
	"time"

	"understudy/internal/recent"
	"understudy/internal/route"
)

// maxGuests is how many sessions the guest book remembers; those that were served
// longest ago go first.
const maxGuests = 1 << 16

// A guestBook remembers, for chains with affinity "warm", who served a session last:
// its prompt cache is there, wherever its home is. It is not kept over a restart,
// after which every session goes home. Its zero value is ready, and its methods may
// be called from any goroutine.
type guestBook struct {
	mu     sync.Mutex
	visits *recent.Table[guest, visit] // nil until the first
	began  time.Time                   // what visits are counted from
}

// guest stands for a session in one tier of a chain: a key may be 4 KiB long, and
// nobody reads it back.
type guest [16]byte

type visit struct {
	at time.Duration // since the book began
	by route.ID
}

func guestOf(model string, tier int, key string) guest {
	sum := sha256.Sum256([]byte(model + "\x00" + strconv.Itoa(tier) + "\x00" + key))
	return guest(sum[:])
}

// note says that a session was served.
func (b *guestBook) note(g guest, by route.ID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visits == nil {
		b.visits, b.began = recent.NewTable[guest, visit](maxGuests), now
	}
	b.visits.Put(g, visit{now.Sub(b.began), by})
}

// host is who served a session within ttl; false where that is nobody.
func (b *guestBook) host(g guest, ttl time.Duration, now time.Time) (route.ID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visits == nil {
		return "", false
	}
	v := b.visits.Look(g)
	if v == nil || now.Sub(b.began)-v.at > ttl {
		return "", false
	}
	return v.by, true
}

// warm says whether sessions of the chain stay where their prompt cache is.
func (r *run) warm() bool { return r.sticky != "" && r.chain.Affinity == "warm" }

// stay puts whoever served the session last, if that is not long ago, before its
// equals: only they are interchangeable, so the order of tiers stays.
func (r *run) stay(plan *route.Plan, now time.Time) {
	if !r.warm() {
		return
	}
	for i, tier := range r.chain.Tiers {
		if len(tier) < 2 {
			continue
		}
		if by, ok := r.h.guests.host(guestOf(r.chain.Model, i+1, r.sticky), r.chain.AffinityTTL, now); ok {
			ownerFirst(plan, string(by), false)
		}
	}
}

// stayed notes who served the session.
func (r *run) stayed(by *route.Candidate, now time.Time) {
	if r.warm() && len(r.chain.Tiers[by.Tier-1]) > 1 {
		r.h.guests.note(guestOf(r.chain.Model, by.Tier, r.sticky), by.ID, now)
	}
}
