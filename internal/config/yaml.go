package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlReader turns goccy's syntax tree into ours. Values and structure are
// goccy's; byte ranges are found in the source from the line and column of its
// tokens, because its offsets count characters and its token texts are not
// those of the file.
type yamlReader struct {
	*document
	anchors map[string]*node
	merged  int // pairs that merge keys have brought, bounded
}

func (d *document) parseYAML() {
	// goccy has met input that made it panic. A file that a person edits under
	// a running proxy must never end it.
	defer func() {
		if recover() != nil {
			d.root = nil
			d.flaw(-1, "not valid YAML", "check quotes, brackets and indentation")
		}
	}()
	src := bytes.ReplaceAll(bytes.TrimPrefix(d.src, bom), []byte("\r\n"), []byte("\n"))
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.yamlSyntax(err)
		return
	}
	r := &yamlReader{document: d, anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); ok || doc.Body == nil {
			continue
		}
		if d.root != nil {
			d.flaw(r.at(doc.Body.GetToken()), "a second document", "one file holds one configuration: remove what follows \"---\"")
			return
		}
		d.root = r.value(doc.Body, 0)
	}
	if d.root == nil {
		d.root = &node{kind: kindMap, span: span{len(d.src), len(d.src)}}
	}
}

// yamlSyntax tells where and what without quoting the source, which may hold a
// secret.
func (d *document) yamlSyntax(err error) {
	e, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || e.Token == nil || e.Token.Position == nil {
		d.flaw(-1, "not valid YAML", "check quotes, brackets and indentation")
		return
	}
	what := e.Message
	if strings.ContainsAny(what, "\"%\n") && !strings.HasPrefix(what, "',' or ") {
		what = "not understood" // messages that quote the file
	}
	cure := "check quotes, brackets and indentation"
	switch {
	case strings.Contains(what, "mapping value is not allowed"):
		cure = "put text that contains \": \" in quotes, one key per line"
	case strings.Contains(what, "cannot start any token"):
		what, cure = "a tab where indentation stands", "indent with spaces"
	case strings.Contains(what, "unexpected key name"):
		what, cure = "no key here", "write \"key: value\", with a space behind the colon"
	case strings.Contains(what, "non-map value"):
		cure = "write \"key: value\", with a space behind the colon"
	case strings.Contains(what, "reserved character"):
		cure = "put the text in quotes"
	}
	p := e.Token.Position
	d.flaw(d.offset(p.Line, p.Column), "not valid YAML: "+what, cure)
}

// at is the byte offset of a token.
func (r *yamlReader) at(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return r.offset(t.Position.Line, t.Position.Column)
}

// value converts one node of goccy's tree. after is an offset before which the
// value cannot begin; it places values that have no text of their own.
func (r *yamlReader) value(n ast.Node, after int) *node {
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n.Values, n.IsFlowStyle, n.Start, n.End)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, n.IsFlowStyle, nil, nil)
	case *ast.SequenceNode:
		return r.sequence(n)
	case *ast.AnchorNode:
		start := r.at(n.Start)
		v := *r.value(n.Value, r.wordEnd(start))
		v.outer = start
		if n.Name != nil {
			r.anchors[n.Name.GetToken().Value] = &v
		}
		return &v
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		return r.tagged(n)
	case *ast.LiteralNode:
		start := r.at(n.Start)
		return &node{kind: kindText, text: n.Value.Value, outer: start, span: r.blockScalar(start)}
	case *ast.MergeKeyNode:
		at := r.at(n.Token)
		return &node{kind: kindText, text: "<<", outer: at, span: span{at, at + 2}}
	case nil:
		return &node{kind: kindNull, outer: after, span: span{after, after}}
	}
	return r.scalar(n.GetToken(), after)
}

func (r *yamlReader) scalar(t *token.Token, after int) *node {
	if t == nil || t.Type == token.ImplicitNullType {
		return &node{kind: kindNull, outer: after, span: span{after, after}}
	}
	start := r.at(t)
	switch t.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		s := r.quoted(start)
		return &node{kind: kindText, text: t.Value, outer: start, span: s}
	}
	v := plainScalar(t.Value)
	v.span, v.outer = r.plainSpan(start, t.Value), start
	if v.span.known() {
		v.outer = v.span.start
	}
	v.plain = true
	return v
}

func (r *yamlReader) sequence(n *ast.SequenceNode) *node {
	v := &node{kind: kindList, flow: n.IsFlowStyle, outer: r.at(n.Start)}
	v.span.start = v.outer
	for i, item := range n.Values {
		after := v.span.start + 1
		if !n.IsFlowStyle && i < len(n.Entries) && n.Entries[i].Start != nil {
			dash := r.at(n.Entries[i].Start)
			v.dashes = append(v.dashes, dash)
			after = dash + 1
		}
		v.items = append(v.items, r.value(item, after))
	}
	if n.IsFlowStyle {
		v.span.end = r.at(n.End) + 1
	} else if len(v.items) > 0 {
		v.span.end = outerEnd(v.items[len(v.items)-1])
	}
	return v
}

func (r *yamlReader) mapping(values []*ast.MappingValueNode, flow bool, start, end *token.Token) *node {
	v := &node{kind: kindMap, flow: flow}
	var merges []*node
	first := map[string]int{} // where a key stands first
	for _, mv := range values {
		if _, ok := mv.Key.(*ast.MergeKeyNode); ok {
			m := r.value(mv.Value, r.at(mv.Start)+1)
			at := r.at(mv.Key.GetToken())
			v.pairs = append(v.pairs, pair{key: "<<", span: span{at, at + 2}, value: m})
			merges = append(merges, m)
			continue
		}
		key, ok := r.key(mv.Key)
		if !ok {
			r.flaw(key.outer, "a key that is no plain word", "write \"key: value\"")
			continue
		}
		value := r.value(mv.Value, r.colonEnd(key.span.end))
		if at, dup := first[key.text]; dup {
			line, _ := r.position(at)
			r.duplicate(key.text, key.outer, line)
			continue
		}
		first[key.text] = key.outer
		v.pairs = append(v.pairs, pair{key: key.text, span: key.span, value: value})
	}
	if flow {
		v.span = span{r.at(start), r.at(end) + 1}
	} else if len(v.pairs) > 0 {
		first, last := v.pairs[0], v.pairs[len(v.pairs)-1]
		v.span = span{first.span.start, outerEnd(last.value)}
	}
	v.outer = v.span.start
	for _, m := range merges {
		r.merge(v, m, first)
	}
	return v
}

// duplicate reports a key that stands twice in one mapping.
func (d *document) duplicate(key string, offset, line int) {
	d.flaw(offset, "duplicate key "+quoteKey(key)+", first given on line "+itoa(line), "keep one of them")
}

func (r *yamlReader) key(n ast.Node) (*node, bool) {
	if k, ok := n.(*ast.MappingKeyNode); ok {
		n = k.Value
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.AliasNode, *ast.TagNode, *ast.AnchorNode, *ast.LiteralNode, nil:
		at := 0
		if n != nil {
			at = r.at(n.GetToken())
		}
		return &node{outer: at}, false
	}
	t := n.GetToken()
	k := r.scalar(t, r.at(t))
	k.text = t.Value
	if !k.span.known() {
		// Never without a place: edits go by it, and check what they did.
		at := r.at(t)
		k.span, k.outer = span{at, min(at+len(t.Value), len(r.src))}, at
	}
	return k, true
}

// merge adds the pairs of a "<<" value that the mapping does not have yet.
func (r *yamlReader) merge(into, from *node, have map[string]int) {
	switch {
	case from.kind == kindMap:
		if r.merged > maxVisits {
			return
		}
		if r.merged += len(from.pairs) + 1; r.merged > maxVisits {
			r.flaw(outerStart(from), "merge keys multiply this file beyond all use", "use fewer of them")
			return
		}
		for _, p := range from.pairs {
			if _, ok := have[p.key]; ok || p.key == "<<" {
				continue
			}
			have[p.key] = 0
			p.merged = true
			into.pairs = append(into.pairs, p)
		}
	case from.kind == kindList:
		for _, item := range from.items {
			if item.kind == kindList {
				r.flaw(item.outer, "a merge key (<<) of something that is no mapping", "write <<: *anchor, or a list of such")
				continue
			}
			r.merge(into, item, have)
		}
	default:
		r.flaw(from.outer, "a merge key (<<) of something that is no mapping", "write <<: *anchor, or a list of such")
	}
}

func (r *yamlReader) alias(n *ast.AliasNode) *node {
	start := r.at(n.Start)
	s := span{start, r.wordEnd(start)}
	target := r.anchors[n.Value.GetToken().Value]
	if target == nil {
		r.flaw(start, "an alias whose anchor is not defined above it", "define it with &name first")
		return &node{kind: kindNull, outer: start, span: s, alias: s}
	}
	v := *target
	v.alias = s
	return &v
}

func (r *yamlReader) tagged(n *ast.TagNode) *node {
	start := r.at(n.Start)
	v := r.value(n.Value, r.wordEnd(start))
	t := n.Start.Value
	scalar := v.kind != kindList && v.kind != kindMap
	switch {
	case t == "!!str" && scalar && n.Value != nil:
		c := *v
		c.kind, c.text = kindText, n.Value.GetToken().Value
		v = &c
	case (t == "!!int" || t == "!!float" || t == "!!bool" || t == "!!null") && scalar,
		t == "!!map" && v.kind == kindMap, t == "!!seq" && v.kind == kindList:
	default:
		r.flaw(start, "a YAML tag", "remove it")
	}
	c := *v
	c.outer = start
	return &c
}

// outerEnd is the end of a value as it stands in its own place: of the "*name"
// where it is an alias.
func outerEnd(n *node) int {
	if n.aliased() {
		return n.alias.end
	}
	return n.span.end
}

// outerStart is the start of a value as it stands in its own place.
func outerStart(n *node) int {
	if n.aliased() {
		return n.alias.start
	}
	return n.outer
}
