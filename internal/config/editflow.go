package config

import (
	"bytes"
	"fmt"
	"strings"
)

// The edits of this file are between brackets, [..] and {..}, which YAML and
// TOML write alike.

// member is one item or pair between brackets. Where it has lines to itself,
// block is the range of those lines with the comments above; else it is
// unknown.
type member struct {
	span
	block span
	comma int // offset of the comma behind it, -1 if there is none
}

// members finds the items or pairs of a collection between brackets.
func (e *editor) members(n *node) ([]member, error) {
	var list []member
	if n.kind == kindList {
		for _, item := range n.items {
			list = append(list, member{span: span{outerStart(item), outerEnd(item)}})
		}
	} else {
		for _, p := range n.pairs[:ownPairs(n)] {
			list = append(list, member{span: span{p.span.start, max(p.span.end, outerEnd(p.value))}})
		}
	}
	at := n.span.start + 1
	for i := range list {
		m := &list[i]
		limit := n.span.end - 1
		if i+1 < len(list) {
			limit = list[i+1].start
		}
		if !m.known() || m.start < at || m.end > limit {
			return nil, fmt.Errorf("%w: a member whose place is not clear", ErrCannotEdit)
		}
		m.comma = e.comma(m.end, limit)
		m.block = e.ownLines(m, at, n.span.end-1)
		at = m.end
		if m.comma >= 0 {
			at = m.comma + 1
		}
	}
	return list, nil
}

// comma finds the comma between two offsets, over blanks and comments.
func (e *editor) comma(from, to int) int {
	for i := from; i < to; i++ {
		switch e.src[i] {
		case ',':
			return i
		case '#':
			i = e.lineEnd(i) - 1
		case ' ', '\t', '\r', '\n':
		default:
			return -1
		}
	}
	return -1
}

// ownLines is the range of the lines that hold a member and nothing else of the
// collection, with the comment lines directly above.
func (e *editor) ownLines(m *member, from, closing int) span {
	start := e.lineStart(m.start)
	end := m.end
	if m.comma >= 0 {
		end = m.comma + 1
	}
	lineEnd := e.lineEnd(end)
	rest := bytes.TrimSpace(e.src[end:lineEnd])
	if start < from || len(bytes.TrimSpace(e.src[start:m.start])) > 0 || lineEnd > closing ||
		len(rest) > 0 && rest[0] != '#' || e.line(end) != e.line(m.end) {
		return unknown
	}
	return span{e.commentsAbove(start, from), lineEnd}
}

// commentsAbove moves the start of a line up over the comment lines directly
// above it, but not over from.
func (e *editor) commentsAbove(start, from int) int {
	for start > from {
		above := e.lineStart(start - 1)
		if above < from || !e.commentLine(above) {
			break
		}
		start = above
	}
	return start
}

// commentLine reports whether the line that starts at an offset is a comment.
func (d *document) commentLine(start int) bool {
	line := bytes.TrimLeft(d.src[start:d.lineEnd(start)], " \t")
	return len(line) > 0 && line[0] == '#'
}

// indentText is the white space at the start of the line that holds an offset.
func (d *document) indentText(offset int) string {
	line := d.src[d.lineStart(offset):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insertFlow puts a member before the one at index.
func (e *editor) insertFlow(n *node, index int, text string) error {
	list, err := e.members(n)
	if err != nil {
		return err
	}
	switch {
	case index < 0 || index > len(list):
		return ErrNotFound
	case len(list) == 0:
		inside := e.src[n.span.start+1 : n.span.end-1]
		if len(bytes.TrimSpace(inside)) > 0 || bytes.ContainsRune(inside, '\n') {
			e.insertAt(n.span.end-1, text)
			return nil
		}
		if e.format == TOML && n.kind == kindMap {
			text = " " + text + " "
		}
		return e.replace(span{n.span.start + 1, n.span.end - 1}, text)
	case index < len(list):
		m := list[index]
		if m.block.known() {
			e.insertAt(m.block.start, e.indentText(m.start)+text+","+e.newline())
			return nil
		}
		e.insertAt(m.start, text+", ")
		return nil
	}
	last := list[len(list)-1]
	if last.block.known() {
		comma := ""
		if last.comma < 0 {
			e.insertAt(last.end, ",")
		} else {
			comma = ","
		}
		e.insertAt(last.block.end, e.indentText(last.start)+text+comma+e.newline())
		return nil
	}
	if start := e.lineStart(last.start); len(list) > 1 && len(bytes.TrimSpace(e.src[start:last.start])) == 0 && start > n.span.start {
		// The last member has the closing bracket on its line.
		e.insertAt(last.end, ","+e.newline()+e.indentText(last.start)+text)
		return nil
	}
	e.insertAt(last.end, ", "+text)
	return nil
}

// removeFlow takes the member at index out.
func (e *editor) removeFlow(n *node, index int) error {
	list, err := e.members(n)
	if err != nil {
		return err
	}
	if index < 0 || index >= len(list) {
		return fmt.Errorf("%w: it comes by a merge key (<<)", ErrCannotEdit)
	}
	m := list[index]
	last := index == len(list)-1
	if m.block.known() {
		// The one before keeps no comma that now leads nowhere, unless the
		// last one had such a comma too.
		if last && index > 0 && m.comma < 0 && list[index-1].comma >= 0 {
			c := list[index-1].comma
			if err := e.replace(span{c, c + 1}, ""); err != nil {
				return err
			}
		}
		return e.replace(m.block, "")
	}
	switch {
	case !last:
		return e.replace(span{m.start, list[index+1].start}, "")
	case index > 0:
		return e.replace(span{list[index-1].end, m.end}, "")
	case m.comma >= 0:
		return e.replace(span{m.start, m.comma + 1}, "")
	}
	return e.replace(m.span, "")
}

// moveFlow permutes the members of a list. Those with lines to themselves take
// their comments with them; else the texts change places.
func (e *editor) moveFlow(n *node, from, to int) error {
	list, err := e.members(n)
	if err != nil {
		return err
	}
	if from < 0 || from >= len(list) || to < 0 || to >= len(list) {
		return ErrNotFound
	}
	lines := true
	for _, m := range list {
		lines = lines && m.block.known()
	}
	order := make([]member, len(list))
	copy(order, list)
	order = moved(order, from, to)
	for i, slot := range list {
		m := order[i]
		if m == slot {
			continue
		}
		if !lines {
			if err := e.replace(slot.span, string(e.src[m.start:m.end])); err != nil {
				return err
			}
			continue
		}
		text := string(e.src[m.block.start:m.end])
		if slot.comma >= 0 {
			text += ","
		}
		rest := string(e.src[m.end:m.block.end])
		if m.comma >= 0 {
			rest = string(e.src[m.end:m.comma]) + string(e.src[m.comma+1:m.block.end])
		}
		if !strings.HasSuffix(rest, "\n") {
			rest += e.newline()
		}
		if err := e.replace(slot.block, text+rest); err != nil {
			return err
		}
	}
	return nil
}
