package config

import (
	_ "embed"
	"slices"
)

var (
	//go:embed template.yaml
	templateYAML []byte
	//go:embed template.toml
	templateTOML []byte
)

// Template is a first configuration to start from, commented, with keys from
// the environment: a virtual model in YAML, a pool in TOML. The caller may keep
// and change the bytes.
func Template(f Format) []byte {
	if f == TOML {
		return slices.Clone(templateTOML)
	}
	return slices.Clone(templateYAML)
}
