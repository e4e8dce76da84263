package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In Windows' own PowerShell the Tab key completes what is being typed, as
// TestTheTabKey has it for other shells.
func TestTheTabKeyInPowerShell(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "understudy.yaml"), []byte(completeConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	typed := [][2]string{
		{"understudy rou", "route"},
		{"understudy rules rep", "replay"},
		{"understudy --log-format j", "json"},
		{"understudy route --mod", "--model"},
		{"understudy route --model auto", "auto-strong"},
		{"understudy completion pow", "powershell"},
	}
	var script strings.Builder
	script.WriteString("understudy completion powershell | Out-String | Invoke-Expression\n")
	for _, c := range typed {
		script.WriteString("$line = '" + c[0] + "'; (TabExpansion2 -inputScript $line -cursorColumn $line.Length).CompletionMatches | ForEach-Object { $line + ': ' + $_.CompletionText }\n")
	}
	cmd := exec.CommandContext(t.Context(), "powershell.exe", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", script.String())
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range typed {
		if want := c[0] + ": " + c[1] + "\r\n"; !strings.Contains(string(out), want) {
			t.Errorf("there is no %q:\n%s", want, out)
		}
	}
}
