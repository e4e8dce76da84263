package movein

import (
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
)

// note is something that has no counterpart, or has another one than might be
// thought. It stands as a comment where it matters.
type note struct {
	file         string // "" for our own remarks
	line, column int
	key          string // its path in the source, "" for a remark
	why          string // and what to do instead
}

// pair is one key of ours with its value: a bool, a number, a text, a list of
// texts or numbers, a block, or a list of blocks.
type pair struct {
	key   string
	value any
}

// block is one mapping of the configuration, with the comments above it.
type block struct {
	notes []note
	pairs []pair
	// shared marks an upstream that is there for the candidates that name it, and
	// not for a pool.
	shared bool
	// dialect is the API that a candidate answers, where that is known.
	dialect string
}

// again is the same candidate without its comments.
func (b *block) again() *block {
	return &block{pairs: slices.Clone(b.pairs), dialect: b.dialect}
}

func (b *block) set(key string, value any) {
	for i := range b.pairs {
		if b.pairs[i].key == key {
			b.pairs[i].value = value
			return
		}
	}
	b.pairs = append(b.pairs, pair{key, value})
}

func (b *block) get(key string) any {
	for _, p := range b.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// tier is one candidate, or several equals.
type tier []*block

// chain is a virtual model.
type chain struct {
	name  string
	notes []note
	tiers []tier
	// settings are its own, nil where it has none.
	settings *block
	line     int // in the source, 0 where it has none of its own
}

// dialects are the APIs that its candidates answer, as far as they are known.
func (c *chain) dialects() (list []string) {
	for _, t := range c.tiers {
		for _, b := range t {
			if b.dialect != "" && !slices.Contains(list, b.dialect) {
				list = append(list, b.dialect)
			}
		}
	}
	return list
}

// whyMixed is what there is to say of a chain that speaks several APIs.
func whyMixed(dialects []string) string {
	return "its candidates speak " + strings.Join(dialects, " and ") + ", and understudy does not translate: a client reaches those that speak its own, and is refused by the others. Make one virtual model for each"
}

// chatCompletions is the dialect of most.
const chatCompletions = "chat completions (/v1/chat/completions)"

func (c *chain) count() (n int) {
	for _, t := range c.tiers {
		n += len(t)
	}
	return n
}

// draft is the configuration while it is put together.
type draft struct {
	notes    []note // of the file as a whole
	server   block
	clients  []*block
	pool     *block
	upstream []*block
	models   []*chain
	rules    []*block
	// ruleNotes stand above the rules, or above the place where they would be.
	ruleNotes  []note
	requestLog block
}

func (d *draft) model(name string) *chain {
	for _, m := range d.models {
		if m.name == name {
			return m
		}
	}
	return nil
}

// candidates counts what can be called.
func (d *draft) candidates() int {
	n := len(d.upstream)
	for _, m := range d.models {
		n += m.count()
	}
	return n
}

// allNotes lists every note of the draft, in the order of the result.
func (d *draft) allNotes() (list []note) {
	list = append(list, d.notes...)
	list = append(list, d.server.notes...)
	list = append(list, d.requestLog.notes...)
	add := func(blocks ...*block) {
		for _, b := range blocks {
			list = append(list, b.notes...)
		}
	}
	add(d.clients...)
	if d.pool != nil {
		add(d.pool)
	}
	add(d.upstream...)
	for _, m := range d.models {
		list = append(list, m.notes...)
		for _, t := range m.tiers {
			add(t...)
		}
	}
	return append(list, d.ruleNotes...)
}

// missing is the note for a key that has no counterpart.
func (s *section) missing(key, why string) note {
	n := note{file: s.file.path, key: s.at(key), why: why}
	for _, p := range s.tree.Pairs {
		if p.Key == key {
			n.line, n.column = p.Line, p.Column
		}
	}
	s.asked[key] = true
	return n
}

// missingAt is a note for a value that is no key of a section.
func (f *file) missingAt(t *config.Tree, path, why string) note {
	return note{file: f.path, line: t.Line, column: t.Column, key: path, why: why}
}

// leftOver notes every key that nobody has asked for: those that are known with
// the reason, the others because nobody here knows them.
func (s *section) leftOver(known map[string]string) (list []note) {
	for _, p := range s.rest() {
		why := known[p.Key]
		if why == "" {
			why = "understudy has no such setting, or import does not know this one; see docs/configuration.md"
		}
		list = append(list, s.missing(p.Key, why))
	}
	return list
}

// remark is a comment of our own.
func remark(why string) note { return note{why: why} }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
