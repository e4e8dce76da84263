package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is the grammar, as a shell's script sees it.
func model(t *testing.T) *kong.Node {
	t.Helper()
	var out bytes.Buffer
	p, err := newParser(&grammar{}, streams{strings.NewReader(""), &out, &out}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return p.Model.Node
}

const completeConfig = `virtual_models:
  auto-strong: [{base_url: "http://127.0.0.1:1", model: m, auth_style: none}, {base_url: "http://127.0.0.1:2", model: m, auth_style: none}]
  "llama3:8b": [{base_url: "http://127.0.0.1:1", model: m, auth_style: none}]
  "big model": [{base_url: "http://127.0.0.1:1", model: m, auth_style: none}]
`

func TestWhatMayBeTyped(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"understudy.yaml": completeConfig, "other.yaml": strings.Replace(completeConfig, "auto-strong", "elsewhere", 1), "broken.yaml": "virtual_models: {a: []}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app := model(t)
	for _, c := range []struct {
		line string // words; the last one is being typed
		want string // what is offered, and <files> where files are
	}{
		{"r", "route rules"},
		{"rules ", "test replay"},
		{"rules t", "test"},
		{"completion ", "bash zsh fish powershell"},
		{"init --for ", "codex claude-code open-webui pool"},
		{"init ", "<files yaml yml toml>"},
		{"--log-f", "--log-format"},
		{"--log-format=", "--log-format=text --log-format=json"},
		{"serve --log-format ", "text json"},
		{"-c ", "<files yaml yml toml>"},
		{"route -c", ""},
		{"route --session-id ", ""},
		{"route --session-id --model --m", "--model"},
		{"route --model ", "auto-strong llama3:8b big model"},
		{"route --model=l", "--model=llama3:8b"},
		{"route -c other.yaml --model ", "elsewhere llama3:8b big model"},
		{"route --config=other.yaml --model e", "elsewhere"},
		{"route -cother.yaml --model e", "elsewhere"},
		{"route -c broken.yaml --model ", ""},
		{"route -c nowhere.yaml --model ", ""},
		{"route --model a --model", ""},
		{"drill --model a --model", "--model"},
		{"drill --model ", "auto-strong llama3:8b big model *"},
		{"drill --no-", "--no-fast"},
		{"drill --only S0", "S01 S02 S03 S04 S05 S06 S07 S08 S09"},
		{"rules test --class ", "network bad_stream stalled_stream timeout"},
		{"rules replay ", "<files yaml yml toml>"},
		{"import ", "<files>"},
		{"import a.json ", "<files>"},
		{"init understudy.yaml ", ""},
		{"route -- ", ""},
		{"frobnicate ", ""},
		{"explain --admin http://127.0.0.1:1 ", ""},
	} {
		words := strings.Split(c.line, " ")
		o := complete(app, words[len(words)-1], words[:len(words)-1])
		var got []string
		if o.files {
			got = append(got, "<"+strings.Join(append([]string{"files"}, o.suffixes...), " ")+">")
		}
		for _, s := range o.list {
			got = append(got, s.word)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s\n%s", c.line, diff)
		}
	}
}

// Whatever has been typed, an offer is made or is not: what is offered begins with what
// is being typed.
func TestAnythingMayBeTyped(t *testing.T) {
	t.Chdir(t.TempDir())
	ask := sources["requests"]
	t.Cleanup(func() { sources["requests"] = ask })
	sources["requests"] = sources["none"] // nobody is to be called by what chance types
	app := model(t)
	var known []string
	walk(app, func(n *kong.Node) {
		known = append(known, n.Name)
		for _, f := range n.Flags {
			known = append(known, "--"+f.Name, "--"+f.Name+"=", "--no-"+f.Name, "-"+string(f.Short))
		}
	})
	word := rapid.OneOf(rapid.SampledFrom(known), rapid.SampledFrom([]string{"", "-", "--", "-=", "--=", "-c=x", "-\x00", "=", "\xff"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(word, 0, 5).Draw(t, "before")
		current := word.Draw(t, "current")
		for _, s := range complete(app, current, before).list {
			if !strings.HasPrefix(s.word, current) || strings.ContainsAny(s.word+s.about, "\t\n") {
				t.Fatalf("%q: %q %q", current, s.word, s.about)
			}
		}
	})
}

// Every command and every flag is offered where it may stand, and every hint in the
// grammar is one that completion knows.
func TestEverythingIsOffered(t *testing.T) {
	app := model(t)
	walk(app, func(n *kong.Node) {
		var before []string
		for at := n; at.Parent != nil; at = at.Parent {
			before = slices.Insert(before, 0, at.Name)
		}
		var words []string
		for _, current := range []string{"", "-"} {
			for _, s := range complete(app, current, before).list {
				words = append(words, s.word)
				if s.about == "" && (current == "-" || len(n.Children) > 0) {
					t.Errorf("%v: nothing is said of %s", before, s.word)
				}
			}
		}
		for _, f := range n.Flags {
			if !slices.Contains(words, "--"+f.Name) {
				t.Errorf("%v: --%s is not offered", before, f.Name)
			}
			checkHint(t, f.Value, f.PlaceHolder)
		}
		for _, p := range n.Positional {
			checkHint(t, p, "")
		}
		for _, c := range n.Children {
			if !c.Hidden && !slices.Contains(words, c.Name) {
				t.Errorf("%v: %s is not offered", before, c.Name)
			}
		}
	})
}

func checkHint(t *testing.T, v *kong.Value, placeholder string) {
	hint := v.Tag.Get("complete")
	_, known := sources[hint]
	if hint != "" && !known && hint != "files" && hint != "configurations" {
		t.Errorf("%s: no completion is called %s", v.Name, hint)
	}
	if placeholder == "FILE" && hint == "" {
		t.Errorf(`%s takes a file: say complete:"files" or complete:"configurations"`, v.Name)
	}
}

// What the scripts read is what is written.
func TestTheAnswerToAScript(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{completeWord, "=j", "--log-format"}, streams{strings.NewReader(""), &out, &out}); code != exitOK || out.String() != "none\njson\t\n" {
		t.Errorf("%d %q", code, out.String())
	}
	out.Reset()
	if code := run([]string{completeWord, "=", "check", "-c"}, streams{strings.NewReader(""), &out, &out}); code != exitOK || out.String() != "files yaml yml toml\n" {
		t.Errorf("%d %q", code, out.String())
	}
	out.Reset()
	if code := run([]string{completeWord}, streams{strings.NewReader(""), &out, &out}); code != exitOK || !strings.Contains(out.String(), "\nserve\t") {
		t.Errorf("%d %q", code, out.String())
	}
}

// Where there is no PowerShell to run it in its script is read. It must ask as the
// program answers, and close what it opens.
func TestThePowerShellScript(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"completion", "powershell"}, streams{strings.NewReader(""), &out, &out}); code != exitOK {
		t.Fatal(code)
	}
	script := out.String()
	for _, part := range []string{
		"Register-ArgumentCompleter -Native -CommandName @('understudy', 'understudy.exe') -ScriptBlock {\n    param($wordToComplete, $commandAst, $cursorPosition)\n",
		"(& $program '" + completeWord + "' \"=$wordToComplete\" @before 2>$null)",
		"$value, $about = $line -split \"`t\", 2\n",
		"[System.Management.Automation.CompletionResult]::new(",
	} {
		if !strings.Contains(script, part) {
			t.Errorf("it lacks %s", part)
		}
	}
	for _, pair := range []string{"{}", "()", "[]"} {
		if open, end := strings.Count(script, pair[:1]), strings.Count(script, pair[1:]); open != end {
			t.Errorf("%d %s and %d %s", open, pair[:1], end, pair[1:])
		}
	}
}
