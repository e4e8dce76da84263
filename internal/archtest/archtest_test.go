package archtest

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// may says which of our packages each package may import: the table in
// docs/architecture.md. A package that is not here may import none.
var may = map[string][]string{
	// Instances that share a store.
	"health/healthtest":    {"health"},
	"redisstore":           {"health"},
	"redisstore/redistest": {},

	"config":         {"files"},
	"wire":           {},
	"health":         {},
	"stats":          {},
	"archive":        {"stats", "files"},
	"route":          {"config"},
	"held":           {},
	"probe":          {"wire", "held"},
	"rule":           {"config", "probe", "wire"},
	"proxy":          {"config", "route", "wire", "probe", "rule", "health", "stats", "owner", "h1", "held", "recent"},
	"files":          {},
	"h1":             {},
	"h1server":       {},
	"owner":          {"recent"},
	"recent":         {},
	"handover":       {},
	"control":        {"proxy", "health", "held", "stats", "route", "config", "rule", "probe", "wire"},
	"web":            {"control"},
	"web/stage":      {"daemon", "web", "drill", "route", "stats", "health", "proxy"},
	"console":        {"control", "files"},
	"drill":          {"wire"},
	"drill/h2":       {"drill"},
	"drill/names":    {},
	"daemon":         {"config", "handover", "route", "wire", "probe", "rule", "health", "stats", "owner", "archive", "proxy", "control", "files", "redisstore", "h1server"},
	"upstreamtest":   {},
	"archtest":       {},
	"campaign":       {},
	"movein":         {"config"},
	"cmd/understudy": {"daemon", "handover", "archive", "stats", "web", "console", "drill", "config", "route", "proxy", "control", "files", "movein", "held"},
}

// mustNot are imports from outside that a package has no business with.
var mustNot = map[string][]string{
	"wire":   {"net/http", "time/tzdata"},
	"route":  {"net/http", "os"},
	"rule":   {"net/http", "os"},
	"health": {"net/http", "encoding/json"},
	"stats":  {"net/http"},
	"config": {"net/http"},
	"movein": {"net/http"},
	"proxy":  {"github.com/goccy/go-yaml", "github.com/pelletier/go-toml/v2"},
	"daemon": {},
}

type pkg struct {
	ImportPath, Doc, Dir string
	Imports              []string
	GoFiles              []string
}

// packages are ours as they are built for a system.
func packages(t *testing.T, system string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Dir,Imports,GoFiles", "./...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "understudy/"), "internal/")
}

func TestImportsKeepToTheTable(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, p := range packages(t, system) {
			if len(p.GoFiles) == 0 {
				continue // tests only
			}
			name := short(p.ImportPath)
			allowed, known := may[name]
			if !known {
				t.Errorf("package %s is not in the table: say in docs/architecture.md and here what it may import", name)
			}
			for _, path := range p.Imports {
				if strings.HasPrefix(path, "understudy/") && !slices.Contains(allowed, short(path)) {
					t.Errorf("%s imports %s on %s, which it must never know", name, short(path), system)
				}
				if slices.Contains(mustNot[name], path) {
					t.Errorf("%s imports %s on %s, which it must never know", name, path, system)
				}
			}
		}
	}
}

// Layers for their own sake begin with packages that are named after nothing.
func TestPackagesAreNamedAfterWhatTheyKnow(t *testing.T) {
	nothing := []string{"utils", "util", "common", "types", "helpers", "helper", "helps", "misc", "shared", "base", "core", "manager", "service", "models"}
	for _, p := range packages(t, "linux") {
		if slices.Contains(nothing, filepath.Base(p.ImportPath)) {
			t.Errorf("%s is named after nothing", p.ImportPath)
		}
	}
}

// What stands in a request's way reads JSON by wire's own scanner. Only our own pages,
// errors and envelopes are written by reflection.
func TestTheRequestsWayUsesNoReflection(t *testing.T) {
	way := []string{"internal/proxy/", "internal/wire/", "internal/probe/", "internal/route/", "internal/rule/", "internal/h1/", "internal/h1server/", "internal/health/"}
	ours := []string{"internal/proxy/answer.go", "internal/proxy/pages.go", "internal/wire/envelope.go"}
	goFiles(t, func(path, text string) {
		dir, file := filepath.Split(path)
		if slices.Contains(way, dir) && !strings.HasSuffix(file, "_test.go") && !slices.Contains(ours, path) && strings.Contains(text, `"encoding/json"`) {
			t.Errorf("%s imports encoding/json", path)
		}
	})
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t, "linux") {
		if len(p.GoFiles) > 0 && len(p.Doc) < 40 {
			t.Errorf("%s has no package doc", p.ImportPath)
		}
	}
}

// goFiles walks the tree's Go files.
func goFiles(t *testing.T, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			visit(strings.TrimPrefix(path, root+"/"), string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	sleeps = regexp.MustCompile(`\btime\.Sleep\(`)
	skips  = regexp.MustCompile(`\bt\.Skip(f|Now)?\(`)
	texts  = regexp.MustCompile(`strings\.(Contains|HasPrefix|HasSuffix|EqualFold)\(\w*[eE]rr\w*\.Error\(\)`)
	writer = regexp.MustCompile(`http\.ResponseWriter`)
)

func TestTestsDoNotSleepOutsideBubbles(t *testing.T) {
	goFiles(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") && sleeps.MatchString(text) && !strings.Contains(text, "synctest.Test(") {
			t.Errorf("%s sleeps: wait for a condition, or run in a bubble", path)
		}
		if strings.HasSuffix(path, "_test.go") && skips.MatchString(text) && !strings.HasPrefix(path, "internal/archtest/") {
			t.Errorf("%s skips tests", path)
		}
	})
}

func TestGoErrorsAreNotMatchedByText(t *testing.T) {
	goFiles(t, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") && texts.MatchString(text) {
			t.Errorf("%s matches an error by its text", path)
		}
	})
}

// Only these files of the proxy may hold a ResponseWriter: the spine, what admits a
// request, the relay, and what writes answers of our own. Attempts have none.
func TestAttemptsHaveNoResponseWriter(t *testing.T) {
	allowed := []string{"handler.go", "admit.go", "upload.go", "guard.go", "relay.go", "early.go", "answer.go", "pages.go", "doc.go"}
	goFiles(t, func(path, text string) {
		if dir, file := filepath.Split(path); dir == "internal/proxy/" && !strings.HasSuffix(file, "_test.go") && !slices.Contains(allowed, file) && writer.MatchString(text) {
			t.Errorf("%s holds a ResponseWriter", path)
		}
		if strings.HasPrefix(path, "internal/probe/") && writer.MatchString(text) {
			t.Errorf("%s holds a ResponseWriter", path)
		}
	})
}

func TestFilesStaySmall(t *testing.T) {
	goFiles(t, func(path, text string) {
		if n := strings.Count(text, "\n"); n > 600 && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines: more than one thing", path, n)
		}
	})
}
