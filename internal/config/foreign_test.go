package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// flat writes a tree with the places of its values.
func flat(t *Tree) string {
	at := fmt.Sprintf("@%d:%d", t.Line, t.Column)
	switch t.Kind {
	case TreeBool:
		return fmt.Sprint(t.Bool) + at
	case TreeNumber:
		return fmt.Sprint(t.Number, "(", t.Text, ")") + at
	case TreeText:
		return fmt.Sprintf("%q", t.Text) + at
	case TreeList:
		var parts []string
		for _, item := range t.Items {
			parts = append(parts, flat(item))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case TreeMapping:
		var parts []string
		for _, p := range t.Pairs {
			parts = append(parts, fmt.Sprintf("%s@%d:%d=%s", p.Key, p.Line, p.Column, flat(p.Value)))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	}
	return "null" + at
}

func TestReadTreeGivesValuesWithTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{YAML, "a: 1\nb:\n  - \"ü\"\n  - {c: ~, d: true}\n", `{a@1:1=1(1)@1:4 b@2:1=["ü"@3:5 {c@4:6=null@4:9 d@4:12=true@4:15}@4:5]@3:3}@1:1`},
		{YAML, "x: &x {k: v}\ny: {<<: *x, l: 80_000}\n", `{x@1:1={k@1:8="v"@1:11}@1:4 y@2:1={l@2:13=80000(80_000)@2:16 k@1:8="v"@1:11}@2:4}@1:1`},
		{TOML, "a = 1\n[b]\nc = [\"d\", 1.5]\n", `{a@1:1=1(1)@1:5 b@2:2={c@3:1=["d"@3:6 1.5(1.5)@3:11]@3:5}@2:2}@1:1`},
		{YAML, "", `{}@1:1`},
	} {
		tree, problems := ReadTree(Source{Path: "x", Format: c.format, Bytes: []byte(c.text)})
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.text, problems)
			continue
		}
		if got := flat(tree); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestReadTreeRefusesWhatMultiplies(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	if tree, problems := ReadTree(Source{Path: "x", Bytes: []byte(bomb)}); tree != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), "multiply") {
		t.Error(tree != nil, problems)
	}
}

// What YAMLText and YAMLKey write is read back as it was.
func TestYAMLTextIsReadBack(t *testing.T) {
	for _, v := range []any{true, int64(7), 0.25, "", "plain", "with: colon", "#hash", "yes", "1e3", "'q'", `"q"`, "a\tb", "ünï", "https://h/p?q=1&r=2", "- x", "{a}", " pad ", "null", "~", "a,b", "*", "&a", "%", "@x"} {
		text, err := YAMLText(v)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := v.(string)
		tree, problems := ReadTree(Source{Bytes: []byte(YAMLKey("k"+key) + ": " + text + "\n")})
		if len(problems) > 0 || len(tree.Pairs) != 1 || tree.Pairs[0].Key != "k"+key {
			t.Errorf("%q is written as %s: %v", v, text, problems)
			continue
		}
		var got any
		switch n := tree.Pairs[0].Value; n.Kind {
		case TreeBool:
			got = n.Bool
		case TreeText:
			got = n.Text
		case TreeNumber:
			if got = n.Number; n.Whole {
				got = int64(n.Number)
			}
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%q is written as %s and read as %q", v, text, got)
		}
	}
	if text, err := YAMLText([]string{"a: b", "c"}); err != nil || text != `["a: b", c]` {
		t.Error(text, err)
	}
}
