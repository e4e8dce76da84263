package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func masked(t *testing.T, format Format, text string) Masked {
	t.Helper()
	m, err := (Source{Path: "x." + format.String(), Format: format, Bytes: []byte(text)}).Masked()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}

// Two keys that look alike behind a mask, and one that is short.
const (
	keyA  = "sk-proj-AAAAAAAAAAAAAAAA1234"
	keyB  = "sk-proj-BBBBBBBBBBBBBBBB1234"
	short = "hunter-2-x"
)

// maskCases are files as they are and as they are shown.
var maskCases = []struct {
	name, format, file, shown string
}{
	{"a key", "yaml", "api_key: " + keyA + " # mine", "api_key: sk-pro***1234 # mine"},
	{"a quoted key", "yaml", `api_key: "` + keyA + `"`, `api_key: "sk-pro***1234"`},
	{"a single-quoted key", "yaml", `api_key: '` + keyA + `'`, `api_key: 'sk-pro***1234'`},
	{"a key with a sign of comments in it", "yaml", `api_key: "word #word-1" # mine`, `api_key: "***" # mine`},
	{"a short key", "yaml", "admin_token: " + short, "admin_token: ***"},
	{"a number for a key", "yaml", "clients: [{key: 12345678}]", "clients: [{key: ***}]"},
	{"an empty key", "yaml", `api_key: ""`, `api_key: ""`},
	{"no key", "yaml", "api_key:\nmodel: m", "api_key:\nmodel: m"},
	{"a key in a block", "yaml", "a:\n  api_key: |\n    " + keyA + "\n  model: m", "a:\n  api_key: ***\n  model: m"},
	{"a key over two lines", "yaml", "virtual_models:\n  a:\n    - api_key: abc def\n        ghi\n      model: m", "virtual_models:\n  a:\n    - api_key: ***\n      model: m"},
	{"the same key twice", "yaml", "m: [{api_key: " + keyA + "}, {api_key: " + keyA + "}]", "m: [{api_key: sk-pro***1234}, {api_key: sk-pro***1234}]"},
	{"keys that look alike", "yaml", "m: [{api_key: " + keyA + "}, {api_key: " + keyB + "}, {api_key: a-b-c-d-1}, {api_key: a-b-c-d-2}]", "m: [{api_key: sk-pro***1234}, {api_key: sk-pro***1234(2)}, {api_key: ***}, {api_key: ***(2)}]"},
	{"stars in the file", "yaml", "# *** keys ***\napi_key: " + short, "# *** keys ***\napi_key: ***(2)"},
	{"headers", "yaml", "headers: {x-client: codex, Authorization: Bearer " + keyA + "}", "headers: {x-client: ***, Authorization: Bearer***1234}"},
	{"headers in a block", "yaml", "headers:\n  x-client: codex\n  cookie: \"a=1; b=2\"\nmodel: m", "headers:\n  x-client: ***\n  cookie: \"***(2)\"\nmodel: m"},
	{"names of variables", "yaml", "api_key_env: OPENAI_KEY\nheader_env: {authorization: MY_AUTH}", "api_key_env: OPENAI_KEY\nheader_env: {authorization: MY_AUTH}"},
	{"a key for a variable's name", "yaml", "api_key_env: " + keyA, "api_key_env: sk-pro***1234"},
	{"user and password", "yaml", "base_url: https://user:" + short + "@h/v1", "base_url: https://***@h/v1"},
	{"a password with a slash", "yaml", "base_url: https://user:pass/word%zz@h/v1", "base_url: https://***@h/v1"},
	{"a query", "yaml", `base_url: "https://h/v1?api_key=` + short + `&x=1&access_token=tok"`, `base_url: "https://h/v1?api_key=***&x=1&access_token=***(2)"`},
	{"a URL without secrets", "yaml", "base_url: https://h/v1?x=1", "base_url: https://h/v1?x=1"},
	{"a store in one line", "yaml", "store: redis://:word-1@h:1/0", "store: redis://***@h:1/0"},
	{"a proxy", "yaml", "proxy: socks5://u:p@h:1\nstore: {url: \"rediss://:word-1@h:1/0\"}", "proxy: socks5://***@h:1\nstore: {url: \"rediss://***(2)@h:1/0\"}"},
	{"a slip of a key's name", "yaml", "api_kye: anything at all", "api_kye: ***"},
	{"no slip", "yaml", "virtual_models:\n  Auto-Strong-1-For-Everybody: {delivery: stream, candidates: []}", "virtual_models:\n  Auto-Strong-1-For-Everybody: {delivery: stream, candidates: []}"},
	{"an anchor", "yaml", "x-all: &all {api_key: " + keyA + ", weight: 2}\nm: {<<: *all}", "x-all: &all {api_key: sk-pro***1234, weight: 2}\nm: {<<: *all}"},
	{"a key by an alias", "yaml", "name: &k word-word-1\napi_key: *k", "name: &k ***\napi_key: *k"},
	{"a key in a comment", "yaml", "model: m # was " + keyA + "\n# api_key: " + short + "\n# the key: put it there", "model: m # was sk-pro***1234\n# api_key: ***\n# the key: put it there"},
	{"a URL in a comment", "yaml", "# https://u:p@h/ and https://h/?token=1\nmodel: m", "# https://***@h/ and https://h/?token=***(2)\nmodel: m"},
	{"a key in a name", "yaml", "name: my " + keyA, "name: ***"},
	{"a secret again elsewhere", "yaml", "api_key: word-word-1\nname: like word-word-1 here", "api_key: ***\nname: like *** here"},
	{"models are no keys", "yaml", "model: Qwen2-VL-72B-Instruct-AWQ-Int4-X1", "model: Qwen2-VL-72B-Instruct-AWQ-Int4-X1"},
	{"Windows' lines and a mark", "yaml", "\xef\xbb\xbfapi_key: " + short + "\r\nmodel: m\r\n", "api_key: ***\nmodel: m\n"},
	{"nothing", "yaml", "", ""},
	{"TOML", "toml", "[server]\nadmin_token = \"" + short + "\" # mine\n\n[[upstream]]\nid = \"a\"\nbase_url = \"https://u:p@h\"\nheaders = { \"x-client\" = \"lingtai\" }\nheader_env = { \"authorization\" = \"PRIMARY_AUTH\" }", "[server]\nadmin_token = \"***\" # mine\n\n[[upstream]]\nid = \"a\"\nbase_url = \"https://***(2)@h\"\nheaders = { \"x-client\" = \"***(3)\" }\nheader_env = { \"authorization\" = \"PRIMARY_AUTH\" }"},
	{"a TOML table of headers", "toml", "[upstream.headers]\nx-client = 'lingtai'\n[upstream.header_env]\nauthorization = 'AUTH'", "[upstream.headers]\nx-client = '***'\n[upstream.header_env]\nauthorization = 'AUTH'"},
	{"a dotted key of TOML", "toml", "upstream.api_key = \"" + keyA + "\"\nserver.port = 1", "upstream.api_key = \"sk-pro***1234\"\nserver.port = 1"},
	{"a long text of TOML", "toml", "api_key = \"\"\"\nword-word\n1\"\"\"\nmodel = 'm'", "api_key = \"\"\"***\"\"\"\nmodel = 'm'"},
	{"escapes in TOML", "toml", `api_key = "sk-\u0041bc\"def"` + "\nbase_url = \"https://u:p\\u0040h\"", `api_key = "***"` + "\nbase_url = \"***(2)\""},

	// Files that cannot be read show less.
	{"broken YAML", "yaml", "virtual_models:\n  auto:\n    - name: a\n      base_url: https://u:p@h/v1 # here\n     api_key: " + keyA + "\n      model: m\n      headers: {x-client: codex}\n", "virtual_models:\n  auto:\n    - name: a\n      base_url: https://***@h/v1 # here\n     api_key: sk-pro***1234\n      model: m\n      headers: {x-client: ***(2)}\n"},
	{"no blank behind the colon", "yaml", "api_key:" + short + "\nmodel: [", "api_key:***\nmodel: ["},
	{"a broken file's other lines", "yaml", "a:\n  - {name: a, base_url: \"https://h\", api_key: word-1} # note\n  - {name: b\n", "a:\n  - {name: a, base_url: \"https://h\", api_key: ***} # note\n  - {name: b\n"},
	{"a broken block", "yaml", "a: {\n  api_key: |\n    line one\n    line two\n  model: m", "a: {\n  api_key: ***\n  model: m"},
	{"text that is nothing", "yaml", "a: [\nhere is my password, it is swordfish!", "a: [\n***"},
	{"a list of origins", "yaml", "cors_origins:\n  - https://chat.example.com\nmodels: [a, b", "cors_origins:\n  - https://chat.example.com\nmodels: [a, b"},
	{"broken TOML", "toml", "[[upstream]]\nid = \"a\nbase_url = \"https://h\"\napi_key = '" + keyA + "'\nheaders = { cookie = \"abc\" }\n[x]]", "[[upstream]]\nid = \"a\nbase_url = \"https://h\"\napi_key = 'sk-pro***1234'\nheaders = { cookie = \"***\" }\n[x]]"},
	{"broken TOML with a long text", "toml", "x = \napi_key = \"\"\"\nword-word\n1\"\"\"\nmodel = 'm'", "x = \napi_key = \"\"\"***\"\"\"\nmodel = 'm'"},
	{"a key that stands twice", "yaml", "api_key: " + keyA + "\napi_key: " + keyB, "api_key: sk-pro***1234\napi_key: sk-pro***1234(2)"},
	{"a second document", "yaml", "model: m\n---\napi_key: " + short, "model: m\n---\napi_key: ***"},
}

func formatNamed(name string) Format {
	if name == "toml" {
		return TOML
	}
	return YAML
}

func TestMaskedShowsNoSecret(t *testing.T) {
	for _, test := range maskCases {
		t.Run(test.name, func(t *testing.T) {
			m := masked(t, formatNamed(test.format), test.file)
			if m.Text != test.shown {
				t.Errorf("shows\n%s\nnot\n%s", m.Text, test.shown)
			}
		})
	}
}

func TestWhatWasNotEditedComesBackAsItWas(t *testing.T) {
	for _, test := range maskCases {
		m := masked(t, formatNamed(test.format), test.file)
		if r := m.Restore(m.Text); string(r.Bytes) != test.file || r.Problems != nil {
			t.Errorf("%s: %q, not %q, %v", test.name, r.Bytes, test.file, r.Problems)
		}
		// With an edit elsewhere: a comment at its end, which no file minds.
		want := strings.TrimSuffix(strings.TrimSuffix(test.file, "\n"), "\r")
		text := strings.TrimSuffix(m.Text, "\n") + "\n# done"
		end := "\n# done"
		if strings.Contains(test.file, "\r\n") {
			end = "\r\n# done"
		}
		if r := m.Restore(text); string(r.Bytes) != want+end {
			t.Errorf("%s, edited: %q, not %q, %v", test.name, r.Bytes, want+end, r.Problems)
		}
	}
}

const edited = `server: {admin_token: "` + short + `"}
virtual_models:
  auto:
    # first
    - {name: a, base_url: https://a, model: m, api_key: ` + keyA + `}
    - {name: b, base_url: https://u:pw-1@b, model: m, api_key: ` + keyB + `}
`

func TestRestore(t *testing.T) {
	m := masked(t, YAML, edited)
	for _, test := range []struct {
		name     string
		from, to string // in the shown text
		want     string // in the file, "" where it is refused
		problem  string
	}{
		{name: "a change beside a mask", from: "name: a,", to: "name: c,", want: "{name: c, base_url: https://a, model: m, api_key: " + keyA + "}"},
		{name: "a key moved", from: "sk-pro***1234(2)", to: "sk-pro***1234", want: "pw-1@b, model: m, api_key: " + keyA + "}"},
		{name: "a new key", from: "sk-pro***1234(2)", to: "sk-new", want: "api_key: sk-new}"},
		{name: "a key in quotes now", from: "sk-pro***1234(2)", to: "'sk-pro***1234(2)'", want: "api_key: '" + keyB + "'}"},
		{name: "a line taken out", from: "    - {name: a, base_url: https://a, model: m, api_key: sk-pro***1234}\n", to: "", want: "    # first\n    - {name: b, base_url: https://u:pw-1@b, model: m, api_key: " + keyB + "}"},
		{name: "another host", from: "***(2)@b", to: "***(2)@c", want: "https://u:pw-1@c"},
		{name: "no user any more", from: "***(2)@b", to: "b", want: "base_url: https://b"},
		{name: "more before a mask", from: "sk-pro***1234(2)", to: "xsk-pro***1234(2)", problem: "6:65 a mask where no secret may stand"},
		{name: "more behind a mask", from: "sk-pro***1234}", to: "sk-pro***12345}", problem: "5:57 a mask where no secret may stand"},
		{name: "a mask cut", from: "sk-pro***1234(2)", to: "sk-pr***1234", problem: "6:69 a mask where no secret may stand"},
		{name: "a mask of nothing", from: "sk-pro***1234(2)", to: "gsk-ab***9999", problem: "6:70 a mask where no secret may stand"},
		{name: "stars of one's own", from: "sk-pro***1234(2)", to: "a**b***", problem: "6:68 a mask where"},
		{name: "a secret into a name", from: "name: a,", to: "name: sk-pro***1234,", problem: "5:14 a mask where no secret may stand"},
		{name: "a short secret into a name", from: "name: a,", to: "name: ***(2),", problem: "5:14 a mask where no secret may stand"},
		{name: "a secret into a comment", from: "# first", to: "# ***(2)", problem: "4:7 a mask where no secret may stand"},
		{name: "stars in a comment", from: "# first", to: "# *** first ****", want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(m.Text, test.from) != 1 {
				t.Fatalf("%q does not stand once in\n%s", test.from, m.Text)
			}
			r := m.Restore(strings.Replace(m.Text, test.from, test.to, 1))
			var got []string
			for _, p := range r.Problems {
				got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.What))
			}
			if text := strings.Join(got, "\n"); test.problem != "" && !strings.HasPrefix(text, test.problem) || test.want != "" && text != "" {
				t.Errorf("problems %q, want %q", text, test.problem)
			}
			if !strings.Contains(string(r.Bytes), test.want) {
				t.Errorf("%s\nhas no %s", r.Bytes, test.want)
			}
		})
	}
}

const placed = `virtual_models:
  vm:
    - name: a # first
      base_url: https://u:` + short + `@b/v1
      api_key: ` + keyA + `
      headers: {x-tenant: tenant-value-77}
      model: m
  other: []
`

// A mask that an edit takes to where its secret would be shown is refused, on whatever
// way it gets there; where secrets are due it may go.
func TestNoMaskStandsWhereItsSecretIsShown(t *testing.T) {
	m := masked(t, YAML, placed)
	const key, tenant, user = "sk-pro***1234", "***(2)", "***"
	for _, test := range []struct {
		name    string
		edits   []string // pairs: from, to
		problem string   // its place, "" where it is none
	}{
		{"a name", []string{"name: a", "name: " + key}, "3:13"},
		{"a part of a name", []string{"name: a", "name: my-" + key + "-x"}, "3:16"},
		{"the model", []string{"model: m", "model: " + key}, "7:14"},
		{"a virtual model", []string{"other: []", key + ": [{base_url: https://b, api_key: k, model: m}]"}, "8:3"},
		{"a header's name", []string{"x-tenant:", key + ":"}, "6:17"},
		{"a key nobody knows", []string{"model: m", "model: m\n      " + key + ": x"}, "8:7"},
		{"a variable's name", []string{"api_key: " + key, "api_key_env: " + key}, "5:20"},
		{"a file's name", []string{"api_key: " + key, "api_key_file: /x/" + key}, "5:24"},
		{"a variable of a header", []string{"headers: {x-tenant: " + tenant + "}", "header_env: {x-tenant: " + key + "}"}, "6:30"},
		{"a URL's path", []string{"@b/v1", "@b/" + tenant}, "4:31"},
		{"a URL's host", []string{"@b/v1", "@" + tenant + ".example/v1"}, "4:29"},
		{"a URL behind an escape", []string{"https://***@b/v1", `"https://\u0075:x@b/` + key + `"`}, "4:37"},
		{"an alias of a header", []string{tenant, "&y " + tenant, "model: m", "model: *y"}, "7:14"},
		{"an alias of a key", []string{key, "&y " + key, "name: a", "name: b", "model: m", "model: *y"}, "7:14"},
		{"an alias in a list", []string{key, "&y " + key, "other: []", "other: [{base_url: https://b, api_key: *y, model: m, name: *y}]"}, "8:62"},
		{"an alias of a mapping", []string{"api_key: " + key, "<<: &all {api_key: " + key + "}", "other: []", "other: [{<<: *all, base_url: https://b, model: m}]"}, ""},
		{"a mapping merged elsewhere", []string{"headers: {", "headers: &h {", "other: []", "x-y: {name: *h}"}, ""},
		{"names out of headers", []string{"headers: {x-tenant", "headers: &h {name", "other: []", "other: [{<<: *h, base_url: https://b, model: m}]"}, "6:26"},
		{"an anchor above", []string{"virtual_models:", "x-key: &k " + key + "\nvirtual_models:", "api_key: " + key, "api_key: *k"}, ""},
		{"an anchor above, shown", []string{"virtual_models:", "x-key: &k " + key + "\nvirtual_models:", "name: a", "name: *k"}, "4:13"},
		{"another header", []string{tenant, key}, ""},
		{"another key", []string{key, tenant}, ""},
		{"a user", []string{"https://***@", "https://" + tenant + "@"}, ""},
		{"a query", []string{"@b/v1", "@b/v1?key=" + tenant}, ""},
		{"a proxy's user", []string{"model: m", "model: m\n      proxy: http://" + user + "@p:1"}, ""},
		{"a comment", []string{"# first", "# api_key: " + key}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := m.Text
			for i := 0; i < len(test.edits); i += 2 {
				if strings.Count(text, test.edits[i]) != 1 {
					t.Fatalf("%q does not stand once in\n%s", test.edits[i], text)
				}
				text = strings.Replace(text, test.edits[i], test.edits[i+1], 1)
			}
			r := m.Restore(text)
			got := ""
			if len(r.Problems) > 0 {
				got = fmt.Sprintf("%d:%d", r.Problems[0].Line, r.Problems[0].Column)
			}
			if got != test.problem {
				t.Errorf("problems %v, want one at %q, of\n%s", r.Problems, test.problem, text)
			}
		})
	}
}

// What is shown already stays where it is while something else is edited; it goes to no
// further place.
func TestASecretThatIsShownAlreadyMayStay(t *testing.T) {
	m := masked(t, YAML, "virtual_models:\n  vm:\n    - {name: &k word-word-1, api_key: *k, base_url: https://b, model: m}\n")
	if r := m.Restore(strings.Replace(m.Text, "https://b", "https://c", 1)); r.Problems != nil {
		t.Errorf("%v", r.Problems)
	}
	if r := m.Restore(strings.Replace(m.Text, "model: m", "model: *k", 1)); len(r.Problems) != 1 {
		t.Errorf("%v", r.Problems)
	}
}

// TOML has no aliases; names, keys and tables are refused as in YAML.
func TestNoMaskOfTOMLStandsWhereItsSecretIsShown(t *testing.T) {
	const file = "[server]\nadmin_token = \"" + keyB + "\"\n\n[[upstream]]\nid = \"a\"\nbase_url = \"https://b\"\napi_key = \"" + keyA + "\"\nheaders = { \"x-client\" = \"tenant-value\" }\n"
	m := masked(t, TOML, file)
	for _, edit := range [][2]string{
		{`id = "a"`, `id = "sk-pro***1234"`}, {`"x-client" =`, `"sk-pro***1234" =`}, {"[[upstream]]", "[virtual_models.\"sk-pro***1234\"]\n[[upstream]]"},
		{"https://b", "https://sk-pro***1234"}, {"[[upstream]]", "sk-pro***1234.x = 1\n[[upstream]]"},
	} {
		text := strings.Replace(m.Text, edit[0], edit[1], 1)
		r := m.Restore(text)
		_, problems := Parse(r.Source)
		wrong := slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
		if text == m.Text || len(r.Problems) == 0 && !wrong {
			t.Errorf("%s is taken:\n%s", edit[1], r.Bytes)
		}
	}
	if r := m.Restore(strings.Replace(m.Text, "api_key = \"sk-pro***1234\"", "api_key = \"***\"", 1)); r.Problems != nil {
		t.Errorf("%v", r.Problems)
	}
}

// A secret must not get into view by an edit: what is restored is covered again.
func TestNoEditShowsASecret(t *testing.T) {
	m := masked(t, YAML, edited)
	for _, mask := range m.Masks() {
		for i := range len(m.Text) + 1 {
			r := m.Restore(m.Text[:i] + mask + m.Text[i:])
			if len(r.Problems) > 0 {
				continue
			}
			if _, problems := Parse(r.Source); slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error }) {
				continue
			}
			again, err := r.Source.Masked()
			if err != nil {
				continue
			}
			for _, secret := range []string{short, keyA, keyB, "u:pw-1"} {
				if strings.Contains(again.Text, secret) {
					t.Fatalf("%s at %d shows %s:\n%s", mask, i, secret, again.Text)
				}
			}
		}
	}
}

func TestProblemsAreMovedToTheShownText(t *testing.T) {
	file := "# x\nvirtual_models:\n  auto:\n    - api_key: |\n        " + keyA + "\n      model: m\n      base_url: nothing\n      weigth: 1\n"
	m := masked(t, YAML, file)
	r := m.Restore(strings.Replace(m.Text, "# x", "# x\n\n", 1))
	for _, test := range []struct {
		move     func(Problem) Problem
		src      Source
		what     string
		line, at int
	}{
		{m.Shown, m.source, "no URL", 6, 17}, {m.Shown, m.source, "weight", 7, 7},
		{r.Shown, r.Source, "no URL", 8, 17}, {r.Shown, r.Source, "weight", 9, 7},
	} {
		_, problems := Parse(test.src)
		i := slices.IndexFunc(problems, func(p Problem) bool { return strings.Contains(p.String(), test.what) })
		if i < 0 {
			t.Fatalf("no %q in %v", test.what, problems)
		}
		if p := test.move(problems[i]); p.Line != test.line || p.Column != test.at {
			t.Errorf("%s is shown at %d:%d, want %d:%d", test.what, p.Line, p.Column, test.line, test.at)
		}
	}
}

func TestExamplesAreShownWhole(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.[yt]*ml")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, path := range paths {
		src, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if cfg, _ := Parse(src); cfg == nil {
			continue // another program's, such as compose.yaml
		}
		shown++
		m, err := src.Masked()
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if covered := len(src.Bytes) - len(m.Text); covered > len(src.Bytes)/20 {
			t.Errorf("%s: %d of %d bytes are covered", path, covered, len(src.Bytes))
		}
		if got := m.Restore(m.Text + "# end\n"); !bytes.Equal(got.Bytes, append(slices.Clone(src.Bytes), "# end\n"...)) {
			t.Errorf("%s does not come back", path)
		}
	}
	if shown < 3 {
		t.Errorf("only %d of %v are configurations", shown, paths)
	}
}

// TestMaskedKeepsEveryFile writes files the way people do, with secrets wherever
// they may stand, and breaks some of them.
func TestMaskedKeepsEveryFile(t *testing.T) {
	for _, format := range []Format{YAML, TOML} {
		t.Run(format.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				secret := func(what string) string {
					return rapid.StringMatching(`[a-zA-Z0-9"'\\/+ =]{6,9}QZX[a-z0-9]{5,24}`).Draw(t, what)
				}
				candidate := Map{
					{"name", "n"}, {"base_url", "https://user:" + "QZXpass" + rapid.StringMatching(`[a-z0-9]{1,9}`).Draw(t, "pass") + "@h/v1?key=QZXquery1"}, {"model", "m"},
					{"api_key", secret("key")}, {"headers", Map{{"x-a", secret("header")}, {"Authorization", "Bearer " + secret("token")}}},
				}
				file := Map{
					{"server", Map{{"admin_token", secret("token")}, {"port", 1}}},
					{"virtual_models", Map{{"auto", []any{candidate, Map{{"any_of", []any{candidate}}}}}}},
					{"clients", []any{Map{{"name", "c"}, {"key", secret("client")}}}},
				}
				s := &scribe{t: t, doc: newDocument(format, nil)}
				text := string(s.write(file).Bytes)
				if rapid.IntRange(0, 3).Draw(t, "broken") == 0 {
					at := rapid.IntRange(0, len(text)).Draw(t, "at")
					junk := rapid.SampledFrom([]string{"[", "}", ": :", "\n  - x y", "\"", "\n\tk: v"}).Draw(t, "junk")
					if end := strings.IndexByte(text[at:], '\n'); strings.HasPrefix(junk, "\n") && end >= 0 {
						at += end // a secret cut in two lines is nobody's secret any more
					}
					text = text[:at] + junk + text[at:]
				}
				m, err := (Source{Path: "x." + format.String(), Format: format, Bytes: []byte(text)}).Masked()
				if err != nil {
					if cfg, _ := Parse(Source{Path: "x." + format.String(), Format: format, Bytes: []byte(text)}); cfg != nil {
						t.Fatalf("%v in\n%s", err, text)
					}
					return
				}
				for i, line := range strings.Split(m.Text, "\n") {
					if strings.Contains(line, "QZX") {
						t.Fatalf("line %d shows a secret: %s\nof\n%s", i+1, line, text)
					}
				}
				if back := m.Restore(m.Text); string(back.Bytes) != text || back.Problems != nil {
					t.Fatalf("%q comes back as %q %v", text, back.Bytes, back.Problems)
				}
				if back, _ := m.put(m.Text); unixLines(string(back)) != unixLines(text) {
					t.Fatalf("%q is put back as %q", text, back)
				}
			})
		})
	}
}

func FuzzMasked(f *testing.F) {
	for _, test := range maskCases {
		f.Add(test.file, test.format == "toml")
	}
	f.Add(edited, false)
	if text, err := os.ReadFile("../../examples/config.yaml"); err == nil {
		f.Add(string(text), false)
	}
	f.Fuzz(func(t *testing.T, text string, toml bool) {
		src := Source{Path: "x.yaml", Bytes: []byte(text)}
		if toml {
			src = Source{Path: "x.toml", Format: TOML, Bytes: []byte(text)}
		}
		m, err := src.Masked()
		if err != nil {
			return
		}
		if r := m.Restore(m.Text); !bytes.Equal(r.Bytes, src.Bytes) || r.Problems != nil {
			t.Errorf("%q comes back as %q %v", text, r.Bytes, r.Problems)
		}
		_, problems := Parse(src)
		for _, p := range problems {
			m.Shown(p)
		}
	})
}

// Of a file that nobody can read more is masked than secrets, and whoever mends it need
// not write that again. A secret before the mended place stays where it was all the same.
func TestABrokenFileIsMended(t *testing.T) {
	const good = "server:\n  stall_timeout: 3          # our prompts are short: three seconds of silence is a stall\nvirtual_models:\n  v:\n    - {name: a, base_url: https://a, model: m, api_key: " + keyA + "}\n    - {name: b, base_url: https://b, model: m, auth_style: none, weight: 2}\n"
	m := masked(t, YAML, strings.Replace(good, "weight: 2", "weight: [2", 1))
	if strings.Contains(m.Text, "timeout: 3 ") {
		t.Fatalf("nothing but secrets is masked:\n%s", m.Text)
	}
	mended := strings.Replace(m.Text, "weight: [2", "weight: 2", 1)
	if r := m.Restore(mended); len(r.Problems) != 0 || string(r.Bytes) != good {
		t.Errorf("%v\n%s", r.Problems, r.Bytes)
	}
	mask := m.Masks()[len(m.Masks())-1]
	for _, moved := range []string{
		strings.Replace(mended, "name: a", "name: "+mask, 1),
		strings.Replace(mended, "name: b", "name: "+mask, 1),
		strings.Replace(strings.Replace(mended, "api_key: "+mask, "api_key: &k "+mask, 1), "name: b", "name: *k", 1),
	} {
		if r := m.Restore(moved); len(r.Problems) == 0 {
			t.Errorf("accepted:\n%s", moved)
		}
	}
}
