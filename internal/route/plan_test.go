package route

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/internal/config"
)

// member is a pool's upstream for tests.
func member(id string, weight float64) config.Candidate {
	return config.Candidate{
		ID: id, Name: id, BaseURL: mustURL("https://" + id + ".example/v1"),
		Credential: config.LiteralCredential("sk-" + id), Weight: weight, Enabled: true,
	}
}

func pool(members ...config.Candidate) *Chain {
	return NewTable(&config.Config{Pool: &config.Pool{MaxAttempts: 3}, Upstreams: members}).Pool()
}

func chain(tiers ...[]config.Candidate) *Chain {
	return NewTable(&config.Config{Models: []config.VirtualModel{{Name: "vm", Tiers: tiers}}}).Chains()[0]
}

func names(steps []Step) string {
	var ns []string
	for _, s := range steps {
		ns = append(ns, s.Name)
	}
	return strings.Join(ns, " ")
}

func TestPlanByKeyIsThePythonPools(t *testing.T) {
	members := []config.Candidate{member("primary", 2), member("secondary", 1), member("tertiary", 1)}
	want := map[string]string{
		"session-42":     "primary tertiary secondary",
		"my-session-123": "primary tertiary secondary",
		"会话-7":           "tertiary primary secondary",
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		c := pool(members[order[0]], members[order[1]], members[order[2]])
		for key, want := range want {
			p := c.Plan(key, nil, nil)
			if got := names(p.Steps); got != want || p.Strategy != Rendezvous {
				t.Errorf("%v: %q: %s by %s, want %s", order, key, got, p.Strategy, want)
			}
			if s := p.Order[0]; s.Score != Score(key, s.RendezvousID, s.Weight) {
				t.Errorf("%q: score %v", key, s.Score)
			}
		}
	}
}

func TestPlanWithoutKeyGoesByLoad(t *testing.T) {
	members := []config.Candidate{member("a", 1), member("b", 1), member("c", 2), member("d", 4)}
	tests := []struct {
		name string
		load map[string]int
		want string
	}{
		{"idle: the heavier, then by id", nil, "d c a b"},
		{"in flight counts by weight", map[string]int{"a": 0, "b": 1, "c": 1, "d": 3}, "a c d b"},
		{"equal loads: the heavier", map[string]int{"a": 1, "b": 1, "c": 2, "d": 4}, "d c a b"},
		{"all but one busy", map[string]int{"a": 9, "c": 9, "d": 9}, "b d c a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := pool(members...)
			byID := map[ID]int{}
			for _, m := range c.Tiers[0] {
				byID[m.ID] = tt.load[m.Name]
			}
			calls := 0
			p := c.Plan("", func(id ID) int { calls++; return byID[id] }, nil)
			if got := names(p.Steps); got != tt.want || p.Strategy != LeastLoad {
				t.Errorf("%s by %s, want %s", got, p.Strategy, tt.want)
			}
			if calls != 4 {
				t.Errorf("load asked %d times for 4 candidates", calls)
			}
		})
	}
}

func TestPlanGoesTierByTier(t *testing.T) {
	c := chain(
		[]config.Candidate{member("first", 0.001)},
		[]config.Candidate{member("primary", 2), member("secondary", 1), member("tertiary", 1)},
		[]config.Candidate{member("last", 1000)},
	)
	for key, want := range map[string]string{
		"会话-7": "first tertiary primary secondary last",
		"":     "first primary secondary tertiary last",
	} {
		p := c.Plan(key, nil, nil)
		if got := names(p.Order); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
		for i, tier := range []int{1, 2, 2, 2, 3} {
			if s := p.Steps[i]; s.Tier != tier || s.Candidate.Tier != tier {
				t.Errorf("%s is in tier %d, want %d", s.Name, s.Tier, tier)
			}
		}
	}
}

func TestStrategyNamesTheChoice(t *testing.T) {
	one := []config.Candidate{member("a", 1)}
	two := []config.Candidate{member("b", 1), member("c", 1)}
	tests := []struct {
		name  string
		chain *Chain
		key   string
		want  string
	}{
		{"tiers of one", chain(one, one), "k", InOrder},
		{"tiers of one, no key", chain(one, one), "", InOrder},
		{"a group", chain(one, two), "k", Rendezvous},
		{"a group, no key", chain(two, one), "", LeastLoad},
		{"pool of one", pool(one...), "k", Rendezvous},
		{"pool", pool(two...), "", LeastLoad},
	}
	for _, tt := range tests {
		if p := tt.chain.Plan(tt.key, nil, nil); p.Strategy != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, p.Strategy, tt.want)
		}
	}
}

func TestPlanNotesWhomItLeavesOut(t *testing.T) {
	off := member("off", 1)
	off.Enabled = false
	c := chain([]config.Candidate{member("a", 1)}, []config.Candidate{off}, []config.Candidate{member("b", 1)}, []config.Candidate{member("c", 1)})
	skips := func(p Plan) (out []string) {
		for _, s := range p.Skips {
			out = append(out, s.Name+": "+s.Reason)
		}
		return out
	}
	asked := map[string]bool{}
	name := map[ID]string{}
	for _, tier := range c.Tiers {
		name[tier[0].ID] = tier[0].Name
	}
	p := c.Plan("", nil, func(id ID) (string, bool) {
		asked[name[id]] = true
		return "frozen for 3 s", name[id] == "b"
	})
	if got := names(p.Steps); got != "a c" {
		t.Errorf("steps = %s", got)
	}
	if d := cmp.Diff([]string{"off: disabled", "b: frozen for 3 s"}, skips(p)); d != "" {
		t.Errorf("skips (-want +got):\n%s", d)
	}
	if got := names(p.Order); got != "a off b c" {
		t.Errorf("order = %s", got)
	}
	if asked["off"] {
		t.Error("asked about a disabled candidate")
	}
	p = c.Plan("", nil, func(ID) (string, bool) { return "no", true })
	if len(p.Steps) != 0 || len(p.Skips) != 4 || len(p.Order) != 4 {
		t.Errorf("plan = %+v", p)
	}
	p = c.Plan("", nil, func(id ID) (string, bool) { return "", name[id] == "c" })
	if got := names(p.Steps); got != "a b" {
		t.Errorf("steps = %s", got)
	}
	if p := (&Chain{}).Plan("k", nil, nil); len(p.Order) != 0 || p.Strategy != InOrder {
		t.Errorf("empty chain: %+v", p)
	}
}

// Case 45: weights 1, 1, 2, 4 and 10,000 keys: shares within 3 points.
func TestSharesFollowWeights(t *testing.T) {
	// Names that differ in one last character, where a weak hash fails.
	weights := map[string]float64{"up-1": 1, "up-2": 1, "up-3": 2, "up-4": 4}
	var members []config.Candidate
	for id, w := range weights {
		members = append(members, member(id, w))
	}
	c := pool(members...)
	first := map[string]float64{}
	const keys = 10_000
	for i := range keys {
		first[c.Plan(fmt.Sprintf("session-%d", i), nil, nil).Steps[0].Name]++
	}
	for id, w := range weights {
		if share := first[id] / keys; math.Abs(share-w/8) > 0.03 {
			t.Errorf("%s got %.3f of the keys, want %.3f", id, share, w/8)
		}
	}
}

// members draws two to six upstreams with distinct ids.
func members(t *rapid.T) []config.Candidate {
	ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}-[0-9]`), 2, 6, rapid.ID).Draw(t, "ids")
	var ms []config.Candidate
	for _, id := range ids {
		ms = append(ms, member(id, float64(rapid.IntRange(1, 40).Draw(t, "weight"))/10))
	}
	return ms
}

// Case 45: what becomes of a session's order when the pool changes.
func TestStickinessProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := members(t)
		key := rapid.StringN(1, 40, 200).Draw(t, "key")
		before := names(pool(ms...).Plan(key, nil, nil).Steps)

		if again := names(pool(ms...).Plan(key, nil, nil).Steps); again != before {
			t.Fatalf("after a restart %s, before %s", again, before)
		}
		shuffled := slices.Clone(ms)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := names(pool(shuffled...).Plan(key, nil, nil).Steps); got != before {
			t.Fatalf("reordered %s, before %s", got, before)
		}

		i := rapid.IntRange(0, len(ms)-1).Draw(t, "changed")
		// Removed, or frozen: the others keep their order, so only its own keys
		// move, and to their second choice.
		rest := strings.Fields(before)
		rest = slices.DeleteFunc(rest, func(n string) bool { return n == ms[i].Name })
		want := strings.Join(rest, " ")
		without := append(slices.Clone(ms[:i]), ms[i+1:]...)
		if got := names(pool(without...).Plan(key, nil, nil).Steps); got != want {
			t.Fatalf("without %s: %s, before %s", ms[i].Name, got, before)
		}
		frozen := pool(ms...).Plan(key, nil, func(id ID) (string, bool) { return "frozen", id == Identity(ms[i]) })
		if got := names(frozen.Steps); got != want {
			t.Fatalf("with %s frozen: %s, before %s", ms[i].Name, got, before)
		}

		// Heavier: it can only move forward, past others that keep their order.
		heavier := slices.Clone(ms)
		heavier[i].Weight *= 2
		after := strings.Fields(names(pool(heavier...).Plan(key, nil, nil).Steps))
		if slices.Index(after, ms[i].Name) > slices.Index(strings.Fields(before), ms[i].Name) {
			t.Fatalf("heavier %s went back: %v, before %s", ms[i].Name, after, before)
		}
		after = slices.DeleteFunc(after, func(n string) bool { return n == ms[i].Name })
		if got := strings.Join(after, " "); got != want {
			t.Fatalf("heavier %s disturbed the others: %s, before %s", ms[i].Name, got, before)
		}
	})
}

// A model of several tiers, any load: every candidate stands in the order once,
// and nothing of the plan depends on the order within a group.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := members(t)
		cut := rapid.IntRange(0, len(ms)).Draw(t, "cut")
		tiers := [][]config.Candidate{ms[:cut], ms[cut:]}
		loads := map[ID]int{}
		for _, m := range ms {
			loads[Identity(m)] = rapid.IntRange(0, 3).Draw(t, "load")
		}
		load := func(id ID) int { return loads[id] }
		key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")
		p := chain(tiers...).Plan(key, load, nil)
		if len(p.Order) != len(ms) {
			t.Fatalf("%d of %d in order", len(p.Order), len(ms))
		}
		reversed := slices.Clone(ms)
		slices.Reverse(reversed[:cut])
		slices.Reverse(reversed[cut:])
		q := chain(reversed[:cut], reversed[cut:]).Plan(key, load, nil)
		if names(p.Order) != names(q.Order) {
			t.Fatalf("%s, with groups reversed %s", names(p.Order), names(q.Order))
		}
		for i := 1; i < len(p.Order); i++ {
			if p.Order[i].Tier < p.Order[i-1].Tier {
				t.Fatalf("tiers mixed: %s", names(p.Order))
			}
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	const session = "0198c2f4-6d3e-7b52-9b61-0d6b9e3c2a11"
	equals := func(n int) (ms []config.Candidate) {
		for i := range n {
			ms = append(ms, member(fmt.Sprintf("up-%d", i), float64(1+i%4)))
		}
		return ms
	}
	tiers := func(n int) (each [][]config.Candidate) {
		for _, m := range equals(n) {
			each = append(each, []config.Candidate{m})
		}
		return each
	}
	well := func(ID) (string, bool) { return "", false }
	for _, c := range []struct {
		name, session string
		chain         *Chain
		frozen        func(ID) (string, bool)
	}{
		{"key", session, pool(equals(4)...), well},
		{"load", "", pool(equals(4)...), well},
		{"chain", "", chain(tiers(2)...), well},
		{"frozen", "", chain(tiers(2)...), nil},
		{"chain50", "", chain(tiers(50)...), well},
		{"key50", session, pool(equals(50)...), well},
	} {
		if c.frozen == nil { // the first one
			first := c.chain.Plan("", func(ID) int { return 0 }, well).Order[0].ID
			c.frozen = func(id ID) (string, bool) { return "frozen", id == first }
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.chain.Plan(c.session, func(ID) int { return 1 }, c.frozen)
			}
		})
	}
}
