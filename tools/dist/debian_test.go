package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
)

// members are the files of a package: those it installs under their path, those for
// dpkg under their name.
func members(t *testing.T, deb []byte) (heads map[string]*tar.Header, data map[string][]byte) {
	t.Helper()
	heads, data = map[string]*tar.Header{}, map[string][]byte{}
	for outer := ar.NewReader(bytes.NewReader(deb)); ; {
		part, err := outer.Next()
		if err == io.EOF {
			return heads, data
		}
		if err != nil {
			t.Fatal(err)
		}
		if !part.ModTime.Equal(sample.Date) {
			t.Errorf("%s is of %s", part.Name, part.ModTime)
		}
		if !strings.HasSuffix(part.Name, ".tar.gz") {
			continue
		}
		unzipped, err := gzip.NewReader(outer)
		if err != nil {
			t.Fatal(err)
		}
		for inner := tar.NewReader(unzipped); ; {
			h, err := inner.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !h.ModTime.Equal(sample.Date) || h.Uid != 0 || h.Gid != 0 {
				t.Errorf("%+v", h)
			}
			name := strings.TrimPrefix(h.Name, ".")
			heads[name] = h
			if data[name], err = io.ReadAll(inner); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDebianPackage: what is where in the package, and for whom.
func TestDebianPackage(t *testing.T) {
	a := made(t).named(t, "_linux_amd64.deb")
	heads, data := members(t, a.Data)
	for name, mode := range map[string]int64{
		"/usr/bin/understudy": 0o755, "/etc/understudy/understudy.yaml": 0o600, "/etc/understudy/keys/": 0o700,
		"/usr/lib/systemd/system/understudy.service": 0o644, "/usr/lib/systemd/system/understudy.socket": 0o644,
		"/usr/lib/systemd/system/understudy.service.d/10-package.conf": 0o644, "/usr/share/doc/understudy/copyright": 0o644,
		"/usr/share/man/man1/understudy.1.gz": 0o644, "/usr/share/bash-completion/completions/understudy": 0o644,
		"/usr/share/zsh/vendor-completions/_understudy": 0o644, "/usr/share/fish/vendor_completions.d/understudy.fish": 0o644,
		"/postinst": 0o755, "/prerm": 0o755, "/postrm": 0o755,
	} {
		if h := heads[name]; h == nil || h.Mode&0o7777 != mode {
			t.Errorf("%s: %+v", name, h)
		}
	}
	for name, h := range heads {
		if strings.HasPrefix(name, "/usr/share/") && h.Typeflag == tar.TypeReg && len(data[name]) < 100 {
			t.Errorf("%s holds %q", name, data[name])
		}
	}
	if got := string(data["/conffiles"]); strings.TrimSpace(got) != "/etc/understudy/understudy.yaml" {
		t.Errorf("conffiles: %q", got)
	}
	for _, want := range []string{"Package: understudy\n", "Version: 1.2.3\n", "Architecture: amd64\n", "Depends: passwd\n"} {
		if !strings.Contains(string(data["/control"]), want) {
			t.Errorf("control has no %q:\n%s", want, data["/control"])
		}
	}
	copyright := string(data["/usr/share/doc/understudy/copyright"])
	for _, want := range []string{"\nFiles: *\nCopyright: the understudy authors\nLicense: Apache-2.0\n ", "\n .\n", "Version 2.0, January 2004\n"} {
		if !strings.Contains(copyright, want) {
			t.Errorf("copyright has no %q:\n%.300s", want, copyright)
		}
	}
	for _, name := range []string{"/postinst", "/prerm", "/postrm"} {
		command(t, "", "sh", "-n", saved(t, Artifact{Name: "script", Data: data[name]}))
	}
}

// TestInstalledConfiguration: as installed it sets nothing, and says why it does not
// serve; without the "#" it is the template that init writes.
func TestInstalledConfiguration(t *testing.T) {
	release := made(t)
	installed := commentedOut(release.extras.YAML)
	head, body, found := strings.Cut(string(installed), "\n\n")
	if !found {
		t.Fatalf("no head:\n%s", installed)
	}
	for line := range strings.Lines(head + "\n" + body) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			t.Errorf("it sets %q", line)
		}
	}
	var plain strings.Builder
	for line := range strings.Lines(body) {
		plain.WriteString(strings.TrimPrefix(line, "#"))
	}
	if !strings.HasSuffix(string(release.extras.YAML), plain.String()) || !strings.HasPrefix(plain.String(), "virtual_models:") {
		t.Errorf("without the \"#\" it is:\n%s", plain.String())
	}
	path := saved(t, Artifact{Name: "understudy.yaml", Data: []byte(plain.String())})
	command(t, filepath.Dir(path), release.binaries[0].Path, "check", "-c", path)
}
