package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// page is the manual page as a release has it.
func page(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := manual(&out, model(t), build{Version: "v1.2.3", Date: "2026-01-02T03:04:05Z"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The manual page has nothing that a formatter complains about, and shows every command
// and flag, every exit code, file and variable.
func TestTheManualPage(t *testing.T) {
	if _, err := exec.LookPath("mandoc"); err != nil {
		t.Fatal("mandoc is missing, which reads the manual page: install it (apt-get install mandoc)")
	}
	lint := exec.Command("mandoc", "-T", "lint", "-W", "all")
	lint.Stdin = bytes.NewReader(page(t))
	if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
	show := exec.Command("mandoc", "-T", "ascii", "-O", "width=1000")
	show.Stdin = bytes.NewReader(page(t))
	out, err := show.Output()
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(".\b").ReplaceAllString(string(out), "") // bold and underlined
	lines := strings.Join(strings.Fields(text), " ")
	has := func(part string) {
		t.Helper()
		if !strings.Contains(lines, strings.Join(strings.Fields(part), " ")) {
			t.Errorf("it does not show %q", part)
		}
	}
	has("understudy v1.2.3")
	has("2026-01-02")
	walk(model(t), func(n *kong.Node) {
		if n.Parent == nil || len(n.Children) > 0 {
			return
		}
		has(synopsis(n))
		has(n.Help)
		for _, f := range n.Flags {
			has(flagWords(f))
			has(f.Help)
		}
		for _, p := range n.Positional {
			has(p.Help)
		}
	})
	for _, list := range [][][2]string{exitCodes, usedFiles, variables, signalWords, manExamples} {
		for _, e := range list {
			has(e[0])
			has(e[1])
		}
	}
}

// What is printed is the page.
func TestTheManualPageIsPrinted(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"man"}, streams{strings.NewReader(""), &out, &out}); code != exitOK || !strings.HasPrefix(out.String(), ".TH UNDERSTUDY 1 ") {
		t.Errorf("%d %s", code, out.String())
	}
}

func TestTextMeansItself(t *testing.T) {
	for in, want := range map[string]string{
		"--no-repl":   `\-\-no\-repl`,
		`a\b`:         `a\eb`,
		".TH x":       `\&.TH x`,
		"it's\n'quot": "it\\(aqs\n\\(aqquot",
	} {
		if got := escapeRoff(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What the program reads from its environment is told.
func TestVariablesAreTold(t *testing.T) {
	told := ""
	for _, v := range variables {
		told += v[0] + " "
	}
	told += "LocalAppData " // Windows' own, by which files are told
	var files []string
	for _, pattern := range []string{"*.go", "../../internal/*/*.go"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	found := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), "//go:build profile") {
			continue // what is shipped has nothing of it
		}
		for _, m := range regexp.MustCompile(`(?:\b(?:Getenv|LookupEnv)\(|env:)"(\w+)"`).FindAllSubmatch(text, -1) {
			if found++; !regexp.MustCompile(`\b` + string(m[1]) + `\b`).MatchString(told) {
				t.Errorf("%s reads %s, which neither the manual page nor docs/cli.md tells of: see variables", path, m[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d variables", found)
	}
}
