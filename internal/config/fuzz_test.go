package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// seeds are the inputs of the golden files, with a secret in them.
func seeds(f *testing.F, add func(format Format, text string)) {
	files, _ := filepath.Glob("testdata/*/*.txtar")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range parseArchive(text).Files {
			if format, err := FormatOf(file.Name); err == nil {
				add(format, string(expand(file.Data)))
			}
		}
	}
	add(YAML, everySecret)
	add(TOML, "[[upstream]]\nid = \"a\"\nbase_url = \"https://u:"+hidden+"@h\"\napi_key = \""+hidden+"\"\n")
	for _, format := range []Format{YAML, TOML} {
		text, err := os.ReadFile("../../examples/" + map[Format]string{YAML: "config.yaml", TOML: "pool.toml"}[format])
		if err == nil {
			add(format, string(text))
		}
	}
}

// FuzzParse: whatever the bytes, Parse returns, says where the problems are,
// and never shows a secret.
func FuzzParse(f *testing.F) {
	seeds(f, func(format Format, text string) { f.Add(format == TOML, text) })
	f.Fuzz(func(t *testing.T, isTOML bool, text string) {
		src := Source{Path: "x.yaml", Bytes: []byte(text)}
		if isTOML {
			src = Source{Path: "x.toml", Format: TOML, Bytes: []byte(text)}
		}
		cfg, problems := Parse(src)
		failed := slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
		if failed == (cfg != nil) {
			t.Fatalf("configuration %v, problems %v", cfg != nil, problems)
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range problems {
			if s := p.String() + p.Path; strings.Contains(s, hidden) || strings.Contains(s, "123456789SEC") {
				t.Fatalf("a secret is shown: %s", s)
			}
			if p.Line < 0 || p.Line > lines || (p.Line > 0) != (p.Column > 0) || p.What == "" {
				t.Fatalf("no place: %#v", p)
			}
		}
		if isTOML {
			sameTOML(t, text)
		}
	})
}

// sameTOML compares the reader of this package with the library's decoder: they
// accept the same files and read the same keys.
func sameTOML(t interface{ Fatalf(string, ...any) }, text string) {
	doc := newDocument(TOML, []byte(text))
	if !doc.readable() {
		return
	}
	doc.parseTOML()
	var all map[string]any
	err := toml.Unmarshal([]byte(strings.TrimPrefix(text, string(bom))), &all)
	if (err == nil) != (doc.root != nil && len(doc.problems) == 0) {
		t.Fatalf("the library says %v, this package %v", err, doc.problems)
	}
	if err != nil {
		return
	}
	budget := maxVisits
	if v, _ := plainValue(doc.root, &budget); !sameShape(v, all) {
		t.Fatalf("the library reads %v, this package %v", all, v)
	}
}

// sameShape compares keys, lengths and texts; numbers and dates are the
// library's own types.
func sameShape(ours, theirs any) bool {
	switch ours := ours.(type) {
	case Map:
		m, ok := theirs.(map[string]any)
		if !ok || len(m) != len(ours) {
			return false
		}
		for _, e := range ours {
			if v, ok := m[e.Key]; !ok || !sameShape(e.Value, v) {
				return false
			}
		}
		return true
	case []any:
		r := reflect.ValueOf(theirs)
		if r.Kind() != reflect.Slice || r.Len() != len(ours) {
			return false
		}
		for i := range ours {
			if !sameShape(ours[i], r.Index(i).Interface()) {
				return false
			}
		}
		return true
	case string, bool, int64:
		return ours == theirs
	}
	return true
}

// FuzzSet: an edit either is exactly the change or leaves the bytes alone.
func FuzzSet(f *testing.F) {
	seeds(f, func(format Format, text string) {
		f.Add(format == TOML, text, []byte{0, 1, 0}, byte(0), "new")
		f.Add(format == TOML, text, []byte{2, 0, 0}, byte(1), "a: b # c")
		f.Add(format == TOML, text, []byte{3}, byte(2), "x")
	})
	f.Fuzz(func(t *testing.T, isTOML bool, text string, way []byte, op byte, value string) {
		src := Source{Path: "x.yaml", Bytes: []byte(text)}
		if isTOML {
			src = Source{Path: "x.toml", Format: TOML, Bytes: []byte(text)}
		}
		doc := parseDocument(src.Format, src.Bytes)
		budget := maxVisits
		if doc.root == nil || len(way) > 20 {
			return
		}
		before, ok := plainValue(doc.root, &budget)
		if !ok {
			return
		}
		path, at := walk(before, way)
		list, _ := at.([]any)
		var out Source
		var err error
		var want any
		switch op % 4 {
		case 0:
			want, _ = withSet(before, path, value)
			out, err = src.Set(path, value)
		case 1:
			if len(path) > 0 {
				want, _ = withRemoved(before, path)
			}
			out, err = src.Remove(path)
		case 2:
			want, _ = withSet(before, path, slices.Insert(slices.Clone(list), len(list)/2, any(value)))
			out, err = src.Insert(path, len(list)/2, value)
		case 3:
			if len(list) == 0 {
				return
			}
			want, _ = withSet(before, path, moved(list, 0, len(list)-1))
			out, err = src.Move(path, 0, len(list)-1)
		}
		if err != nil {
			if !errors.Is(err, ErrCannotEdit) && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			if string(out.Bytes) != text {
				t.Fatal("refused, and changed all the same")
			}
			return
		}
		after := parseDocument(src.Format, out.Bytes)
		budget = maxVisits
		if after.root == nil || len(after.problems) > 0 {
			t.Fatalf("the result does not parse: %q", out.Bytes)
		}
		if got, ok := plainValue(after.root, &budget); ok && !sameValue(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// walk follows the numbers of way down a tree.
func walk(v any, way []byte) (path []any, at any) {
	for _, n := range way {
		switch c := v.(type) {
		case Map:
			if len(c) == 0 {
				return append(path, "new"), nil
			}
			e := c[int(n)%len(c)]
			path, v = append(path, e.Key), e.Value
		case []any:
			if len(c) == 0 {
				return path, v
			}
			i := int(n) % len(c)
			path, v = append(path, i), c[i]
		default:
			return path, v
		}
	}
	return path, v
}
