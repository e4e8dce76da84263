package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/internal/drill"
)

// serve starts the process that commands talk to, once. Its first upstream fails, its
// second one is well, and it has served two requests.
func (s *reader) serve() *process {
	if s.process != nil {
		return s.process
	}
	failing, well := troubled()
	s.t.Cleanup(failing.Close)
	s.t.Cleanup(well.Close)
	dir := s.t.TempDir()
	file := fmt.Sprintf("server: {state_dir: %q}\n"+sceneConfig, dir, failing.URL(), well.URL())
	if err := os.WriteFile(filepath.Join(dir, "understudy.yaml"), []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.process = launch(s.t, "serve", "--no-repl", "-c", filepath.Join(dir, "understudy.yaml"), "--port", "0", "--admin", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		id, status, err := ask(ctx, s.process.proxy, "auto-strong")
		if err != nil || status != 200 {
			s.t.Fatal(status, err)
		}
		s.ids = append(s.ids, id)
	}
	return s.process
}

// sceneConfig is the configuration of that process, without the addresses of its
// upstreams, and of commands on pages that have none of their own.
const sceneConfig = `virtual_models:
  auto-strong:
    - {name: Direct API, base_url: %q, auth_style: none, model: gpt-4o}
    - {name: Claude, base_url: %q, auth_style: none, model: claude-sonnet-4-5}
rules:
  - {name: limits, match: {fault: rate}, action: freeze, freeze_seconds: 60}
`

// console runs lines in the console of that process.
func (s *reader) console(lines ...string) (out, problem string) {
	var stdout, stderr bytes.Buffer
	code := run([]string{"console", "--admin", s.serve().admin}, streams{strings.NewReader(strings.Join(lines, "\n") + "\n"), &stdout, &stderr})
	if code != exitOK {
		return stdout.String(), fmt.Sprintf("ends with %d: %s", code, stderr.String())
	}
	return stdout.String(), ""
}

// understudy runs our own program as a line of a page has it. Addresses of a running
// process become those of ours, and what would not end is looked at while it runs.
func (s *reader) understudy(args []string, in io.Reader, out, errs io.Writer) string {
	p, err := newParser(&grammar{}, streams{strings.NewReader(""), io.Discard, io.Discard}, func(int) {})
	if err != nil {
		return err.Error()
	}
	parsed, err := p.Parse(args)
	if err != nil {
		return err.Error()
	}
	args = slices.Clone(args)
	for i, arg := range args {
		arg = strings.Replace(arg, "/etc/understudy/", "", 1)
		arg = regexp.MustCompile(`^req_[0-9a-f]{24}$`).ReplaceAllStringFunc(arg, func(string) string { s.serve(); return s.ids[0] })
		if i > 0 && args[i-1] == "--admin" {
			arg = s.serve().admin
		}
		args[i] = arg
	}
	words := strings.Fields(parsed.Command())
	flagged := func(name string) bool { return slices.Contains(args, name) }
	switch words[0] {
	case "serve":
		if !flagged("--port") {
			args = append(args, "--port", "0")
		}
		if !flagged("--admin") {
			args = append(args, "--admin", "127.0.0.1:0")
		}
		if !flagged("--no-repl") {
			args = append(args, "--no-repl")
		}
		one := launch(s.t, args...)
		defer one.kill()
		return get("http://" + one.proxy + "/healthz")
	case "console", "explain":
		if !flagged("--admin") {
			args = append(args, "--admin", s.serve().admin)
		}
	case "rules":
		if words[1] == "replay" && !flagged("--admin") {
			args = append(args, "--admin", s.serve().admin)
		}
	case "healthcheck":
		args = []string{"healthcheck", "http://" + s.serve().proxy}
	case "init", "import": // the examples are alternatives, and neither overwrites anything
		for i, arg := range args {
			if words[0] == "init" && i > 0 || i > 0 && args[i-1] == "-o" {
				_ = os.Remove(arg) // it may not be there
			}
		}
		if words[0] == "init" {
			_ = os.Remove("understudy.yaml") // it may not be there
		}
	case "drill": // whole ones take a minute: TestDrillScripts
		for i, arg := range args {
			if arg == "--only" && !slices.ContainsFunc(drill.Scenarios(), func(d drill.Scenario) bool { return d.ID == args[i+1] || d.Name == args[i+1] }) {
				return fmt.Sprintf("there is no scenario %s", args[i+1])
			}
		}
		for at := slices.Index(args, "--only"); at >= 0; at = slices.Index(args, "--only") {
			args = slices.Delete(args, at, at+2)
		}
		args = append(args, "--only", "S13")
	case "demo":
		if s.demo {
			return ""
		}
		s.demo = true
	}
	var said bytes.Buffer
	if code := run(args, streams{in, out, io.MultiWriter(errs, &said)}); code != exitOK {
		return fmt.Sprintf("understudy %s ends with %d: %s", strings.Join(args, " "), code, said.String())
	}
	return ""
}

// get asks an address, and says what is wrong with the answer.
func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Sprintf("%s answers %s", url, resp.Status)
	}
	return ""
}

// curl sends what a line with curl sends, to our process, and wants a 2xx.
func (s *reader) curl(args []string, out io.Writer) string {
	method, url, body := "", "", ""
	header := http.Header{}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case slices.Contains([]string{"-s", "-S", "-sS", "-f", "-fsS", "-N", "-i", "-sN"}, arg):
		case slices.Contains([]string{"-H", "-d", "-X", "--data"}, arg) && i+1 < len(args):
			i++
			switch arg {
			case "-H":
				name, value, ok := strings.Cut(args[i], ":")
				if !ok {
					return fmt.Sprintf("%q is no header", args[i])
				}
				header.Add(name, strings.TrimSpace(value))
			case "-X":
				method = args[i]
			default:
				body = args[i]
			}
		case url == "" && !strings.HasPrefix(arg, "-"):
			url = arg
		default:
			return fmt.Sprintf("the test knows no curl %s", arg)
		}
	}
	if method == "" {
		if method = "GET"; body != "" {
			method = "POST"
		}
	}
	p := s.serve()
	to := strings.NewReplacer("http://127.0.0.1:8788", p.admin, "http://127.0.0.1:8787", "http://"+p.proxy).Replace(url)
	if to == url {
		return fmt.Sprintf("%s is not where the program listens", url)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return err.Error()
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Sprintf("%s %s answers %s", method, url, resp.Status)
	}
	return ""
}

// scorecard checks a drill that a page shows: that its command is one, its rows are the
// scenarios, and its sums are those of the rows. What comes out of the examples is
// TestDrillScripts' to say, which takes a minute.
func (s *reader) scorecard(b block) string {
	lines := strings.Split(b.text, "\n")
	command, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "$ understudy "), " #")
	args, err := words(command)
	if err != nil {
		return err.Error()
	}
	p, err := newParser(&grammar{}, streams{strings.NewReader(""), io.Discard, io.Discard}, func(int) {})
	if err != nil {
		return err.Error()
	}
	if _, err := p.Parse(args); err != nil {
		return err.Error()
	}
	if at := slices.Index(args, "-c"); at < 0 || len(matches(filepath.Join(s.root, args[at+1]))) == 0 {
		return "it names no configuration that there is"
	}
	short := strings.Contains(lines[0], "# without the lines that pass")
	row := regexp.MustCompile(`^  ([SU]\d\d)  (\w+) +(.+?) {2,}\d+ \+ \d+ `)
	sum := regexp.MustCompile(`^  (\d+) of (\d+): (\d+) pass, (\d+) partial, (\d+) safe, (\d+) fail$`)
	verdicts, sums, rest := map[string]int{}, 0, strings.Contains(lines[0], "and those of")
	for _, line := range lines {
		if m := row.FindStringSubmatch(line); m != nil {
			if !slices.ContainsFunc(drill.Scenarios(), func(d drill.Scenario) bool { return d.ID == m[1] && d.Title == m[3] }) {
				return fmt.Sprintf("there is no scenario %s, %s", m[1], m[3])
			}
			verdicts[m[2]]++
		}
		m := sum.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		sums++
		for i, verdict := range []string{"pass", "partial", "safe", "fail"} {
			if short && i == 0 || rest && len(verdicts) == 0 {
				continue
			}
			if fmt.Sprint(verdicts[verdict]) != m[3+i] {
				return fmt.Sprintf("%d %s above %q", verdicts[verdict], verdict, line)
			}
		}
		verdicts = map[string]int{}
	}
	if sums == 0 {
		return "no sums"
	}
	return ""
}
