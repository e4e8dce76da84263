package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// configNames are the configuration files looked for, in this order.
var configNames = []string{"understudy.yaml", "understudy.toml", "config.yaml", "config.toml"}

var errNoConfig = errors.New("no configuration file")

// find is the configuration file to use: the one named, or the first default name
// in the working directory, beside the program, or in the user's configuration
// directory.
func (f configFlag) find() (string, error) {
	if f.Config != "" {
		return f.Config, nil
	}
	dirs := []string{"."}
	if program, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(program))
	}
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "understudy"))
	}
	for _, dir := range dirs {
		for _, name := range configNames {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%w: name one with -c, or write one with `understudy init` (`understudy demo` needs none)", errNoConfig)
}
