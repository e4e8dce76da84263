package config

import "slices"

// TreeKind is what a value of a [Tree] is.
type TreeKind uint8

// The kinds of values. A date is text.
const (
	TreeNull TreeKind = iota
	TreeBool
	TreeNumber
	TreeText
	TreeList
	TreeMapping
)

// String is the word a problem uses.
func (k TreeKind) String() string {
	switch k {
	case TreeNull:
		return "nothing"
	case TreeBool:
		return "true or false"
	case TreeNumber:
		return "a number"
	case TreeText:
		return "text"
	case TreeList:
		return "a list"
	}
	return "a mapping"
}

// Tree is a value of a file that need not be a configuration of this program,
// with its place. Aliases and merge keys are expanded. Nobody changes a Tree.
type Tree struct {
	Kind   TreeKind
	Text   string  // TreeText; the digits as written of TreeNumber where they are known
	Number float64 // TreeNumber
	Whole  bool    // TreeNumber without a fraction
	Bool   bool
	Items  []*Tree    // TreeList
	Pairs  []TreePair // TreeMapping, in the file's order
	// Line and Column count from 1, the column in characters.
	Line, Column int
}

// TreePair is one key of a mapping with its value.
type TreePair struct {
	Key          string
	Value        *Tree
	Line, Column int // of the key
}

// Find is the value of a key, nil where there is none or t is no mapping.
func (t *Tree) Find(key string) *Tree {
	if t == nil || t.Kind != TreeMapping {
		return nil
	}
	i := slices.IndexFunc(t.Pairs, func(p TreePair) bool { return p.Key == key })
	if i < 0 {
		return nil
	}
	return t.Pairs[i].Value
}

// ReadTree reads any YAML or TOML file within the limits of a configuration
// (size, lines, nesting), and tells the places of its mistakes without quoting
// it. The Tree is nil if there are any.
func ReadTree(src Source) (*Tree, []Problem) {
	d := &decoder{doc: parseDocument(src.Format, src.Bytes), src: src}
	for _, f := range d.doc.problems {
		d.errorAt(f.offset, f.what, f.cure)
	}
	if d.doc.root == nil || d.failed() {
		return nil, d.sorted()
	}
	budget := maxVisits
	t := d.doc.tree(d.doc.root, &budget)
	if budget < 0 {
		d.errorAt(-1, "aliases multiply this file beyond all use", "use fewer of them")
		return nil, d.sorted()
	}
	return t, nil
}

// tree copies a node with its place, up to a budget of values.
func (d *document) tree(n *node, budget *int) *Tree {
	t := &Tree{}
	t.Line, t.Column = d.position(outerStart(n))
	if *budget--; *budget < 0 {
		return t
	}
	switch n.kind {
	case kindBool:
		t.Kind, t.Bool = TreeBool, n.bool
	case kindInt, kindFloat:
		t.Kind, t.Number, t.Whole = TreeNumber, n.num, n.kind == kindInt
		if n.span.known() {
			t.Text = string(d.src[n.span.start:n.span.end])
		}
	case kindText, kindDate:
		t.Kind, t.Text = TreeText, n.text
	case kindList:
		t.Kind = TreeList
		for _, item := range n.items {
			t.Items = append(t.Items, d.tree(item, budget))
		}
	case kindMap:
		t.Kind = TreeMapping
		for _, p := range n.pairs {
			if p.key == "<<" && p.value.kind != kindText {
				continue
			}
			pair := TreePair{Key: p.key, Value: d.tree(p.value, budget)}
			pair.Line, pair.Column = d.position(p.span.start)
			t.Pairs = append(t.Pairs, pair)
		}
	}
	return t
}

// YAMLText writes a bool, a number, a text or a list of them as it stands behind
// the colon of a YAML key on one line, with quotes where they are needed.
func YAMLText(v any) (string, error) {
	v, err := normal(v)
	if err != nil {
		return "", err
	}
	d := &document{format: YAML}
	if isScalar(v) {
		return d.scalarText(v, anyStyle, false), nil
	}
	return d.flowText(v), nil
}

// YAMLKey writes a key of a YAML mapping, with quotes where they are needed.
func YAMLKey(key string) string { return (&document{format: YAML}).keyText(key) }

// ShownKey puts a key of a file into a message: in quotes, or, where it may be a
// secret that has lost its place, not at all.
func ShownKey(key string) string { return quoteKey(key) }

// LooksSecret reports a word that is more likely a key than a name.
func LooksSecret(s string) bool { return looksSecret(s) || !shownName(s) }

// VariableName reports a name that an environment variable of a configuration
// may have.
func VariableName(s string) bool { return variableName().MatchString(s) && !looksSecret(s) }
