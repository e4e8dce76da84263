package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// unpacked reads an archive and checks what its entries say besides their bytes.
func unpacked(t *testing.T, a Artifact) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	note := func(name string, mode os.FileMode, r io.Reader) {
		want := os.FileMode(0o644)
		if strings.HasPrefix(name, "understudy") {
			want = 0o755
		}
		data, err := io.ReadAll(r)
		if err != nil || mode != want || files[name] != nil {
			t.Errorf("%s: %s, mode %o: %v", a.Name, name, mode, err)
		}
		files[name] = data
	}
	if strings.HasSuffix(a.Name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(a.Data), int64(len(a.Data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			if !f.Modified.Equal(sample.Date) {
				t.Errorf("%s: %s is of %s", a.Name, f.Name, f.Modified)
			}
			open, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			note(f.Name, f.Mode(), open)
		}
		return files
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(a.Data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(sample.Date) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Typeflag != tar.TypeReg {
			t.Errorf("%s: %+v", a.Name, h)
		}
		note(h.Name, h.FileInfo().Mode(), r)
	}
}

// TestArchives: each holds the program, the licence, the README and the templates
// that init writes, and nothing else; the program is the one for its system.
func TestArchives(t *testing.T) {
	release := made(t)
	for _, b := range release.binaries {
		ending := b.Target.OS + "_" + b.Target.Arch + ".tar.gz"
		if b.Target.OS == "windows" {
			ending = b.Target.OS + "_" + b.Target.Arch + ".zip"
		}
		a := release.named(t, ending)
		if a.Name != "understudy_1.2.3_"+ending {
			t.Errorf("it is called %s", a.Name)
		}
		files := unpacked(t, a)
		var names []string
		for name := range files {
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"LICENSE", "README.md", "config.example.toml", "config.example.yaml", b.Name()}; !slices.Equal(names, want) {
			t.Errorf("%s holds %v", a.Name, names)
		}
		if bytes.Contains(files["config.example.yaml"], []byte("\r")) || bytes.Contains(files["README.md"], []byte("](docs/")) {
			t.Errorf("%s: line ends, or links to files that are not there", a.Name)
		}
		for _, name := range []string{"config.example.toml", "config.example.yaml"} {
			if key := literalKey.Find(files[name]); key != nil || !bytes.Contains(files[name], []byte("_KEY")) {
				t.Errorf("%s: %s holds a key, or has no place for one: %q", a.Name, name, key)
			}
		}
		format(t, b.Target, files[b.Name()])
	}
}

// literalKey finds what holds a key itself, where an example only names the variable
// that does.
var literalKey = regexp.MustCompile(`(?m)^.*\b(api_key|key|admin_token)"?\s*[:=].*$|^.*\bsk-.*$`)

// format looks at a program with the means of its system's format: for which
// machine it is, that nothing else has to be loaded to run it on Linux, and that Go
// says of it what was asked for.
func format(t *testing.T, target Target, program []byte) {
	t.Helper()
	r := bytes.NewReader(program)
	switch target.OS {
	case "linux":
		f, err := elf.NewFile(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[target.Arch]; f.Machine != want || f.Type != elf.ET_EXEC {
			t.Errorf("%s: %s %s", target, f.Machine, f.Type)
		}
		if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 || f.Section(".interp") != nil || f.Section(".symtab") != nil {
			t.Errorf("%s: it is not static and stripped: %v", target, libraries)
		}
	case "darwin":
		f, err := macho.NewFile(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[target.Arch]; f.Cpu != want || f.Type != macho.TypeExec {
			t.Errorf("%s: %s %s", target, f.Cpu, f.Type)
		}
		libraries, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range libraries {
			if !strings.HasPrefix(name, "/usr/lib/") && !strings.HasPrefix(name, "/System/") {
				t.Errorf("%s needs %s", target, name)
			}
		}
		if target.Arch == "arm64" && !signed(f) {
			t.Errorf("%s is not signed: macOS kills such programs", target)
		}
	case "windows":
		f, err := pe.NewFile(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64}[target.Arch]; f.Machine != want {
			t.Errorf("%s: machine %x", target, f.Machine)
		}
		if head := f.OptionalHeader.(*pe.OptionalHeader64); head.Subsystem != pe.IMAGE_SUBSYSTEM_WINDOWS_CUI || head.DllCharacteristics&pe.IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE == 0 {
			t.Errorf("%s: subsystem %d, characteristics %x", target, head.Subsystem, head.DllCharacteristics)
		}
	}
	info, err := buildinfo.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	if said["GOOS"] != target.OS || said["GOARCH"] != target.Arch || said["CGO_ENABLED"] != "0" || said["-trimpath"] != "true" || info.GoVersion != runtime.Version() || info.Path != "understudy/cmd/understudy" {
		t.Errorf("%s: Go says %s %s %v", target, info.GoVersion, info.Path, said)
	}
}

// signed tells whether a program has a code signature, as the linker makes one.
func signed(f *macho.File) bool {
	const codeSignature = 0x1d // LC_CODE_SIGNATURE
	for _, l := range f.Loads {
		if raw := l.Raw(); f.ByteOrder.Uint32(raw) == codeSignature {
			return true
		}
	}
	return false
}

// TestNewUser does what somebody does who has downloaded the archive for this
// system: check the sums, unpack it, look at the version, write a configuration,
// check it, serve it, and send a request.
func TestNewUser(t *testing.T) {
	release := made(t)
	home := t.TempDir()
	for _, a := range release.list {
		if err := os.WriteFile(filepath.Join(home, a.Name), a.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if said := command(t, home, "sha256sum", "-c", sumsName); strings.Count(said, ": OK\n") != len(release.list)-1 {
		t.Errorf("the sums: %s", said)
	}
	here := native()
	command(t, home, "tar", "xzf", "understudy_1.2.3_"+here.OS+"_"+here.Arch+".tar.gz")
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	if said := command(t, home, "./understudy", "version"); !strings.HasPrefix(said, "understudy 1.2.3 ") {
		t.Errorf("version: %s", said)
	}
	if said := command(t, home, "./understudy", "version", "--json"); !strings.Contains(said, sample.Commit) || !strings.Contains(said, "2026-11-30T04:05:06Z") {
		t.Errorf("version: %s", said)
	}
	for _, name := range []string{"config.example.yaml", "config.example.toml"} {
		command(t, home, "./understudy", "check", "-c", name)
	}
	command(t, home, "./understudy", "init")
	written, err := os.ReadFile(filepath.Join(home, "understudy.yaml"))
	if example, _ := os.ReadFile(filepath.Join(home, "config.example.yaml")); err != nil || !bytes.Equal(written, example) {
		t.Errorf("init writes another template than the example: %v", err)
	}
	u := newUpstream(t)
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(settings(u.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(t.Context(), "./understudy", "--no-repl", "-c", "config.yaml")
	serve.Dir = home
	p := start(t, serve)
	ask(t, p.proxy)
	if u.asked.Load() != 2 || u.refused.Load() == 0 {
		t.Errorf("the upstream was asked %d times, and the broken one %d times", u.asked.Load(), u.refused.Load())
	}
	if said := command(t, home, "./understudy", "healthcheck", p.proxy); !strings.HasPrefix(said, "ok: ") {
		t.Errorf("healthcheck: %s", said)
	}
	p.end(t, os.Interrupt)
	if _, err := os.Stat(filepath.Join(home, ".local", "state", "understudy")); runtime.GOOS == "linux" && err != nil {
		t.Error(err)
	}
}
