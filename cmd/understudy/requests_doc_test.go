package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/console"
	"understudy/internal/control"
)

const requestsDoc = "../../docs/requests.md"

// A fence is a block of code in a document.
type fence struct{ language, text string }

func fences(text string) (list []fence) {
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		list = append(list, fence{m[1], m[2]})
	}
	return list
}

// vague takes out of a text what is another every time: times, days and sizes.
func vague(text string) string {
	for _, r := range []struct{ what, by string }{
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "DAY"},
		{`less than 1 ms|\d+(\.\d+)? m?s\b`, "TIME"},
		{`\d+ bytes`, "SIZE"},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.by)
	}
	return text
}

// The examples of docs/requests.md are what happens: its configuration, served in
// front of an upstream that fails and one that is well, is asked twice, and then
// every command prints what stands behind it, but for times and sizes.
func TestTheExamplesOfTheRequestsPage(t *testing.T) {
	doc, err := filepath.Abs(requestsDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	failing, well := troubled()
	t.Cleanup(failing.Close)
	t.Cleanup(well.Close)
	dir := t.TempDir()
	names := []string{"understudy.yaml", "changed.yaml"}
	var examples []fence
	for _, f := range fences(string(text)) {
		switch f.language {
		case "yaml":
			if len(names) == 0 {
				continue
			}
			file := strings.NewReplacer("https://api.anthropic.com", failing.URL(), "https://api.openai.com", well.URL(), "server: {}", fmt.Sprintf("server: {state_dir: %q}", dir)).Replace(f.text)
			if err := os.WriteFile(filepath.Join(dir, names[0]), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			names = names[1:]
		case "console":
			examples = append(examples, f)
		}
	}
	if len(names) > 0 || len(examples) < 5 {
		t.Fatalf("%d examples, and no %v", len(examples), names)
	}
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-a-key-of-the-test")
	t.Setenv("OPENAI_API_KEY", "sk-a-key-of-the-test-too")
	t.Chdir(dir)
	p := launch(t, "serve", "--no-repl", "-c", "understudy.yaml", "--port", "0", "--admin", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ids []string
	for range 2 {
		id, status, err := ask(ctx, p.proxy, "auto-strong")
		if err != nil || status != 200 {
			t.Fatal(status, err)
		}
		ids = append(ids, id)
	}
	for {
		var v control.View
		if err := (console.Admin{Address: p.admin}).Get(ctx, "/api/state", &v); err != nil {
			t.Fatal(err)
		}
		if v.Archive.Entries == int64(len(ids)) {
			break
		}
	}

	// The page's ids stand for ours, in the order in which it names them.
	var told []string
	for _, id := range regexp.MustCompile(`req_[0-9a-f]{24}`).FindAllString(string(text), -1) {
		if len(told) == 0 || told[len(told)-1] != id && told[0] != id {
			told = append(told, id)
		}
	}
	if len(told) != len(ids) {
		t.Fatalf("the page names %v", told)
	}
	swap := strings.NewReplacer(told[0], ids[0], told[1], ids[1])
	for _, e := range examples {
		line, want, _ := strings.Cut(swap.Replace(e.text), "\n")
		args, err := words(strings.TrimPrefix(line, "$ understudy "))
		if err != nil || len(args) == 0 || !strings.HasPrefix(line, "$ understudy ") {
			t.Errorf("%q is no example: %v", line, err)
			continue
		}
		if args[0] != "rules" || args[1] != "test" || strings.Contains(line, "--request") {
			args = append(args, "--admin", p.admin)
		}
		var out, errs bytes.Buffer
		code := run(args, streams{strings.NewReader(""), &out, &errs})
		if code == exitOK && vague(out.String()) == vague(want) {
			continue
		}
		if !*update {
			t.Errorf("%s\nprints (%d, %s)\n%s\nand not\n%s", line, code, errs.String(), out.String(), want)
			continue
		}
		line, _, _ = strings.Cut(e.text, "\n")
		printed := strings.NewReplacer(ids[0], told[0], ids[1], told[1]).Replace(out.String())
		text = bytes.Replace(text, []byte("```console\n"+e.text+"```"), []byte("```console\n"+line+"\n"+printed+"```"), 1)
		if err := os.WriteFile(doc, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// words are those of a command line, as a shell has them as long as there are only
// blanks and single quotes.
func words(line string) (list []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word := ""
		for line != "" && line[0] != ' ' {
			if line[0] != '\'' {
				word, line = word+line[:1], line[1:]
				continue
			}
			quoted, rest, ok := strings.Cut(line[1:], "'")
			if !ok {
				return nil, fmt.Errorf("a quote is not closed in %s", line)
			}
			word, line = word+quoted, rest
		}
		list = append(list, word)
	}
	return list, nil
}
