package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/config"
)

const movingDoc = "../../docs/moving.md"

// The three examples of docs/moving.md are what happens: each source, given to the
// command line below it, makes that summary and that file.
func TestTheExamplesOfTheMovingPage(t *testing.T) {
	doc, err := filepath.Abs(movingDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AZURE_EU_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "AZURE_API_BASE", "OPENAI_API_BASE", "ANTHROPIC_API_BASE"} {
		t.Setenv(name, "")
	}
	list := fences(string(text))
	runs := 0
	for i, f := range list {
		if f.language != "console" || i == 0 || i+1 == len(list) {
			continue
		}
		runs++
		line, want, _ := strings.Cut(f.text, "\n")
		args, err := words(strings.TrimPrefix(line, "$ understudy "))
		if err != nil || len(args) != 4 || args[0] != "import" {
			t.Fatalf("%q is no example: %v", line, err)
		}
		t.Chdir(t.TempDir())
		if err := os.WriteFile(args[1], []byte(list[i-1].text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := run(args, streams{strings.NewReader(""), &out, &errs}); code != exitOK || out.Len() > 0 {
			t.Fatalf("%s: %d %s %s", line, code, out.String(), errs.String())
		}
		file, err := os.ReadFile(args[3])
		if err != nil {
			t.Fatal(err)
		}
		if cfg, problems := config.Parse(config.Source{Path: args[3], Bytes: file, Mode: 0o600}); cfg == nil {
			t.Errorf("%s: %v", line, problems)
		}
		result := list[i+1].text
		if errs.String() == want && string(file) == result {
			continue
		}
		if !*update {
			t.Errorf("%s says\n%s\nand writes\n%s", line, errs.String(), file)
			continue
		}
		text = bytes.Replace(text, []byte("```console\n"+f.text+"```\n\n```yaml\n"+result+"```"), []byte("```console\n"+line+"\n"+errs.String()+"```\n\n```yaml\n"+string(file)+"```"), 1)
		if err := os.WriteFile(doc, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 3 {
		t.Errorf("%d examples", runs)
	}
}

// settingsIn are the code spans of a cell that are settings of the whole file.
func settingsIn(cell string) (list []string) {
	for _, m := range regexp.MustCompile("`((?:server|pool|rules|clients|request_log): [^`]+)`").FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// Each setting on the page is one: what stands under "here" is what holds without
// it, and what stands under "the old way back" changes something.
func TestTheSettingsOfTheMovingPage(t *testing.T) {
	text, err := os.ReadFile(movingDoc)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MY_CLIENT_KEY", "a-key-of-the-test")
	parse := func(setting string) *config.Config {
		t.Helper()
		file := "virtual_models:\n  m:\n  - {base_url: 'https://h.example', auth_style: none, model: m}\nupstream:\n- {id: u, base_url: 'https://u.example'}\n"
		if !strings.HasPrefix(setting, "pool:") {
			file += "pool: {}\n"
		}
		cfg, problems := config.Parse(config.Source{Path: "x.yaml", Bytes: []byte(file + setting + "\n"), Mode: 0o600})
		if cfg == nil || len(problems) > 0 {
			t.Fatalf("%s: %v", setting, problems)
		}
		cfg.Source = config.Source{}
		return cfg
	}
	plain := parse("")
	here, back := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
			continue
		}
		for _, s := range settingsIn(cells[1]) {
			here++
			if !reflect.DeepEqual(plain, parse(s)) {
				t.Errorf("%s is not what holds without it", s)
			}
		}
		for _, s := range settingsIn(cells[2]) {
			if back++; s != "pool: {}" && reflect.DeepEqual(plain, parse(s)) {
				t.Errorf("%s changes nothing", s)
			}
		}
	}
	if here < 15 || back < 25 {
		t.Errorf("%d settings that hold, %d that bring the old way back", here, back)
	}
	// What stands at a candidate.
	for _, m := range regexp.MustCompile("`((?:join|proxy|max_parallel|headers): [^`]+)` at the candidate").FindAllStringSubmatch(string(text), -1) {
		file := fmt.Sprintf("virtual_models:\n  m:\n  - base_url: https://h.example\n    auth_style: none\n    model: m\n    %s\n", m[1])
		if cfg, problems := config.Parse(config.Source{Bytes: []byte(file), Mode: 0o600}); cfg == nil || len(problems) > 0 {
			t.Errorf("%s: %v", m[1], problems)
		}
	}
}
