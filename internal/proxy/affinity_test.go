package proxy

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"understudy/internal/health"
	"understudy/internal/route"
)

// gaps are the pauses between a session's turns, as somebody has measured them: how
// many lie in which range of seconds. docs/affinity.md says where they come from.
type gaps struct {
	turns  float64 // of a session, on average
	ranges []gapRange
}

type gapRange struct{ from, to, n float64 }

var (
	agentGaps  = gaps{30, []gapRange{{1, 60, 860}, {60, 300, 34}, {300, 600, 10}, {600, 3600, 13}, {3600, 86400, 15}}}
	personGaps = gaps{10, []gapRange{{10, 300, 73}, {300, 900, 17}, {900, 8 * 3600, 10}}}
)

// draw is one gap.
func (g gaps) draw(rnd *rand.Rand) time.Duration {
	total := 0.0
	for _, r := range g.ranges {
		total += r.n
	}
	at := rnd.Float64() * total
	for _, r := range g.ranges {
		if at -= r.n; at < 0 {
			return logUniform(rnd, r.from, r.to)
		}
	}
	return 0
}

// logUniform is a time between so many seconds, spread evenly on a logarithmic scale.
func logUniform(rnd *rand.Rand, from, to float64) time.Duration {
	return time.Duration(from * math.Pow(to/from, rnd.Float64()) * float64(time.Second))
}

// Sizes of the simulation.
const (
	simSessions = 10_000
	simLength   = 12 * time.Hour
	simCache    = 5 * time.Minute // an upstream's own prompt cache
	simPrompt   = 20_000
	simGrowth   = 1_500
)

// outage is when an upstream is frozen.
type outage struct{ from, to time.Duration }

// outages draws those of one upstream.
func outages(rnd *rand.Rand) (all []outage) {
	for at := time.Duration(0); at < 3*simLength; {
		at += time.Duration(rnd.ExpFloat64() * float64(45*time.Minute))
		length := logUniform(rnd, 30, 1800)
		all = append(all, outage{at, at + length})
		at += length
	}
	return all
}

// simSession is a session of a simulation.
type simSession struct {
	key    string
	order  []route.Step // its homes
	next   time.Duration
	turn   int
	turns  int
	rnd    *rand.Rand
	cached map[route.ID]simEntry
}

// simEntry is what an upstream has cached of a session.
type simEntry struct {
	tokens int
	at     time.Duration
}

// calendar is a heap of sessions by their next turn.
type calendar []*simSession

func (c calendar) Len() int           { return len(c) }
func (c calendar) Less(i, j int) bool { return c[i].next < c[j].next }
func (c calendar) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *calendar) Push(s any)        { *c = append(*c, s.(*simSession)) }
func (c *calendar) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// outcomes are what a policy came to.
type outcomes struct {
	turns, cold, away int
	cached, prompt    float64
}

// simulate runs 10,000 sessions over a pool. Gaps, freezes and sessions are the same
// for every policy. The order of equals is the plan's, and who a session stays with
// is asked of the code that serves requests.
func simulate(t *testing.T, cfg string, g gaps, freezes bool) (out outcomes) {
	b := newBed(t, cfg)
	s := b.handler.Snapshot()
	chain := s.Routes.Pool()
	rnd := rand.New(rand.NewPCG(3, 4))
	frozen := map[route.ID][]outage{}
	for i := range chain.Tiers[0] {
		frozen[chain.Tiers[0][i].ID] = outages(rnd)
	}
	var cal calendar
	for i := range simSessions {
		key := fmt.Sprintf("session-%d", i)
		one := &simSession{key: key, rnd: rand.New(rand.NewPCG(5, uint64(i))), cached: map[route.ID]simEntry{}}
		one.order = chain.Plan(key, nil, nil).Order
		one.next = time.Duration(one.rnd.Float64() * float64(simLength))
		one.turns = 1 + int(one.rnd.ExpFloat64()*g.turns)
		cal = append(cal, one)
	}
	heap.Init(&cal)
	begun := time.Now()
	type ending struct {
		at time.Duration
		by route.ID
	}
	var running []ending // attempts in flight, for the policy that goes by load
	for len(cal) > 0 {
		one := cal[0]
		now := one.next
		away := func(id route.ID) bool {
			if !freezes {
				return false
			}
			list := frozen[id]
			for len(list) > 0 && list[0].to <= now {
				list = list[1:]
			}
			frozen[id] = list // time only goes on
			return len(list) > 0 && list[0].from <= now
		}
		plan := route.Plan{}
		for _, step := range one.order {
			if !away(step.ID) {
				plan.Steps = append(plan.Steps, step)
			}
		}
		if chain.Affinity == "off" {
			load := map[route.ID]int{}
			kept := running[:0]
			for _, e := range running {
				if e.at > now {
					kept = append(kept, e)
					load[e.by]++
				}
			}
			running = kept
			plan = chain.Plan(one.key, func(id route.ID) int { return load[id] }, func(id route.ID) (string, bool) { return "", away(id) })
		}
		r := &run{h: b.handler, s: s, chain: chain, sticky: one.key}
		r.stay(&plan, begun.Add(now))
		length := logUniform(one.rnd, 2, 20)
		if len(plan.Steps) > 0 { // else all four are frozen: the turn fails
			c := plan.Steps[0].Candidate
			r.stayed(c, begun.Add(now))
			tokens := simPrompt + simGrowth*one.turn
			hit := one.cached[c.ID]
			if now-hit.at > simCache {
				hit.tokens = 0
			}
			one.cached[c.ID] = simEntry{tokens, now}
			out.prompt += float64(tokens)
			out.cached += float64(hit.tokens)
			if one.turn > 0 {
				out.turns++
				if hit.tokens == 0 {
					out.cold++
				}
				if c.ID != one.order[0].ID {
					out.away++
				}
			}
			if chain.Affinity == "off" {
				running = append(running, ending{now + length, c.ID})
			}
		}
		one.turn++
		one.next = now + length + g.draw(one.rnd)
		if one.turn >= one.turns {
			heap.Pop(&cal)
		} else {
			heap.Fix(&cal, 0)
		}
	}
	return out
}

// The cache-hit rates of the policies, over 10,000 sessions with the gaps that people
// have measured. The figures are those of docs/affinity.md.
func TestAffinityFigures(t *testing.T) {
	for _, name := range []string{"ONE", "TWO", "THREE", "FOUR"} {
		t.Setenv(name+"_KEY", "sk-"+name)
	}
	guided := setup(t, "affinity.md", 1)
	table := "| gaps | affinity | cached | cold turns | turns away from home |\n| --- | --- | --- | --- | --- |\n"
	for _, w := range []struct {
		name string
		gaps gaps
	}{{"agent", agentGaps}, {"person", personGaps}} {
		rate := map[string]float64{}
		cold := map[string]int{}
		for _, policy := range []string{"no freezes", "strict", "warm", "off"} {
			settings := "affinity: " + policy
			if policy == "no freezes" {
				settings = "affinity: strict"
			}
			if policy == "warm" {
				settings += ", affinity_ttl: 300"
			}
			cfg := "pool: {" + settings + "}\n" + guided[len("pool:\n  affinity: warm\n  affinity_ttl: 300\n"):]
			inBubble(t, w.name+" "+policy, func(t *testing.T) {
				o := simulate(t, cfg, w.gaps, policy != "no freezes")
				rate[policy], cold[policy] = o.cached/o.prompt, o.cold
				table += fmt.Sprintf("| %s | %s | %.1f %% | %.1f %% | %.1f %% |\n", w.name, map[string]string{"no freezes": "`strict`, and nobody ever frozen", "strict": "`strict`", "warm": "`warm`", "off": "`off`"}[policy],
					100*rate[policy], 100*float64(o.cold)/float64(o.turns), 100*float64(o.away)/float64(o.turns))
			})
		}
		if !(rate["no freezes"] > rate["warm"] && rate["warm"] > rate["strict"] && rate["strict"] > rate["off"]) || cold["warm"] >= cold["strict"] {
			t.Errorf("%s: cached %v, cold %v", w.name, rate, cold)
		}
	}
	figures(t, "affinity.md", "affinity", table)
}

// What the guide's configuration promises.
func TestAffinityGuide(t *testing.T) {
	for _, name := range []string{"ONE", "TWO", "THREE", "FOUR"} {
		t.Setenv(name+"_KEY", "sk-"+name)
	}
	cfg := setup(t, "affinity.md", 1)
	inBubble(t, "a session", func(t *testing.T) {
		s := newScene(t, cfg)
		for _, name := range []string{"one", "two", "three", "four"} {
			s.play(name+".example", sayPong)
		}
		home := s.homes("s1")
		s.from(s.hi("session_id", "s1"), home[0])
		s.freeze(home[0], time.Minute, health.Rule)
		s.from(s.hi("session_id", "s1"), home[1])
		s.till(2 * time.Minute)
		s.from(s.hi("session_id", "s1"), home[1])
		s.till(8 * time.Minute)
		s.from(s.hi("session_id", "s1"), home[0])
	})
}
