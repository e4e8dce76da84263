package control

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{``, nil},
		{"  \t ", nil},
		{`vm  add	x`, []string{"vm", "add", "x"}},
		{`a 'b c' d`, []string{"a", "b c", "d"}},
		{`a "b c" d`, []string{"a", "b c", "d"}},
		{`a "say \"hi\" \\ \n" d`, []string{"a", `say "hi" \ \n`, "d"}},
		{`a 'no \ escapes "here"'`, []string{"a", `no \ escapes "here"`}},
		{`name='Direct API'2`, []string{"name=Direct API2"}},
		{`""`, []string{""}},
		{`a '' b`, []string{"a", "", "b"}},
		{`C:\keys\file`, []string{`C:\keys\file`}},
		{`{"a": "b c", "d": [1, 2]} x`, []string{`{"a": "b c", "d": [1, 2]}`, "x"}},
		{`{"a": "}\"{"} x`, []string{`{"a": "}\"{"}`, "x"}},
		{`headers={"a": "b c"} y`, []string{`headers={"a": "b c"}`, "y"}},
		{`'{"a": "b c"}' x`, []string{`{"a": "b c"}`, "x"}},
		{`body_regex=[a-z ]+x y`, []string{"body_regex=[a-z ]+x", "y"}},
		{`a{b c}`, []string{"a{b", "c}"}},
		{`a=b={c d}`, []string{"a=b={c", "d}"}},
		{`模型 "名 字"`, []string{"模型", "名 字"}},
	} {
		got, err := words(test.line)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, %v, want %q", test.line, got, err, test.want)
		}
	}
}

func TestWordsRefused(t *testing.T) {
	for line, why := range map[string]string{
		`a "b`:                       "not closed",
		`a 'b`:                       "not closed",
		`{"a": [1, 2}`:               "does not end",
		`x={"a": "}`:                 "does not end",
		"vm\nvm rm a":                "line break",
		"vm\x00":                     "control character",
		"vm \x1b[31m":                "control character",
		"vm \xff":                    "UTF-8",
		strings.Repeat("a", 1<<16+1): "more than 65536 bytes",
	} {
		if _, err := words(line); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20q: %v, want %q", line, err, why)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"vm", "cand", "rule", "freeze", "stats", "set", "target", "reload", "save", "help", "quit"}
	for word, want := range map[string]string{
		"freze": "freeze", "fereze": "freeze", "tatget": "target", "RELOAD": "reload", "stat": "stats", "x": "", "": "", "halp": "help",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestKeysAreNotRepeated(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	b := r.builder()
	for word, want := range map[string]string{
		"auto-strong":                        "'auto-strong'",
		"claude-sonnet-4-5-20250929":         "'claude-sonnet-4-5-20250929'",
		"https://api.example.com/v1":         "'https://api.example.com/v1'",
		"sk-proj-abcdefghijklmnop1234":       "sk-pro***1234",
		"sk-short":                           "***",
		"AIzaSyA1234567890abcdefghijklmnopq": "AIzaSy***nopq",
		"0a1b2c3d4e5f60718293a4b5c6d7e8f9":   "0a1b2c***e8f9",
		"api_key=sk-proj-abcdefghijklmnop":   "'api_key'=…",
		`{"api_key": "sk-proj-abcdef"}`:      "{…}",
		`["sk-proj-abcdef"]`:                 "[…]",
		"a\u202eb":                           `'a\u202eb'`,
	} {
		if got := b.shown(word); got != want {
			t.Errorf("%q is shown as %s, want %s", word, got, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, line := range []string{`a "b c" 'd' {"e": "f"} g=[1]`, `"\\\"`, `{"`, `a=[`, `'`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		list, err := words(line)
		if err != nil && list != nil {
			t.Fatalf("words beside an error: %q", list)
		}
		total := 0
		for _, w := range list {
			total += len(w)
		}
		if total > len(line) {
			t.Fatalf("%q has become %q", line, list)
		}
	})
}

func TestTableLinesUpAsSeen(t *testing.T) {
	table := newTable("name", ">n", "last")
	table.row("模型", "1", "a")
	table.row("e\u0301", "10", "")
	table.row("plain", "100", "c")
	want := "name     n  last\n模型     1  a\ne\u0301       10\nplain  100  c"
	if got := table.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
