//go:build verify

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// underTest are the systems that are built for the tests: all, or those that TARGETS
// names, this machine's first in any case.
var underTest = func() []Target {
	list, err := parseTargets(os.Getenv("TARGETS"))
	if err != nil {
		panic(err)
	}
	return append([]Target{native()}, slices.DeleteFunc(slices.Clone(list), func(t Target) bool { return t == native() })...)
}()

// fromScratch has the second build begin with an empty cache.
const fromScratch = true

// root is a command line that runs as root: as it is for root, else through sudo,
// which must not ask.
func root(args ...string) []string {
	if os.Geteuid() == 0 {
		return args
	}
	return append([]string{"sudo", "-n", "--"}, args...)
}

// asRoot runs a command as root to its end.
func asRoot(t *testing.T, args ...string) string {
	t.Helper()
	args = root(args...)
	return command(t, "", args[0], args[1:]...)
}

// TestContainer runs what the Containerfile puts into the image, in a root directory
// that holds nothing else, as the image's user, with the image's command line; and
// asks for its health as the engine does. No engine is needed for that.
func TestContainer(t *testing.T) {
	release := made(t)
	recipe := instructions(t, release.named(t, containerName).Data)
	image := filepath.Join(t.TempDir(), "image")
	program := unpacked(t, release.named(t, "linux_"+runtime.GOARCH+".tar.gz"))["understudy"]
	certificates, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	u := newUpstream(t)
	port := freePort(t)
	conf := fmt.Sprintf("clients: [{name: laptop, key: REPLACE-ME-laptop}]\nserver: {port: %d, admin: \"off\"}\nvirtual_models:\n  auto:\n    - {base_url: %q, auth_style: none, model: m}\n", port, u.URL)
	for name, file := range map[string]struct {
		mode os.FileMode
		data []byte
	}{
		"usr/bin/understudy":                 {0o755, program},
		"etc/ssl/certs/ca-certificates.crt":  {0o644, certificates},
		"etc/understudy/understudy.yaml":     {0o644, []byte(conf)},
		"var/lib/understudy/.keep-directory": {0o600, nil},
	} {
		path := filepath.Join(image, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.data, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	asRoot(t, "chown", "-R", recipe.user, image+"/var/lib/understudy")
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		t.Fatal(err)
	}
	inside := func(words ...string) *exec.Cmd {
		words = root(append([]string{"env", "-i"}, append(recipe.env, append([]string{chroot, "--userspec=" + recipe.user, image}, words...)...)...)...)
		return exec.CommandContext(t.Context(), words[0], words[1:]...)
	}
	if out, err := inside(recipe.health...).CombinedOutput(); exitCode(err) != 1 {
		t.Errorf("nothing runs, and it is called healthy: %v %s", err, out)
	}
	p := start(t, inside(append(recipe.entry, recipe.command...)...))
	out, err := inside(recipe.health...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ok: ") {
		t.Errorf("unhealthy: %v %s", err, out)
	}
	t.Logf("healthcheck: %s", out)
	asRoot(t, "kill", "-INT", strconv.Itoa(p.Process.Pid)) // env and chroot have become it
	for range p.out {
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, p.errs)
	}
	if out, err := inside(recipe.health...).CombinedOutput(); exitCode(err) != 1 {
		t.Errorf("it is over, and called healthy: %v %s", err, out)
	}
	asRoot(t, "rm", "-rf", image)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func exitCode(err error) int {
	if failed, ok := err.(*exec.ExitError); ok {
		return failed.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestDebianLife installs the package in a copy of this system that goes away
// afterwards, looks at what is there, runs the service's command line as its user,
// upgrades, removes and purges.
func TestDebianLife(t *testing.T) {
	release := made(t)
	dir := t.TempDir()
	later := sample
	later.Version = "1.3.0"
	again, err := build(t.Context(), checkout, t.TempDir(), native(), later)
	if err != nil {
		t.Fatal(err)
	}
	next, err := debian(again, later, release.extras)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/debian.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"old.deb": release.named(t, "_linux_"+runtime.GOARCH+".deb").Data, "new.deb": next.Data, "script": script} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u := newUpstream(t)
	said := asRoot(t, "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", `
		mkdir "$1/over" && mount -t tmpfs tmpfs "$1/over" && mkdir "$1/over/up" "$1/over/work" "$1/over/root"
		mount -t overlay overlay -o "lowerdir=/,upperdir=$1/over/up,workdir=$1/over/work" "$1/over/root"
		for d in dev sys; do mount --rbind "/$d" "$1/over/root/$d"; done
		mount -t proc proc "$1/over/root/proc"
		mkdir -p "$1/over/root/mnt/debs" && cp "$1/old.deb" "$1/new.deb" "$1/script" "$1/over/root/mnt/debs/"
		exec chroot "$1/over/root" sh -eu /mnt/debs/script "$2"`, "sh", dir, u.URL)
	t.Log(said)
	if !strings.HasSuffix(said, "all of it went well\n") || u.asked.Load() != 4 {
		t.Errorf("the upstream was asked %d times:\n%s", u.asked.Load(), said)
	}
}

// TestUnit has systemd look at the unit as the package installs it.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatalf("install systemd for this test: %v", err)
	}
	_, data := members(t, made(t).named(t, "_linux_"+runtime.GOARCH+".deb").Data)
	top := t.TempDir()
	for name, text := range data {
		if !strings.HasPrefix(name, "/usr/lib/systemd/") && name != "/usr/bin/understudy" || strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(top, "usr/lib/systemd/system/understudy.service")
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold=20", unit)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("too little is forbidden: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Log(lines[len(lines)-1])
}

// TestFormula has ruby read the formula.
func TestFormula(t *testing.T) {
	path := saved(t, made(t).named(t, formulaName))
	if said := command(t, "", "ruby", "-c", path); !strings.Contains(said, "Syntax OK") {
		t.Error(said)
	}
}
