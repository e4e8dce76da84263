package main

import (
	"fmt"
	"os"
)

// assemble packs binaries and extras into everything a release holds, sums last. It
// is a function of its arguments: the same give the same bytes.
func assemble(r Release, binaries []Binary, x Extras) ([]Artifact, error) {
	var list []Artifact
	for _, b := range binaries {
		a, err := archive(b, r, x)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	for _, b := range binaries {
		if b.Target.OS != "linux" {
			continue
		}
		a, err := debian(b, r, x)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	materials, err := bill(r, list)
	if err != nil {
		return nil, err
	}
	others := []func() (Artifact, error){
		func() (Artifact, error) {
			return Artifact{Name: "understudy_" + r.Version + ".spdx.json", Data: materials}, nil
		},
		func() (Artifact, error) { return formula(r, list) },
		func() (Artifact, error) { return scoop(r, list) },
		func() (Artifact, error) { return container(r) },
	}
	var rest []Artifact
	for _, make := range others {
		a, err := make()
		if err != nil {
			return nil, err
		}
		rest = append(rest, a)
	}
	list = append(list, rest...)
	statement, err := provenance(r, list)
	if err != nil {
		return nil, err
	}
	list = append(list, Artifact{Name: "understudy_" + r.Version + ".intoto.json", Data: statement})
	return append(list, Artifact{Name: sumsName, Data: sums(list)}), nil
}

// archive packs a binary as people of its system expect it, flat: the program, the
// licence, the README and the templates that init writes.
func archive(b Binary, r Release, x Extras) (Artifact, error) {
	program, err := os.ReadFile(b.Path)
	if err != nil {
		return Artifact{}, err
	}
	entries := []Entry{
		{"LICENSE", 0o644, x.Licence},
		{"README.md", 0o644, x.Readme},
		{"config.example.toml", 0o644, x.TOML},
		{"config.example.yaml", 0o644, x.YAML},
		{b.Name(), 0o755, program},
	}
	pack, ending := packTar, ".tar.gz"
	if b.Target.OS == "windows" {
		pack, ending = packZip, ".zip"
	}
	data, err := pack(entries, r.Date)
	if err != nil {
		return Artifact{}, fmt.Errorf("archive for %s: %w", b.Target, err)
	}
	return Artifact{Name: fmt.Sprintf("understudy_%s_%s_%s%s", r.Version, b.Target.OS, b.Target.Arch, ending), Data: data, Binary: &b}, nil
}
