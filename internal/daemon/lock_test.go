package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// opened opens a daemon over a file a second time.
func opened(path string) error {
	d, err := Open(Options{ConfigPath: path})
	if err == nil {
		d.Close()
	}
	return err
}

// A second process on the same configuration is refused, and told by whom and what to
// do; a copy of the file has a state of its own.
func TestAStateHasOneOwner(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1")).serve()
	err := opened(r.path)
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("the second one: %v", err)
	}
	for _, want := range []string{fmt.Sprintf("process %d ", os.Getpid()), r.state, "a copy of the file with a state_dir of its own"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "understudy.yaml")
	if err := os.WriteFile(other, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := opened(other); err != nil {
		t.Errorf("a copy: %v", err)
	}
	r.drain()
	r.quits(10 * time.Second)
	if err := opened(r.path); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

// Whoever cannot open is no owner: the state is free again.
func TestARefusedStartLeavesTheStateFree(t *testing.T) {
	holder := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r.Close()
	r.write(strings.Replace(vm("", "a http://127.0.0.1:1 m1"), "port: 0", "port: "+holder.Addr()[strings.LastIndex(holder.Addr(), ":")+1:], 1))
	if err := opened(r.path); err == nil || errors.Is(err, ErrInUse) {
		t.Fatalf("a port that is taken: %v", err)
	}
	r.write(vm("", "a http://127.0.0.1:1 m1"))
	if err := opened(r.path); err != nil {
		t.Error(err)
	}
}

// kill -9 leaves no lock behind, whatever stands in its file.
func TestAKilledProcessLeavesNoLock(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m1"))
	r.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		cmd := exec.Command(self, "-test.run=^$")
		cmd.Env = append(os.Environ(), victimVariable+"="+r.path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("it says nothing")
		}
		if err := opened(r.path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", cmd.Process.Pid)) {
			t.Errorf("while process %d runs: %v", cmd.Process.Pid, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if err := opened(r.path); err != nil {
			t.Errorf("after it was killed: %v", err)
		}
	}
}

// A state directory that cannot be written is no reason not to start.
func TestWithoutALock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, path: filepath.Join(dir, "understudy.yaml"), state: filepath.Join(file, "state")}
	r.write(vm("", "a http://127.0.0.1:1 m1"))
	r.open()
	if r.log.count("make the state directory") == 0 {
		t.Errorf("nobody is told:\n%s", r.log)
	}
}
