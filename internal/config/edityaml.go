package config

import (
	"bytes"
	"fmt"
	"strings"
)

// The edits of this file are in YAML block style, where lines and indentation
// are the brackets.

// replaceYAML replaces the value at a place.
func (e *editor) replaceYAML(p place, value any) error {
	n := p.node
	inFlow := p.parent != nil && p.parent.flow
	block := !n.flow && !n.aliased() && (n.kind == kindMap || n.kind == kindList)
	switch {
	case p.parent == nil:
		return fmt.Errorf("%w: the whole file", ErrCannotEdit)
	case !block && !isScalar(value) && !inFlow && p.pair != nil && !e.short(value):
		return e.fill(p, value)
	case n.aliased():
		return e.replaceValue(n.alias, e.inline(n, value, inFlow))
	case block && isScalar(value) && p.pair != nil:
		colon := e.colon(p.pair)
		return e.replace(span{colon, n.span.end}, " "+e.inline(n, value, inFlow))
	case block && isScalar(value), !block && !isScalar(value) && n.span.start < n.span.end:
		return e.replace(n.span, e.inline(n, value, true))
	case block && p.pair != nil && (kindOf(value) != n.kind || emptyValue(value)):
		_, column := e.position(p.pair.span.start)
		return e.replace(span{e.colon(p.pair), n.span.end}, e.blockValue(value, column-1))
	case block:
		_, column := e.position(n.span.start)
		indent := column - 1
		if m, ok := value.(Map); ok && len(m) > 0 {
			return e.replace(n.span, e.blockMap(m, indent))
		}
		if list, ok := value.([]any); ok && len(list) > 0 {
			return e.replace(n.span, e.blockList(list, indent))
		}
		return e.replace(n.span, e.flowText(value))
	case n.span.start == n.span.end: // nothing stands there
		if p.pair != nil && !inFlow {
			if isScalar(value) || e.short(value) {
				e.insertAt(n.span.start, " "+e.inline(n, value, false))
				return nil
			}
			return e.fill(p, value)
		}
		e.insertAt(n.span.start, " "+e.inline(n, value, inFlow))
		return nil
	}
	return e.replaceValue(n.span, e.inline(n, value, inFlow))
}

// kindOf is the kind of a collection.
func kindOf(v any) kind {
	if _, ok := v.(Map); ok {
		return kindMap
	}
	return kindList
}

func emptyValue(v any) bool {
	m, _ := v.(Map)
	list, _ := v.([]any)
	return len(m) == 0 && len(list) == 0
}

// inline writes a value on one line, a scalar in the style of the one before.
func (e *editor) inline(old *node, value any, flow bool) string {
	if isScalar(value) {
		return e.scalarText(value, e.styleOf(old), flow)
	}
	return e.flowText(value)
}

// colon is the offset behind the colon of a pair.
func (e *editor) colon(p *pair) int {
	at := p.span.end
	for at < len(e.src) && e.src[at] != ':' {
		at++
	}
	return min(at+1, len(e.src))
}

// addKeyYAML adds a key to a block mapping, or to a key that has no value yet.
func (e *editor) addKeyYAML(p place, key string, value any) error {
	n := p.node
	if count := ownPairs(n); count > 0 && !n.flow {
		first, last := n.pairs[0], n.pairs[count-1]
		_, column := e.position(first.span.start)
		indent := strings.Repeat(" ", column-1)
		end := outerEnd(last.value)
		if last.value.kind == kindNull && !last.value.aliased() && last.value.span.start == last.value.span.end {
			end = e.colon(&last)
		}
		if end < 0 {
			return fmt.Errorf("%w: a text over several lines", ErrCannotEdit)
		}
		text := indent + e.keyText(key) + ":" + e.blockValue(value, column-1) + e.newline()
		if p.parent == nil {
			text = e.section(key, value)
			if segs, err := e.segments(n); err == nil && count > 1 && e.spaced(segs) {
				text = e.newline() + text
			}
		}
		e.insertLines(e.lineEnd(end), text)
		return nil
	}
	if p.parent == nil {
		e.insertLines(e.rootEnd(), e.section(key, value))
		return nil
	}
	return e.fill(p, Map{{key, value}})
}

// section writes a key at the top of the file. A mapping there has lines of its
// own, however short.
func (e *editor) section(key string, value any) string {
	if m, ok := value.(Map); ok && len(m) > 0 {
		return e.keyText(key) + ":" + e.newline() + "  " + e.blockMap(m, 2) + e.newline()
	}
	return e.keyText(key) + ":" + e.blockValue(value, 0) + e.newline()
}

// rootEnd is where the first key of an empty file goes: its end, or before the
// line that ends the document.
func (e *editor) rootEnd() int {
	for _, start := range e.starts {
		if bytes.HasPrefix(e.src[start:], []byte("...")) {
			return start
		}
	}
	return len(e.src)
}

// fill gives a value of several lines to a key that has none, or an empty one.
func (e *editor) fill(p place, value any) error {
	n := p.node
	if p.pair == nil {
		text := e.flowText(value)
		if n.span.start == n.span.end { // nothing behind the dash
			text = " " + text
		}
		return e.replace(n.span, text)
	}
	at := e.colon(p.pair)
	if end := outerEnd(n); end > at {
		// "key: {}", "key: ~", "key: *name": the text goes, what is behind
		// it stays, and so does an anchor before it.
		if !n.aliased() && n.outer < n.span.start {
			at = n.outer
			for at < n.span.start && e.src[at] != ' ' {
				at++
			}
		}
		if err := e.replace(span{at, end}, ""); err != nil {
			return err
		}
		at = end
	}
	_, column := e.position(p.pair.span.start)
	indent := column - 1 + 2
	text := strings.Repeat(" ", indent)
	switch v := value.(type) {
	case Map:
		text += e.blockMap(v, indent)
	case []any:
		text += e.blockList(v, indent)
	}
	e.insertLines(e.lineEnd(at), text+e.newline())
	return nil
}

// segments are the lines of the members of a block list or mapping, each with
// the comments directly above it. Comments that are indented deeper than the
// members belong to the member before them.
func (e *editor) segments(n *node) ([]span, error) {
	count := len(n.items)
	start := func(i int) int { return n.dashes[i] }
	end := func(i int) int { return max(outerEnd(n.items[i]), n.dashes[i]+1) }
	if n.kind == kindMap {
		count = ownPairs(n)
		start = func(i int) int { return n.pairs[i].span.start }
		end = func(i int) int { return max(outerEnd(n.pairs[i].value), e.colon(&n.pairs[i])) }
	} else if len(n.dashes) != count {
		return nil, fmt.Errorf("%w: a list whose dashes are not clear", ErrCannotEdit)
	}
	segs := make([]span, count)
	from := 0
	for i := range count {
		if end(i) < 0 || n.kind == kindMap && outerEnd(n.pairs[i].value) < 0 || n.kind == kindList && outerEnd(n.items[i]) < 0 {
			return nil, fmt.Errorf("%w: a text over several lines", ErrCannotEdit)
		}
		line := e.lineStart(start(i))
		if len(bytes.TrimSpace(bytes.TrimPrefix(e.src[line:start(i)], bom))) > 0 || line < from {
			segs[i] = unknown
			line = start(i)
		} else {
			segs[i].start = e.commentsAbove(line, from)
		}
		column := start(i) - line
		stop := len(e.src)
		if i+1 < count {
			stop = e.lineStart(start(i + 1))
		}
		at := e.lineEnd(end(i) - 1)
		for at < stop && e.commentLine(at) && len(e.indentText(at)) > column {
			at = e.lineEnd(at)
		}
		if segs[i].start >= 0 {
			segs[i].end = at
		}
		from = at
	}
	return segs, nil
}

// insertYAML puts an item into a block list.
func (e *editor) insertYAML(p place, index int, value any) error {
	n := p.node
	if len(n.items) == 0 {
		return e.fillList(p, value)
	}
	segs, err := e.segments(n)
	if err != nil {
		return err
	}
	_, column := e.position(n.dashes[0])
	text := strings.Repeat(" ", column-1) + "- " + e.blockItem(value, column-1) + e.newline()
	if index < len(segs) {
		if !segs[index].known() {
			return fmt.Errorf("%w: a list inside a list", ErrCannotEdit)
		}
		if len(segs) > 1 && e.spaced(segs) {
			text += e.newline()
		}
		e.insertAt(segs[index].start, text)
		return nil
	}
	last := segs[len(segs)-1]
	if !last.known() {
		return fmt.Errorf("%w: a list inside a list", ErrCannotEdit)
	}
	if len(segs) > 1 && e.spaced(segs) {
		text = e.newline() + text
	}
	e.insertLines(last.end, text)
	return nil
}

// spaced reports members with a blank line between them.
func (e *editor) spaced(segs []span) bool {
	return segs[0].known() && segs[1].known() && segs[0].end < segs[1].start
}

func (e *editor) fillList(p place, value any) error {
	if p.parent != nil && p.parent.flow || p.pair == nil {
		return e.replace(p.node.span, "["+e.flowText(value)+"]")
	}
	return e.fill(p, []any{value})
}

// removeYAML takes a member out of a block collection.
func (e *editor) removeYAML(path []any, p place, index int) error {
	n := p.parent
	segs, err := e.segments(n)
	if err != nil {
		return err
	}
	if len(segs) == 1 {
		return e.emptyYAML(path[:len(path)-1], n, segs[0])
	}
	s := segs[index]
	if s.known() {
		// Of the blank lines around it one set is enough.
		if (s.start == 0 || e.blankLine(e.lineStart(s.start-1))) && index+1 < len(segs) && segs[index+1].known() {
			for s.end < segs[index+1].start && e.blankLine(s.end) {
				s.end = e.lineEnd(s.end)
			}
		}
		return e.replace(s, "")
	}
	// The first member stands behind a dash: the second takes its place.
	if index == 0 && n.kind == kindMap {
		first, second := n.pairs[0].span.start, n.pairs[1].span.start
		end := max(outerEnd(n.pairs[0].value), n.pairs[0].span.end)
		if rest := min(e.lineEnd(end), second); bytes.ContainsRune(e.src[rest:second], '#') {
			return fmt.Errorf("%w: a comment stands between", ErrCannotEdit)
		}
		return e.replace(span{first, second}, "")
	}
	return fmt.Errorf("%w: a list inside a list", ErrCannotEdit)
}

func (d *document) blankLine(start int) bool {
	return start < len(d.src) && len(bytes.TrimSpace(d.src[start:d.lineEnd(start)])) == 0
}

// emptyYAML takes the last member out of a block collection, which then is
// written [] or {} behind its key.
func (e *editor) emptyYAML(path []any, n *node, seg span) error {
	empty := " []"
	if n.kind == kindMap {
		empty = " {}"
	}
	if len(path) == 0 {
		if !seg.known() {
			return ErrCannotEdit
		}
		return e.replace(seg, "")
	}
	p, err := e.locate(path)
	if err != nil {
		return err
	}
	if p.pair == nil || !seg.known() {
		return e.replace(n.span, strings.TrimSpace(empty))
	}
	at := e.colon(p.pair)
	if n.outer < n.span.start && n.outer >= at { // "key: &anchor"
		for at = n.outer; at < len(e.src) && strings.IndexByte(" \t\r\n", e.src[at]) < 0; at++ {
		}
	}
	e.insertAt(at, empty)
	return e.replace(seg, "")
}

// moveYAML permutes the lines of a block list; what stands between them stays.
func (e *editor) moveYAML(n *node, from, to int) error {
	segs, err := e.segments(n)
	if err != nil {
		return err
	}
	return e.permute(segs, from, to)
}

// permute puts the segments into their new order, each into the slot of
// another.
func (e *editor) permute(segs []span, from, to int) error {
	if from < 0 || from >= len(segs) || to < 0 || to >= len(segs) {
		return ErrNotFound
	}
	order := moved(segs, from, to)
	for i, slot := range segs {
		if order[i] == slot {
			continue
		}
		if !slot.known() || !order[i].known() {
			return fmt.Errorf("%w: a list inside a list", ErrCannotEdit)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(e.src[order[i].start:order[i].end]), "\n"), "\r")
		if slot.end > slot.start && e.src[slot.end-1] == '\n' {
			text += e.newline()
		}
		if err := e.replace(slot, text); err != nil {
			return err
		}
	}
	return nil
}
