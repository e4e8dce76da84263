package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// packaging holds the parts of the packages that are written by hand.
//
//go:embed packaging
var packaging embed.FS

func packagingFile(name string) []byte {
	text, err := packaging.ReadFile("packaging/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// maintainer is whom the package names: the project, since no person stands for it.
const maintainer = "The understudy project <understudy@understudy.invalid>"

// A placed file is one of a package, with where it goes.
type placed struct {
	at   string
	mode fs.FileMode
	data []byte
	conf bool // changes by the administrator are kept
}

// debian packs the program for Debian and its relatives: a service that belongs to a
// system user, its configuration, the manual page and the completions. What comes
// of the program itself is in extras.
func debian(b Binary, r Release, extras Extras) (Artifact, error) {
	program, err := os.ReadFile(b.Path)
	if err != nil {
		return Artifact{}, err
	}
	const docs = "/usr/share/doc/understudy/"
	list := []placed{
		{"/usr/bin/understudy", 0o755, program, false},
		{"/usr/lib/systemd/system/understudy.service", 0o644, extras.Service, false},
		{"/usr/lib/systemd/system/understudy.service.d/10-package.conf", 0o644, packagingFile("service.conf"), false},
		{"/usr/lib/systemd/system/understudy.socket", 0o644, extras.Socket, false},
		{"/etc/understudy/understudy.yaml", 0o600, commentedOut(extras.YAML), true},
		{docs + "copyright", 0o644, append(packagingFile("copyright"), licenceField(extras.Licence)...), false},
		{docs + "README.md", 0o644, extras.Readme, false},
		{docs + "examples/config.yaml", 0o644, extras.Everything, false},
	}
	for _, e := range extras.Completions {
		if at := debianCompletions[e.Name]; at != "" {
			list = append(list, placed{at, 0o644, e.Data, false})
		}
	}
	if len(extras.Manual) > 0 {
		zipped, err := gzipped(extras.Manual)
		if err != nil {
			return Artifact{}, err
		}
		list = append(list, placed{"/usr/share/man/man1/understudy.1.gz", 0o644, zipped, false})
	}
	data, err := pack(list, b.Target.Arch, r)
	if err != nil {
		return Artifact{}, fmt.Errorf("pack for Debian on %s: %w", b.Target.Arch, err)
	}
	return Artifact{Name: fmt.Sprintf("understudy_%s_linux_%s.deb", r.Version, b.Target.Arch), Data: data, Binary: &b}, nil
}

// debianCompletions is where each shell looks on Debian.
var debianCompletions = map[string]string{
	"bash": "/usr/share/bash-completion/completions/understudy",
	"zsh":  "/usr/share/zsh/vendor-completions/_understudy",
	"fish": "/usr/share/fish/vendor_completions.d/understudy.fish",
}

// pack has nfpm make the package. It takes files from disk only, so they go through
// a directory of ours.
func pack(list []placed, arch string, r Release) ([]byte, error) {
	stage, err := os.MkdirTemp("", "understudy-deb-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	info := &nfpm.Info{
		Name: "understudy", Arch: arch, Platform: "linux", Version: r.Version, Section: "net", Priority: "optional", Maintainer: maintainer,
		Homepage: r.Repository, License: licenceName, MTime: r.Date, DisableGlobbing: true,
		Description: "failover proxy for LLM APIs\nOne local address for several LLM APIs. When one fails, another takes over before\nthe client sees a byte.",
	}
	info.Depends, info.Recommends = []string{"passwd"}, []string{"ca-certificates"}
	for i, f := range list {
		source := filepath.Join(stage, fmt.Sprint(i))
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return nil, err
		}
		kind := files.TypeFile
		if f.conf {
			kind = files.TypeConfig
		}
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: f.at, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: r.Date, Owner: "root", Group: "root", Size: int64(len(f.data))}})
	}
	// The unit hands these to the service, and must find them.
	info.Contents = append(info.Contents, &files.Content{Destination: "/etc/understudy/keys", Type: files.TypeDir,
		FileInfo: &files.ContentFileInfo{Mode: 0o700, MTime: r.Date, Owner: "root", Group: "root"}})
	for name, to := range map[string]*string{"postinst": &info.Scripts.PostInstall, "prerm": &info.Scripts.PreRemove, "postrm": &info.Scripts.PostRemove} {
		*to = filepath.Join(stage, name)
		if err := os.WriteFile(*to, packagingFile(name), 0o700); err != nil {
			return nil, err
		}
	}
	info = nfpm.WithDefaults(info)
	var out bytes.Buffer
	if err := deb.Default.Package(info, &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// commentedOut is the service's configuration as it is installed: the template with
// every line a comment, below a head that says what to do.
func commentedOut(template []byte) []byte {
	out := bytes.NewBuffer(packagingFile("understudy.yaml"))
	begun := false // the template has a head of its own
	for line := range strings.Lines(string(template)) {
		begun = begun || line != "\n" && !strings.HasPrefix(line, "#")
		switch {
		case !begun:
		case line == "\n":
			out.WriteString(line)
		default:
			out.WriteString("#" + line)
		}
	}
	return out.Bytes()
}

// licenceField is the licence as Debian's copyright files hold it: under its SPDX name,
// indented, a dot for an empty line. The holder stands here, since the Apache licence's
// own text names nobody.
func licenceField(licence []byte) []byte {
	var out strings.Builder
	out.WriteString("Copyright: the understudy authors\nLicense: " + licenceName + "\n")
	for line := range strings.Lines(string(licence)) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			line = "."
		}
		out.WriteString(" " + line + "\n")
	}
	return []byte(out.String())
}

func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
