package route

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/config"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestRouteFindsTheChain(t *testing.T) {
	models := []config.VirtualModel{
		{Name: "strong", Tiers: [][]config.Candidate{{member("a", 1)}}, Delivery: "complete", Affinity: "off"},
		{Name: "fast", Tiers: [][]config.Candidate{{member("b", 1)}}},
	}
	p := &config.Pool{MaxAttempts: 3, StickyKeys: []config.StickyKey{{Header: "x-mine"}}}
	with := NewTable(&config.Config{Models: models, Pool: p, Upstreams: []config.Candidate{member("u", 1)}})
	without := NewTable(&config.Config{Models: models, Server: config.Server{StickyKeys: []config.StickyKey{}}})

	for model, want := range map[string]string{
		"strong": "strong", " strong\t": "strong", "fast": "fast", "Fast": "*", "gpt-4o": "*", "": "*", "*": "*",
	} {
		c, err := with.Route(model)
		if err != nil || c.Model != want || c.Pool != (want == "*") {
			t.Errorf("%q: %+v, %v, want %s", model, c, err, want)
		}
		c, err = without.Route(model)
		if want == "*" {
			if !errors.Is(err, ErrUnknownModel) {
				t.Errorf("%q without a pool: %v, %v", model, c, err)
			}
		} else if err != nil || c.Model != want {
			t.Errorf("%q without a pool: %v, %v", model, c, err)
		}
	}
	if d := cmp.Diff([]string{"strong", "fast"}, with.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if cs := with.Chains(); len(cs) != 3 || cs[2] != with.Pool() || len(without.Chains()) != 2 || without.Pool() != nil {
		t.Errorf("chains = %v", cs)
	}
	strong, pool := with.Chains()[0], with.Pool()
	if strong.Delivery != "complete" || strong.Affinity != "off" || strong.MaxAttempts != 0 ||
		len(strong.StickyKeys) != len(config.DefaultStickyKeys) {
		t.Errorf("chain = %+v", strong)
	}
	if pool.MaxAttempts != 3 || len(pool.StickyKeys) != 1 || pool.Delivery != "stream" {
		t.Errorf("pool = %+v", pool)
	}
	if got := without.Chains()[0].StickyKeys; got == nil || len(got) != 0 {
		t.Errorf("an empty list of sticky keys became %v", got)
	}
	for _, m := range []config.Candidate{member("a", 1), member("b", 1), member("u", 1)} {
		if !with.Has(Identity(m)) || without.Has(Identity(m)) == (m.Name == "u") {
			t.Errorf("has %s: %v, %v", m.Name, with.Has(Identity(m)), without.Has(Identity(m)))
		}
	}
	if with.Has("0000000000000000") {
		t.Error("has a stranger")
	}
}

func TestCandidatesAreCountedOverTiers(t *testing.T) {
	c := chain([]config.Candidate{member("a", 1)}, []config.Candidate{member("b", 1), member("c", 1)}, []config.Candidate{member("d", 1)})
	n := 0
	for i, tier := range c.Tiers {
		for _, m := range tier {
			if n++; m.Index != n || m.Tier != i+1 {
				t.Errorf("%s: index %d, tier %d", m.Name, m.Index, m.Tier)
			}
		}
	}
}

func TestRendezvousID(t *testing.T) {
	named := member("", 1)
	named.Name, named.Named = "mine", true
	unnamed := member("", 1)
	unnamed.Name = "vm#1"
	unnamed.Model = "other"
	c := chain([]config.Candidate{member("id", 1), named, unnamed})
	m := c.Tiers[0]
	if m[0].RendezvousID != "id" || m[1].RendezvousID != "mine" || m[2].RendezvousID != string(m[2].ID) {
		t.Errorf("ids = %q %q %q", m[0].RendezvousID, m[1].RendezvousID, m[2].RendezvousID)
	}

	// One upstream with two models in a group: both get their share.
	big, small := member("one", 1), member("one", 1)
	big.Model, small.Model = "big", "small"
	c = chain([]config.Candidate{big, small, member("two", 1)})
	first := map[string]int{}
	for i := range 1000 {
		first[c.Plan(string(rune('a'+i)), nil, nil).Steps[0].Model]++
	}
	if first["big"] < 250 || first["small"] < 250 || first[""] < 250 {
		t.Errorf("first places = %v", first)
	}
	if got := c.Tiers[0][2].RendezvousID; got != "two" {
		t.Errorf("id = %q, want the upstream's own", got)
	}
}

func TestIdentityIsWhatIsJudged(t *testing.T) {
	t.Setenv("ROUTE_TEST_KEY", "sk-1")
	t.Setenv("ROUTE_TEST_OTHER", "sk-2")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := func() config.Candidate {
		return config.Candidate{
			BaseURL: mustURL("https://api.example.com/v1"), Model: "m", Weight: 1, Name: "vm#1",
			Credential: config.LiteralCredential("sk-1"), Enabled: true,
		}
	}
	id := Identity(base())
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(string(id)) {
		t.Fatalf("id = %q", id)
	}
	tests := []struct {
		name   string
		change func(c *config.Candidate)
		same   bool
	}{
		{"name", func(c *config.Candidate) { c.Name, c.Named = "other", true }, true},
		{"upstream id", func(c *config.Candidate) { c.ID = "other" }, true},
		{"place", func(c *config.Candidate) { c.Index, c.Tier = 7, 3 }, true},
		{"weight", func(c *config.Candidate) { c.Weight = 9 }, true},
		{"limits", func(c *config.Candidate) { c.RPM, c.Enabled = 3, false }, true},
		{"same key by env", func(c *config.Candidate) { c.Credential = config.EnvCredential("ROUTE_TEST_KEY") }, true},
		{"same key by file", func(c *config.Candidate) { c.Credential = config.FileCredential(file, "") }, true},
		{"slash at the end", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com/v1/") }, true},
		{"case of the host", func(c *config.Candidate) { c.BaseURL = mustURL("HTTPS://API.example.com/v1") }, true},
		{"default port", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com:443/v1") }, true},
		{"fragment", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com/v1#x") }, true},
		{"other header", func(c *config.Candidate) {
			c.Headers = []config.HeaderValue{{Name: "x-client", Value: config.NewSecret("a")}}
		}, true},
		{"model", func(c *config.Candidate) { c.Model = "M" }, false},
		{"path", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com/v2") }, false},
		{"case of the path", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com/V1") }, false},
		{"query", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com/v1?a=1") }, false},
		{"scheme", func(c *config.Candidate) { c.BaseURL = mustURL("http://api.example.com/v1") }, false},
		{"port", func(c *config.Candidate) { c.BaseURL = mustURL("https://api.example.com:80/v1") }, false},
		{"userinfo", func(c *config.Candidate) { c.BaseURL = mustURL("https://me@api.example.com/v1") }, false},
		{"no URL", func(c *config.Candidate) { c.BaseURL = nil }, false},
		{"key", func(c *config.Candidate) { c.Credential = config.LiteralCredential("sk-2") }, false},
		{"no key", func(c *config.Candidate) { c.Credential = config.Credential{} }, false},
		{"missing key", func(c *config.Candidate) { c.Credential = config.EnvCredential("ROUTE_TEST_NONE") }, false},
		{"header authorization", func(c *config.Candidate) {
			c.Headers = []config.HeaderValue{{Name: "Authorization", Value: config.NewSecret("a")}}
		}, false},
	}
	seen := map[ID]string{}
	for _, tt := range tests {
		c := base()
		tt.change(&c)
		got := Identity(c)
		if (got == id) != tt.same {
			t.Errorf("%s: same %v, want %v", tt.name, got == id, tt.same)
		}
		if other, ok := seen[got]; ok && !tt.same {
			t.Errorf("%s: the same as %s", tt.name, other)
		}
		seen[got] = tt.name
	}
}

// Pool upstreams often have no credential but a header from the environment.
func TestIdentityTellsAccountsApartByHeader(t *testing.T) {
	t.Setenv("ROUTE_TEST_A", "Bearer a")
	t.Setenv("ROUTE_TEST_B", "Bearer b")
	t.Setenv("ROUTE_TEST_C", "Bearer a")
	with := func(headers ...config.HeaderValue) ID {
		return Identity(config.Candidate{BaseURL: mustURL("https://api.example.com"), Headers: headers})
	}
	a := with(config.HeaderValue{Name: "authorization", Env: "ROUTE_TEST_A"})
	if b := with(config.HeaderValue{Name: "authorization", Env: "ROUTE_TEST_B"}); b == a {
		t.Error("two accounts, one identity")
	}
	if c := with(config.HeaderValue{Name: "Authorization", Env: "ROUTE_TEST_C"}); c != a {
		t.Error("one account, two identities")
	}
	missing := with(config.HeaderValue{Name: "authorization", Env: "ROUTE_TEST_X"})
	if missing == a || missing == with(config.HeaderValue{Name: "authorization", Env: "ROUTE_TEST_Y"}) || missing == with() {
		t.Error("missing secrets are not told apart by their source")
	}
	x := config.HeaderValue{Name: "x-api-key", Value: config.NewSecret("k")}
	y := config.HeaderValue{Name: "cookie", Value: config.NewSecret("c")}
	if with(x, y) != with(y, x) || with(x, y) == with(x) {
		t.Error("the order of headers counts, or the second does not")
	}
}

// Freezes may reach a whole account or a whole host.
func TestScopesOfACandidate(t *testing.T) {
	t.Setenv("ROUTE_TEST_KEY", "sk-1")
	of := func(base string, change func(c *config.Candidate)) Candidate {
		m := config.Candidate{BaseURL: mustURL(base), Model: "m", Name: "n", Credential: config.LiteralCredential("sk-1"), Weight: 1, Enabled: true}
		if change != nil {
			change(&m)
		}
		return chain([]config.Candidate{m}).Tiers[0][0]
	}
	const base = "https://api.example.com/v1"
	c := of(base, nil)
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(c.KeyID) || c.HostID != "https://api.example.com" {
		t.Fatalf("key %q, host %q", c.KeyID, c.HostID)
	}
	keyless := func(c *config.Candidate) { c.Credential = config.Credential{} }
	for _, tt := range []struct {
		name      string
		other     Candidate
		key, host bool // the same
	}{
		{"another model", of(base, func(c *config.Candidate) { c.Model = "M" }), true, true},
		{"another path", of("https://api.example.com/v2", nil), true, true},
		{"the key from elsewhere", of(base, func(c *config.Candidate) { c.Credential = config.EnvCredential("ROUTE_TEST_KEY") }), true, true},
		{"the host spelled otherwise", of("HTTPS://API.example.com:443", nil), true, true},
		{"another key", of(base, func(c *config.Candidate) { c.Credential = config.LiteralCredential("sk-2") }), false, true},
		{"no key", of(base, keyless), false, true},
		{"a user in the URL", of("https://me:pass@api.example.com/v1", nil), false, true},
		{"a key in the URL", of(base+"?key=abc", nil), false, true},
		{"another scheme", of("http://api.example.com/v1", nil), false, false},
		{"another port", of("https://api.example.com:8443/v1", nil), false, false},
		{"another host", of("https://eu.example.com/v1", nil), false, false}, // where the same words may be another account
	} {
		if got := tt.other.KeyID == c.KeyID; got != tt.key {
			t.Errorf("%s: the same key %v, want %v", tt.name, got, tt.key)
		}
		if got := tt.other.HostID == c.HostID; got != tt.host {
			t.Errorf("%s: the same host %v, want %v", tt.name, got, tt.host)
		}
	}
	if k := of(base, keyless).KeyID; k != "" {
		t.Errorf("without a credential the key is %q", k)
	}
	if a, b := of(base+"?key=a&token=b", keyless).KeyID, of(base+"?token=b&key=a", keyless).KeyID; a != b || a == "" {
		t.Errorf("keys in URLs: %q and %q", a, b)
	}
}
