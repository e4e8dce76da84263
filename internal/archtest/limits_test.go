package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every bound in docs/limits.md names the tests that show it, and they exist.
func TestTheLimitsHaveTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	goFiles(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(text, -1) {
				tests[m[1]] = true
			}
		}
	})
	named := regexp.MustCompile("`(Test\\w+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		names := named.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| what |") && !strings.HasPrefix(line, "| ---") {
			if rows++; len(names) == 0 {
				t.Errorf("no test shows: %s", line)
			}
		}
		for _, n := range names {
			if !tests[n[1]] {
				t.Errorf("there is no %s", n[1])
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d bounds were found", rows)
	}
}
