package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the edits yield into testdata/edit")

// TestEditGolden runs the edits of testdata/edit. A file holds an input
// (in.yaml or in.toml), then any number of scripts ("1.edit", "set [path]
// value" and so on, one edit a line), each with the lines it changes ("1.out"),
// or the error it must end with.
func TestEditGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/edit/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { goldenEdit(t, name) })
	}
}

func goldenEdit(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	ar := parseArchive(text)
	var src Source
	files := map[string]string{}
	for _, f := range ar.Files {
		files[f.Name] = string(f.Data)
		if format, err := FormatOf(f.Name); err == nil {
			src = Source{Path: f.Name, Format: format, Bytes: f.Data}
		}
	}
	if strings.Contains(name, "crlf") {
		src.Bytes = bytes.ReplaceAll(src.Bytes, []byte("\n"), []byte("\r\n"))
	}
	for i, f := range ar.Files {
		script, ok := strings.CutSuffix(f.Name, ".edit")
		if !ok {
			continue
		}
		got := "error: "
		out, err := runEdits(src, string(f.Data))
		if err != nil {
			got += err.Error() + "\n"
		} else {
			got = lineDiff(string(src.Bytes), string(out.Bytes))
		}
		if strings.Contains(name, "crlf") {
			if bytes.Count(out.Bytes, []byte("\n")) != bytes.Count(out.Bytes, []byte("\r\n")) {
				t.Errorf("%s: a bare line feed in a file with CRLF:\n%q", f.Name, got)
			}
			got = strings.ReplaceAll(got, "\r\n", "\n")
		}
		if *update {
			if i+1 < len(ar.Files) && ar.Files[i+1].Name == script+".out" {
				ar.Files[i+1].Data = []byte(got)
			} else {
				t.Errorf("%s: no %s.out behind it", f.Name, script)
			}
			continue
		}
		if diff := cmp.Diff(files[script+".out"], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, ar.format(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runEdits applies one edit per line: set PATH VALUE, insert PATH INDEX VALUE,
// remove PATH, move PATH FROM TO; paths and values in JSON.
func runEdits(s Source, script string) (Source, error) {
	for line := range strings.Lines(script) {
		op, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if op == "" {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(rest))
		dec.UseNumber()
		var args []any
		for dec.More() {
			var v any
			if err := dec.Decode(&v); err != nil {
				return s, fmt.Errorf("%s: %w", line, err)
			}
			args = append(args, fromJSON(v))
		}
		var err error
		path := args[0].([]any)
		for i := range path {
			if n, ok := path[i].(int64); ok {
				path[i] = int(n)
			}
		}
		switch op {
		case "set":
			s, err = s.Set(path, args[1])
		case "insert":
			s, err = s.Insert(path, int(args[1].(int64)), args[2])
		case "remove":
			s, err = s.Remove(path)
		case "move":
			s, err = s.Move(path, int(args[1].(int64)), int(args[2].(int64)))
		default:
			err = errors.New("unknown edit " + op)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func fromJSON(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = fromJSON(v[k])
		}
	}
	return v
}

// lineDiff lists the lines that go (-) and come (+), each run under the number
// of the line of the input it begins at.
func lineDiff(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	same := make([][]int, len(a)+1) // length of the longest common tail
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out strings.Builder
	write := func(sign, line string) {
		out.WriteString(sign + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("<no line break>\n")
		}
	}
	i, j, inRun := 0, 0, false
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j, inRun = i+1, j+1, false
			continue
		}
		if !inRun {
			fmt.Fprintf(&out, "@%d\n", i+1)
			inRun = true
		}
		if j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1] {
			write("-", a[i])
			i++
		} else {
			write("+", b[j])
			j++
		}
	}
	return out.String()
}

// archive is a txtar file: a comment, then files behind "-- name --" lines.
type archive struct {
	Comment string
	Files   []archived
}

type archived struct {
	Name string
	Data []byte
}

func parseArchive(text []byte) *archive {
	ar := &archive{}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, end := strings.CutSuffix(name, " --"); ok && end {
			ar.Files = append(ar.Files, archived{Name: name})
		} else if len(ar.Files) == 0 {
			ar.Comment += line
		} else {
			f := &ar.Files[len(ar.Files)-1]
			f.Data = append(f.Data, line...)
		}
	}
	return ar
}

func (ar *archive) format() []byte {
	text := []byte(ar.Comment)
	for _, f := range ar.Files {
		text = append(text, "-- "+f.Name+" --\n"...)
		text = append(text, f.Data...)
	}
	return text
}
