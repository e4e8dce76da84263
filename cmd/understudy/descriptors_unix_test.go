//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestTheLimitOfOpenFilesIsRaised starts it with a soft limit of 256 open files, and
// once with a hard one too.
func TestTheLimitOfOpenFilesIsRaised(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link, file := filepath.Join(dir, "understudy"), filepath.Join(dir, "c.yaml")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("virtual_models: {a: [{base_url: http://127.0.0.1:9, auth_style: none, model: m}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(open files|few open files).*limit=(\d+) streams=(\d+)`)
	for _, c := range []struct {
		ulimit, says string
		least, most  int
	}{{"ulimit -Sn 256", "open files", 1024, 1 << 40}, {"ulimit -Sn 256; ulimit -Hn 256", "few open files", 200, 256}} {
		cmd := exec.Command("sh", "-c", c.ulimit+`; exec "$0" "$@"`, link, "serve", "--no-repl", "-c", file, "--port", "0", "--admin", "off")
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
		log, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		found := false
		for lines := bufio.NewScanner(log); !found && lines.Scan(); {
			m := said.FindStringSubmatch(lines.Text())
			if found = m != nil; !found {
				continue
			}
			limit, _ := strconv.Atoi(m[2])
			streams, _ := strconv.Atoi(m[3])
			if m[1] != c.says || limit < c.least || limit > c.most || streams != (limit-ownDescriptors)/perStream {
				t.Errorf("%s: %s", c.ulimit, m[0])
			}
		}
		if !found {
			t.Errorf("%s: it says nothing of open files", c.ulimit)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
