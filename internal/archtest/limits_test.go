package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every bound in docs/limits.md and every row of docs/security.md that says what stops
// an attack names the tests that show it, and they exist.
func TestClaimsHaveTests(t *testing.T) {
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
	for page, least := range map[string]int{"limits.md": 20, "security.md": 40} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		rows, head := 0, ""
		for line := range strings.Lines(string(text)) {
			names := named.FindAllStringSubmatch(line, -1)
			switch {
			case !strings.HasPrefix(line, "| "):
				head = ""
			case head == "":
				head = strings.TrimSpace(line)
			case strings.HasPrefix(line, "| ---"):
			case strings.HasSuffix(head, "| test |"):
				if rows++; len(names) == 0 {
					t.Errorf("%s: no test shows: %s", page, line)
				}
			}
			for _, n := range names {
				if !tests[n[1]] {
					t.Errorf("%s: there is no %s", page, n[1])
				}
			}
		}
		if rows < least {
			t.Errorf("%s: %d claims were found", page, rows)
		}
	}
}
