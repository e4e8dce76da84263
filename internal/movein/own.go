package movein

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"understudy/internal/config"
)

// oldClients says what the clients of the older programs have to know.
func oldClients(kind Kind) string {
	return fmt.Sprintf("clients of %s: the file is read as it is; docs/moving.md lists every difference and the setting that brings the old way back", kind.Title())
}

// errNotKept is returned where a file has to be written anew.
var errNotKept = errors.New("the file cannot be taken over as it is")

// keep takes over a file that understudy reads as it is: every byte of it, its
// comments too, but for retired keys, which become comments, and for keys that go
// into variables.
func keep(f *file, kind Kind, tree *config.Tree, where Keys, res Result) (Result, error) {
	src, err := f.source, error(nil)
	keys := newKeyring(where)
	places := secretsOf(tree, nil, "UPSTREAM")
	for _, p := range places {
		if p.literal == "" {
			keys.refer(p.variable)
		}
	}
	for _, p := range places {
		if p.literal == "" || where == KeysInline {
			continue
		}
		name := keys.variable(found{config.NewSecret(p.literal), p.want, f, p.tree, p.name})
		if src, err = p.move(src, name); err != nil {
			return res, err
		}
	}
	for _, path := range retiredKeys(tree, nil) {
		if src, err = src.Remove(path); err != nil {
			return res, err
		}
		at := place(tree, path)
		key, _ := path[len(path)-1].(string)
		res.Missing = append(res.Missing, Missing{File: f.path, Line: at.Line, Column: at.Column, Key: pathText(path), Why: "retired, had no effect, and is left out: use " + config.Retired(key)})
	}
	if where == KeysEnv && !open(src) {
		return res, errNotKept
	}
	head := "# Imported by `understudy import` from " + kind.Title() + "'s " + shown(filepath.Base(f.path)) + ". The file is read as it is;\n# docs/moving.md says what is different.\n"
	for _, m := range res.Missing {
		head += fmt.Sprintf("# no counterpart: %s (line %d): %s\n", m.Key, m.Line, m.Why)
	}
	res.Format = src.Format
	res.Bytes = append([]byte(head+"\n"), bytes.TrimPrefix(src.Bytes, []byte("\xef\xbb\xbf"))...)
	res.Clients = []string{oldClients(kind)}
	return finish(res, nil, keys)
}

// open reports a file that holds no secret any more but in headers, which have been
// looked at one by one: not in a URL, not in a token, and not in a comment.
func open(src config.Source) bool {
	masked, err := src.Masked()
	if err != nil {
		return false
	}
	plain := strings.ReplaceAll(string(bytes.TrimPrefix(src.Bytes, []byte("\xef\xbb\xbf"))), "\r\n", "\n")
	before, after := strings.Split(plain, "\n"), strings.Split(masked.Text, "\n")
	if len(before) != len(after) {
		return false
	}
	tree, problems := config.ReadTree(src)
	if tree == nil || len(problems) > 0 {
		return false
	}
	headers := map[int]bool{}
	headerLines(tree, false, headers)
	for i := range before {
		if before[i] != after[i] && (!headers[i+1] || strings.Contains(before[i], "#")) {
			return false
		}
	}
	return true
}

// headerLines collects the lines on which values of headers stand.
func headerLines(t *config.Tree, inside bool, lines map[int]bool) {
	for _, p := range t.Pairs {
		if inside {
			lines[p.Value.Line] = true
		}
		headerLines(p.Value, p.Key == "headers", lines)
	}
	for _, item := range t.Items {
		headerLines(item, false, lines)
	}
}

// check lists the mistakes of a file that is of our own spelling.
func (f *file) check() Problems {
	cfg, problems := config.Parse(f.source)
	if cfg != nil {
		return nil
	}
	return slices.DeleteFunc(problems, func(p config.Problem) bool { return p.Severity != config.Error })
}

// secretPlace is a key of a file of our own spelling.
type secretPlace struct {
	path     []any // of the mapping that holds it
	key      string
	literal  string // the key itself, or
	variable string // the variable it names
	want     string // the name its variable should have
	name     string // its path, for people
	tree     *config.Tree
	last     bool // it is all there is in its headers
}

// move puts the name of a variable in the place of a key.
func (p secretPlace) move(src config.Source, name string) (config.Source, error) {
	to := append(slices.Clone(p.path), p.key+"_env")
	if last := len(p.path) - 1; last >= 0 && p.path[last] == "headers" {
		to = append(append(slices.Clone(p.path[:last]), "header_env"), p.key)
	}
	src, err := src.Set(to, name)
	if err != nil {
		return src, err
	}
	if p.last {
		return src.Remove(p.path)
	}
	return src.Remove(append(slices.Clone(p.path), p.key))
}

// secretsOf walks a file for keys, in its order.
func secretsOf(t *config.Tree, path []any, owner string) (list []secretPlace) {
	at := func(p config.TreePair, want string) secretPlace {
		s := secretPlace{path: slices.Clone(path), key: p.Key, want: want, tree: p.Value}
		s.name = pathText(append(slices.Clone(path), p.Key))
		return s
	}
	owner = ownerOf(t, owner)
	for _, p := range t.Pairs {
		inHeaders := len(path) > 0 && path[len(path)-1] == "headers"
		inEnv := len(path) > 0 && path[len(path)-1] == "header_env"
		switch {
		case p.Value.Kind == config.TreeText && (p.Key == "api_key" || p.Key == "key" && len(path) > 0 && path[0] == "clients"):
			s := at(p, map[string]string{"api_key": keyOf(owner), "key": variableOf(owner) + "_CLIENT_KEY"}[p.Key])
			s.literal = p.Value.Text
			list = append(list, s)
		case p.Value.Kind == config.TreeText && (p.Key == "api_key_env" || p.Key == "key_env" || inEnv):
			s := at(p, "")
			s.variable = p.Value.Text
			list = append(list, s)
		case p.Value.Kind == config.TreeText && inHeaders && secretHeader(p.Key, p.Value.Text):
			s := at(p, owner+"_"+p.Key)
			s.last = len(t.Pairs) == 1
			s.literal = p.Value.Text
			list = append(list, s)
		case p.Value.Kind == config.TreeMapping:
			list = append(list, secretsOf(p.Value, append(slices.Clone(path), p.Key), owner)...)
		case p.Value.Kind == config.TreeList:
			for i, item := range p.Value.Items {
				list = append(list, secretsOf(item, append(slices.Clone(path), p.Key, i), owner)...)
			}
		}
	}
	return list
}

// ownerOf is what an entry is called, for the names of its variables.
func ownerOf(t *config.Tree, otherwise string) string {
	for _, key := range []string{"name", "id"} {
		if v := t.Find(key); v != nil && v.Kind == config.TreeText && !config.LooksSecret(v.Text) {
			return v.Text
		}
	}
	return otherwise
}

// retiredKeys are the paths of retired keys, in the file's order.
func retiredKeys(t *config.Tree, path []any) (list [][]any) {
	for _, p := range t.Pairs {
		here := append(slices.Clone(path), p.Key)
		switch {
		case config.Retired(p.Key) != "" && len(path) != 1:
			list = append(list, here)
		case config.Retired(p.Key) != "" && path[0] != "virtual_models":
			list = append(list, here)
		case p.Value.Kind == config.TreeMapping:
			list = append(list, retiredKeys(p.Value, here)...)
		case p.Value.Kind == config.TreeList:
			for i, item := range p.Value.Items {
				list = append(list, retiredKeys(item, append(slices.Clone(here), i))...)
			}
		}
	}
	return list
}

// place is the value at a path, with the line of its key.
func place(t *config.Tree, path []any) *config.Tree {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			for _, p := range t.Pairs {
				if p.Key == step {
					v := *p.Value
					v.Line, v.Column = p.Line, p.Column
					t = &v
				}
			}
		case int:
			t = t.Items[step]
		}
	}
	return t
}

// pathText writes a path for people.
func pathText(path []any) (s string) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			if s != "" {
				s += "."
			}
			s += shown(step)
		case int:
			s = index(s, step)
		}
	}
	return s
}

// adopt puts a file of our own spelling into a draft that other files go into
// too. Its comments are lost.
func (d *draft) adopt(f *file, t *config.Tree, keys *keyring, kind Kind) {
	if problems := f.check(); len(problems) > 0 {
		f.problems = append(f.problems, problems...)
		return
	}
	d.notes = append(d.notes, remark("The comments of "+shown(filepath.Base(f.path))+" are not taken over."))
	for _, p := range t.Pairs {
		if strings.HasPrefix(p.Key, "x-") || strings.HasPrefix(p.Key, ".") {
			continue // for anchors, which are expanded
		}
		switch p.Key {
		case "server":
			server := d.block(f, p.Value, []any{"server"}, keys)
			d.server.notes = append(d.server.notes, server.notes...)
			for _, e := range server.pairs {
				if d.server.get(e.key) == nil {
					d.server.set(e.key, e.value)
				}
			}
		case "pool":
			if b := d.block(f, p.Value, []any{"pool"}, keys); d.pool == nil {
				d.pool = b
			}
		case "upstream":
			d.upstream = append(d.upstream, d.list(f, p.Value, []any{"upstream"}, keys)...)
		case "clients":
			d.clients = append(d.clients, d.list(f, p.Value, []any{"clients"}, keys)...)
		case "rules":
			d.rules = append(d.rules, d.list(f, p.Value, []any{"rules"}, keys)...)
		case "request_log":
			d.requestLog = *d.block(f, p.Value, []any{"request_log"}, keys)
		case "virtual_models":
			for _, m := range p.Value.Pairs {
				d.adoptModel(f, m, keys)
			}
		default:
			d.notes = append(d.notes, note{file: f.path, line: p.Line, column: p.Column, key: shown(p.Key), why: "write it into this file by hand"})
		}
	}
}

func (d *draft) adoptModel(f *file, p config.TreePair, keys *keyring) {
	if d.model(p.Key) != nil {
		d.notes = append(d.notes, note{file: f.path, line: p.Line, column: p.Column, key: "virtual_models." + shown(p.Key), why: "another file has a virtual model of this name: give this one another name there"})
		return
	}
	path := []any{"virtual_models", p.Key}
	m := &chain{name: p.Key}
	list := p.Value
	if p.Value.Kind == config.TreeMapping {
		list = p.Value.Find("candidates")
		m.settings = &block{}
		for _, e := range d.block(f, p.Value, path, keys).pairs {
			if e.key != "candidates" {
				m.settings.set(e.key, e.value)
			}
		}
	}
	if list == nil || list.Kind != config.TreeList {
		return // x- keys, for anchors
	}
	for i, item := range list.Items {
		if any := item.Find("any_of"); any != nil {
			m.tiers = append(m.tiers, d.list(f, any, append(slices.Clone(path), i, "any_of"), keys))
			continue
		}
		m.tiers = append(m.tiers, tier{d.block(f, item, append(slices.Clone(path), i), keys)})
	}
	d.models = append(d.models, m)
}

func (d *draft) list(f *file, t *config.Tree, path []any, keys *keyring) (list []*block) {
	for i, item := range t.Items {
		list = append(list, d.block(f, item, append(slices.Clone(path), i), keys))
	}
	return list
}

// block copies a mapping, with keys put where they belong.
func (d *draft) block(f *file, t *config.Tree, path []any, keys *keyring) *block {
	b := &block{}
	for _, p := range t.Pairs {
		switch {
		case config.Retired(p.Key) != "":
			b.notes = append(b.notes, note{file: f.path, line: p.Line, column: p.Column, key: pathText(append(slices.Clone(path), p.Key)), why: "retired, had no effect, and is left out: use " + config.Retired(p.Key)})
		case p.Key == "api_key" || p.Key == "key" && path[0] == "clients":
			want := map[string]string{"api_key": keyOf(ownerOf(t, "UPSTREAM")), "key": variableOf(ownerOf(t, "UPSTREAM")) + "_CLIENT_KEY"}[p.Key]
			keys.put(b, p.Key, p.Key+"_env", found{config.NewSecret(p.Value.Text), want, f, p.Value, pathText(append(slices.Clone(path), p.Key))})
		case keys.keys == KeysEnv && p.Key == "admin_token":
			b.notes = append(b.notes, note{file: f.path, line: p.Line, column: p.Column, key: pathText(append(slices.Clone(path), p.Key)), why: "a token that cannot come from a variable: put it in by hand, or import with --keys inline"})
		case keys.keys == KeysEnv && (p.Key == "base_url" || p.Key == "proxy") && p.Value.Kind == config.TreeText && p.Value.Text != "none":
			u, err := url.Parse(p.Value.Text)
			if err != nil {
				continue
			}
			if safe, had := bare(u); had {
				b.notes = append(b.notes, note{file: f.path, line: p.Line, column: p.Column, key: pathText(append(slices.Clone(path), p.Key)), why: "what looked secret in this URL is left out, since a URL cannot take it from a variable: put it in by hand, or import with --keys inline"})
				b.set(p.Key, safe.String())
				continue
			}
			b.set(p.Key, p.Value.Text)
		case p.Key == "headers" && p.Value.Kind == config.TreeMapping:
			s := f.section(t, pathText(path))
			before := b.get("header_env")
			keys.headers(b, s, "headers", ownerOf(t, "UPSTREAM"))
			if env, ok := b.get("header_env").(*block); ok && before != nil {
				env.pairs = append(before.(*block).pairs, env.pairs...)
			}
		default:
			if last := len(path) - 1; p.Key == "api_key_env" || p.Key == "key_env" || last >= 0 && path[last] == "header_env" {
				keys.refer(p.Value.Text)
			}
			if v := d.value(f, p.Value, append(slices.Clone(path), p.Key), keys); v != nil {
				if p.Key == "header_env" {
					if env, ok := b.get("header_env").(*block); ok {
						env.pairs = append(env.pairs, v.(*block).pairs...)
						continue
					}
				}
				b.set(p.Key, v)
			}
		}
	}
	return b
}

// value copies a value.
func (d *draft) value(f *file, t *config.Tree, path []any, keys *keyring) any {
	switch t.Kind {
	case config.TreeBool:
		return t.Bool
	case config.TreeNumber:
		if t.Whole {
			return int64(t.Number)
		}
		return t.Number
	case config.TreeText:
		return t.Text
	case config.TreeMapping:
		return d.block(f, t, path, keys)
	case config.TreeList:
		if len(t.Items) > 0 && t.Items[0].Kind == config.TreeMapping {
			return d.list(f, t, path, keys)
		}
		list := []any{}
		for i, item := range t.Items {
			list = append(list, d.value(f, item, append(slices.Clone(path), i), keys))
		}
		return list
	}
	return nil
}
