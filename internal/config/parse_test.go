package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseGolden reads the files of testdata/parse: archives of configurations,
// each with the problems it has ("name.problems", warnings marked).
func TestParseGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/parse/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { goldenParse(t, name) })
	}
}

func goldenParse(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	ar := parseArchive(text)
	for i, f := range ar.Files {
		format, err := FormatOf(f.Name)
		if err != nil {
			continue
		}
		if i+1 == len(ar.Files) || !strings.HasSuffix(ar.Files[i+1].Name, ".problems") {
			t.Fatalf("no .problems behind %s", f.Name)
		}
		want := &ar.Files[i+1]
		src := Source{Path: f.Name, Format: format, Bytes: expand(f.Data)}
		cfg, problems := Parse(src)
		var got strings.Builder
		failed := false
		for _, p := range problems {
			if p.Severity == Warning {
				got.WriteString("warning: ")
			} else {
				failed = true
			}
			got.WriteString(p.String() + "\n")
			if strings.Contains(p.String()+p.Path, "SECRET") {
				t.Errorf("%s: a secret is shown: %s", f.Name, p)
			}
		}
		if failed != (cfg == nil) {
			t.Errorf("%s: errors %v, configuration %v", f.Name, failed, cfg != nil)
		}
		if *update {
			want.Data = []byte(got.String())
		} else if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, ar.format(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// expand writes the bytes a text file cannot hold.
func expand(b []byte) []byte {
	for name, to := range map[string]string{
		"<BOM>": "\xef\xbb\xbf", "<CR>": "\r", "<LATIN1>": "\xe9", "<NUL>": "\x00", "<ESC>": "\x1b", "<TAB>": "\t",
		"<UTF16>": "\xff\xfes\x00", "<DEEP>": strings.Repeat("[", 5000), "<DASHES>": strings.Repeat("- ", 5000),
	} {
		b = bytes.ReplaceAll(b, []byte(name), []byte(to))
	}
	return b
}
