package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Artifact is one file of the release.
type Artifact struct {
	Name string
	Data []byte
	// Binary is the program in it; nil where there is none.
	Binary *Binary
}

// SHA256 is the artifact's sum in hex.
func (a Artifact) SHA256() string {
	sum := sha256.Sum256(a.Data)
	return hex.EncodeToString(sum[:])
}

// sha1Of is what SPDX wants of every file besides; nothing relies on it.
func sha1Of(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}

// sums are the lines that sha256sum -c reads, sorted by name.
func sums(list []Artifact) []byte {
	var lines []string
	for _, a := range list {
		lines = append(lines, a.SHA256()+"  "+a.Name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return []byte(strings.Join(lines, ""))
}

// isOurs tells the names that a release has from others.
func isOurs(name string) bool {
	return strings.HasPrefix(name, "understudy") || name == sumsName || name == containerName
}

// write puts the artifacts into dir. What a former release has left there goes,
// directories stay; where there is any other file, nothing is done.
func write(dir string, list []Artifact) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	there = slices.DeleteFunc(there, func(e os.DirEntry) bool { return e.IsDir() })
	for _, entry := range there {
		if !entry.Type().IsRegular() || !isOurs(entry.Name()) {
			return fmt.Errorf("%s holds %s, which is no file of a release: name another directory with -out", dir, entry.Name())
		}
	}
	for _, entry := range there {
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	for _, a := range list {
		if err := os.WriteFile(filepath.Join(dir, a.Name), a.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
