//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wellFormed has a parser read PowerShell; it gives what is wrong.
func wellFormed(t *testing.T, text string) (problems string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "--liftoff-only", "powershell.mjs") // optimizing the grammar takes 20 s
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "it is not PowerShell: " + string(out)
	}
	return ""
}

// TestPowerShell: the completion script, and what the pages say to type, is PowerShell.
func TestPowerShell(t *testing.T) {
	if wellFormed(t, "if ($x { }\n") == "" {
		t.Fatal("the parser takes everything")
	}
	script, err := exec.CommandContext(t.Context(), binary, "completion", "powershell").Output()
	if err != nil {
		t.Fatal(err)
	}
	if problems := wellFormed(t, string(script)); len(script) < 500 || problems != "" {
		t.Errorf("the completion script: %s", problems)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?ms)^```powershell\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			blocks++
			if problems := wellFormed(t, m[1]); problems != "" {
				t.Errorf("%s: %s\n%s", page, problems, m[1])
			}
		}
	}
	if blocks < 4 {
		t.Errorf("%d blocks", blocks)
	}
}
