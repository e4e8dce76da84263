package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// ErrCannotEdit is returned where an edit cannot be made so that everything
// else in the file stays as it is. The file has to be edited by hand there.
var ErrCannotEdit = errors.New("cannot edit the file in place")

// ErrNotFound is returned for a place that is not in the file.
var ErrNotFound = errors.New("no such place in the file")

// Set gives the value at a path: keys as strings, places in lists as ints from
// 0. A value that is there is replaced in its own style; a key that is not is
// added behind its neighbours, with the sections that lead to it. Values are
// bool, numbers, string, slices, map[string]any and [Map].
//
// Like every edit it changes the bytes it must and no others: comments, order,
// alignment, quotes and line breaks stay. The result is parsed again, and where
// it does not hold exactly the wanted change, ErrCannotEdit is returned.
func (s Source) Set(path []any, value any) (Source, error) {
	if len(path) == 0 {
		return s, fmt.Errorf("%w: the whole file", ErrCannotEdit)
	}
	value, err := normal(value)
	if err != nil {
		return s, err
	}
	return s.edit(
		func(v any) (any, bool) { return withSet(v, path, value) },
		func(e *editor) error { return e.set(path, value) })
}

// Value is what the file itself has at a path, as for Set; not ok where it has
// nothing there, or cannot be read.
func (s Source) Value(path []any) (v any, ok bool) {
	doc := parseDocument(s.Format, s.Bytes)
	if doc.root == nil {
		return nil, false
	}
	budget := maxVisits
	whole, ok := plainValue(doc.root, &budget)
	if !ok {
		return nil, false
	}
	return lookUp(whole, path)
}

// Insert puts a value into the list at a path, before the item that is at index
// now; the list's length appends. A list that is not there is made.
func (s Source) Insert(path []any, index int, value any) (Source, error) {
	value, err := normal(value)
	if err != nil {
		return s, err
	}
	return s.edit(
		func(v any) (any, bool) {
			return withList(v, path, func(list []any) ([]any, bool) {
				if index < 0 || index > len(list) {
					return nil, false
				}
				return slices.Insert(list, index, value), true
			})
		},
		func(e *editor) error { return e.insert(path, index, value) })
}

// Remove takes out the key or list item at a path, with the comments directly
// above it and the one behind it. A list or mapping that loses its last member
// stays, empty.
func (s Source) Remove(path []any) (Source, error) {
	if len(path) == 0 {
		return s, fmt.Errorf("%w: the whole file", ErrCannotEdit)
	}
	return s.edit(
		func(v any) (any, bool) { return withRemoved(v, path) },
		func(e *editor) error { return e.remove(path) })
}

// Move takes the item at from out of the list at a path and puts it back so
// that it is at to. Comments directly above it and behind it go with it.
func (s Source) Move(path []any, from, to int) (Source, error) {
	return s.edit(
		func(v any) (any, bool) {
			return withList(v, path, func(list []any) ([]any, bool) {
				if from < 0 || from >= len(list) || to < 0 || to >= len(list) {
					return nil, false
				}
				return moved(list, from, to), true
			})
		},
		func(e *editor) error { return e.move(path, from, to) })
}

func moved[T any](list []T, from, to int) []T {
	v := list[from]
	return slices.Insert(slices.Delete(slices.Clone(list), from, from+1), to, v)
}

// edit makes a change on bytes and on plain values, and compares.
func (s Source) edit(change func(any) (any, bool), splice func(*editor) error) (out Source, err error) {
	doc := parseDocument(s.Format, s.Bytes)
	if doc.root == nil || len(doc.problems) > 0 {
		return s, fmt.Errorf("%w: it has mistakes that must be mended first", ErrCannotEdit)
	}
	budget := maxVisits
	before, ok := plainValue(doc.root, &budget)
	if !ok {
		return s, fmt.Errorf("%w: its aliases multiply too far", ErrCannotEdit)
	}
	want, ok := change(before)
	if !ok {
		return s, ErrNotFound
	}
	if sameValue(before, want) {
		return s, nil
	}
	e := &editor{document: doc}
	if err := e.attempt(splice); err != nil {
		return s, err
	}
	text, ok := e.apply()
	if !ok {
		return s, fmt.Errorf("%w: its changes overlap", ErrCannotEdit)
	}
	after := parseDocument(s.Format, text)
	budget = maxVisits
	if after.root == nil || len(after.problems) > 0 {
		return s, fmt.Errorf("%w: the result would not be valid", ErrCannotEdit)
	}
	got, ok := plainValue(after.root, &budget)
	if !ok || !sameValue(want, got) || !sameOrder(before, got) {
		return s, fmt.Errorf("%w: more than this would change", ErrCannotEdit)
	}
	s.Bytes = text
	return s, nil
}

// attempt makes the splices. People's files are stranger than any list of cases: a
// shape that the editor did not expect is refused like one it cannot edit, since a
// console must not end the process that serves.
func (e *editor) attempt(splice func(*editor) error) (err error) {
	defer func() {
		if unexpected := recover(); unexpected != nil {
			err = fmt.Errorf("%w: it has a shape that was not foreseen (%v)", ErrCannotEdit, unexpected)
		}
	}()
	return splice(e)
}

// sameOrder compares the order of the virtual models, the one mapping whose
// order means something.
func sameOrder(before, after any) bool {
	names := func(v any) []string {
		at, _ := lookUp(v, []any{"virtual_models"})
		m, _ := at.(Map)
		list := make([]string, len(m))
		for i, e := range m {
			list[i] = e.Key
		}
		return list
	}
	old, now := names(before), names(after)
	keep := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !slices.Contains(other, s) })
	}
	return slices.Equal(keep(old, now), keep(now, old))
}

// editor collects the splices of one edit.
type editor struct {
	*document
	splices []splice
}

// splice replaces a range of bytes.
type splice struct {
	span
	text string
}

func (e *editor) replace(s span, text string) error {
	if !s.known() {
		return fmt.Errorf("%w: a text over several lines", ErrCannotEdit)
	}
	e.splices = append(e.splices, splice{s, text})
	return nil
}

// replaceValue replaces a value, and widens or narrows the blanks behind it so
// that a comment in a column stays there.
func (e *editor) replaceValue(s span, text string) error {
	if !s.known() {
		return e.replace(s, text)
	}
	end := s.end
	for end < len(e.src) && e.src[end] == ' ' {
		end++
	}
	if end-s.end >= 2 && end < len(e.src) && e.src[end] == '#' && !strings.Contains(text, "\n") {
		grown := utf8.RuneCountInString(text) - utf8.RuneCount(e.src[s.start:s.end])
		text += strings.Repeat(" ", max(1, end-s.end-grown))
		s.end = end
	}
	return e.replace(s, text)
}

func (e *editor) insertAt(at int, text string) {
	e.splices = append(e.splices, splice{span{at, at}, text})
}

// insertLines puts whole lines at an offset that is the start of a line or the
// end of the file.
func (e *editor) insertLines(at int, text string) {
	if at == len(e.src) && at > 0 && e.src[at-1] != '\n' {
		text = e.newline() + strings.TrimSuffix(text, e.newline())
	}
	e.insertAt(at, text)
}

func (e *editor) apply() ([]byte, bool) {
	sort.SliceStable(e.splices, func(i, j int) bool {
		a, b := e.splices[i], e.splices[j]
		return a.start < b.start || a.start == b.start && a.end < b.end
	})
	var out []byte
	at := 0
	for _, s := range e.splices {
		if s.start < at || s.end > len(e.src) || s.end < s.start {
			return nil, false
		}
		out = append(out, e.src[at:s.start]...)
		out = append(out, s.text...)
		at = s.end
	}
	return append(out, e.src[at:]...), true
}

// place is where a path leads.
type place struct {
	parent *node // holds the last step; nil for the root
	pair   *pair // of parent, where the last step is a key that is there
	node   *node // nil where the last step is not there
	index  int   // where the last step is a place in a list
	// missing are the steps behind the deepest node that is there.
	missing []any
}

// locate follows a path. It refuses to go through an alias or a merged key:
// what stands there belongs to other places too.
func (e *editor) locate(path []any) (place, error) {
	p := place{node: e.root}
	for i, step := range path {
		n := p.node
		if n.aliased() {
			return p, fmt.Errorf("%w: it is shared by an alias (*name)", ErrCannotEdit)
		}
		switch step := step.(type) {
		case string:
			at := n.pair(step)
			if at != nil && at.merged {
				if i < len(path)-1 {
					return p, fmt.Errorf("%w: it comes by a merge key (<<)", ErrCannotEdit)
				}
				at = nil
			}
			if at == nil {
				p.missing = path[i:]
				return p, nil
			}
			p = place{parent: n, pair: at, node: at.value}
		case int:
			if n.kind != kindList || step < 0 || step >= len(n.items) {
				return p, ErrNotFound
			}
			p = place{parent: n, node: n.items[step], index: step}
		default:
			return p, ErrNotFound
		}
	}
	return p, nil
}

func (e *editor) set(path []any, value any) error {
	p, err := e.locate(path)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		key, wrapped, err := wrap(p.missing, value)
		if err != nil {
			return err
		}
		return e.addKey(path[:len(path)-len(p.missing)], p, key, wrapped)
	}
	if e.format == TOML {
		return e.replaceTOML(path, p, value)
	}
	return e.replaceYAML(p, value)
}

// wrap makes the mappings that lead from the first missing key to the value.
func wrap(missing []any, value any) (string, any, error) {
	for i := len(missing) - 1; i > 0; i-- {
		key, ok := missing[i].(string)
		if !ok {
			return "", nil, ErrNotFound
		}
		value = Map{{key, value}}
	}
	key, ok := missing[0].(string)
	if !ok {
		return "", nil, ErrNotFound
	}
	return key, value, nil
}

// addKey adds a key to the mapping that a place is about.
func (e *editor) addKey(path []any, p place, key string, value any) error {
	n := p.node
	switch {
	case n.kind != kindMap && n.kind != kindNull:
		return ErrNotFound
	case n.flow && (e.format == TOML || ownPairs(n) > 0 || p.parent == nil || p.parent.flow):
		return e.insertFlow(n, ownPairs(n), e.flowPair(key, value))
	case e.format == TOML:
		return e.addKeyTOML(path, n, key, value)
	}
	return e.addKeyYAML(p, key, value)
}

// ownPairs counts the pairs that stand in the mapping itself.
func ownPairs(n *node) int {
	count := 0
	for _, p := range n.pairs {
		if !p.merged {
			count++
		}
	}
	return count
}

func (e *editor) insert(path []any, index int, value any) error {
	p, err := e.locate(path)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		return e.set(path, []any{value})
	}
	n := p.node
	switch {
	case n.aliased():
		return fmt.Errorf("%w: it is shared by an alias (*name)", ErrCannotEdit)
	case n.flow && (e.format == TOML || len(n.items) > 0 || p.parent != nil && p.parent.flow):
		return e.insertFlow(n, index, e.flowText(value))
	case e.format == TOML:
		return e.insertTOML(path, n, index, value)
	}
	return e.insertYAML(p, index, value)
}

func (e *editor) remove(path []any) error {
	p, err := e.locate(path)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		return fmt.Errorf("%w: it comes by a merge key (<<)", ErrCannotEdit)
	}
	index := p.index
	if p.pair != nil {
		index = slices.IndexFunc(p.parent.pairs, func(q pair) bool { return q.key == p.pair.key })
	}
	switch {
	case p.parent.flow:
		return e.removeFlow(p.parent, index)
	case e.format == TOML:
		return e.removeTOML(path, p)
	}
	return e.removeYAML(path, p, index)
}

func (e *editor) move(path []any, from, to int) error {
	p, err := e.locate(path)
	if err != nil {
		return err
	}
	n := p.node
	switch {
	case n.aliased():
		return fmt.Errorf("%w: it is shared by an alias (*name)", ErrCannotEdit)
	case n.flow:
		return e.moveFlow(n, from, to)
	case e.format == TOML:
		return e.moveTOML(path, n, from, to)
	}
	return e.moveYAML(n, from, to)
}
