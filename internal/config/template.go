package config

import (
	"embed"
	"slices"
)

var (
	//go:embed template.yaml
	templateYAML []byte
	//go:embed template.toml
	templateTOML []byte
	//go:embed templates
	templates embed.FS
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

// Templates names the purposes that there is a template for.
var Templates = []string{"codex", "claude-code", "open-webui", "pool"}

// TemplateFor is [Template] for a purpose, one of [Templates]. Any other gives
// Template itself.
func TemplateFor(purpose string, f Format) []byte {
	if purpose == "pool" && f == TOML {
		return Template(f)
	}
	text, err := templates.ReadFile("templates/" + purpose + "." + f.String())
	if err != nil {
		return Template(f)
	}
	return text
}
