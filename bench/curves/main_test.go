package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPicturesAreDrawn draws two curves and finds their words in them.
func TestPicturesAreDrawn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in.json")
	text := `{"curves":[{"name":"a","title":"Cost of things","x":"things","y_unit":"ms","log_x":true,"log_y":true,"series":[{"name":"ours","points":[{"x":1,"y":0.2},{"x":1000,"y":50}]}]},
		{"name":"b","title":"Flat","x":"things","y_unit":"ms","series":[{"name":"ours","points":[{"x":1,"y":7},{"x":2,"y":7}]},{"name":"theirs","points":[{"x":1,"y":9},{"x":2,"y":8}]}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := drawAll(file, dir); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{"a.svg": {"Cost of things", ">ms<", ">1,000<", ">0.1<", ">ours<"}, "b.svg": {"Flat", ">theirs<"}} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !bytes.Contains(svg, []byte(w)) {
				t.Errorf("%s does not say %s", name, w)
			}
		}
	}
}
