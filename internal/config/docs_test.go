package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	exampleYAML = "../../examples/config.yaml"
	exampleTOML = "../../examples/pool.toml"
	reference   = "../../docs/configuration.md"
)

// noErrors parses a file and fails on any problem but missing secrets.
func noErrors(t *testing.T, src Source) *Config {
	t.Helper()
	src.Mode = 0o600
	cfg, problems := Parse(src)
	for _, p := range problems {
		if p.Severity == Error || !strings.Contains(p.What, "is not set") && !strings.Contains(p.What, "cannot be read") {
			t.Errorf("%s: %s", p.Severity, p)
		}
	}
	if cfg == nil {
		t.FailNow()
	}
	return cfg
}

// TestExamplesSayTheDefaults: examples/config.yaml shows the defaults, and its
// rules are the built-in ones.
func TestExamplesSayTheDefaults(t *testing.T) {
	cfg := noErrors(t, read(t, exampleYAML))
	plain := parsed(t, YAML, "virtual_models: {a: [{base_url: https://h, model: m, auth_style: none}]}")
	if diff := cmp.Diff(plain.Server, cfg.Server, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("server (-default +example):\n%s", diff)
	}
	rules := BuiltInRules()
	for i := range rules {
		rules[i].Name = strings.TrimPrefix(rules[i].Name, "built-in ")
	}
	if diff := cmp.Diff(rules, cfg.Rules, sameConfig); diff != "" {
		t.Errorf("rules (-built-in +example):\n%s", diff)
	}
	noErrors(t, read(t, exampleTOML))
	noErrors(t, read(t, "../../examples/resilient.yaml"))
}

// TestExampleSettingsThatAreOff: taking the "#" from every setting that is off
// gives a configuration without mistakes, in which every key stands.
func TestExampleSettingsThatAreOff(t *testing.T) {
	src := read(t, exampleYAML)
	src.Bytes = []byte(turnedOn(string(src.Bytes)))
	if cfg, problems := Parse(src); cfg == nil {
		t.Fatal(problems)
	}
	doc := parseDocument(YAML, src.Bytes)
	seen := map[string]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		for _, p := range n.pairs {
			seen[p.key] = true
			walk(p.value)
		}
		for _, item := range n.items {
			walk(item)
		}
	}
	walk(doc.root)
	alternatives := map[string]string{"api_key": "api_key_env", "url_env": "url", "url_file": "url", "password_file": "password_env"} // of which one may stand
	for _, s := range Schema() {
		for _, k := range s.Keys {
			if !seen[k.Name] && !seen[alternatives[k.Name]] {
				t.Errorf("%s does not show %s of %s", exampleYAML, k.Name, s.Path)
			}
		}
	}
}

// settingOff begins a setting that is off.
var settingOff = regexp.MustCompile(`^#(- )?[a-z_]+:`)

// turnedOn takes the "#" from settings that are off: those directly before a
// key, with the lines below that are indented deeper.
func turnedOn(text string) string {
	var out strings.Builder
	block := -1 // column of the "#" of the setting being turned on
	for line := range strings.Lines(text) {
		column := len(line) - len(strings.TrimLeft(line, " "))
		rest := line[column:]
		switch {
		case settingOff.MatchString(rest):
			block = column
			line = line[:column] + rest[1:]
		case block == column && strings.HasPrefix(rest, "#  "):
			line = line[:column] + rest[1:]
		default:
			block = -1
		}
		out.WriteString(line)
	}
	return out.String()
}

func TestTemplates(t *testing.T) {
	for _, format := range []Format{YAML, TOML} {
		src := Source{Path: "understudy." + format.String(), Format: format, Bytes: Template(format)}
		cfg := noErrors(t, src)
		if (format == TOML) != (cfg.Pool != nil) || (format == YAML) != (len(cfg.Models) == 1) {
			t.Errorf("%s: pool %v, %d virtual models", format, cfg.Pool != nil, len(cfg.Models))
		}
		Template(format)[0] = 'x'
		if Template(format)[0] == 'x' {
			t.Error("the template is shared")
		}
	}
}

// TestTemplatesForClients: both spellings of a template say the same.
func TestTemplatesForClients(t *testing.T) {
	for _, purpose := range Templates {
		var both [2]*Config
		for _, format := range []Format{YAML, TOML} {
			cfg := noErrors(t, Source{Path: purpose + "." + format.String(), Format: format, Bytes: TemplateFor(purpose, format)})
			first, _, _ := strings.Cut(string(TemplateFor(purpose, format)), "\n")
			if want := map[Format]string{YAML: "# yaml-language-server: $schema=understudy.schema.json", TOML: "#:schema ./understudy.schema.json"}[format]; first != want {
				t.Errorf("%s, %s: begins with %q", purpose, format, first)
			}
			both[format] = cfg
		}
		if diff := cmp.Diff(both[YAML], both[TOML], sameConfig, cmpopts.IgnoreFields(Config{}, "Source")); diff != "" {
			t.Errorf("%s (-yaml +toml):\n%s", purpose, diff)
		}
	}
	if string(TemplateFor("", YAML)) != string(Template(YAML)) {
		t.Error("no purpose, no template")
	}
}

// TestReference: the tables of docs/configuration.md are those of the schema.
// With -update they are written.
func TestReference(t *testing.T) {
	b, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, s := range Schema() {
		begin := "<!-- keys of " + strings.Trim(s.Path+" ", " ") + " -->\n"
		if s.Path == "" {
			begin = "<!-- keys of the file -->\n"
		}
		before, rest, ok := strings.Cut(text, begin)
		_, after, end := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !end {
			t.Errorf("no table %q", strings.TrimSpace(begin))
			continue
		}
		text = before + begin + keyTable(s) + "<!-- end -->\n" + after
	}
	if *update {
		if err := os.WriteFile(reference, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(b), text); diff != "" {
		t.Errorf("run go test -update (-file +schema):\n%s", diff)
	}
}

// TestReferenceExamples: the configurations in docs/configuration.md work.
func TestReferenceExamples(t *testing.T) {
	b, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(yaml|toml)\n(.*?)```").FindAllSubmatch(b, -1)
	if len(blocks) < 3 {
		t.Errorf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		format, _ := FormatOf("." + string(block[1]))
		noErrors(t, Source{Path: reference, Format: format, Bytes: block[2]})
	}
}

func keyTable(s Section) string {
	var b strings.Builder
	b.WriteString("| key | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range s.Keys {
		name := "`" + k.Name + "`"
		if k.Required {
			name += " (required)"
		}
		def := k.ShownDefault()
		if def != "" && k.DefaultWords == "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, k.Type, def, k.Range, k.Doc)
	}
	return b.String()
}

func TestSchemaIsComplete(t *testing.T) {
	for _, s := range Schema() {
		if s.Doc == "" {
			t.Errorf("%q has no description", s.Path)
		}
		for _, k := range s.Keys {
			if k.Name == "" || k.Type == "" || !strings.HasSuffix(k.Doc, ".") || k.form == nil || len(k.form()) == 0 {
				t.Errorf("%s.%s: %+v", s.Path, k.Name, k)
			}
		}
	}
	if Retired("request_timeout") == "" || Retired("stall_timeout") != "" {
		t.Error("retired keys")
	}
}
