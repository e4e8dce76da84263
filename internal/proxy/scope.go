package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"understudy/internal/health"
	"understudy/internal/route"
	"understudy/internal/rule"
)

// Keys are a candidate's on the board: its own, by which it is counted, and the
// wider ones that it is frozen with: its account, where it has a credential, and
// its host.
func Keys(c *route.Candidate) (own health.Key, wider []health.Key) {
	if c.KeyID != "" {
		wider = append(wider, health.Key("k:"+c.KeyID))
	}
	if c.HostID != "" {
		// By a hash, since keys are shared with other instances and addresses are not.
		sum := sha256.Sum256([]byte(c.HostID))
		wider = append(wider, health.Key("h:"+hex.EncodeToString(sum[:8])))
	}
	return key(c.ID), wider
}

// A keyset is the keys of one identity, with which it stands and falls.
type keyset struct {
	own    health.Key
	wider  []health.Key
	limits health.Limits
}

// at is the key that a freeze of some scope is put on; its own where it has none
// that wide.
func (k *keyset) at(scope rule.Scope) health.Key {
	prefix := map[rule.Scope]byte{rule.Key: 'k', rule.Host: 'h'}[scope]
	for _, w := range k.wider {
		if w[0] == prefix {
			return w
		}
	}
	return k.own
}

// stand notes the keys of every identity, and whom they freeze.
func (s *Snapshot) stand() {
	s.keys, s.sharing = map[route.ID]*keyset{}, map[health.Key][]route.ID{}
	for _, chain := range s.Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				c := &tier[i]
				if s.keys[c.ID] != nil {
					continue
				}
				own, wider := Keys(c)
				s.keys[c.ID] = &keyset{own, wider, Limits(c)}
				for _, k := range append(wider, own) {
					s.sharing[k] = append(s.sharing[k], c.ID)
				}
			}
		}
	}
}

// Frozen counts the identities that are frozen now, by whichever of their keys.
func (h *Handler) Frozen() (n int) {
	now := time.Now()
	for _, k := range h.Snapshot().keys {
		if standing, _ := h.board.Standing(k.own, now, k.wider...); standing == health.Frozen {
			n++
		}
	}
	return n
}

// reason says, for plans, why a candidate is passed over. It is advice: Acquire
// decides.
func (r *run) reason(id route.ID) (string, bool) {
	now := time.Now()
	if freeze, frozen := r.frozen(id, now); frozen {
		return frozenFor(freeze, now), true
	}
	return "", false
}

// frozen is the freeze that keeps an identity out longest.
func (r *run) frozen(id route.ID, now time.Time) (health.Freeze, bool) {
	k := r.s.keys[id]
	standing, freeze := r.h.board.Standing(k.own, now, k.wider...)
	return freeze, standing == health.Frozen
}

// thaw is how long until an identity thaws; 0 where it is not frozen.
func (r *run) thaw(id route.ID) time.Duration {
	now := time.Now()
	if freeze, frozen := r.frozen(id, now); frozen {
		return max(freeze.Until.Sub(now), 0)
	}
	return 0
}

// soonest is how long until the first of the chain's candidates thaws; 0 where none
// is frozen.
func (r *run) soonest() (left time.Duration) {
	for _, tier := range r.chain.Tiers {
		for i := range tier {
			if d := r.thaw(tier[i].ID); tier[i].Enabled && d > 0 && (left == 0 || d < left) {
				left = d
			}
		}
	}
	return left
}

// Heard notes a freeze that another instance has told and the board has taken over.
func (h *Handler) Heard(f health.Freeze, now time.Time) {
	for _, id := range h.Snapshot().sharing[f.Key] {
		h.ledger.MarkFrozen(string(id), now, f.Until)
	}
}

// put freezes what a failure of a candidate's speaks for, and returns for how long
// it is frozen then. Others that share the key hear whose failure it was.
func (r *run) put(c *route.Candidate, at health.Key, f health.Freeze, now time.Time) time.Duration {
	switch at[0] {
	case 'k':
		f.Reason = "its key: " + f.Reason
	case 'h':
		f.Reason = "its host: " + f.Reason
	}
	holds := r.h.board.Freeze(at, f, now)
	for _, id := range r.s.sharing[at] {
		r.h.ledger.MarkFrozen(string(id), now, holds.Until)
	}
	return holds.Until.Sub(now)
}
