package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// licenceName is LICENSE by its SPDX identifier.
const licenceName = "Apache-2.0"

// Extras are what a release holds besides the program: some are files of the
// checkout, the others the program itself prints.
type Extras struct {
	Licence, Readme []byte
	// YAML and TOML are the templates that init writes.
	YAML, TOML []byte
	// Everything is the example that shows every setting.
	Everything []byte
	// Service and Socket are systemd's units.
	Service, Socket []byte
	// Manual is the manual page.
	Manual []byte
	// Completions are the shells' completions, named by their shell.
	Completions []Entry
}

// gather collects the extras from a checkout and from a program that runs here.
func gather(ctx context.Context, src string, b Binary, r Release) (x Extras, err error) {
	for name, to := range map[string]*[]byte{"LICENSE": &x.Licence, "README.md": &x.Readme, "examples/config.yaml": &x.Everything,
		"examples/understudy.service": &x.Service, "examples/understudy.socket": &x.Socket} {
		if *to, err = os.ReadFile(filepath.Join(src, name)); err != nil {
			return x, err
		}
	}
	x.Readme = absoluteLinks(x.Readme, r)
	dir, err := os.MkdirTemp("", "understudy-dist-")
	if err != nil {
		return x, err
	}
	defer os.RemoveAll(dir)
	for name, to := range map[string]*[]byte{"understudy.yaml": &x.YAML, "understudy.toml": &x.TOML} {
		if _, err := say(ctx, b, dir, "init", name); err != nil {
			return x, err
		}
		if *to, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return x, err
		}
	}
	if x.Manual, err = say(ctx, b, dir, "man"); err != nil {
		return x, err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := say(ctx, b, dir, "completion", shell)
		if err != nil {
			return x, err
		}
		x.Completions = append(x.Completions, Entry{Name: shell, Mode: 0o644, Data: text})
	}
	return x, nil
}

// say runs the program in dir and gives what it prints.
func say(ctx context.Context, b Binary, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.Path, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, []string{"HOME=" + dir}, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("understudy %v: %w", args, err)
	}
	return out, nil
}
