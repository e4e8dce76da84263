package config

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// expr is one expression of a TOML file: a header, or a key with its value.
type expr struct {
	span   span
	path   []any // what it defines, keys and indexes from the root
	header bool  // [path] or [[path]]
	array  bool  // [[path]], which adds the last index of path
	// under is the index of the header the expression stands under, -1 at the
	// top of the file.
	under int
}

// origin tells how a table came to be, which decides what may still be added to
// it.
type origin uint8

const (
	implicitTable origin = iota // by a header of something inside it
	headerTable
	dottedTable
	closedTable // inline tables and values
)

// tomlReader builds the tree from go-toml's expressions. Its parser knows the
// grammar; which tables may be defined twice is decided here, so that every
// duplicate key is reported and not the first alone.
type tomlReader struct {
	*document
	parser  unstable.Parser
	origins map[*node]origin
	index   map[*node]map[string]int // where in pairs a key stands
	arrays  map[*node]bool           // lists made by [[...]]
	base    int                      // bytes before what the parser saw
}

func (d *document) parseTOML() {
	defer func() { // as in parseYAML
		if recover() != nil {
			d.root = nil
			d.flaw(-1, "not valid TOML", "check quotes and brackets")
		}
	}()
	r := &tomlReader{
		document: d,
		origins:  map[*node]origin{},
		index:    map[*node]map[string]int{},
		arrays:   map[*node]bool{},
	}
	src := bytes.TrimPrefix(d.src, bom)
	r.base = len(d.src) - len(src)
	root := &node{kind: kindMap, span: span{0, len(d.src)}}
	r.origins[root] = headerTable
	r.parser.Reset(src)
	table, path, under := root, []any(nil), -1
	for r.parser.NextExpression() {
		e := r.parser.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			keys, s := r.keys(e)
			s = r.headerSpan(s)
			t, p, ok := r.header(root, keys, e.Kind == unstable.ArrayTable)
			if !ok {
				// What follows belongs to nothing, but is still checked for
				// its own mistakes.
				t = &node{kind: kindMap, span: s}
				r.origins[t] = headerTable
			}
			table, path, under = t, p, len(d.exprs)
			d.exprs = append(d.exprs, expr{span: s, path: p, header: true, array: e.Kind == unstable.ArrayTable, under: -1})
		case unstable.KeyValue:
			keys, _ := r.keys(e)
			s := r.span(e.Raw)
			p := append([]any(nil), path...)
			for _, k := range keys {
				p = append(p, k.key)
			}
			d.exprs = append(d.exprs, expr{span: s, path: p, under: under})
			r.keyValue(table, keys, e, s)
		}
	}
	if err := r.parser.Error(); err != nil {
		r.syntax(err)
		return
	}
	d.root = root
	if len(d.problems) == 0 {
		// A last look by the library's decoder, which knows rules this reader
		// leaves to it, such as impossible dates.
		var all map[string]any
		if err := toml.Unmarshal(src, &all); err != nil {
			r.strict(err)
		}
	}
}

func (r *tomlReader) span(raw unstable.Range) span {
	start := r.base + int(raw.Offset)
	return span{start, start + int(raw.Length)}
}

// syntax reports what the grammar refused. The library's words hold one
// character of the file at most.
func (r *tomlReader) syntax(err error) {
	pe, ok := errors.AsType[*unstable.ParserError](err)
	if !ok {
		r.flaw(-1, "not valid TOML", "check quotes and brackets")
		return
	}
	at := len(r.src)
	if len(pe.Highlight) > 0 {
		at = r.base + int(r.parser.Range(pe.Highlight).Offset)
	}
	what := pe.Message
	cure := "check quotes and brackets"
	switch {
	case strings.Contains(what, "start of value"):
		what, cure = "no value here", "put text in double quotes"
	case strings.Contains(what, "expected '=' after key"):
		cure = "write key = value"
	case strings.Contains(what, "strings must be quoted"):
		cure = "put text in double quotes"
	case strings.Contains(what, "cannot have new lines"), strings.Contains(what, "unterminated"):
		cure = "close the quotes"
	}
	// One character of the file may stand in it, "U+0073 's'".
	what, _, _ = strings.Cut(what, " U+")
	r.flaw(at, "not valid TOML: "+strings.TrimSuffix(what, " but got"), cure)
}

// strict reports what the decoder refused, without its words: they may quote.
func (r *tomlReader) strict(err error) {
	de, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		r.flaw(-1, "not valid TOML", "check numbers, dates and repeated tables")
		return
	}
	line, column := de.Position()
	at := r.starts[min(max(line-1, 0), len(r.starts)-1)]
	if line == 1 {
		at += r.base
	}
	r.flaw(min(at+max(column-1, 0), len(r.src)), "not valid TOML", "check numbers, dates and repeated tables")
}

type tomlKey struct {
	key  string
	span span
}

// keys returns the parts of a dotted key and the range from first to last.
func (r *tomlReader) keys(e *unstable.Node) ([]tomlKey, span) {
	var keys []tomlKey
	for it := e.Key(); it.Next(); {
		n := it.Node()
		keys = append(keys, tomlKey{string(n.Data), r.span(n.Raw)})
	}
	return keys, span{keys[0].span.start, keys[len(keys)-1].span.end}
}

// headerSpan widens the range of a header's key to its brackets.
func (r *tomlReader) headerSpan(s span) span {
	start := r.lineStart(s.start)
	if start < r.base {
		start = r.base
	}
	for start < s.start && (r.src[start] == ' ' || r.src[start] == '\t') {
		start++
	}
	end := s.end
	for end < len(r.src) && strings.IndexByte(" \t", r.src[end]) >= 0 {
		end++
	}
	for end < len(r.src) && r.src[end] == ']' {
		end++
	}
	return span{start, end}
}

// header finds or makes the table that [keys] or [[keys]] opens.
func (r *tomlReader) header(root *node, keys []tomlKey, array bool) (*node, []any, bool) {
	t, path := root, []any(nil)
	for i, k := range keys {
		path = append(path, k.key)
		last := i == len(keys)-1
		p := r.pair(t, k.key)
		if p == nil {
			n := &node{kind: kindMap, span: k.span, outer: k.span.start}
			if last && array {
				n.kind = kindList
				r.arrays[n] = true
			}
			r.origins[n] = implicitTable
			r.add(t, k, n)
			p = r.pair(t, k.key)
		} else if last && !array && (p.value.kind != kindMap || r.origins[p.value] != implicitTable) ||
			last && array && !r.arrays[p.value] {
			r.again(p, k)
			return nil, nil, false
		}
		switch n := p.value; {
		case last && array:
			item := &node{kind: kindMap, span: k.span, outer: k.span.start}
			r.origins[item] = headerTable
			n.items = append(n.items, item)
			path = append(path, len(n.items)-1)
			t = item
		case r.arrays[n]:
			path = append(path, len(n.items)-1)
			t = n.items[len(n.items)-1]
		case n.kind == kindMap && r.origins[n] != closedTable:
			t = n
		default:
			r.again(p, k)
			return nil, nil, false
		}
		if last {
			r.origins[t] = headerTable
		}
	}
	return t, path, true
}

func (r *tomlReader) add(t *node, k tomlKey, n *node) {
	t.pairs = append(t.pairs, pair{key: k.key, span: k.span, value: n})
	if r.index[t] == nil {
		r.index[t] = map[string]int{}
	}
	r.index[t][k.key] = len(t.pairs) - 1
}

// pair is node.pair without a search.
func (r *tomlReader) pair(t *node, key string) *pair {
	if i, ok := r.index[t][key]; ok {
		return &t.pairs[i]
	}
	return nil
}

// again reports a key that stands a second time.
func (r *tomlReader) again(first *pair, second tomlKey) {
	line, _ := r.position(first.span.start)
	r.duplicate(second.key, second.span.start, line)
}

// keyValue puts one key = value into a table, making the tables of a dotted key.
func (r *tomlReader) keyValue(t *node, keys []tomlKey, e *unstable.Node, s span) {
	for i, k := range keys {
		last := i == len(keys)-1
		p := r.pair(t, k.key)
		switch {
		case last && p == nil:
			r.add(t, k, r.value(e.Value(), span{r.valueStart(keys[len(keys)-1].span.end), s.end}))
			return
		case last || p != nil && (p.value.kind != kindMap || r.origins[p.value] != dottedTable):
			r.again(p, k)
			return
		case p == nil:
			n := &node{kind: kindMap, span: span{k.span.start, s.end}, outer: k.span.start}
			r.origins[n] = dottedTable
			r.add(t, k, n)
			t = n
		default:
			t = p.value
		}
	}
}

// valueStart is where the value behind a key begins.
func (r *tomlReader) valueStart(keyEnd int) int {
	i := keyEnd
	for i < len(r.src) && strings.IndexByte(" \t=", r.src[i]) >= 0 {
		i++
	}
	return i
}

// value converts one value that stands at s.
func (r *tomlReader) value(n *unstable.Node, s span) *node {
	v := &node{span: s, outer: s.start}
	text := string(n.Data)
	switch n.Kind {
	case unstable.String:
		v.kind, v.text = kindText, text
	case unstable.Bool:
		v.kind, v.bool = kindBool, text == "true"
	case unstable.Integer:
		if i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64); err == nil {
			v.kind, v.int, v.num = kindInt, i, float64(i)
		} else {
			v.kind, v.num = kindFloat, math.NaN()
		}
	case unstable.Float:
		v.kind = kindFloat
		// A float that does not parse is one out of range; it becomes an
		// infinity, which no key takes.
		v.num, _ = strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	case unstable.Array:
		v.kind, v.flow = kindList, true
		r.origins[v] = closedTable
		at := s.start + 1
		for it := n.Children(); it.Next(); {
			item := it.Node()
			if item.Kind == unstable.Comment {
				continue
			}
			start := r.skipBlank(at)
			at = r.valueEnd(start)
			v.items = append(v.items, r.value(item, span{start, at}))
		}
	case unstable.InlineTable:
		v.kind, v.flow = kindMap, true
		for it := n.Children(); it.Next(); {
			kv := it.Node()
			if kv.Kind != unstable.KeyValue {
				continue
			}
			keys, _ := r.keys(kv)
			r.keyValue(v, keys, kv, r.span(kv.Raw))
		}
		r.origins[v] = closedTable
	default:
		v.kind, v.text = kindDate, text
	}
	return v
}

// skipBlank is the next offset that holds neither blank, comma nor comment.
func (d *document) skipBlank(at int) int {
	for at < len(d.src) {
		switch d.src[at] {
		case ' ', '\t', '\r', '\n', ',':
			at++
		case '#':
			at = d.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// valueEnd is the end of the TOML value that starts at an offset.
func (d *document) valueEnd(at int) int {
	rest := d.src[at:]
	for _, q := range []string{`"""`, `'''`} {
		if !bytes.HasPrefix(rest, []byte(q)) {
			continue
		}
		for i := at + 3; i < len(d.src); i++ {
			if d.src[i] == '\\' && q[0] == '"' {
				i++
			} else if bytes.HasPrefix(d.src[i:], []byte(q)) {
				// Up to two quotes more belong to the text.
				for i += 3; i < len(d.src) && d.src[i] == q[0]; i++ {
				}
				return i
			}
		}
		return len(d.src)
	}
	if len(rest) == 0 {
		return at
	}
	switch q := rest[0]; q {
	case '"', '\'':
		for i := at + 1; i < len(d.src); i++ {
			if d.src[i] == '\\' && q == '"' {
				i++
			} else if d.src[i] == q {
				return i + 1
			}
		}
		return len(d.src)
	case '[', '{':
		depth := 0
		for i := at; i < len(d.src); {
			switch d.src[i] {
			case '[', '{':
				depth++
				i++
			case ']', '}':
				i++
				if depth--; depth == 0 {
					return i
				}
			case '"', '\'':
				i = d.valueEnd(i)
			case '#':
				i = d.lineEnd(i)
			default:
				i++
			}
		}
		return len(d.src)
	}
	i := at
	for i < len(d.src) && strings.IndexByte(",]}#\r\n", d.src[i]) < 0 {
		i++
	}
	return at + len(bytes.TrimRight(d.src[at:i], " \t"))
}
