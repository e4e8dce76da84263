package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// chain is a virtual model while it is read.
type chain struct {
	VirtualModel
	candidates, rules, hedge *node
}

// Deliveries are how a virtual model's answers are released, the default first.
var Deliveries = []string{"stream", "complete", "window"}

// DefaultHold is how long delivery "window" holds an answer unless the file says
// otherwise; also the pool's, which streams unless a request asks for it.
const DefaultHold = 1500 * time.Millisecond

// Affinities say when a session that has been away goes home, the default first.
var Affinities = []string{"strict", "warm", "off"}

// The keys that virtual models and the pool have in common.
const (
	affinityDoc    = "How a session keeps to one of several equals: strict goes home as soon as home thaws; warm stays away while the one that stood in has served it within affinity_ttl, and so has its prompt cache; off spreads by load alone."
	affinityTTLDoc = "Affinity warm: how long after its last answer a session counts as served; the usual life of a prompt cache."
)

var modelTable = &table[chain]{
	path: "virtual_models.*",
	doc:  "A virtual model: its list of candidates, or this mapping where it has settings of its own.",
	keys: []key[chain]{
		custom(Key{Name: "candidates", Type: "list of candidates", Required: true, Doc: "The chain, first choice first.", form: func() form { return refForm("chain") }}, func(_ *decoder, n *node, c *chain) { c.candidates = n }),
		choice("delivery", Deliveries, "When an answer goes out: stream as soon as it has shown to be good; complete when it is whole, so that a break fails over unseen; window hold_ms later than stream. Header x-understudy-delivery asks for another one per request.", func(c *chain) *string { return &c.Delivery }),
		millis("hold_ms", DefaultHold, positive, "Delivery window: how long an answer is held once it has shown to be good.", func(c *chain) *dur { return &c.Hold }),
		custom(Key{Name: "hedge", Type: "mapping", DefaultWords: "off", Doc: "Starts another attempt beside one that says nothing; it costs what both attempts cost.", form: func() form { return refForm("hedge") }}, func(_ *decoder, n *node, c *chain) { c.hedge = n }),
		custom(Key{Name: "min_chars_per_second", Type: "number", DefaultWords: "the server's", Range: "at least 0", Doc: "As in server, for this virtual model.", form: func() form { return numberForm(0, maxSeconds) }}, func(d *decoder, n *node, c *chain) {
			c.MinCharsPerSecond, _ = d.rate(n)
		}),
		choice("affinity", Affinities, affinityDoc, func(c *chain) *string { return &c.Affinity }),
		seconds("affinity_ttl", 300, positive, affinityTTLDoc, func(c *chain) *dur { return &c.AffinityTTL }),
		custom(Key{Name: "rules", Type: "list of mappings", Doc: "Its own rules, before the common ones.", form: func() form { return refForm("rules") }}, func(_ *decoder, n *node, c *chain) { c.rules = n }),
	},
}

var hedgeTable = &table[Hedge]{
	path: "virtual_models.*.hedge",
	doc:  "Another attempt beside one that says nothing. Off unless this key stands.",
	keys: []key[Hedge]{
		custom(Key{Name: "after", Type: "seconds, a time such as 8s, or p95", Range: "> 0", Required: true, Doc: "How long an attempt may show no content before the next candidate is tried beside it; p95 is the virtual model's own 95th percentile of the last hour.", form: func() form {
			return form{{"anyOf", []form{lengthForm(time.Second, positive), {{"const", "p95"}}, patternForm(timePattern)}}}
		}}, func(d *decoder, n *node, h *Hedge) {
			if h.P95 = n.kind == kindText && n.text == "p95"; !h.P95 {
				h.After, _ = d.span(n)
			}
		}),
		whole("max", 1, 1, 3, "Extra attempts of one request.", func(h *Hedge) *int { return &h.Max }),
		custom(Key{Name: "budget", Type: "number or percentage", Default: "5%", Range: "> 0, at most 1 (100%)", Doc: "Extra attempts of the last ten minutes as a share of the requests.", form: func() form {
			return form{{"anyOf", []form{aboveForm(1), {{"type", "string"}, {"pattern", sharePattern}, {"not", form{{"pattern", noShare}}}}}}}
		}}, func(d *decoder, n *node, h *Hedge) {
			if v, ok := d.share(n); ok {
				h.Budget = v
			}
		}).withDefault(func(h *Hedge) { h.Budget = 0.05 }),
	},
}

// models reads virtual_models.
func (d *decoder) models(n *node, cfg *Config) []VirtualModel {
	if n == nil || n.kind == kindNull {
		return nil
	}
	if n.kind != kindMap {
		d.wrongType(n, "a mapping of names to chains")
		return nil
	}
	var list []VirtualModel
	for i := range n.pairs {
		p := &n.pairs[i]
		if p.key == "<<" && p.value.kind != kindText || freeModel(p.key) {
			continue
		}
		if !d.visit(p.value) {
			break
		}
		leave := d.enterName(p.key)
		switch {
		case p.key == "" || p.key != strings.TrimSpace(p.key):
			d.errorAt(p.span.start, "blanks around the name of a virtual model, or no name", "write the name clients send")
		case hasControl(p.key):
			d.errorAt(p.span.start, "a control character in the name of a virtual model", "remove it")
		case p.key == "*":
			d.errorAt(p.span.start, `"*" is the pool's name`, "give the virtual model another one")
		default:
			list = append(list, d.model(p, cfg))
		}
		leave()
	}
	return list
}

// freeModel reports a key of virtual_models that is there for anchors. Names
// such as "x-ai/grok" are those of models.
func freeModel(name string) bool { return freeKey(name) && !strings.Contains(name, "/") }

func (d *decoder) model(p *pair, cfg *Config) VirtualModel {
	c := &chain{VirtualModel: VirtualModel{Name: p.key}}
	switch p.value.kind {
	case kindList, kindNull:
		modelTable.decode(d, nil, c)
		c.MinCharsPerSecond = cfg.Server.MinCharsPerSecond
		c.candidates = p.value
		d.chain(c, cfg)
		return c.VirtualModel
	case kindMap:
	default:
		d.wrongType(p.value, "a list of candidates")
		return c.VirtualModel
	}
	given := modelTable.decode(d, p.value, c)
	if at := given["affinity_ttl"]; at != nil && c.Affinity != "warm" {
		d.warnAt(at.outer, "affinity_ttl has no effect with affinity "+c.Affinity, "write affinity: warm, or remove it")
	}
	if at := given["min_chars_per_second"]; at == nil {
		c.MinCharsPerSecond = cfg.Server.MinCharsPerSecond
	} else if c.hedge == nil {
		d.warnAt(at.outer, "min_chars_per_second has no effect without hedge", "add hedge, or remove it")
	}
	if c.candidates != nil {
		leave := d.enter(".candidates")
		d.chain(c, cfg)
		leave()
	}
	if c.hedge != nil {
		c.Hedge = &Hedge{}
		leave := d.enter(".hedge")
		if hedgeTable.decode(d, c.hedge, c.Hedge); c.hedge.kind == kindNull {
			d.wrongType(c.hedge, "a mapping")
		}
		leave()
	}
	if c.rules != nil {
		leave := d.enter(".rules")
		c.Rules = d.rules(c.rules, func(i int) string { return "rule " + itoa(i) + " of " + p.key })
		leave()
	}
	return c.VirtualModel
}

// chain reads the tiers of a virtual model.
func (d *decoder) chain(c *chain, cfg *Config) {
	n := c.candidates
	if n.kind == kindNull || n.kind == kindList && len(n.items) == 0 {
		d.errorOn(n, "an empty chain", "give "+quoteName(c.Name)+" at least one candidate")
		return
	}
	count := 0
	d.each(n, func(item *node) {
		e := newEntry()
		given := candidateTable.decode(d, item, e)
		if item.kind != kindMap {
			return
		}
		tier := len(c.Tiers) + 1
		if e.anyOf == nil {
			count++
			c.Tiers = append(c.Tiers, []Candidate{d.candidate(item, e, given, c.Name, count, tier, cfg)})
			return
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if name != "any_of" {
				d.errorOn(given[name], name+" beside any_of", "put it into the entries of any_of")
			}
		}
		leave := d.enter(".any_of")
		if members := d.equals(e.anyOf, c.Name, &count, tier, cfg); len(members) > 0 {
			c.Tiers = append(c.Tiers, members)
		}
		leave()
	})
}

// equals reads the members of an any_of.
func (d *decoder) equals(n *node, model string, count *int, tier int, cfg *Config) []Candidate {
	if n.kind == kindNull || n.kind == kindList && len(n.items) == 0 {
		d.errorOn(n, "an empty any_of", "give it at least one entry")
		return nil
	}
	var members []Candidate
	named := map[string]bool{}
	d.each(n, func(item *node) {
		e := newEntry()
		given := candidateTable.decode(d, item, e)
		if item.kind != kindMap {
			return
		}
		if e.anyOf != nil {
			d.errorOn(e.anyOf, "any_of inside any_of", "put its entries into the outer one")
			return
		}
		*count++
		m := d.candidate(item, e, given, model, *count, tier, cfg)
		if m.Named && named[m.Name] {
			d.warnAt(given["name"].outer, "two equals are named "+quoteName(m.Name)+", so the same sessions prefer both", "give each a name of its own")
		}
		named[m.Name] = m.Named || named[m.Name]
		members = append(members, m)
	})
	return members
}

// candidate finishes an entry of a chain.
func (d *decoder) candidate(n *node, e *entry, given map[string]*node, model string, index, tier int, cfg *Config) Candidate {
	timeout := time.Duration(0)
	if ref := given["upstream"]; ref != nil {
		up := d.entries[e.upstream]
		if up == nil {
			if e.upstream != "" {
				d.errorOn(ref, "no upstream has the id "+quoteName(e.upstream), "name the id of an [[upstream]]"+didYouMean(e.upstream, slices.Sorted(maps.Keys(d.entries))))
			}
		} else {
			e = e.over(up, given)
			timeout = up.timeout
		}
		for _, name := range []string{"base_url", "api_key", "api_key_env", "api_key_file", "auth_style"} {
			if at := given[name]; at != nil {
				d.errorOn(at, name+" beside upstream", "it is the upstream's: remove one of them")
			}
		}
		if up != nil && e.Model == "" && given["model"] == nil {
			d.errorAt(outerStart(n), "model is missing, and its upstream names none", "add model to one of them")
		}
		d.checkEntry(n, &entry{}, given)
	} else {
		d.checkEntry(n, e, given, "base_url", "model")
		keyGiven := given["api_key"] != nil || given["api_key_env"] != nil || given["api_key_file"] != nil
		if !keyGiven && e.AuthStyle != "none" {
			d.errorAt(outerStart(n), "no credential", "add api_key, api_key_env or api_key_file, or auth_style: none")
		}
	}
	c := e.Candidate
	if c.Named = given["name"] != nil && e.Name != ""; !c.Named {
		c.Name = model + "#" + itoa(index)
	}
	c.Index, c.Tier = index, tier
	c.StallAlways = timeout > 0
	connect, stall := cfg.Server.ConnectTimeout, cfg.Server.StallTimeout
	if timeout > 0 {
		connect, stall = timeout, timeout
	}
	e.Candidate = c
	e.inherit(&cfg.Server, connect, stall)
	return e.Candidate
}

// over lays what the entry itself gives over the upstream it refers to.
func (e *entry) over(up *entry, given map[string]*node) *entry {
	c := *e
	c.taken = map[string]bool{}
	c.ID, c.BaseURL, c.Credential, c.AuthStyle = up.ID, up.BaseURL, up.Credential, up.AuthStyle
	for name, take := range map[string]func(){
		"model":        func() { c.Model = up.Model },
		"weight":       func() { c.Weight = up.Weight },
		"proxy":        func() { c.Proxy = up.Proxy },
		"enabled":      func() { c.Enabled = up.Enabled },
		"join":         func() { c.PlainJoin = up.PlainJoin },
		"terminal":     func() { c.TerminalOptional = up.TerminalOptional },
		"max_parallel": func() { c.MaxParallel = up.MaxParallel },
		"rpm":          func() { c.RPM = up.RPM },
		"tpm":          func() { c.TPM = up.TPM },
		"websocket":    func() { c.WebSocket = up.WebSocket },
	} {
		if given[name] == nil {
			take()
		}
	}
	for name, place := range map[string]*time.Duration{"stall_timeout": &c.Stall, "stream_timeout": &c.Stream, "nonstream_timeout": &c.Nonstream, "content_timeout": &c.Content} {
		if v, ok := up.Overrides[name]; ok && given[name] == nil {
			*place, c.taken[name] = v, true
		}
	}
	c.Headers = slices.Clone(e.Headers)
	for _, h := range up.Headers {
		if !slices.ContainsFunc(c.Headers, func(o HeaderValue) bool { return strings.EqualFold(o.Name, h.Name) }) {
			c.Headers = append(c.Headers, h)
		}
	}
	return &c
}

func didYouMean(s string, known []string) string {
	if near, far := nearest(s, known); !far && near != "" {
		return ", did you mean " + quoteName(near) + "?"
	}
	return ""
}

func (d *decoder) pool(n *node, cfg *Config) *Pool {
	p := &Pool{}
	var rules *node
	given := poolTable.decode(d, n, p)
	if rules = given["rules"]; rules != nil {
		leave := d.enter(".rules")
		p.Rules = d.rules(rules, func(i int) string { return "pool rule " + itoa(i) })
		leave()
	}
	if at := given["affinity_ttl"]; at != nil && p.Affinity != "warm" {
		d.warnAt(at.outer, "affinity_ttl has no effect with affinity "+p.Affinity, "write affinity: warm, or remove it")
	}
	if given["sticky_keys"] == nil {
		p.StickyKeys = cfg.Server.StickyKeys
	}
	if len(cfg.Upstreams) == 0 && d.doc.root.find("upstream").empty() {
		switch {
		case d.doc.root.kind != kindMap && d.doc.root.kind != kindNull: // which is said already
		case n == nil:
			d.errorAt(0, "neither a pool nor virtual models", "add virtual_models, or an upstream for the pool")
		default:
			d.errorAt(outerStart(n), "a pool without upstreams", "add an upstream with id and base_url")
		}
	}
	return p
}

// empty reports a list that is not there or holds nothing.
func (n *node) empty() bool {
	return n == nil || n.kind == kindNull || n.kind == kindList && len(n.items) == 0
}

var poolTable = &table[Pool]{
	path:  "pool",
	doc:   "Settings of the pool, whose members are all of upstream.",
	empty: true,
	keys: []key[Pool]{
		custom(Key{Name: "retry_statuses", Type: "list of statuses", Default: "[429, 500, 502, 503, 504]", Doc: "Statuses that freeze an upstream and go on to the next.", form: func() form { return listForm(statusForm()) }}, func(d *decoder, n *node, p *Pool) {
			p.RetryStatuses = []int{}
			d.each(n, func(item *node) {
				if v, ok := d.status(item); ok {
					p.RetryStatuses = append(p.RetryStatuses, v)
				}
			})
		}).withDefault(func(p *Pool) { p.RetryStatuses = []int{429, 500, 502, 503, 504} }),
		whole("max_attempts", 3, 1, maxCount, "Upstreams one request may try.", func(p *Pool) *int { return &p.MaxAttempts }),
		seconds("cooldown_seconds", 30, zeroUp, "How long a failed upstream is skipped when it does not say; 0 = not at all.", func(p *Pool) *dur { return &p.Cooldown }),
		choice("affinity", Affinities, affinityDoc, func(p *Pool) *string { return &p.Affinity }),
		seconds("affinity_ttl", 300, positive, affinityTTLDoc, func(p *Pool) *dur { return &p.AffinityTTL }),
		custom(Key{Name: "sticky_keys", Type: "list of header:NAME, body:a.b", DefaultWords: "the server's", Doc: "As in server, for the pool.", form: func() form { return listForm(stickyForm()) }}, func(d *decoder, n *node, p *Pool) { p.StickyKeys = d.stickyKeys(n) }),
		custom(Key{Name: "rules", Type: "list of mappings", Doc: "Rules before the pool's own table.", form: func() form { return refForm("rules") }}, func(*decoder, *node, *Pool) {}),
	},
}
