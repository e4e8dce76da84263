package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/config"
)

// What init prints for a client are the settings of docs/clients.md and of the template
// itself, and the template's keys are those it says to export.
func TestSettingsOfClients(t *testing.T) {
	doc, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(settings) != len(config.Templates) {
		t.Errorf("%d settings for %d templates", len(settings), len(config.Templates))
	}
	for _, client := range config.Templates {
		s := settings[client]
		if client != "pool" && !strings.Contains(string(doc), "\n"+s.text+"\n") {
			t.Errorf("docs/clients.md does not have these settings:\n%s", s.text)
		}
		for _, format := range []config.Format{config.YAML, config.TOML} {
			t.Run(fmt.Sprintf("%s, %s", client, format), func(t *testing.T) {
				template := string(config.TemplateFor(client, format))
				for line := range strings.Lines(s.text) {
					if line = strings.TrimSpace(line); line != "" && !regexp.MustCompile(`(?m)^#.* `+regexp.QuoteMeta(line)+`(,.*)?$`).MatchString(template) {
						t.Errorf("the template does not say %s", line)
					}
				}
				var keys []string
				for _, m := range regexp.MustCompile(`(?m)^[^#\n]*key_env"?\s*[:=]\s*"?(\w+)`).FindAllStringSubmatch(template, -1) {
					if !slices.Contains(keys, m[1]) {
						keys = append(keys, m[1])
					}
				}
				if !slices.Equal(keys, s.keys) {
					t.Errorf("it takes %v and says %v", keys, s.keys)
				}
				for _, name := range s.keys {
					if !strings.Contains(template, name+"=...") {
						t.Errorf("it does not say that %s is to be set", name)
					}
				}
			})
		}
	}
}

// A new file is its owner's alone, and beside it stands the schema; what is there stays.
func TestInitOverwritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	call := func(args ...string) (int, string) {
		var out bytes.Buffer
		return run(append([]string{"init"}, args...), streams{strings.NewReader(""), &out, &out}), out.String()
	}
	if code, out := call("--for", "codex"); code != exitOK || !strings.Contains(out, "wrote "+schemaName) {
		t.Fatal(code, out)
	}
	if info, err := os.Stat("understudy.yaml"); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info.Mode(), err)
	}
	schema, err := os.ReadFile(schemaName)
	if err != nil || !bytes.Equal(schema, config.JSONSchema()) {
		t.Error(err)
	}
	if code, out := call("--for", "pool"); code != exitFailed || !strings.Contains(out, "stays as it is") {
		t.Error(code, out)
	}
	if code, out := call("--for", "pool", "second.toml"); code != exitOK || strings.Contains(out, schemaName) {
		t.Error(code, out)
	}
	if err := os.WriteFile(schemaName, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := call("third.yaml"); code != exitOK || !strings.Contains(out, schemaName+" is there already and stays as it is") {
		t.Error(code, out)
	}
	if kept, err := os.ReadFile(schemaName); err != nil || string(kept) != "{}" {
		t.Errorf("%s %v", kept, err)
	}
	if err := os.Mkdir("bare", 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out := call("--no-schema", filepath.Join("bare", "understudy.yaml")); code != exitOK {
		t.Error(code, out)
	}
	if list, err := os.ReadDir("bare"); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}
