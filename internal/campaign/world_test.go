package campaign

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"understudy/internal/drill"
	"understudy/internal/drill/names"
)

// marker stands in the middle of every secret, where no mask shows it. It must be
// found nowhere but where a secret belongs.
const marker = "QZFAKESECRETZQ"

// A candidate is one that the program may call, in one of its virtual models or in
// the pool.
type candidate struct {
	host   *host
	chain  string // its virtual model; "*" is the pool
	index  int    // in it, from 1
	name   string
	path   string // of its base URL, nobody else's
	model  string // the real one; "" in the pool
	secret string // "" for none: then the client's own may come
	style  string
}

// A model is a virtual model, or the pool ("*").
type model struct {
	name       string
	candidates []*candidate
	conf       map[string]any
	// bounds over all variants of the configuration
	perCandidate int
	total        int // 0: no bound
	hedged       bool
}

// A world is one family of configurations and the upstreams behind it.
type world struct {
	seed       uint64
	random     *rand.Rand
	dir        string
	hosts      []*host
	models     []*model
	byPath     map[string]*candidate
	clients    []caller
	own        string // what clients without keys of ours send as their credential
	probation  *probation
	soonest    bool // variants may have when_all_frozen: try_soonest
	errorEvent bool // some variant has broken_stream: error_event
	variants   [][]byte
	secrets    int
	names      *names.Server
	members    []map[string]any // of the pool
	dead       []func()
}

// caller is a client with a key.
type caller struct {
	name, key string
	limited   bool
}

func (w *world) secret(kind string) string {
	w.secrets++
	return fmt.Sprintf("sk-fake-%s%04x%s%08x", kind, w.secrets, marker, w.random.Uint32())
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// about is true with a probability.
func about(r *rand.Rand, p float64) bool { return r.Float64() < p }

// newWorld makes up everything from the seed.
func newWorld(seed uint64, dir string, b *book) *world {
	w := &world{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), dir: dir, byPath: map[string]*candidate{}, names: names.Start()}
	w.own = w.secret("own")
	w.soonest = about(w.random, 0.2) // where it is so, frozen ones may be called
	r := w.random
	for i := range 3 + r.IntN(3) {
		w.hosts = append(w.hosts, newHost(fmt.Sprintf("h%d", i), plainHTTP, w, b))
	}
	w.hosts = append(w.hosts, newHost("tls", overTLS, w, b), newHost("h2", overHTTP2, w, b))
	if about(r, 0.6) {
		w.clients = []caller{{"one", w.secret("ca"), false}, {"two", w.secret("cb"), false}, {"three", w.secret("cc"), true}}
	}
	for i := range 2 + r.IntN(3) {
		w.models = append(w.models, w.newModel(fmt.Sprintf("vm%d", i)))
	}
	if about(r, 0.6) {
		w.models = append(w.models, w.newPool())
	}
	w.probation = newProbation(w)
	w.variants = append(w.variants, w.render(w.server()))
	for range 3 {
		w.vary()
		w.variants = append(w.variants, w.render(w.server()))
	}
	return w
}

func (w *world) close() {
	for _, h := range w.hosts {
		h.close()
	}
	w.probation.close()
	for _, f := range w.dead {
		f()
	}
	w.names.Close()
}

// newCandidate makes one at a random upstream, now and then at one that nobody can
// reach.
func (w *world) newCandidate(chain string, index int) (*candidate, map[string]any) {
	r := w.random
	c := &candidate{host: pick(r, w.hosts...), chain: chain, index: index, style: pick(r, "bearer", "x-api-key", "x-goog-api-key", "api-key", "bearer")}
	c.name = fmt.Sprintf("%s-%d", strings.TrimPrefix(chain, "*"), index)
	if chain == "*" {
		c.name = fmt.Sprintf("pool-%d", index)
	}
	c.path = "/" + c.name
	c.secret = w.secret("u")
	base := c.host.url()
	if about(r, 0.08) {
		base = w.unreachable(c)
	}
	c.model = "real-" + c.name
	conf := map[string]any{"base_url": base + c.path, "api_key": c.secret, "auth_style": c.style, "model": c.model, "name": c.name}
	if about(r, 0.3) {
		conf["headers"] = map[string]any{"x-fake-token": "plain-value"}
	}
	if about(r, 0.15) {
		conf["max_parallel"] = 1 + r.IntN(6)
	}
	if about(r, 0.1) {
		conf["rpm"] = 50 + r.IntN(500)
	}
	if about(r, 0.1) {
		conf["tpm"] = 5000 + r.IntN(50000)
	}
	if about(r, 0.3) {
		conf["stall_timeout"] = seconds(r, 200, 800)
	}
	w.byPath[c.path] = c
	return c, conf
}

// unreachable is a base URL that fails before a request is sent.
func (w *world) unreachable(c *candidate) string {
	c.host = nil
	switch w.random.IntN(5) {
	case 0:
		url, release := drill.Refused()
		w.dead = append(w.dead, release)
		return url
	case 1:
		if url, release, err := drill.BlackHole(); err == nil {
			w.dead = append(w.dead, release)
			return url
		}
		return "http://127.0.0.1:1" // a system without black holes
	case 2:
		u := drill.StallTLS(certificate, w.random.IntN(1200))
		w.dead = append(w.dead, u.Close)
		return "https://" + u.Addr()
	default:
		return fmt.Sprintf("http://%s.%s.test:%d", pick(w.random, "nxdomain", "servfail", "silent", "garbage"), c.name, 1+w.random.IntN(1000))
	}
}

func seconds(r *rand.Rand, from, to int) float64 { return float64(from+r.IntN(to-from)) / 1000 }

// newModel makes a virtual model.
func (w *world) newModel(name string) *model {
	r := w.random
	m := &model{name: name, perCandidate: 1}
	var tiers []any
	n := 0
	for range 1 + r.IntN(3) {
		var equals []any
		for range 1 + r.IntN(3) {
			n++
			c, conf := w.newCandidate(name, n)
			m.candidates = append(m.candidates, c)
			if about(r, 0.3) {
				conf["weight"] = 1 + r.IntN(4)
			}
			equals = append(equals, conf)
		}
		if len(equals) == 1 {
			tiers = append(tiers, equals[0])
		} else {
			tiers = append(tiers, map[string]any{"any_of": equals})
		}
	}
	m.conf = map[string]any{"candidates": tiers, "delivery": pick(r, "stream", "stream", "complete", "window"), "affinity": pick(r, "strict", "warm", "off")}
	if m.conf["delivery"] == "window" {
		m.conf["hold_ms"] = 5 + r.IntN(80)
	}
	if about(r, 0.3) {
		m.hedged = true
		m.conf["hedge"] = map[string]any{"after": seconds(r, 5, 80), "max": 1 + r.IntN(3), "budget": 1}
	}
	return m
}

// newPool makes the pool.
func (w *world) newPool() *model {
	m := &model{name: "*", perCandidate: 1, total: 1 + w.random.IntN(4)}
	for i := range 2 + w.random.IntN(3) {
		c, conf := w.newCandidate("*", i+1)
		c.model = ""
		delete(conf, "model")
		conf["id"] = c.name
		delete(conf, "stall_timeout")
		conf["timeout_seconds"] = seconds(w.random, 300, 900)
		if about(w.random, 0.2) {
			c.secret = ""
			delete(conf, "api_key")
			conf["auth_style"] = "none"
		}
		m.candidates = append(m.candidates, c)
		w.members = append(w.members, conf)
	}
	m.conf = map[string]any{"max_attempts": m.total, "cooldown_seconds": seconds(w.random, 0, 300)}
	return m
}

// server is a random server section.
func (w *world) server() map[string]any {
	r := w.random
	s := map[string]any{
		"host": "127.0.0.1", "port": 0, "admin": "127.0.0.1:0", "state_dir": filepath.Join(w.dir, "state"),
		"stall_timeout": seconds(r, 250, 900), "stream_timeout": seconds(r, 800, 2500), "nonstream_timeout": seconds(r, 800, 2000),
		"connect_timeout": seconds(r, 300, 800), "content_timeout": pick(r, 0, 0, seconds(r, 300, 900)),
		"chain_timeout": pick(r, 0, 2.0, 5.0), "relay_stall_timeout": seconds(r, 400, 1200), "write_idle_timeout": 60, // what a busy machine sends late goes out
		"min_content_chars": pick(r, 1, 10, 10, 40), "hold_bytes": pick(r, 64<<10, 64<<10, 8<<20),
		"auto_hedge_threshold": pick(r, 0, 3, 5), "auto_hedge_minutes": seconds(r, 1, 6), "freeze_max_seconds": 1,
		"broken_stream": pick(r, "abort", "abort", "error_event"), "when_all_frozen": "fail",
		"queue_timeout": pick(r, 0, seconds(r, 20, 300)), "reload_poll_interval": pick(r, 0, 0.05), "admin_token": w.token(),
	}
	if about(r, 0.15) {
		s["max_held_bytes"] = 8 << 20
	}
	if w.soonest {
		s["when_all_frozen"] = pick(r, "fail", "try_soonest")
	}
	w.errorEvent = w.errorEvent || s["broken_stream"] == "error_event"
	return s
}

// token is the admin's.
func (w *world) token() string { return fmt.Sprintf("sk-fake-admin-%s-%d", marker, w.seed) }

// rules are random ones, and how many attempts at one candidate they allow.
func (w *world) rules() (list []any, most int) {
	r := w.random
	most = 1
	match := func() map[string]any {
		m := map[string]any{}
		if about(r, 0.5) {
			m["fault"] = pick[any](r, "rate", "server", []string{"capacity", "server"}, "model", "credential", "quota", "client")
		} else {
			m["status"] = pick[any](r, "network", "bad_stream", "timeout", "stalled_stream", 429, []any{500, 503, 529}, []any{"network", "bad_stream"})
		}
		return m
	}
	for range r.IntN(7) {
		rule := map[string]any{"match": match()}
		switch r.IntN(5) {
		case 0, 1:
			n := 2 + r.IntN(2)
			most = max(most, n)
			rule["action"], rule["max_attempts"], rule["backoff_base"], rule["max_wait"] = "retry", n, seconds(r, 5, 200), seconds(r, 0, 1200)
		case 2:
			rule["action"], rule["freeze_seconds"], rule["scope"] = "freeze", seconds(r, 20, 300), pick(r, "identity", "identity", "key", "host", "auto")
		case 3:
			rule["action"] = "next"
		default:
			rule["action"] = pick(r, "passthrough", "next")
		}
		list = append(list, rule)
	}
	return list, most
}

// render makes a file of the server section and everything else as it stands.
func (w *world) render(server map[string]any) []byte {
	rules, most := w.rules()
	all := map[string]any{"server": server, "rules": append([]any{}, rules...), "request_log": map[string]any{"bodies": pick(w.random, "off", "failed", "all"), "keep": 500}}
	vms := map[string]any{w.probation.name(): w.probation.conf}
	for _, m := range w.models {
		if m.name == "*" {
			all["pool"], all["upstream"] = m.conf, w.members
			continue
		}
		m.perCandidate = max(m.perCandidate, most)
		vms[m.name] = m.conf
	}
	all["virtual_models"] = vms
	if w.clients != nil {
		var list []any
		for _, c := range w.clients {
			conf := map[string]any{"name": c.name, "key": c.key}
			if c.limited {
				conf["max_parallel"], conf["rpm"] = 3, 3000
			}
			list = append(list, conf)
		}
		all["clients"] = list
	}
	out, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		panic(err) // maps of text and numbers
	}
	return out
}

// vary changes the models a little, as people do: order, weights, what is switched
// off.
func (w *world) vary() {
	r := w.random
	for _, m := range w.models {
		if m.name == "*" {
			continue
		}
		tiers := m.conf["candidates"].([]any)
		r.Shuffle(len(tiers), func(i, j int) { tiers[i], tiers[j] = tiers[j], tiers[i] })
		for _, t := range tiers {
			each(t, func(conf map[string]any) {
				conf["enabled"] = about(r, 0.9)
				if about(r, 0.2) {
					conf["weight"] = 1 + r.IntN(4)
				}
			})
		}
		if about(r, 0.3) {
			m.conf["delivery"] = pick(r, "stream", "complete")
		}
	}
}

// each calls f with every candidate of a tier.
func each(tier any, f func(map[string]any)) {
	t := tier.(map[string]any)
	if equals, ok := t["any_of"].([]any); ok {
		for _, e := range equals {
			f(e.(map[string]any))
		}
		return
	}
	f(t)
}

// path of the configuration file.
func (w *world) file() string { return filepath.Join(w.dir, "understudy.yaml") }

// write puts a variant in place, as an editor does.
func (w *world) write(text []byte) error {
	temp := w.file() + ".new"
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, w.file())
}
