package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"understudy/internal/config"
)

// initCommand writes a configuration to start from.
type initCommand struct {
	File string `arg:"" optional:"" default:"understudy.yaml" help:"Where to write it; the ending, .yaml, .yml or .toml, chooses the spelling."`
}

// Run writes the commented template, readable by its owner alone, and refuses to
// overwrite anything.
func (c *initCommand) Run(std streams) error {
	format, err := config.FormatOf(c.File)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and stays as it is: name another file, or move it away", c.File)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.File, errors.Unwrap(err))
	}
	_, err = f.Write(config.Template(format))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.File, err)
	}
	_, err = fmt.Fprintf(std.out, "wrote %s\n\nnext:\n  1. put your keys and models into it\n  2. understudy check -c %s\n  3. understudy serve -c %s\n  4. point your client's base URL at http://127.0.0.1:8787/v1\n", filepath.Clean(c.File), c.File, c.File)
	return err
}
