package config

import (
	"fmt"
	"slices"
	"strings"
)

// The edits of this file are on TOML expressions: headers and key = value
// lines. What stands between brackets is in editflow.go.

// within reports whether an expression defines something at or below a path.
func (x expr) within(path []any) bool {
	return len(x.path) >= len(path) && slices.Equal(x.path[:len(path)], path)
}

// runs are the runs of neighbouring expressions that define something at or
// below a path, as ranges of expression numbers.
func (e *editor) runs(path []any) [][2]int {
	var runs [][2]int
	for i, x := range e.exprs {
		if !x.within(path) {
			continue
		}
		if last := len(runs) - 1; last >= 0 && runs[last][1] == i {
			runs[last][1] = i + 1
		} else {
			runs = append(runs, [2]int{i, i + 1})
		}
	}
	return runs
}

// lines are the lines of expressions i to j-1, with the comments directly above
// the first.
func (e *editor) exprLines(i, j int) span {
	from := 0
	if i > 0 {
		from = e.lineEnd(max(e.exprs[i-1].span.end-1, 0))
	}
	return span{e.commentsAbove(e.lineStart(e.exprs[i].span.start), from), e.lineEnd(e.exprs[j-1].span.end - 1)}
}

// replaceTOML replaces the value at a path.
func (e *editor) replaceTOML(path []any, p place, value any) error {
	n := p.node
	if n.flow || n.kind != kindMap && n.kind != kindList {
		text := e.flowText(value)
		if isScalar(value) {
			text = e.scalarText(value, e.styleOf(n), true)
			if i, ok := value.(int64); ok && n.kind == kindFloat {
				text = floatText(float64(i)) // 30.0 stays a float
			}
		}
		return e.replaceValue(n.span, text)
	}
	// Tables go, and what comes instead is written where the first one stood.
	key, ok := path[len(path)-1].(string)
	runs := e.runs(path)
	if !ok || len(runs) != 1 {
		return fmt.Errorf("%w: a table in several parts", ErrCannotEdit)
	}
	s := e.exprLines(runs[0][0], runs[0][1])
	first := e.exprs[runs[0][0]]
	if !first.header {
		rel, ok := e.relative(first, path[:len(path)-1])
		if !ok {
			return fmt.Errorf("%w: a table in several parts", ErrCannotEdit)
		}
		return e.replace(s, e.indentText(first.span.start)+rel+e.flowPair(key, value)+e.newline())
	}
	text, ok := e.sections(path, value)
	if !ok {
		return fmt.Errorf("%w: a table would become a plain value", ErrCannotEdit)
	}
	return e.replace(s, text)
}

// relative is the dotted key that leads from the header an expression stands
// under to a table, with the dot behind it.
func (e *editor) relative(x expr, table []any) (string, bool) {
	var under []any
	if x.under >= 0 {
		under = e.exprs[x.under].path
	}
	if len(table) < len(under) || !slices.Equal(table[:len(under)], under) {
		return "", false
	}
	var rel strings.Builder
	for _, step := range table[len(under):] {
		key, ok := step.(string)
		if !ok {
			return "", false
		}
		rel.WriteString(e.keyText(key) + ".")
	}
	return rel.String(), true
}

// headerPath is the text between the brackets of a header.
func (e *editor) headerPath(path []any) string {
	var keys []string
	for _, step := range path {
		if key, ok := step.(string); ok {
			keys = append(keys, e.keyText(key))
		}
	}
	return strings.Join(keys, ".")
}

// plainPath reports a path of keys alone, which a new header can name.
func plainPath(path []any) bool {
	return !slices.ContainsFunc(path, func(step any) bool { _, ok := step.(int); return ok })
}

// sections writes a mapping or a list of mappings as tables of their own. It
// reports false for anything else.
func (e *editor) sections(path []any, value any) (string, bool) {
	nl := e.newline()
	switch v := value.(type) {
	case Map:
		return e.table("["+e.headerPath(path)+"]"+nl, path, v), true
	case []any:
		if len(v) == 0 || slices.ContainsFunc(v, func(item any) bool { _, ok := item.(Map); return !ok }) {
			return "", false
		}
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = e.table("[["+e.headerPath(path)+"]]"+nl, nil, item.(Map))
		}
		return strings.Join(parts, nl), true
	}
	return "", false
}

// table writes a header and its keys. Where path is given, lists of mappings
// inside become tables too; else everything stays on its line.
func (e *editor) table(header string, path []any, m Map) string {
	text, tables := header, ""
	for _, entry := range m {
		if path != nil {
			sub := append(slices.Clone(path), entry.Key)
			_, isList := entry.Value.([]any)
			nested, isMap := entry.Value.(Map)
			if isList || isMap && len(nested) > 0 && len(path) == 1 && path[0] == "virtual_models" {
				if s, ok := e.sections(sub, entry.Value); ok {
					tables += e.newline() + s
					continue
				}
			}
		}
		text += e.flowPair(entry.Key, entry.Value) + e.newline()
	}
	if text == header && tables != "" && !strings.HasPrefix(header, "[[") {
		return strings.TrimPrefix(tables, e.newline()) // the tables inside imply this one
	}
	return text + tables
}

// addKeyTOML adds a key to a table.
func (e *editor) addKeyTOML(path []any, n *node, key string, value any) error {
	full := append(slices.Clone(path), key)
	if plainPath(full) && len(path) <= 1 && !e.dotted(path) {
		if text, ok := e.sections(full, value); ok {
			return e.addSection(path, text)
		}
	}
	// A table whose header stands in the file, or the top of the file.
	header := -1
	for i, x := range e.exprs {
		if x.header && slices.Equal(x.path, path) {
			header = i
		}
	}
	last := -1
	for i, x := range e.exprs {
		if !x.header && x.within(path) && (x.under == header && (header >= 0 || len(path) == 0)) {
			last = i
		}
	}
	pair := e.flowPair(key, value) + e.newline()
	switch {
	case last >= 0:
		x := e.exprs[last]
		e.insertLines(e.lineEnd(x.span.end-1), e.indentText(x.span.start)+pair)
		return nil
	case header >= 0:
		x := e.exprs[header]
		e.insertLines(e.lineEnd(x.span.end-1), e.indentText(x.span.start)+pair)
		return nil
	case len(path) == 0 && len(e.exprs) > 0:
		e.insertAt(e.exprLines(0, 1).start, pair+e.newline())
		return nil
	case len(path) == 0:
		e.insertLines(len(e.src), pair)
		return nil
	}
	// A table of dotted keys.
	for i, x := range e.exprs {
		if !x.header && x.within(path) && len(x.path) > len(path) {
			last = i
		}
	}
	if last >= 0 && n != nil && n.kind == kindMap {
		x := e.exprs[last]
		rel, ok := e.relative(x, path)
		if ok {
			e.insertLines(e.lineEnd(x.span.end-1), e.indentText(x.span.start)+rel+pair)
			return nil
		}
	}
	// A table that only the headers inside it imply.
	if runs := e.runs(path); len(runs) > 0 && plainPath(path) {
		e.insertAt(e.exprLines(runs[0][0], runs[0][1]).start, "["+e.headerPath(path)+"]"+e.newline()+pair+e.newline())
		return nil
	}
	return fmt.Errorf("%w: a table without a place of its own", ErrCannotEdit)
}

// dotted reports a table that dotted keys made, which no header may open again.
func (e *editor) dotted(path []any) bool {
	return len(path) > 0 && slices.ContainsFunc(e.exprs, func(x expr) bool {
		return !x.header && x.within(path) && x.under < 0
	})
}

// addSection puts tables behind those of the same parent, or at the end.
func (e *editor) addSection(parent []any, text string) error {
	at := len(e.src)
	if runs := e.runs(parent); len(parent) > 0 && len(runs) > 0 {
		end := runs[len(runs)-1][1]
		at = e.lineEnd(e.exprs[end-1].span.end - 1)
	}
	if at > 0 && (at < len(e.src) || !e.blankLine(e.lineStart(at-1))) {
		text = e.newline() + text
	}
	e.insertLines(at, text)
	return nil
}

// insertTOML puts a table into an array of tables.
func (e *editor) insertTOML(path []any, n *node, index int, value any) error {
	m, ok := value.(Map)
	if !ok {
		return fmt.Errorf("%w: a list of tables holds tables only", ErrCannotEdit)
	}
	if index < 0 || index > len(n.items) {
		return ErrNotFound
	}
	text := e.table("[["+e.headerPath(path)+"]]"+e.newline(), nil, m)
	if index < len(n.items) {
		runs := e.runs(append(slices.Clone(path), index))
		if len(runs) == 0 {
			return fmt.Errorf("%w: a table without a place of its own", ErrCannotEdit)
		}
		e.insertAt(e.exprLines(runs[0][0], runs[0][1]).start, text+e.newline())
		return nil
	}
	return e.addSection(append(slices.Clone(path), index-1), text)
}

// removeTOML takes a key, a table or an item of an array of tables out.
func (e *editor) removeTOML(path []any, p place) error {
	runs := e.runs(path)
	if len(runs) == 0 {
		return fmt.Errorf("%w: a value without a place of its own", ErrCannotEdit)
	}
	for _, r := range runs {
		s := e.exprLines(r[0], r[1])
		if (s.start == 0 || e.blankLine(e.lineStart(s.start-1))) && s.end < len(e.src) {
			for e.blankLine(s.end) {
				s.end = e.lineEnd(s.end)
			}
		}
		if err := e.replace(s, ""); err != nil {
			return err
		}
	}
	parent := path[:len(path)-1]
	switch {
	case p.parent.kind == kindList && len(p.parent.items) == 1:
		// The list must stay, empty: no rules is not the same as no rules key.
		key, ok := parent[len(parent)-1].(string)
		if !ok {
			return fmt.Errorf("%w: a list inside a list", ErrCannotEdit)
		}
		return e.addKeyTOML(parent[:len(parent)-1], nil, key, []any{})
	case len(parent) > 0 && ownPairs(p.parent) == 1 && p.parent.kind == kindMap && len(e.runs(parent)) > 0 && !e.hasHeader(parent):
		if !plainPath(parent) {
			return fmt.Errorf("%w: a table that would vanish", ErrCannotEdit)
		}
		at := e.exprLines(runs[0][0], runs[0][1]).start
		if x := e.exprs[runs[0][0]]; !x.header {
			rel, ok := e.relative(x, parent[:len(parent)-1])
			if !ok {
				return fmt.Errorf("%w: a table that would vanish", ErrCannotEdit)
			}
			e.insertAt(at, e.indentText(x.span.start)+rel+e.flowPair(parent[len(parent)-1].(string), Map{})+e.newline())
			return nil
		}
		e.insertAt(at, "["+e.headerPath(parent)+"]"+e.newline())
	}
	return nil
}

func (e *editor) hasHeader(path []any) bool {
	return slices.ContainsFunc(e.exprs, func(x expr) bool { return x.header && slices.Equal(x.path, path) })
}

// moveTOML permutes the tables of an array of tables.
func (e *editor) moveTOML(path []any, n *node, from, to int) error {
	segs := make([]span, len(n.items))
	for i := range segs {
		runs := e.runs(append(slices.Clone(path), i))
		if len(runs) != 1 {
			return fmt.Errorf("%w: a table in several parts", ErrCannotEdit)
		}
		segs[i] = e.exprLines(runs[0][0], runs[0][1])
	}
	return e.permute(segs, from, to)
}
