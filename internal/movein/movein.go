package movein

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"understudy/internal/config"
)

// Kind is the program that a file is of.
type Kind string

// The kinds of files that can be read.
const (
	LiteLLM          Kind = "litellm"
	CLIProxyAPI      Kind = "cliproxyapi"
	ClaudeCodeRouter Kind = "claude-code-router"
	Pool             Kind = "pool"
	Chain            Kind = "chain"
)

// Kinds are all of them.
var Kinds = []Kind{LiteLLM, CLIProxyAPI, ClaudeCodeRouter, Pool, Chain}

// Title is the program's own name.
func (k Kind) Title() string {
	switch k {
	case LiteLLM:
		return "LiteLLM"
	case CLIProxyAPI:
		return "CLIProxyAPI"
	case ClaudeCodeRouter:
		return "claude-code-router"
	case Pool:
		return "the pool"
	}
	return "the chain"
}

// Options say how files are turned into a configuration.
type Options struct {
	// Keys says where keys go that stand in the files.
	Keys Keys
	// Native takes each vendor's own dialect where LiteLLM would translate from
	// chat completions: for clients that speak Messages or Gemini's API.
	Native bool
	// Format is the spelling that is wanted, "yaml" or "toml"; "" takes what there
	// is: YAML, or the file's own where one file is taken over as it is.
	Format string
	// Env looks variables up that a base URL is taken from; nil is the process's
	// own environment.
	Env func(name string) (value string, ok bool)
}

func (o Options) env(name string) (string, bool) {
	if o.Env == nil {
		return os.LookupEnv(name)
	}
	return o.Env(name)
}

// Input is one file to read.
type Input struct {
	Path  string // as people know it; its ending tells YAML, JSON and TOML apart
	Bytes []byte
	Kind  Kind // "" finds out
}

// Result is the configuration and what there is to say about it.
type Result struct {
	Format config.Format
	// Bytes are the configuration. They hold keys with [KeysInline].
	Bytes []byte
	Kinds []Kind // of the inputs, in their order
	// Exports are the variables to set, because the files hold the keys
	// themselves; Variables those that the files name already.
	Exports   []Export
	Variables []string
	// Carried is what was taken over, in a person's words; Missing what has no
	// counterpart, and Warnings what the configuration is warned of.
	Carried []string
	Missing []Missing
	// Remarks are further comments that the configuration holds.
	Remarks int
	// Clients says what clients have to change.
	Clients []string
}

// Missing is something that has no counterpart.
type Missing struct {
	File         string
	Line, Column int
	Key          string
	Why          string
}

// ErrTOML is returned where TOML is wanted of a file that is not taken over as it
// is.
var ErrTOML = errors.New("only a pool or chain that is TOML itself stays TOML, and only where no key stands in a comment or a URL; everything else becomes YAML: write -o FILE.yaml")

// Import turns files into one configuration that has no mistakes. What keeps it
// from doing so comes back as [Problems].
func Import(inputs []Input, options Options) (Result, error) {
	var res Result
	d := &draft{}
	keys := newKeyring(options.Keys)
	var problems Problems
	var advice []string
	for _, in := range inputs {
		f := &file{path: in.Path}
		tree := f.parse(in)
		if tree == nil {
			problems = append(problems, f.problems...)
			continue
		}
		kind := in.Kind
		if kind == "" {
			if kind = detect(tree, in.Path); kind == "" {
				f.problem(0, 0, "", "this is none of the files that import reads", "say which by --from: litellm, cliproxyapi, claude-code-router, pool or chain")
				problems = append(problems, f.problems...)
				continue
			}
		}
		res.Kinds = append(res.Kinds, kind)
		members := d.members()
		if kind == Pool || kind == Chain {
			if format, err := config.FormatOf(in.Path); err == nil && len(inputs) == 1 && (options.Format == "" || options.Format == format.String()) {
				if problems := f.check(); len(problems) > 0 {
					return Result{}, problems
				}
				// What it cannot: a key in a comment or a URL, or one that an anchor shares.
				if kept, err := keep(f, kind, tree, options.Keys, res); err == nil {
					return kept, nil
				}
			}
			d.adopt(f, tree, keys, kind)
			advice = append(advice, oldClients(kind))
		} else {
			advice = append(advice, d.convert(f, kind, tree, keys, options)...)
		}
		problems = append(problems, f.problems...)
		if d.pool != nil && members > 0 && d.members() > members {
			d.pool.notes = append(d.pool.notes, remark("The upstreams of more than one file are members of this pool, and so equals: if they are not, give some of them virtual models."))
		}
	}
	switch {
	case len(problems) > 0:
		return Result{}, problems
	case options.Format == config.TOML.String():
		return Result{}, ErrTOML
	}
	d.settle()
	if d.candidates() == 0 {
		f := &file{path: inputs[0].Path}
		why := "there is no model in it"
		for _, n := range d.allNotes() {
			if n.key != "" {
				f.problem(n.line, n.column, n.key, n.key+" has no counterpart", n.why)
			}
		}
		f.problem(0, 0, "", "nothing in it can be taken over", why)
		return Result{}, f.problems
	}
	text, err := d.write(d.title(res.Kinds, inputs))
	if err != nil {
		return Result{}, fmt.Errorf("write the configuration: %w", err)
	}
	res.Bytes = text
	res.Clients = advice
	return finish(res, d, keys)
}

// convert reads a file of another program into the draft and says what its
// clients have to change.
func (d *draft) convert(f *file, kind Kind, tree *config.Tree, keys *keyring, options Options) []string {
	switch kind {
	case LiteLLM:
		l := &litellm{file: f, draft: d, keys: keys, options: options}
		l.read(tree)
		base := "http://127.0.0.1:8787 or http://127.0.0.1:8787/v1"
		if l.unversioned {
			base = "http://127.0.0.1:8787, without /v1 (comments at the candidates say why)"
		}
		return []string{
			"base URL: http://HOST:4000 becomes " + base,
			"to keep port 4000: server: {port: 4000}, or `understudy serve --port 4000`",
		}
	case CLIProxyAPI:
		c := &cliproxy{file: f, draft: d, keys: keys}
		c.read(tree)
		return c.advice
	}
	r := &router{file: f, draft: d, keys: keys}
	r.read(tree)
	return r.advice
}

// detect tells a file's kind by its keys.
func detect(t *config.Tree, path string) Kind {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return t.Find(k) != nil })
	}
	switch {
	case has("model_list", "litellm_settings", "router_settings", "general_settings"):
		return LiteLLM
	case has("Providers", "Router", "API_TIMEOUT_MS"):
		return ClaudeCodeRouter
	case has("virtual_models"):
		return Chain
	case has("upstream", "pool"):
		return Pool
	case has("openai-compatibility", "api-keys", "auth-dir", "generative-language-api-key", "gemini-api-key", "codex-api-key", "claude-api-key", "remote-management", "request-retry"):
		return CLIProxyAPI
	}
	return ""
}

// title stands at the head of the result.
func (d *draft) title(kinds []Kind, inputs []Input) []string {
	var from []string
	for i, k := range kinds {
		from = append(from, k.Title()+"'s "+shown(filepath.Base(inputs[i].Path)))
	}
	return []string{
		"Imported by `understudy import` from " + strings.Join(from, ", ") + ".",
		"Lines that begin with \"no counterpart\" name what understudy does not have, why, and what to do instead.",
		"Every setting: docs/configuration.md. Check this file after each change: understudy check -c FILE",
	}
}

// members counts the upstreams that a pool would have.
func (d *draft) members() (n int) {
	for _, b := range d.upstream {
		if !b.shared {
			n++
		}
	}
	return n
}

// inline writes shared upstreams out at the candidates that name them, so that they
// are no members of a pool.
func (d *draft) inline() {
	for _, m := range d.models {
		for _, t := range m.tiers {
			for _, b := range t {
				i := slices.IndexFunc(d.upstream, func(up *block) bool { return up.shared && up.get("id") == b.get("upstream") })
				if i < 0 {
					continue
				}
				up := d.upstream[i]
				b.notes, up.notes = append(b.notes, up.notes...), nil
				pairs := append([]pair{}, up.pairs[1:]...)
				for _, p := range b.pairs {
					if p.key != "upstream" {
						pairs = append(pairs, p)
					}
				}
				b.pairs = pairs
			}
		}
	}
	d.upstream = slices.DeleteFunc(d.upstream, func(b *block) bool { return b.shared })
}

// settle puts into order what only the whole can tell.
func (d *draft) settle() {
	names := map[string]bool{}
	for _, b := range d.clients {
		name, _ := b.get("name").(string)
		for base, n := name, 2; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		names[name] = true
		b.set("name", name)
	}
	if d.members() > 0 && d.members() < len(d.upstream) {
		d.inline()
	}
	ids := map[string]bool{}
	for _, b := range d.upstream {
		id, _ := b.get("id").(string)
		for base, n := id, 2; ids[id]; n++ {
			id = fmt.Sprintf("%s-%d", base, n)
		}
		ids[id] = true
		b.set("id", id)
	}
	if d.members() == 0 {
		d.pool = nil
	}
}

// finish checks the result as the program itself would, and lists what there is
// to say about it.
func finish(res Result, d *draft, keys *keyring) (Result, error) {
	cfg, problems := config.Parse(config.Source{Path: "understudy." + res.Format.String(), Format: res.Format, Bytes: res.Bytes, Mode: 0o600})
	if cfg == nil {
		var failed Problems
		for _, p := range problems {
			if p.Severity == config.Error {
				p.File = "the result"
				failed = append(failed, p)
			}
		}
		return Result{}, failed
	}
	res.Exports, res.Variables = keys.exports, keys.read
	res.Carried = carried(cfg)
	if d != nil {
		for _, n := range d.allNotes() {
			if n.key == "" {
				res.Remarks++
				continue
			}
			m := Missing{File: n.file, Line: n.line, Column: n.column, Key: n.key, Why: n.why}
			if !slices.Contains(res.Missing, m) {
				res.Missing = append(res.Missing, m)
			}
		}
		slices.SortStableFunc(res.Missing, func(a, b Missing) int {
			if a.File != b.File {
				return 0
			}
			return a.Line - b.Line
		})
	}
	return res, nil
}

// carried counts what the configuration holds.
func carried(cfg *config.Config) (list []string) {
	if n := len(cfg.Models); n > 0 {
		candidates := 0
		for _, m := range cfg.Models {
			for _, t := range m.Tiers {
				candidates += len(t)
			}
		}
		list = append(list, plural(n, "virtual model")+" with "+plural(candidates, "candidate"))
	}
	if cfg.Pool != nil {
		list = append(list, "a pool of "+plural(len(cfg.Upstreams), "upstream"))
	} else if len(cfg.Upstreams) > 0 {
		list = append(list, plural(len(cfg.Upstreams), "upstream"))
	}
	if n := len(cfg.Clients); n > 0 {
		list = append(list, plural(n, "client"))
	}
	if !cfg.BuiltInRules {
		list = append(list, plural(len(cfg.Rules), "rule"))
	}
	return list
}

// parse reads a file's syntax: TOML, JSON and YAML by its ending; without one JSON
// by its first character, else YAML.
func (f *file) parse(in Input) *config.Tree {
	src := config.Source{Path: in.Path, Bytes: in.Bytes, Mode: 0o600}
	first := bytes.TrimLeft(bytes.TrimPrefix(in.Bytes, []byte("\xef\xbb\xbf")), " \t\r\n")
	looksJSON := bytes.HasPrefix(first, []byte("{")) || bytes.HasPrefix(first, []byte("//")) || bytes.HasPrefix(first, []byte("/*"))
	f.source = src
	switch ending := strings.ToLower(filepath.Ext(in.Path)); {
	case ending == ".toml":
		src.Format = config.TOML
		f.source = src
	case ending == ".json" || ending == ".json5" || ending == ".jsonc" || looksJSON && ending != ".yaml" && ending != ".yml":
		return f.parseJSON(in.Bytes)
	}
	tree, problems := config.ReadTree(src)
	f.problems = append(f.problems, problems...)
	return tree
}
