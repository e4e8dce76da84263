//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A shell is one that completes understudy's commands.
type shell struct {
	name    string
	command []string
	ready   string // typed first, a line at a time
	killed  string // the key that empties the line
}

var shells = []shell{
	{"bash", []string{"bash", "--norc", "--noprofile", "-i"}, "source <(understudy completion bash); PS1='> '", "C-u"},
	{"zsh", []string{"zsh", "-f", "-i"}, "autoload -U compinit; compinit -u -D; source <(understudy completion zsh); PROMPT='> '", "C-u"},
	{"fish", []string{"fish", "--no-config", "-i"}, "set -g fish_autosuggestion_enabled 0; understudy completion fish | source; function fish_prompt; echo -n '> '; end", "C-u"},
}

// In real shells the Tab key completes what is being typed: commands, flags, words,
// files, virtual models and requests. All three must be there; CI installs them.
func TestTheTabKey(t *testing.T) {
	failing, well := troubled()
	t.Cleanup(failing.Close)
	t.Cleanup(well.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"understudy.yaml": completeConfig + fmt.Sprintf("  well: [{base_url: %q, model: m, auth_style: none}]\nserver: {state_dir: %q}\n", well.URL(), dir),
		"other.yaml":      completeConfig, "other.txt": "no configuration",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, "serve", "--no-repl", "-c", filepath.Join(dir, "understudy.yaml"), "--port", "0", "--admin", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, status, err := ask(ctx, p.proxy, "well")
	if err != nil || status != 200 {
		t.Fatal(status, err)
	}
	for _, sh := range shells {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(sh.name); err != nil {
				t.Fatalf("%s is missing, in which this test presses Tab: install it (apt-get install bash zsh fish)", sh.name)
			}
			s := newScreen(t, 100, 20, []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}, append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir}, sh.command...)...)
			s.run(sh.ready)
			s.wait("a prompt", func(text string) bool { return lastLine(text) == ">" })
			for _, c := range []struct{ typed, completed string }{
				{"understudy rou", "understudy route "},
				{"understudy rules rep", "understudy rules replay "},
				{"understudy --log-format j", "understudy --log-format json "},
				{"understudy route --mod", "understudy route --model "},
				{"understudy route --model auto", "understudy route --model auto-strong "},
				{"understudy route --model=auto", "understudy route --model=auto-strong "},
				{"understudy route --model llama3:", "understudy route --model llama3:8b "},
				{"understudy route --model big", `understudy route --model big\ model `},
				{"understudy check -c oth", "understudy check -c other.yaml "},
				{"understudy check --config=oth", "understudy check --config=other.yaml "},
				{"understudy explain --admin " + p.admin + " req", "understudy explain --admin " + p.admin + " " + id + " "},
				{"understudy completion pow", "understudy completion powershell "},
			} {
				s.typ(c.typed)
				s.press("Tab")
				s.typ("+") // so that a blank before it is seen
				want := "> " + c.completed + "+"
				s.wait(c.typed+", completed", func(text string) bool {
					return strings.Contains(strings.ReplaceAll(text, "'big model'", `big\ model`), want)
				})
				s.press(sh.killed)
				s.wait("an empty line", func(text string) bool { return lastLine(text) == ">" })
			}
			s.typ("understudy rules ")
			s.press("Tab", "Tab")
			s.wait("both commands of rules", func(text string) bool {
				_, list, _ := strings.Cut(text, "understudy rules")
				return strings.Contains(list, "replay") && strings.Contains(list, "test")
			})
		})
	}
}

// lastLine is the last line of a screen that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	return strings.TrimRight(lines[len(lines)-1], " ")
}
