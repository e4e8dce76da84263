package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

const (
	sumsName      = "SHA256SUMS"
	containerName = "Containerfile"
	formulaName   = "understudy.rb"
	scoopName     = "understudy.json"
)

// summary is what package managers show.
const summary = "Local failover proxy for LLM APIs"

// archives are the artifacts that hold the program for a package manager, by target.
func archives(list []Artifact) map[Target]Artifact {
	found := map[Target]Artifact{}
	for _, a := range list {
		if a.Binary != nil && !strings.HasSuffix(a.Name, ".deb") {
			found[a.Binary.Target] = a
		}
	}
	return found
}

// formula is the Homebrew formula.
func formula(r Release, list []Artifact) (Artifact, error) {
	type stanza struct{ On, URL, SHA256 string }
	type system struct {
		On   string
		CPUs []stanza
	}
	found := archives(list)
	var systems []system
	for _, s := range []struct{ os, on string }{{"darwin", "macos"}, {"linux", "linux"}} {
		one := system{On: s.on}
		for _, c := range []struct{ arch, on string }{{"arm64", "arm"}, {"amd64", "intel"}} {
			if a, ok := found[Target{s.os, c.arch}]; ok {
				one.CPUs = append(one.CPUs, stanza{c.on, r.Download(a.Name), a.SHA256()})
			}
		}
		if len(one.CPUs) > 0 {
			systems = append(systems, one)
		}
	}
	t, err := template.New("formula").Parse(string(packagingFile("formula.rb.tmpl")))
	if err != nil {
		return Artifact{}, fmt.Errorf("formula: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{"Release": r, "Summary": summary, "Systems": systems}); err != nil {
		return Artifact{}, fmt.Errorf("formula: %w", err)
	}
	return Artifact{Name: formulaName, Data: out.Bytes()}, nil
}

// scoop is the Scoop manifest.
func scoop(r Release, list []Artifact) (Artifact, error) {
	type source struct {
		URL  string `json:"url"`
		Hash string `json:"hash,omitempty"`
	}
	manifest := struct {
		Version      string            `json:"version"`
		Description  string            `json:"description"`
		Homepage     string            `json:"homepage"`
		License      string            `json:"license"`
		Architecture map[string]source `json:"architecture"`
		Bin          string            `json:"bin"`
		Notes        []string          `json:"notes"`
		CheckVer     map[string]string `json:"checkver"`
		AutoUpdate   map[string]any    `json:"autoupdate"`
	}{
		Version: r.Version, Description: summary, Homepage: r.Repository, License: licenceName,
		Architecture: map[string]source{}, Bin: "understudy.exe",
		Notes:    []string{"understudy init writes a configuration, understudy serve runs it.", "docs/install.md in the repository says more."},
		CheckVer: map[string]string{"github": r.Repository},
	}
	next := map[string]source{}
	for name, arch := range map[string]string{"64bit": "amd64", "arm64": "arm64"} {
		if a, ok := archives(list)[Target{"windows", arch}]; ok {
			manifest.Architecture[name] = source{r.Download(a.Name), a.SHA256()}
			next[name] = source{URL: r.Repository + "/releases/download/v$version/understudy_$version_windows_" + arch + ".zip"}
		}
	}
	manifest.AutoUpdate = map[string]any{"architecture": next, "hash": map[string]string{"url": "$baseurl/" + sumsName}}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(manifest); err != nil {
		return Artifact{}, fmt.Errorf("scoop manifest: %w", err)
	}
	return Artifact{Name: scoopName, Data: out.Bytes()}, nil
}

// container is the recipe of a container image that holds the program of the Linux
// archives beside it, and nothing else.
func container(r Release) (Artifact, error) {
	t, err := template.New("container").Parse(string(packagingFile("Containerfile.tmpl")))
	if err != nil {
		return Artifact{}, fmt.Errorf("containerfile: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r); err != nil {
		return Artifact{}, fmt.Errorf("containerfile: %w", err)
	}
	return Artifact{Name: containerName, Data: out.Bytes()}, nil
}
