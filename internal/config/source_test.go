package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func written(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) Source {
	t.Helper()
	src, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestReadTellsTheFormat(t *testing.T) {
	for name, want := range map[string]Format{"a.yaml": YAML, "a.YML": YAML, "a.toml": TOML} {
		if src := read(t, written(t, name, "x-a = 1", 0o600)); src.Format != want || string(src.Bytes) != "x-a = 1" {
			t.Errorf("%s: %v", name, src.Format)
		}
	}
	if _, err := Read(written(t, "a.json", "{}", 0o600)); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "d.yaml")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("a directory was read")
	}
}

func TestWriteKeepsModeAndLink(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o444} {
		path := written(t, "a.yaml", "server:\n  port: 1 # c\n", mode)
		link := filepath.Join(filepath.Dir(path), "link.yaml")
		if err := os.Symlink("a.yaml", link); err != nil {
			t.Fatal(err)
		}
		src, err := read(t, link).Set([]any{"server", "port"}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Write(); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(path); string(b) != "server:\n  port: 2 # c\n" {
			t.Errorf("wrote %q", b)
		}
		if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
			t.Error("the link is gone")
		}
		if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("mode %v, was %v", info.Mode().Perm(), mode)
		}
		if list, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(list) > 0 {
			t.Errorf("left behind: %v", list)
		}
		if err := src.Written().Write(); err != nil {
			t.Errorf("a second write: %v", err)
		}
	}
}

func TestWriteRefusesAChangedFile(t *testing.T) {
	path := written(t, "a.yaml", "server: {port: 1}\n", 0o600)
	src, err := read(t, path).Set([]any{"server", "port"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("server: {port: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := src.Write(); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "server: {port: 3}\n" {
		t.Errorf("wrote %q", b)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := src.Write(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

func TestReadableByOthersWarns(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	const secret, none = "upstream: [{id: a, base_url: https://h, api_key: k}]\n", "upstream: [{id: a, base_url: https://h}]\n"
	for _, c := range []struct {
		text string
		mode fs.FileMode
		want bool
	}{
		{secret, 0o600, false}, {secret, 0o644, true}, {secret, 0o640, true}, {none, 0o644, false},
		{"upstream: [{id: a, base_url: https://u:p@h}]\n", 0o604, true},
		{"upstream: [{id: a, base_url: https://h, headers: {Authorization: k}}]\n", 0o644, true},
		{"upstream: [{id: a, base_url: https://h, headers: {x-team: k}}]\n", 0o644, false},
	} {
		_, problems := Parse(read(t, written(t, "a.yaml", c.text, c.mode)))
		got := len(problems) == 1 && problems[0].Severity == Warning && strings.Contains(problems[0].Cure, "chmod 600")
		if got != c.want {
			t.Errorf("%v %q: %v", c.mode, c.text, problems)
		}
	}
}

func TestALargeFileIsNoConfiguration(t *testing.T) {
	for _, text := range []string{strings.Repeat("# x\n", maxFileBytes/4+1), strings.Repeat("\n", maxFileLines+1)} {
		src := read(t, written(t, "a.yaml", text, 0o600))
		if cfg, problems := Parse(src); cfg != nil || len(problems) != 1 {
			t.Errorf("%d bytes: %v", len(text), problems)
		}
	}
}

func TestEditsRefuseAFileWithMistakes(t *testing.T) {
	for _, text := range []string{"a: 1\na: 2\n", "a: [\n", "a: *b\n"} {
		src := Source{Bytes: []byte(text)}
		if out, err := src.Set([]any{"b"}, 1); !errors.Is(err, ErrCannotEdit) || string(out.Bytes) != text {
			t.Errorf("%q: %v", text, err)
		}
	}
	src := Source{Bytes: []byte("a: [1]\n")}
	for name, edit := range map[string]func() (Source, error){
		"set of nothing":      func() (Source, error) { return src.Set(nil, 1) },
		"removal of nothing":  func() (Source, error) { return src.Remove(nil) },
		"a channel":           func() (Source, error) { return src.Set([]any{"b"}, make(chan int)) },
		"a place in a scalar": func() (Source, error) { return src.Set([]any{"a", 0, "b"}, 1) },
		"a place behind":      func() (Source, error) { return src.Set([]any{"a", 1}, 1) },
		"insert far behind":   func() (Source, error) { return src.Insert([]any{"a"}, 2, 1) },
		"insert into nothing": func() (Source, error) { return src.Insert([]any{"b"}, 1, 1) },
		"move out of range":   func() (Source, error) { return src.Move([]any{"a"}, 0, 1) },
		"an odd path":         func() (Source, error) { return src.Set([]any{1.5}, 1) },
		"not UTF-8":           func() (Source, error) { return src.Set([]any{"b"}, "\xff") },
		"a map with no text":  func() (Source, error) { return src.Set([]any{"b"}, map[int]int{1: 1}) },
	} {
		out, err := edit()
		if !errors.Is(err, ErrCannotEdit) && !errors.Is(err, ErrNotFound) || string(out.Bytes) != string(src.Bytes) {
			t.Errorf("%s: %v %q", name, err, out.Bytes)
		}
	}
}

// TestEditValues: what callers have in hand can be written.
func TestEditValues(t *testing.T) {
	type kind string
	for _, c := range []struct {
		value any
		want  string
	}{
		{5, "5"}, {uint8(5), "5"}, {float32(0.5), "0.5"}, {2.0, "2"}, {kind("x"), "x"}, {true, "true"},
		{[]string{"a", "b"}, "[a, b]"}, {[]int{1}, "[1]"}, {map[string]string{"b": "1", "a": "2"}, `{a: "2", b: "1"}`},
		{Map{{"b", 1}, {"a", 2}}, "{b: 1, a: 2}"}, {[]any{}, "[]"}, {Map{}, "{}"},
	} {
		out, err := Source{Bytes: []byte("x-a:\n  k: 0\n")}.Set([]any{"x-a", "k"}, c.value)
		if err != nil || string(out.Bytes) != "x-a:\n  k: "+c.want+"\n" {
			t.Errorf("%v: %v, %q", c.value, err, out.Bytes)
		}
	}
}

// TestHostileFilesEnd: files made to keep a parser busy, or to send it down
// without end, are answered with a problem.
func TestHostileFilesEnd(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, maxFileBytes/len(s)) }
	base := "x-a: &a {" + strings.Repeat("k: 1, ", 2000) + "}\n"
	for _, text := range []string{
		fill("["), fill("{a: "), fill("- "), fill("? "), fill("- !a "), fill("- &a "), fill("? - "), fill("!a "), fill("&a "), fill("*a "),
		base + "server: {<<: [" + strings.Repeat("*a, ", 100_000) + "]}\n",
		"a: [" + strings.Repeat("x, ", 100_000) + "]\n",
		"server: {" + strings.Repeat("zz: 1, yy: 2, ", 20_000) + "}\n",
	} {
		if cfg, problems := Parse(Source{Path: "x.yaml", Bytes: []byte(text)}); cfg != nil || len(problems) == 0 {
			t.Errorf("%.20q...: %d problems", text, len(problems))
		}
	}
	for _, text := range []string{"x-a = " + fill("[")[:500_000], "x-a = " + fill("{a=")[:500_000], fill("a.") + "a = 1", "[" + fill("a.") + "a]"} {
		if cfg, problems := Parse(Source{Path: "x.toml", Format: TOML, Bytes: []byte(text)}); cfg != nil || len(problems) == 0 {
			t.Errorf("%.20q...: %d problems", text, len(problems))
		}
	}
}

// TestWarningsNeverHideAnError: however many warnings come first.
func TestWarningsNeverHideAnError(t *testing.T) {
	text := "upstream:\n" + strings.Repeat("  - {id: a, base_url: https://h, request_timeout: 1}\n", 3*maxProblems) + "server: {port: x}\n"
	cfg, problems := Parse(Source{Path: "x.yaml", Bytes: []byte(text)})
	if cfg != nil || len(problems) > 2*maxProblems {
		t.Errorf("configuration %v, %d problems", cfg != nil, len(problems))
	}
}

// TestOneLineFile: JSON is YAML, and may stand on one line.
func TestOneLineFile(t *testing.T) {
	text := `{"virtual_models": {`
	for i := range 300 {
		text += `"m` + itoa(i) + `": [{"base_url": "https://h", "auth_style": "none", "model": "x - y"}], `
	}
	if cfg := parsed(t, YAML, strings.TrimSuffix(text, ", ")+"}}"); len(cfg.Models) != 300 {
		t.Error(len(cfg.Models))
	}
}
