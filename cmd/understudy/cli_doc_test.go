package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

const cliDoc = "../../docs/cli.md"

// flagTable lists what a command takes.
func flagTable(n *kong.Node) string {
	var b strings.Builder
	b.WriteString("| | default | meaning |\n| --- | --- | --- |\n")
	row := func(name, def, help string) {
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, def, strings.ReplaceAll(help, "|", "\\|"))
	}
	for _, p := range n.Positional {
		row(p.Summary(), p.Default, p.Help)
	}
	for _, f := range n.Flags {
		row(flagWords(f), flagDefault(f), f.Help)
	}
	if b.Len() < 60 && len(n.Positional)+len(n.Flags) == 0 {
		return ""
	}
	return b.String()
}

// The page of the command line names every command, and what each takes is what the
// grammar says. With -update the tables are written.
func TestTheCommandsPage(t *testing.T) {
	b, err := os.ReadFile(cliDoc)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, list := range []struct {
		name, head string
		rows       [][2]string
	}{{"exit codes", "exit code", exitCodes}, {"files", "file", usedFiles}, {"variables", "variable", variables}, {"signals", "signal", signalWords}} {
		begin := "<!-- " + list.name + " -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, end := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !end {
			t.Errorf("docs/cli.md has no table %q", strings.TrimSpace(begin))
			continue
		}
		table := "| " + list.head + " | meaning |\n| --- | --- |\n"
		for _, r := range list.rows {
			table += "| " + r[0] + " | " + strings.ReplaceAll(r[1], "\\", "\\\\") + " |\n"
		}
		text = before + begin + table + "<!-- end -->\n" + after
	}
	walk(model(t), func(n *kong.Node) {
		if n.Parent == nil || len(n.Children) > 0 {
			return
		}
		name := commandName(n)
		if !strings.Contains(text, "\n## "+name+"\n") {
			t.Errorf("docs/cli.md has no section %q: say what it does, with an example and its exit codes", name)
			return
		}
		_, section, _ := strings.Cut(text, "\n## "+name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "\nunderstudy "+name) && !strings.Contains(section, "$ understudy "+name) && !strings.Contains(section, "<(understudy "+name) {
			t.Errorf("docs/cli.md has no example of %s", name)
		}
		begin := "<!-- flags of " + name + " -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, end := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !end {
			t.Errorf("docs/cli.md has no table %q", strings.TrimSpace(begin))
			return
		}
		text = before + begin + flagTable(n) + "<!-- end -->\n" + after
	})
	if *update {
		if err := os.WriteFile(cliDoc, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(b), text); diff != "" {
		t.Errorf("run go test -update (-file +grammar):\n%s", diff)
	}
}

// The examples of that page are commands that there are, and those with an answer print
// it.
func TestTheExamplesOfTheCommandsPage(t *testing.T) {
	doc, err := filepath.Abs(cliDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("FIRST_KEY", "a-key-of-the-test")
	parsed := 0
	for _, f := range fences(string(text)) {
		switch f.language {
		case "yaml":
			if err := os.WriteFile("understudy.yaml", []byte(f.text+"server: {admin: \"off\"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		case "sh":
			for _, m := range regexp.MustCompile(`(?m)(?:^|<\()understudy ([^|>)#\n]*)`).FindAllStringSubmatch(f.text, -1) {
				args, err := words(m[1])
				if err != nil {
					t.Fatal(err)
				}
				p, err := newParser(&grammar{}, streams{strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}}, func(int) {})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Parse(args); err != nil {
					t.Errorf("understudy %s: %v", m[1], err)
				}
				parsed++
			}
		case "console":
			line, want, _ := strings.Cut(f.text, "\n")
			args, err := words(strings.TrimPrefix(line, "$ understudy "))
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if code := run(args, streams{strings.NewReader(""), &out, &errs}); code != exitOK {
				t.Errorf("%s: %d %s", line, code, errs.String())
			}
			parsed++
			if out.String() == want {
				continue
			}
			if !*update {
				t.Errorf("%s\nprints\n%s\nand not\n%s", line, out.String(), want)
				continue
			}
			now, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			now = bytes.Replace(now, []byte("```console\n"+f.text+"```"), []byte("```console\n"+line+"\n"+out.String()+"```"), 1)
			if err := os.WriteFile(doc, now, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if parsed < 15 {
		t.Errorf("%d examples", parsed)
	}
}
