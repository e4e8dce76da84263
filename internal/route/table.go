// Package route says who may serve a request, and in which order.
//
// It knows upstream identities, chains and tiers, weights, rendezvous hashing,
// and where clients put the key of their session. It never knows the network,
// clocks, freezes or health: whoever plans passes in what is in flight and whom
// to leave out. But for the secrets that NewTable reads to tell identities
// apart, everything here is a pure function of its arguments.
package route

import (
	"errors"
	"strings"
	"time"

	"understudy/internal/config"
)

// PoolName is the name under which people see the pool. No client sends it.
const PoolName = "*"

// ErrUnknownModel says that a model is no virtual model, and that there is no
// pool to take it.
var ErrUnknownModel = errors.New("unknown model")

// Candidate is a candidate of one chain with what it is known by. Its Index and
// Tier count from 1.
type Candidate struct {
	config.Candidate
	// ID is what freezes and counters are kept by. It hides the embedded ID,
	// the upstream's own id in the file.
	ID ID
	// RendezvousID stands for it in the choice by session key: the upstream's
	// id, else the name given, else ID. It is unique in its tier: where two
	// members would share one, ID is added to it.
	RendezvousID string
	// KeyID is shared by the candidates of one account, with whatever model; ""
	// without a credential. HostID is shared by those of one host, with whatever
	// credential. Freezes may reach as far as these.
	KeyID, HostID string
}

// Chain is the ordered tiers that serve one virtual model, or the pool. It is
// immutable.
type Chain struct {
	Model string // PoolName for the pool
	Pool  bool
	Tiers [][]Candidate

	// MaxAttempts bounds the attempts of one request in the pool; 0 is no bound.
	MaxAttempts int
	// StickyKeys are the places to look for the session key.
	StickyKeys []config.StickyKey
	// Affinity is strict, warm or off, AffinityTTL how long warm stays away.
	Affinity    string
	AffinityTTL time.Duration
	// Delivery, Hold, Hedge and MinCharsPerSecond are the virtual model's; the pool
	// streams, and has no hedge.
	Delivery          string
	Hold              time.Duration
	Hedge             *config.Hedge
	MinCharsPerSecond float64
}

// Table finds the chain of a model. It is immutable and safe for concurrent
// use.
type Table struct {
	models map[string]*Chain
	names  []string
	chains []*Chain
	pool   *Chain
	ids    map[ID]struct{}
}

// NewTable compiles the chains of a configuration. It reads the secrets of all
// candidates once, since identities depend on them; a missing one is told by
// its source.
func NewTable(cfg *config.Config) *Table {
	t := &Table{models: make(map[string]*Chain), ids: make(map[ID]struct{})}
	sticky := cfg.Server.StickyKeys
	if sticky == nil {
		sticky = config.DefaultStickyKeys
	}
	for i := range cfg.Models {
		vm := &cfg.Models[i]
		c := &Chain{
			Model: strings.TrimSpace(vm.Name), Tiers: t.tiers(vm.Tiers),
			StickyKeys: sticky, Affinity: vm.Affinity, AffinityTTL: vm.AffinityTTL,
			Delivery: vm.Delivery, Hold: vm.Hold, Hedge: vm.Hedge, MinCharsPerSecond: vm.MinCharsPerSecond,
		}
		t.models[c.Model] = c
		t.names = append(t.names, c.Model)
		t.chains = append(t.chains, c)
	}
	if p := cfg.Pool; p != nil {
		t.pool = &Chain{
			Model: PoolName, Pool: true, Tiers: t.tiers([][]config.Candidate{cfg.Upstreams}),
			MaxAttempts: p.MaxAttempts, StickyKeys: sticky, Delivery: "stream", Hold: config.DefaultHold,
			Affinity: p.Affinity, AffinityTTL: p.AffinityTTL,
		}
		if p.StickyKeys != nil {
			t.pool.StickyKeys = p.StickyKeys
		}
		t.chains = append(t.chains, t.pool)
	}
	return t
}

// tiers compiles the tiers of one chain and notes their identities.
func (t *Table) tiers(in [][]config.Candidate) [][]Candidate {
	out := make([][]Candidate, len(in))
	index := 0
	for i, members := range in {
		tier := make([]Candidate, len(members))
		seen := make(map[string]int, len(members))
		for j, m := range members {
			index++
			m.Index, m.Tier = index, i+1
			c := Candidate{Candidate: m, ID: Identity(m), KeyID: keyID(m), HostID: hostID(m)}
			c.RendezvousID = rendezvousID(c)
			seen[c.RendezvousID]++
			t.ids[c.ID] = struct{}{}
			tier[j] = c
		}
		// One upstream may stand twice in a tier, with two models: by its id
		// alone both would come out equal for every key.
		for j := range tier {
			if c := &tier[j]; seen[c.RendezvousID] > 1 && c.RendezvousID != string(c.ID) {
				c.RendezvousID += "\x00" + string(c.ID)
			}
		}
		out[i] = tier
	}
	return out
}

func rendezvousID(c Candidate) string {
	switch {
	case c.Candidate.ID != "":
		return c.Candidate.ID
	case c.Named && c.Name != "":
		return c.Name
	default:
		return string(c.ID)
	}
}

// Route returns the chain that serves model: the virtual model of that name,
// spaces around it ignored, else the pool, else ErrUnknownModel.
func (t *Table) Route(model string) (*Chain, error) {
	if c := t.models[strings.TrimSpace(model)]; c != nil {
		return c, nil
	}
	if t.pool != nil {
		return t.pool, nil
	}
	return nil, ErrUnknownModel
}

// Pool returns the pool's chain, nil where there is none.
func (t *Table) Pool() *Chain { return t.pool }

// Chains returns the virtual models' chains in the order of the file, then the
// pool's. The slice is the table's own.
func (t *Table) Chains() []*Chain { return t.chains }

// Names returns the names of the virtual models in the order of the file. The
// slice is the table's own.
func (t *Table) Names() []string { return t.names }

// Has tells whether any chain holds a candidate of that identity.
func (t *Table) Has(id ID) bool {
	_, ok := t.ids[id]
	return ok
}
