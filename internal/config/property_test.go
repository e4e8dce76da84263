package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scribe writes a value the way people write files: in either spelling, block
// and flow mixed, with comments and blank lines in between.
type scribe struct {
	t        *rapid.T
	doc      *document // for its way of writing scalars
	comments int
	b        strings.Builder
}

func (s *scribe) odds(percent int, what string) bool {
	return rapid.IntRange(1, 100).Draw(s.t, what) <= percent
}

func (s *scribe) comment() string {
	s.comments++
	return fmt.Sprintf("# note %d: [x], {y}, 'z\" é", s.comments)
}

// above writes what stands above an entry: blank lines and comments.
func (s *scribe) above(indent int) {
	if s.odds(15, "blank") {
		s.b.WriteString("\n")
	}
	for s.odds(15, "above") {
		s.b.WriteString(strings.Repeat(" ", indent) + s.comment() + "\n")
	}
}

func (s *scribe) behind() string {
	if s.odds(20, "behind") {
		return strings.Repeat(" ", rapid.IntRange(1, 4).Draw(s.t, "gap")) + s.comment() + "\n"
	}
	return "\n"
}

func (s *scribe) scalar(v any, flow bool) string {
	st := rapid.SampledFrom([]style{anyStyle, anyStyle, doubleQuoted, singleQuoted}).Draw(s.t, "style")
	return s.doc.scalarText(v, st, flow)
}

func (s *scribe) flow(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = s.flow(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Map:
		parts := make([]string, len(v))
		for i, e := range v {
			sep := ": "
			if s.doc.format == TOML {
				sep = " = "
			}
			parts[i] = s.doc.keyText(e.Key) + sep + s.flow(e.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return s.scalar(v, true)
}

// lines writes a list between brackets on lines of its own.
func (s *scribe) lines(list []any, indent int) string {
	var b strings.Builder
	b.WriteString("[\n")
	for i, item := range list {
		if s.odds(20, "above") {
			b.WriteString(strings.Repeat(" ", indent) + s.comment() + "\n")
		}
		b.WriteString(strings.Repeat(" ", indent) + s.flow(item))
		if i < len(list)-1 || s.odds(50, "comma") {
			b.WriteString(",")
		}
		b.WriteString(s.behind())
	}
	b.WriteString(strings.Repeat(" ", indent-1) + "]")
	return b.String()
}

func (s *scribe) yamlMap(m Map, indent int, first bool) {
	for _, e := range m {
		if !first {
			s.above(indent)
			s.b.WriteString(strings.Repeat(" ", indent))
		}
		first = false
		s.b.WriteString(s.doc.keyText(e.Key) + ":")
		s.yamlValue(e.Value, indent)
	}
}

func (s *scribe) yamlValue(v any, indent int) {
	list, isList := v.([]any)
	m, isMap := v.(Map)
	switch {
	case isList && len(list) > 0 && s.odds(70, "block"):
		s.b.WriteString(s.behind())
		at := indent + rapid.SampledFrom([]int{0, 2, 4}).Draw(s.t, "indent")
		for _, item := range list {
			s.above(at)
			s.b.WriteString(strings.Repeat(" ", at) + "- ")
			if im, ok := item.(Map); ok && len(im) > 0 && s.odds(70, "block") {
				s.yamlMap(im, at+2, true)
			} else {
				s.b.WriteString(s.flow(item) + s.behind())
			}
		}
	case isMap && len(m) > 0 && s.odds(70, "block"):
		s.b.WriteString(s.behind())
		s.yamlMap(m, indent+2, false)
	case isList && len(list) > 0 && s.odds(50, "lines"):
		s.b.WriteString(" " + s.lines(list, indent+3) + s.behind())
	default:
		s.b.WriteString(" " + s.flow(v) + s.behind())
	}
}

func (s *scribe) tomlTable(m Map, path string) {
	var tables Map
	for _, e := range m {
		_, isMap := e.Value.(Map)
		list, isList := e.Value.([]any)
		allMaps := isList && len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(Map); return !ok })
		if (isMap || allMaps) && s.odds(70, "table") {
			tables = append(tables, e)
			continue
		}
		s.above(0)
		if isMap && len(e.Value.(Map)) > 0 && s.odds(30, "dotted") {
			for _, in := range e.Value.(Map) {
				s.b.WriteString(s.doc.keyText(e.Key) + "." + s.doc.keyText(in.Key) + " = " + s.flow(in.Value) + s.behind())
			}
			continue
		}
		text := s.flow(e.Value)
		if isList && len(list) > 0 && s.odds(40, "lines") {
			text = s.lines(list, 2)
		}
		s.b.WriteString(s.doc.keyText(e.Key) + " = " + text + s.behind())
	}
	for _, e := range tables {
		name := path + s.doc.keyText(e.Key)
		items, isList := e.Value.([]any)
		if !isList {
			items = []any{e.Value}
		}
		for _, item := range items {
			s.above(0)
			if isList {
				s.b.WriteString("[[" + name + "]]" + s.behind())
			} else {
				s.b.WriteString("[" + name + "]" + s.behind())
			}
			s.tomlTable(item.(Map), name+".")
		}
	}
}

// write returns a file that holds the value.
func (s *scribe) write(v Map) Source {
	if s.doc.format == TOML {
		s.tomlTable(v, "")
	} else {
		s.yamlMap(v, 0, false)
	}
	text := s.b.String()
	if s.odds(30, "crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if s.odds(20, "no line break") {
		text = strings.TrimRight(text, "\r\n")
	}
	if s.odds(10, "bom") {
		text = string(bom) + text
	}
	return Source{Path: "x." + s.doc.format.String(), Format: s.doc.format, Bytes: []byte(text)}
}

// The values of a random configuration. They need not make sense: edits work on
// any tree.
var (
	anyText = rapid.OneOf(
		rapid.SampledFrom([]string{"a", "gpt-4o", "https://h.example/v1", "yes", "12", "", " x ", "a: b", "a #b", "- x", "{", "it's", "\"q\"", "null", "1e3", "é世\U0001F30D", "a\nb", "x\ty", "*", "&a", "?", ":", "a:", "\\", "@", "#", "0x1F", "2001-01-01", "~", "\u2028", "\x01"}),
		rapid.StringN(0, 12, -1))
	anyScalar = rapid.OneOf(
		rapid.Map(anyText, func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1<<40, 1<<40), func(i int64) any { return i }),
		rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { v, _ := normal(f); return v }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	anyKey = rapid.OneOf(rapid.SampledFrom([]string{"name", "model", "a b", "x-y", "é", "0", "true", "a.b", "q'\"", "llama3:8b", "n", "<<", ""}), rapid.StringMatching(`[a-z_]{1,8}`))
)

func anyMap(t *rapid.T, value func(*rapid.T) any, low, high int) Map {
	m := Map{}
	for range rapid.IntRange(low, high).Draw(t, "pairs") {
		if k := anyKey.Draw(t, "key"); m.find(k) < 0 && !(k == "<<") {
			m = append(m, Entry{k, value(t)})
		}
	}
	return m
}

func anyList(t *rapid.T, value func(*rapid.T) any, low, high int) []any {
	list := []any{}
	for range rapid.IntRange(low, high).Draw(t, "items") {
		list = append(list, value(t))
	}
	return list
}

func scalarOf(t *rapid.T) any { return anyScalar.Draw(t, "scalar") }

func anyEntry(t *rapid.T) any {
	return anyMap(t, func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return anyMap(t, scalarOf, 0, 3)
		case 1:
			return anyList(t, scalarOf, 0, 3)
		}
		return scalarOf(t)
	}, 1, 5)
}

func anyTree(t *rapid.T) Map {
	tree := Map{}
	for _, key := range []string{"server", "pool", "upstream", "virtual_models", "rules"} {
		switch {
		case rapid.IntRange(0, 3).Draw(t, "have") == 0:
		case key == "server" || key == "pool":
			tree = append(tree, Entry{key, anyMap(t, scalarOf, 0, 5)})
		case key == "virtual_models":
			tree = append(tree, Entry{key, anyMap(t, func(t *rapid.T) any {
				if rapid.Bool().Draw(t, "mapping") {
					return Map{{"delivery", "complete"}, {"candidates", anyList(t, anyEntry, 1, 3)}}
				}
				return anyList(t, anyEntry, 1, 3)
			}, 1, 3)})
		default:
			tree = append(tree, Entry{key, anyList(t, anyEntry, 0, 4)})
		}
	}
	return tree
}

// anyPath walks down a tree, at most to a scalar.
func anyPath(t *rapid.T, v any) []any {
	var path []any
	for {
		switch c := v.(type) {
		case Map:
			if len(c) == 0 || len(path) > 0 && rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
				return path
			}
			e := c[rapid.IntRange(0, len(c)-1).Draw(t, "pair")]
			path, v = append(path, e.Key), e.Value
		case []any:
			if len(c) == 0 || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
				return path
			}
			i := rapid.IntRange(0, len(c)-1).Draw(t, "item")
			path, v = append(path, i), c[i]
		default:
			return path
		}
	}
}

// TestEditsHoldExactlyTheChange makes random edits to random files in random
// styles: the result, parsed again, is what the edit does to the values, and
// the file's comments are still there, but for those of what was taken out.
func TestEditsHoldExactlyTheChange(t *testing.T) {
	refused, made := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]Format{YAML, TOML}).Draw(t, "format")
		tree := anyTree(t)
		s := &scribe{t: t, doc: &document{format: format, starts: []int{0}}}
		src := s.write(tree)
		doc := parseDocument(format, src.Bytes)
		if doc.root == nil || len(doc.problems) > 0 {
			t.Fatalf("the written file does not parse: %v\n%s", doc.problems, src.Bytes)
		}
		budget := maxVisits
		read, _ := plainValue(doc.root, &budget)
		if !sameValue(read, tree) {
			t.Fatalf("read %v\nwrote %v\n%s", read, tree, src.Bytes)
		}
		path := anyPath(t, tree)
		if len(path) == 0 {
			return
		}
		at, _ := lookUp(tree, path)
		list, isList := at.([]any)
		want, op := any(nil), rapid.IntRange(0, 4).Draw(t, "op")
		var out Source
		var err error
		what, added := "", 0
		switch {
		case op == 0 && isList && len(list) > 1:
			from, to := rapid.IntRange(0, len(list)-1).Draw(t, "from"), rapid.IntRange(0, len(list)-1).Draw(t, "to")
			what = fmt.Sprintf("move %v %d %d", path, from, to)
			want, _ = withSet(tree, path, moved(list, from, to))
			out, err = src.Move(path, from, to)
		case op <= 2 && isList:
			i := rapid.IntRange(0, len(list)).Draw(t, "index")
			v := scalarOf(t)
			if len(list) == 0 || !isScalar(list[0]) {
				v = anyEntry(t)
			}
			what = fmt.Sprintf("insert %v %d %v", path, i, v)
			want, _ = withSet(tree, path, slices.Insert(slices.Clone(list), i, v))
			out, err = src.Insert(path, i, v)
		case op == 3:
			what = fmt.Sprintf("remove %v", path)
			want, _ = withRemoved(tree, path)
			out, err = src.Remove(path)
			added = -1
		default:
			if _, ok := at.(Map); ok {
				path = append(slices.Clone(path), rapid.StringMatching(`new_[a-z]{3}`).Draw(t, "new"))
			} else {
				added = -1
			}
			v := scalarOf(t)
			if rapid.IntRange(0, 4).Draw(t, "container") == 0 {
				v = anyEntry(t)
			}
			what = fmt.Sprintf("set %v %v", path, v)
			want, _ = withSet(tree, path, v)
			out, err = src.Set(path, v)
		}
		if errors.Is(err, ErrCannotEdit) {
			refused++
			return
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, src.Bytes)
		}
		made++
		after := parseDocument(format, out.Bytes)
		budget = maxVisits
		got, _ := plainValue(after.root, &budget)
		if !sameValue(got, want) {
			t.Fatalf("%s\ngot  %v\nwant %v\n%s\n---\n%s", what, got, want, src.Bytes, out.Bytes)
		}
		for i := 1; i <= s.comments && added == 0; i++ {
			if note := fmt.Sprintf("# note %d:", i); strings.Count(string(out.Bytes), note) != 1 {
				t.Fatalf("%s: %s is gone or doubled\n%s\n---\n%s", what, note, src.Bytes, out.Bytes)
			}
		}
	})
	if refused*10 > made {
		t.Errorf("%d edits refused, %d made", refused, made)
	}
}

// TestTablesAsTheLibraryReadsThem writes random headers and dotted keys over
// few names, so that tables meet, and compares with go-toml's own decoder.
func TestTablesAsTheLibraryReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := func(most int) string {
			n := rapid.IntRange(1, most).Draw(t, "parts")
			parts := make([]string, n)
			for i := range parts {
				parts[i] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part")
			}
			return strings.Join(parts, ".")
		}
		var text strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			switch rapid.IntRange(0, 6).Draw(t, "line") {
			case 0, 1:
				text.WriteString("[" + path(3) + "]\n")
			case 2:
				text.WriteString("[[" + path(3) + "]]\n")
			case 3:
				text.WriteString(path(3) + " = { " + path(2) + " = 1, " + path(2) + " = 2 }\n")
			case 4:
				text.WriteString(path(2) + " = [ { a = 1 }, 2 ]\n")
			default:
				text.WriteString(path(3) + " = 1\n")
			}
		}
		sameTOML(t, text.String())
	})
}
