package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Configurations hold keys. Whatever name is looked for by default is never committed
// by accident, at the top of the tree; the examples are.
func TestDefaultNamesAreIgnoredByGit(t *testing.T) {
	text, err := os.ReadFile("../../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Fields(string(text))
	for _, name := range configNames {
		if !slices.Contains(ignored, "/"+name) {
			t.Errorf(".gitignore lacks /%s", name)
		}
		if slices.Contains(ignored, name) {
			t.Errorf(".gitignore has %s without a slash, which hides examples/%s too", name, name)
		}
	}
}
