package control

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
	"understudy/internal/route"
)

// A file is the configuration as it stands on disk while it is edited: its bytes
// and what they say. Edits give a new Source and leave it as it is.
type file struct {
	config.Source
	cfg *config.Config
	// stale says that it is not the one in force: somebody has changed it since,
	// and an index that a person read off a list may mean something else in it.
	stale bool
}

// edit changes the file and says what else people should know. what is the line
// for the log, asked for after the change; it holds no secret.
func (c *call) edit(change func(f *file) (config.Source, error), what func() string) (notes string, err error) {
	unchanged := false
	restart, err := c.c.deps.Edit(c.ctx, c.who, func(src config.Source) (config.Source, error) {
		cfg, problems := config.Parse(src)
		if cfg == nil {
			return src, fmt.Errorf("the file has mistakes that must be mended first:\n%s", c.problems(problems, config.Error))
		}
		f := &file{Source: src, cfg: cfg, stale: src.Hash != c.s.Config.Source.Hash}
		out, err := change(f)
		switch {
		case errors.Is(err, config.ErrCannotEdit):
			return src, fmt.Errorf("%w; edit %s by hand, then: reload", err, c.name(src.Path))
		case err != nil:
			return src, err
		}
		// Edit would find these too, but tell of lines that are in no file yet.
		if cfg, problems := config.Parse(out); cfg == nil {
			return src, errors.New("nothing was changed, because the file would not be valid:\n" + c.places(problems))
		}
		unchanged = bytes.Equal(out.Bytes, src.Bytes)
		return out, nil
	})
	if err != nil {
		return "", err
	}
	if !unchanged {
		c.changed(what())
	}
	if len(restart) > 0 {
		notes = "\ntakes effect after a restart: " + strings.Join(restart, ", ")
	}
	return notes, nil
}

// problems are the lines of those of one severity, or worse.
func (c *call) problems(list []config.Problem, severity config.Severity) string {
	var lines []string
	for _, p := range list {
		if p.Severity <= severity {
			lines = append(lines, c.s.Redact.Quote(p.String(), 2*maxProse))
		}
	}
	return strings.Join(lines, "\n")
}

// places are the lines of errors by what they are about, not by where they stand.
func (c *call) places(list []config.Problem) string {
	var lines []string
	for _, p := range list {
		if p.Severity != config.Error {
			continue
		}
		text := p.What
		if p.Path != "" {
			text = fromOne(p.Path) + ": " + text
		}
		if p.Cure != "" {
			text += ": " + p.Cure
		}
		lines = append(lines, c.s.Redact.Quote(text, 2*maxProse))
	}
	return strings.Join(lines, "\n")
}

var placeInList = lazily(`\[([0-9]+)\]`)

// fromOne writes the places in lists as people count them: auto[0] is auto#1.
func fromOne(path string) string {
	return placeInList().ReplaceAllStringFunc(path, func(place string) string {
		n, _ := index(place[1 : len(place)-1])
		return "#" + strconv.Itoa(n+1)
	})
}

// isList says whether a list with anything in it stands at a path.
func (f *file) isList(path []any) bool {
	_, err := f.Move(path, 0, 0) // which moves nothing
	return err == nil
}

// model finds a virtual model by the name given, spaces around it ignored.
func (f *file) model(name string) *config.VirtualModel {
	i := slices.IndexFunc(f.cfg.Models, func(m config.VirtualModel) bool { return m.Name == strings.TrimSpace(name) })
	if i < 0 {
		return nil
	}
	return &f.cfg.Models[i]
}

// A fileChain is where a chain, or the pool, stands in the file.
type fileChain struct {
	name string
	pool bool
	// path leads to the list of its entries.
	path    []any
	entries []fileEntry
	// members are all its candidates, by index; places say where each stands.
	members []config.Candidate
	places  []filePlace
}

// A fileEntry is one item of the list: a candidate, or a group of equals.
type fileEntry struct {
	group bool
	size  int
	first int // place of its first member in members
}

// A filePlace is where one candidate stands.
type filePlace struct {
	entry, member int // from 0; member is its place in the entry
	path          []any
}

func (f *file) chain(c *call, name string) (*fileChain, error) {
	if strings.TrimSpace(name) == route.PoolName {
		if f.cfg.Pool == nil {
			return nil, errors.New("there is no pool")
		}
		return f.locate(&fileChain{name: route.PoolName, pool: true, path: []any{"upstream"}}, nil), nil
	}
	m := f.model(name)
	if m == nil {
		return nil, c.unknownModel(name)
	}
	path := []any{"virtual_models", m.Name}
	if !f.isList(path) {
		path = append(path, "candidates")
	}
	return f.locate(&fileChain{name: m.Name, path: path}, m.Tiers), nil
}

// locate notes where every candidate stands. The pool's tier is one list of
// entries, a virtual model's tiers are one entry each.
func (f *file) locate(fc *fileChain, tiers [][]config.Candidate) *fileChain {
	if fc.pool {
		for _, u := range f.cfg.Upstreams {
			tiers = append(tiers, []config.Candidate{u})
		}
	}
	for i, tier := range tiers {
		group := !fc.pool && f.isList(fc.at(i, "any_of"))
		fc.entries = append(fc.entries, fileEntry{group: group, size: len(tier), first: len(fc.members)})
		for j, member := range tier {
			path := fc.at(i)
			if group {
				path = fc.at(i, "any_of", j)
			}
			fc.members = append(fc.members, member)
			fc.places = append(fc.places, filePlace{entry: i, member: j, path: path})
		}
	}
	return fc
}

// at is a path below the list of entries.
func (fc *fileChain) at(steps ...any) []any { return slices.Concat(fc.path, steps) }

// section is the kind of its entries.
func (fc *fileChain) section() string {
	if fc.pool {
		return upstreamSection
	}
	return candidateSection
}

// pick finds candidates by what a person calls them.
func (fc *fileChain) pick(c *call, f *file, word string) ([]int, error) {
	found, err := c.choose(fc.name, fc.pool, fc.members, word)
	if err != nil {
		return nil, err
	}
	return found, f.fresh(word)
}

// fresh refuses an index where the file is not the one whose list a person saw.
func (f *file) fresh(word string) error {
	if _, isIndex := index(word); isIndex && f.stale {
		return errors.New("the file has changed since it was loaded, and the index may mean something else in it: reload, then look again")
	}
	return nil
}

// unknownModel is the error for a name that no chain has.
func (c *call) unknownModel(name string) error {
	known := slices.Clone(c.s.Routes.Names())
	if c.s.Routes.Pool() != nil {
		known = append(known, route.PoolName)
	}
	guess := c.didYouMean(strings.TrimSpace(name), known)
	if guess == "" {
		shown := make([]string, len(known))
		for i, k := range known {
			shown[i] = c.name(k)
		}
		guess = "; there are " + strings.Join(shown, ", ")
	}
	return fmt.Errorf("no virtual model %s%s", c.shown(name), guess)
}

// chain finds a chain in force by name; "*" is the pool.
func (c *call) chain(name string) (*route.Chain, error) {
	name = strings.TrimSpace(name)
	for _, chain := range c.s.Routes.Chains() {
		if chain.Model == name {
			return chain, nil
		}
	}
	return nil, c.unknownModel(name)
}

// choose finds the candidates that a word means: the one of that index, else all
// of that real model name, else all of that name.
func (c *call) choose(chain string, pool bool, list []config.Candidate, word string) ([]int, error) {
	if n, ok := index(word); ok {
		if n < 1 || n > len(list) {
			return nil, fmt.Errorf("%s has candidates 1 to %d, no %d", c.name(chain), len(list), n)
		}
		return []int{n - 1}, nil
	}
	matches := func(is func(*config.Candidate) bool) (found []int) {
		for i := range list {
			if is(&list[i]) {
				found = append(found, i)
			}
		}
		return found
	}
	if found := matches(func(k *config.Candidate) bool { return k.Model == word && word != "" }); found != nil {
		return found, nil
	}
	if found := matches(func(k *config.Candidate) bool { return shownName(pool, k) == word }); found != nil {
		return found, nil
	}
	var known, shown []string
	for i := range list {
		known = append(known, list[i].Model, shownName(pool, &list[i]))
		shown = append(shown, c.label(i+1, pool, &list[i]))
	}
	guess := c.didYouMean(word, slices.DeleteFunc(known, func(s string) bool { return s == "" }))
	if guess == "" {
		guess = "; it has " + strings.Join(shown, ", ")
	}
	return nil, fmt.Errorf("%s has no candidate %s%s", c.name(chain), c.shown(word), guess)
}

// label names a candidate for people: its index, name and model.
func (c *call) label(n int, pool bool, k *config.Candidate) string {
	text := fmt.Sprintf("%d %s", n, c.name(shownName(pool, k)))
	if k.Model != "" {
		text += " (" + c.name(k.Model) + ")"
	}
	return text
}

// index reads a word of digits.
func index(word string) (n int, ok bool) {
	if word == "" || strings.Trim(word, "0123456789") != "" || len(word) > 9 {
		return 0, false
	}
	for _, digit := range word {
		n = 10*n + int(digit-'0')
	}
	return n, true
}
