package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// others are the programs that the pages call besides ours, which no test of a page runs,
// and who does.
var others = map[string]string{
	"sudo": "", // what stands behind it is looked at
	"npm":  "tools/e2e.sh and tools/agents.sh run npm ci",
	"node": "internal/web/browser and e2e run it",
	"tar":  "tools/dist's tests unpack every archive",
	"apt":  "tools/dist's tests install the package", "sudoedit": "an editor",
	"man":       "TestTheManualPage renders it",
	"systemctl": "the system's; the unit's command line is run by tools/dist's tests", "journalctl": "the system's",
	"install": "copies a file", "brew": "needs macOS", "podman": "needs a container engine", "docker": "needs a container engine",
	"kubectl": "needs a cluster", "sha256sum": "tools/dist's tests read the sums", "cosign": "needs the network of Sigstore",
	"redis-server": "redistest starts it", "redis-cli": "redistest speaks to it",
	"claude": "e2e/agents runs it", "codex": "e2e/agents runs it", "gemini": "e2e/agents runs it", "opencode": "e2e/agents runs it",
	"sc.exe": "the system's", "scoop": "needs Windows", "Expand-Archive": "the system's", "(Get-FileHash": "the system's", "cd": "",
}

// A reader tries what the pages say, in a directory and against a process of its own.
type reader struct {
	t       *testing.T
	root    string // of the repository
	grammar *kong.Node
	targets map[string]bool // of make
	tests   map[string]bool // package, blank, name
	sources string          // all Go code and what init writes
	process *process        // nil until a command needs one
	ids     []string        // of requests it has served
	demo    bool            // it was shown
}

func newReader(t *testing.T, root string) *reader {
	s := &reader{t: t, root: root, grammar: model(t), targets: map[string]bool{}, tests: map[string]bool{}}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		s.targets[m[1]] = true
	}
	function := regexp.MustCompile(`(?m)^func (Test\w+|Benchmark\w+|Fuzz\w+)\(`)
	var sources strings.Builder
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			s.tests[filepath.ToSlash(in)+" "+m[1]] = true
		}
		sources.Write(text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sources = sources.String()
	for _, m := range regexp.MustCompile(`_env"?\s*[:=]\s*"?([A-Z][A-Z0-9_]*)|= "([A-Z_]+_AUTH)"`).FindAllStringSubmatch(s.everyPage(), -1) {
		t.Setenv(m[1]+m[2], "a-key-of-the-test")
	}
	t.Setenv("EDITOR", "true")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	return s
}

func (s *reader) everyPage() string {
	var b strings.Builder
	for _, p := range readPages(s.t, s.root) {
		b.WriteString(p.text)
	}
	return b.String()
}

// says tells whether the code has a string that begins like this.
func (s *reader) says(words string) bool { return strings.Contains(s.sources, `"`+words) }

// known tells whether the code has this word.
func (s *reader) known(word string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(s.sources)
}

// target checks the targets of a call of make.
func (s *reader) target(args []string) string {
	for _, arg := range args {
		if !strings.Contains(arg, "=") && !s.targets[arg] {
			return fmt.Sprintf("the Makefile has no %s", arg)
		}
	}
	return ""
}

// goCommand checks a call of go: that its packages and the tests it names are there.
func (s *reader) goCommand(dir string, args []string) string {
	if len(args) > 1 && args[0] == "tool" && args[1] == "pprof" {
		return ""
	}
	if len(args) == 0 || !slices.Contains([]string{"test", "run", "build", "vet"}, args[0]) {
		return fmt.Sprintf("nothing checks go %s", strings.Join(args, " "))
	}
	here := "."
	for i := 1; i < len(args); i++ {
		if strings.HasPrefix(args[i], "./") && args[i] != "./..." {
			if here = args[i]; len(matches(filepath.Join(dir, args[i], "*.go"))) == 0 {
				return fmt.Sprintf("there is no package %s", args[i])
			}
		}
	}
	at := slices.IndexFunc(args, func(a string) bool { return a == "-run" || a == "-bench" })
	if at < 0 || at+1 == len(args) {
		return ""
	}
	name, _, _ := strings.Cut(strings.Trim(args[at+1], "'^$"), "/")
	in, err := filepath.Rel(s.root, filepath.Join(dir, here))
	if err != nil {
		return err.Error()
	}
	for test := range s.tests {
		if pkg, function, _ := strings.Cut(test, " "); pkg == filepath.ToSlash(in) && strings.Contains(function, name) {
			return ""
		}
	}
	return fmt.Sprintf("%s has no test %s", in, name)
}

func matches(pattern string) []string {
	list, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	return list
}

// script runs a block of shell. The shell is real, redirections, pipes and variables
// too; the programs it calls are ours, run here, or others, which have to be known.
func (s *reader) script(b block, own string) string {
	problem, _ := s.shell(b, b.text, own)
	return problem
}

func (s *reader) shell(b block, text, own string) (problem, printed string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), b.page)
	if err != nil {
		return err.Error(), ""
	}
	dir := s.t.TempDir()
	s.furnish(dir, own)
	s.t.Chdir(dir)
	var problems []string
	var one sync.Mutex // at a time: the stages of a pipe run side by side
	call := func(ctx context.Context, args []string) string {
		h := interp.HandlerCtx(ctx)
		for args[0] == "sudo" && len(args) > 1 {
			args = args[1:]
		}
		switch filepath.Base(args[0]) {
		case "understudy":
			for name, v := range h.Env.Each {
				if v.Exported && v.Kind == expand.String && os.Getenv(name) != v.Str {
					s.t.Setenv(name, v.Str)
				}
			}
			in := h.Stdin
			if in == nil {
				in = strings.NewReader("")
			}
			var printed bytes.Buffer
			one.Lock()
			problem := s.understudy(args[1:], in, &printed, h.Stderr)
			one.Unlock()
			if _, err := printed.WriteTo(h.Stdout); err != nil && problem == "" {
				problem = err.Error()
			}
			return problem
		case "make":
			if slices.Contains(args, "demo") {
				if problem := s.understudy([]string{"demo"}, strings.NewReader(""), io.Discard, io.Discard); problem != "" {
					return problem
				}
			}
			return s.target(args[1:])
		case "go":
			return s.goCommand(s.outside(h.Dir, dir), args[1:])
		case "curl":
			return s.curl(args, h.Stdout)
		}
		if _, ok := others[args[0]]; !ok {
			return fmt.Sprintf("nobody runs %s: see the table of other programs", args[0])
		}
		if h.Stdin != nil { // what reads a pipe reads all of it
			if _, err := io.Copy(io.Discard, h.Stdin); err != nil {
				return err.Error()
			}
		}
		return ""
	}
	r, err := interp.New(interp.Dir(dir), interp.StdIO(strings.NewReader(""), &out{s: &printed}, io.Discard), interp.Params("-e"), interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			if problem := call(ctx, args); problem != "" {
				one.Lock()
				defer one.Unlock()
				problems = append(problems, problem)
				return interp.ExitStatus(1)
			}
			return nil
		}
	}))
	if err != nil {
		return err.Error(), ""
	}
	if err := r.Run(s.t.Context(), file); err != nil && len(problems) == 0 {
		return err.Error(), printed
	}
	for name, v := range r.Vars {
		if v.Kind == expand.String && v.Exported && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`=`).MatchString(b.text) {
			if problem := s.variable(name, v.Str); problem != "" {
				problems = append(problems, problem)
			}
		}
	}
	return strings.Join(problems, "; "), printed
}

// out keeps what a shell prints.
type out struct{ s *string }

// Write is io.Writer's.
func (o *out) Write(b []byte) (int, error) { *o.s += string(b); return len(b), nil }

// outside is the directory of the repository that a script means by one of its own.
func (s *reader) outside(dir, own string) string {
	in, err := filepath.Rel(own, dir)
	if err != nil {
		return s.root
	}
	return filepath.Join(s.root, in)
}

// furnish puts into a directory what the pages' commands find there: a configuration, a
// changed one, one of another program, and the repository's own directories.
func (s *reader) furnish(dir, own string) {
	if own == "" {
		own = fmt.Sprintf(sceneConfig, "https://one.example", "https://two.example")
	}
	foreign, err := os.ReadFile(filepath.Join(s.root, "docs/moving.md"))
	if err != nil {
		s.t.Fatal(err)
	}
	files := map[string]string{"understudy.yaml": own, "changed.yaml": own}
	for _, b := range blocksOf(s.t, "docs/moving.md", string(foreign)) {
		if b.language == "yaml" && strings.HasPrefix(b.text, "model_list:") {
			files["config.yaml"] = b.text
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(s.root, "examples"))); err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "e2e", "agents"), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// transcript runs what stands behind each $, and compares what it prints with what stands
// below it, but for times, sizes and ids.
func (s *reader) transcript(b block, own string) string {
	parts := strings.Split("\n"+b.text, "\n$ ")
	if parts[0] != "" {
		return "a console block begins with $ and a command"
	}
	for _, part := range parts[1:] {
		line, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		problem, got := s.shell(b, line, own)
		if problem != "" {
			return problem
		}
		if vague(got) != vague(want) {
			return fmt.Sprintf("%s prints\n%s\nand not\n%s", line, got, want)
		}
	}
	return ""
}

// powershell checks lines for Windows as far as they are ours: command and flags.
func (s *reader) powershell(b block) string {
	for line := range strings.Lines(b.text) {
		args := strings.Fields(line)
		if len(args) == 0 {
			continue
		}
		if strings.HasSuffix(args[0], "understudy.exe") || args[0] == "understudy" {
			if problem := s.typed(args[1:]); problem != "" {
				return problem
			}
		} else if _, ok := others[args[0]]; !ok {
			return fmt.Sprintf("nobody runs %s: see the table of other programs", args[0])
		}
	}
	return ""
}
