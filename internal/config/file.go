package config

import (
	"path/filepath"
	"runtime"
	"slices"
)

// file is the top of a configuration before its parts are put together.
type file struct {
	server, pool, upstream, models, rules, clients, store, requestLog *node
}

func part(name, typ string, f func() form, doc string, at func(*file) **node) key[file] {
	return custom(Key{Name: name, Type: typ, Doc: doc, form: f}, func(_ *decoder, n *node, f *file) { *at(f) = n })
}

var fileTable = &table[file]{
	path:     "",
	doc:      "The whole file. Neither a pool nor virtual models is an error.",
	together: poolForm,
	keys: []key[file]{
		part("server", "mapping", func() form { return refForm("server") }, "Listen addresses, time limits and other settings of the process.", func(f *file) **node { return &f.server }),
		part("pool", "mapping", func() form { return refForm("pool") }, "Settings of the pool, which serves every model that is no virtual model. There is a pool where this key stands, or where there are no virtual models.", func(f *file) **node { return &f.pool }),
		part("upstream", "list of mappings", func() form { return form{{"type", []string{"array", "null"}}, {"items", refForm("upstream")}} }, "The pool's members; virtual models may name them too.", func(f *file) **node { return &f.upstream }),
		part("virtual_models", "mapping", func() form { return refForm("virtual_models") }, "The model names that clients send, each with its chain of candidates.", func(f *file) **node { return &f.models }),
		part("rules", "list of mappings", func() form { return refForm("rules") }, "What follows a failure, for all chains. Without this key the built-in rules apply; an empty list means next for everything.", func(f *file) **node { return &f.rules }),
		part("clients", "list of mappings", func() form { return listForm(refForm("client")) }, "Who may call, and for which models. Without it anyone on this machine may.", func(f *file) **node { return &f.clients }),
		part("store", "redis URL, or mapping", func() form { return form{{"anyOf", []form{storeURLForm(), refForm("store")}}} }, "A Redis or Valkey server that several instances share, for freezes, trials and limits.", func(f *file) **node { return &f.store }),
		part("request_log", "mapping", func() form { return refForm("request_log") }, "The log of requests on disk.", func(f *file) **node { return &f.requestLog }),
	},
}

// Parse checks a file and fills in every default. All problems come back at
// once, in the file's order; the Config is nil if any of them is an error. It
// looks at the environment and at key files only to warn of what is missing.
func Parse(src Source) (*Config, []Problem) {
	d := &decoder{doc: parseDocument(src.Format, src.Bytes), src: src, dir: filepath.Dir(src.Path), entries: map[string]*entry{}, syntax: map[[2]int]bool{}}
	for _, f := range d.doc.problems {
		d.errorAt(f.offset, f.what, f.cure)
	}
	for _, p := range d.problems {
		d.syntax[[2]int{p.Line, p.Column}] = p.Line > 0
	}
	if d.doc.root == nil {
		return nil, d.sorted()
	}
	cfg := d.config(d.doc.root)
	d.warnReadable()
	problems := d.sorted()
	if d.failed() {
		return nil, problems
	}
	return cfg, problems
}

func (d *decoder) config(root *node) *Config {
	cfg := &Config{Source: d.src}
	var f file
	given := fileTable.decode(d, root, &f)
	within := func(name string, n *node, read func()) {
		if n != nil {
			defer d.enter("." + name)()
		}
		read()
	}
	within("server", f.server, func() { d.server(f.server, &cfg.Server) })
	within("upstream", f.upstream, func() { cfg.Upstreams = d.upstreams(f.upstream, &cfg.Server) })
	within("virtual_models", f.models, func() { cfg.Models = d.models(f.models, cfg) })
	within("pool", f.pool, func() {
		// A broken list of virtual models is no reason to see a pool.
		if given["pool"] != nil || !namesModels(f.models) {
			cfg.Pool = d.pool(f.pool, cfg)
		}
	})
	within("rules", f.rules, func() {
		if cfg.BuiltInRules = f.rules == nil; cfg.BuiltInRules {
			cfg.Rules = BuiltInRules()
		} else {
			cfg.Rules = d.rules(f.rules, func(i int) string { return "rule " + itoa(i) })
		}
	})
	within("clients", f.clients, func() { cfg.Clients = d.clients(f.clients, cfg.Models) })
	within("store", f.store, func() { cfg.Store = d.store(f.store) })
	within("request_log", f.requestLog, func() { cfg.RequestLog = d.requestLog(f.requestLog) })
	d.crossCheck(cfg, f)
	return cfg
}

// namesModels reports whether virtual_models is there and not empty.
func namesModels(n *node) bool {
	if n == nil || n.kind == kindNull {
		return false
	}
	return n.kind != kindMap || slices.ContainsFunc(n.pairs, func(p pair) bool { return !freeModel(p.key) })
}

// crossCheck looks at what only the whole file can tell.
func (d *decoder) crossCheck(cfg *Config, f file) {
	names := map[string]bool{}
	for _, m := range cfg.Models {
		names[m.Name] = true
	}
	known := f.models == nil || f.models.kind == kindMap || f.models.kind == kindNull
	if n := f.server.find("default_model"); n != nil && cfg.Server.DefaultModel != "" && !names[cfg.Server.DefaultModel] && known {
		leave := d.enter(".server.default_model")
		d.errorOn(n, quoteName(cfg.Server.DefaultModel)+" is no virtual model", "name one of virtual_models")
		leave()
	}
	if n := f.server.find("max_held_bytes"); n != nil && cfg.Server.MaxHeldBytes > 0 && cfg.Server.MaxHeldBytes < cfg.Server.MaxBodyBytes {
		leave := d.enter(".server.max_held_bytes")
		d.warnAt(n.outer, "max_held_bytes is less than max_body_bytes, and so is the largest body", "write at least "+sizeText(cfg.Server.MaxBodyBytes)+", or lower max_body_bytes")
		leave()
	}
	if cfg.Pool == nil {
		used := map[string]bool{}
		for _, m := range cfg.Models {
			for _, tier := range m.Tiers {
				for _, c := range tier {
					used[c.ID] = true
				}
			}
		}
		for i, u := range cfg.Upstreams {
			at := slices.IndexFunc(f.upstream.items, func(n *node) bool { id := n.find("id"); return id != nil && id.text == u.ID })
			if u.ID != "" && !used[u.ID] && at >= 0 {
				leave := d.enter(".upstream[" + itoa(i) + "]")
				d.warnAt(outerStart(f.upstream.items[at]), "upstream "+quoteName(u.ID)+" is never used", "add a pool, or name it in a virtual model with {upstream: ID, model: ...}")
				leave()
			}
		}
	}
}

// warnReadable warns of a file with secrets that others may read. Windows has
// no such bits.
func (d *decoder) warnReadable() {
	if d.literal && d.src.Mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		d.warnAt(-1, "the file holds keys and others may read it", "chmod 600 "+d.src.Path)
	}
}
