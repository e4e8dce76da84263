package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"

	"understudy/internal/config"
	"understudy/internal/control"
)

// A block is a fenced block of code in a page.
type block struct {
	page, language, text string
	line                 int // of its fence, from 1
}

// blocksOf are the blocks of a page. A fence may be indented, as in a list.
func blocksOf(t *testing.T, page, text string) (list []block) {
	t.Helper()
	open, indent := false, ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		bare := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(bare, "```") && !open:
			open, indent = true, line[:len(line)-len(bare)]
			list = append(list, block{page: page, language: strings.TrimSpace(bare[3:]), line: number})
		case strings.HasPrefix(bare, "```"):
			open = false
		case open:
			list[len(list)-1].text += strings.TrimPrefix(line, indent)
		}
	}
	if open {
		t.Errorf("%s: a fence is not closed", page)
	}
	return list
}

// elsewhere are the blocks that have a test of their own, which reads them from their
// page: all of a page and language, or the one that begins like this.
var elsewhere = []struct{ page, language, begins, in, test string }{
	{"docs/moving.md", "console", "", "cmd/understudy", "TestTheExamplesOfTheMovingPage"},
	{"docs/moving.md", "json", "", "cmd/understudy", "TestTheExamplesOfTheMovingPage"},
	{"docs/moving.md", "yaml", "model_list:", "cmd/understudy", "TestTheExamplesOfTheMovingPage"},
	{"docs/moving.md", "yaml", "port: 8317", "cmd/understudy", "TestTheExamplesOfTheMovingPage"},
	{"docs/requests.md", "console", "", "cmd/understudy", "TestTheExamplesOfTheRequestsPage"},
	{"docs/cli.md", "console", "", "cmd/understudy", "TestTheExamplesOfTheCommandsPage"},
	{"docs/cli.md", "sh", "source <(understudy completion", "cmd/understudy", "TestTheTabKey"},
	{"docs/clients.md", "console", "$ codex", "e2e/agents", "TestFirstUpstreamFails"},
	{"docs/clients.md", "console", "$ claude", "e2e/agents", "TestFirstUpstreamFails"},
	{"docs/clients.md", "console", "$ gemini", "e2e/agents", "TestFirstUpstreamFails"},
	{"docs/clients.md", "console", "$ opencode", "e2e/agents", "TestFirstUpstreamFails"},
	{"docs/delivery.md", "http", "", "internal/proxy", "TestDeliveryGuide"},
}

// untested are the blocks that nothing can be said of, and why.
var untested = []struct{ page, language, begins, why string }{
	{"docs/architecture.md", "text", "client ──>", "a drawing"},
	{"e2e/README.md", "text", "openai, @anthropic-ai/sdk", "a drawing"},
	{"e2e/agents/README.md", "text", "codex, claude", "a drawing"},
	{"docs/performance.md", "text", "", "figures of one machine; make bench-smoke sees that every column of such tables is filled"},
}

// Every block of code in the pages is checked in some way, and a page that shows what is
// not so fails. What is a configuration has no mistakes; what is a command is run, or is
// another program's; what is printed is printed.
func TestEveryBlockIsTrue(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	used := map[any]bool{}
	s := newReader(t, root)
	count := 0
	for _, page := range readPages(t, root) {
		list := blocksOf(t, page.name, page.text)
		count += len(list)
		var own string // the page's first whole configuration, for its commands
		for _, b := range list {
			if b.language == "yaml" && own == "" && strings.Contains(b.text, "virtual_models:") && configProblem(b) == "" {
				own = b.text
			}
		}
	blocks:
		for _, b := range list {
			for _, e := range elsewhere {
				if e.page == b.page && e.language == b.language && strings.HasPrefix(b.text, e.begins) {
					used[e] = true
					continue blocks
				}
			}
			for _, u := range untested {
				if u.page == b.page && u.language == b.language && strings.HasPrefix(b.text, u.begins) {
					used[u] = true
					continue blocks
				}
			}
			if problem := s.check(b, own); problem != "" {
				t.Errorf("%s:%d: %s", b.page, b.line, problem)
			}
		}
		s.spans(page)
	}
	if count < 80 {
		t.Errorf("%d blocks", count)
	}
	for _, e := range elsewhere {
		if !used[e] {
			t.Errorf("there is no such block any more: %v", e)
		}
		if !s.tests[e.in+" "+e.test] {
			t.Errorf("%s has no %s", e.in, e.test)
		}
	}
	for _, u := range untested {
		if !used[u] {
			t.Errorf("there is no such block any more: %v", u)
		}
	}
}

// A sheet is a Markdown file that people read.
type sheet struct{ name, text string }

func readPages(t *testing.T, root string) (list []sheet) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "e2e/*.md", "e2e/*/*.md", "examples/*.md", "examples/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, sheet{filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))), string(text)})
		}
	}
	return list
}

// check says what is wrong with a block, "" if nothing is.
func (s *reader) check(b block, own string) string {
	switch b.language {
	case "yaml", "toml":
		if b.language == "toml" && strings.Contains(b.text, "model_provider") || strings.Contains(b.text, "openai_base_url") {
			var v map[string]any
			if err := toml.Unmarshal([]byte(b.text), &v); err != nil {
				return err.Error()
			}
			return s.setting(v)
		}
		if b.language == "yaml" && foreignYAML(b.text) {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(b.text), &v); err != nil {
				return err.Error()
			}
			return ""
		}
		return configProblem(b)
	case "json":
		return s.json(b)
	case "dotenv":
		for line := range strings.Lines(b.text) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if problem := s.variable(name, value); !ok || problem != "" {
				return problem + ": " + line
			}
		}
		return ""
	case "sh":
		return s.script(b, own)
	case "console":
		if strings.HasPrefix(b.text, "$ understudy drill ") {
			return s.scorecard(b)
		}
		return s.transcript(b, own)
	case "powershell":
		return s.powershell(b)
	case "text":
		return s.plain(b)
	}
	return fmt.Sprintf("nothing checks blocks in %q: give it a language that is checked, or a place in the table of this test", b.language)
}

// foreignYAML tells what other programs read: Compose, Kubernetes, Prometheus.
func foreignYAML(text string) bool {
	return regexp.MustCompile(`(?m)^(apiVersion|services|scrape_configs):`).MatchString(text)
}

// configProblem is what is wrong with a configuration, or with a part of one: it is
// completed by a virtual model or the upstreams that it names.
func configProblem(b block) string {
	text := b.text
	format, err := config.FormatOf("." + b.language)
	if err != nil {
		return err.Error()
	}
	has := func(key string) bool {
		return regexp.MustCompile(`(?m)^(` + key + `:|\[+` + key + `[\].])`).MatchString(text)
	}
	if !has("virtual_models") && !has("upstream") {
		text = map[string]string{
			"yaml": text + "virtual_models: {auto: [{base_url: 'https://h.example', auth_style: none, model: m}]}\nupstream: [{id: one, base_url: 'https://one.example'}]\n",
			"toml": text + "[[virtual_models.auto]]\nbase_url = 'https://h.example'\nauth_style = 'none'\nmodel = 'm'\n[[upstream]]\nid = 'one'\nbase_url = 'https://one.example'\n",
		}[b.language]
		if b.language == "yaml" && !has("pool") {
			text += "pool: {}\n"
		}
	}
	cfg, problems := config.Parse(config.Source{Path: b.page, Format: format, Bytes: []byte(text), Mode: 0o600})
	for _, p := range problems {
		if p.Severity == config.Error || !strings.Contains(p.What, "is not set") && !strings.Contains(p.What, "cannot be read") {
			return p.String()
		}
	}
	if cfg == nil {
		return "no configuration"
	}
	return ""
}

// json checks a block of JSON: an answer of the admin API in part, or a client's settings.
func (s *reader) json(b block) string {
	text := b.text
	if strings.HasPrefix(text, `"`) { // members of the View
		d := json.NewDecoder(strings.NewReader("{" + text + "}"))
		d.DisallowUnknownFields()
		if err := d.Decode(new(control.View)); err != nil {
			return err.Error()
		}
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	return s.setting(v)
}

// setting checks what is told to a client: every address on this machine is ours, and
// every model one that the pages have.
func (s *reader) setting(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			if problem := s.setting(one); problem != "" {
				return problem
			}
		}
	case []any:
		for _, one := range v {
			if problem := s.setting(one); problem != "" {
				return problem
			}
		}
	case string:
		return address(v)
	}
	return ""
}

// address says what is wrong with the address of the proxy in a client's settings.
func address(v string) string {
	if !strings.Contains(v, "127.0.0.1") && !strings.Contains(v, "localhost") {
		return ""
	}
	if !regexp.MustCompile(`^http://127\.0\.0\.1:(8787(/v1)?|8788|3456)$`).MatchString(v) {
		return fmt.Sprintf("%s is not where the proxy listens", v)
	}
	return ""
}

// variable checks a setting in the environment: that some test or template of ours has
// its name, and the address in it.
func (s *reader) variable(name, value string) string {
	if !regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`).MatchString(name) {
		return fmt.Sprintf("%q is no variable", name)
	}
	if !s.known(name) {
		return fmt.Sprintf("no test or template has the variable %s", name)
	}
	return address(value)
}

// plain checks a block that is only text: commands for the console, what the console
// shows, or lines of the log.
func (s *reader) plain(b block) string {
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	console, log := true, true
	for _, line := range lines {
		first, _, _ := strings.Cut(line, " ")
		console = console && slices.ContainsFunc(control.Commands(), func(c control.Command) bool { return strings.HasPrefix(c.Name+" ", first+" ") })
		log = log && (line == "" || logLine.MatchString(line))
	}
	switch {
	case console:
		_, problem := s.console(lines...)
		return problem
	case log:
		return s.log(lines)
	case strings.Contains(b.text, "\nunderstudy> "):
		// Below a command that was entered stands what it printed. The bar and a line that is
		// being typed are looked at in tmux (TestTheBarCountsDownBesideTheTyping).
		for i, line := range lines {
			command, entered := strings.CutPrefix(line, "understudy> ")
			if !entered {
				if logLine.MatchString(line) {
					if problem := s.log(lines[i : i+1]); problem != "" {
						return problem
					}
				}
				continue
			}
			if i+2 < len(lines) && strings.HasPrefix(lines[i+2], "understudy> ") {
				if got, problem := s.console(command); problem != "" || vague(got) != vague(lines[i+1]+"\n") {
					return fmt.Sprintf("%s prints %q %s", command, got, problem)
				}
			}
		}
		return ""
	}
	return "this text is neither commands for the console nor lines of the log: give the block a language that is checked, or a place in the table of this test"
}

// logLine is a line of the log, with or without its time.
var logLine = regexp.MustCompile(`^(\d\d:\d\d:\d\d )?(DBG|INF|WRN|ERR) (.*)$`)

// log checks that what lines of the log say, and what they call it, stands in the code.
func (s *reader) log(lines []string) string {
	for _, line := range lines {
		if line == "" {
			continue
		}
		rest := logLine.FindStringSubmatch(line)[3]
		for _, m := range regexp.MustCompile(`(\w+)=("[^"]*"|\S*)`).FindAllStringSubmatch(rest, -1) {
			rest = strings.Replace(rest, m[0], "", 1)
			if !s.says(m[1] + `"`) {
				return fmt.Sprintf("no line of the log has %s", m[1])
			}
		}
		if message := strings.TrimSpace(strings.TrimRight(rest, "… ")); !s.says(message) {
			return fmt.Sprintf("no line of the log says %q", message)
		}
	}
	return ""
}

// spans checks the commands that stand in a page's running text: ours have that command
// and those flags, and make has that target.
func (s *reader) spans(p sheet) {
	text := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(p.text, "")
	for _, m := range regexp.MustCompile("`((?:understudy|make|go) [^`\n]+)`").FindAllStringSubmatch(text, -1) {
		args := strings.Fields(m[1])
		problem := ""
		switch args[0] {
		case "understudy":
			problem = s.typed(args[1:])
		case "make":
			problem = s.target(args[1:])
		case "go":
			problem = s.goCommand(filepath.Join(s.root, filepath.Dir(p.name)), args[1:])
			if problem != "" {
				problem = s.goCommand(s.root, args[1:])
			}
		}
		if problem != "" {
			s.t.Errorf("%s: `%s`: %s", p.name, m[1], problem)
		}
	}
	if p.name != "README.md" {
		return
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`[a-z].*?`+"`"+`) \|`).FindAllStringSubmatch(text, -1) { // the table of commands
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if problem := s.typed(strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(m[1]))); problem != "" {
				s.t.Errorf("%s: `%s`: %s", p.name, m[1], problem)
			}
		}
	}
}

// typed checks words after understudy as far as they can be read out of a sentence: the
// command and its flags.
func (s *reader) typed(args []string) string {
	node := s.grammar
	for i, arg := range args {
		if slices.Contains([]string{">", ">>", "|", "…", "COMMAND"}, arg) {
			break
		}
		if name, isFlag := strings.CutPrefix(arg, "-"); isFlag {
			name, _, _ = strings.Cut(strings.TrimLeft(name, "-"), "=")
			if name != "help" && !slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool {
				return f.Name == strings.TrimPrefix(name, "no-") || f.Name == name || string(f.Short) == name
			}) {
				return fmt.Sprintf("there is no flag %s", arg)
			}
			continue
		}
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == arg })
		if child < 0 && i == 0 {
			return fmt.Sprintf("there is no command %s", arg)
		}
		if child >= 0 {
			node = node.Children[child]
		}
	}
	return ""
}
