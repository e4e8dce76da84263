package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/internal/files"
)

// initCommand writes a configuration to start from.
type initCommand struct {
	For    string `enum:",codex,claude-code,open-webui,pool" default:"" placeholder:"CLIENT" help:"Write the one for a client, and print what to tell it: codex, claude-code, open-webui; or pool, for several accounts of one API."`
	Schema bool   `default:"true" negatable:"" help:"Put the schema for editors beside it (the default); --no-schema does not."`
	File   string `arg:"" optional:"" default:"understudy.yaml" complete:"configurations" help:"Where to write it; the ending, .yaml, .yml or .toml, chooses the spelling."`
}

// schemaName is the schema's file beside a configuration, as the templates name it.
const schemaName = "understudy.schema.json"

// Run writes the commented template, readable by its owner alone, and refuses to
// overwrite anything.
func (c *initCommand) Run(std streams) error {
	format, err := config.FormatOf(c.File)
	if err != nil {
		return err
	}
	err = writeNew(c.File, config.TemplateFor(c.For, format), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and stays as it is: name another file, or move it away", c.File)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "wrote %s\n", filepath.Clean(c.File))
	if c.Schema {
		if err := c.schema(std.out); err != nil {
			return err
		}
	}
	return c.next(std.out)
}

// schema puts the schema beside the configuration. One that is there stays: it may be
// of another version, and others may use it.
func (c *initCommand) schema(w io.Writer) error {
	path := filepath.Join(filepath.Dir(c.File), schemaName)
	err := writeNew(path, config.JSONSchema(), 0o644)
	switch {
	case err == nil:
		fmt.Fprintf(w, "wrote %s, by which editors complete and explain its keys\n", path)
	case !errors.Is(err, fs.ErrExist):
		return err
	default:
		if kept, err := os.ReadFile(path); err == nil && !bytes.Equal(kept, config.JSONSchema()) {
			fmt.Fprintf(w, "%s is there already and stays as it is; `understudy schema` prints the one of this version\n", path)
		}
	}
	return nil
}

// writeNew writes a file that must not be there yet. Where the bits of its mode mean
// nothing to the system (Windows), one that is its owner's alone is closed to others
// before anything is in it.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Unwrap(err))
	}
	if mode&0o077 == 0 && runtime.GOOS == "windows" {
		err = files.ClosePrivate(path)
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// next says what is left to do.
func (c *initCommand) next(w io.Writer) error {
	keys := "put your keys and models into it"
	tell := "point your client's base URL at http://127.0.0.1:8787/v1"
	s, ok := settings[c.For]
	if ok {
		keys = "put your models and upstreams into it, and your keys into the environment:\n\n" + indent(exports(s.keys)) + "\n"
		tell = s.where + ":\n\n" + indent(s.text)
		if s.note != "" {
			tell += "\n\n     " + s.note
		}
	}
	_, err := fmt.Fprintf(w, "\nnext:\n  1. %s\n  2. understudy check -c %s\n  3. understudy serve -c %s\n  4. %s\n", keys, c.File, c.File, tell)
	return err
}

func exports(names []string) string {
	lines := slices.Clone(names)
	for i := range lines {
		lines[i] = "export " + lines[i] + "=..."
	}
	return strings.Join(lines, "\n")
}

func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if lines[i] != "" {
			lines[i] = "       " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// setting is what to tell a client, and which keys its template takes from the
// environment. docs/clients.md has the same.
type setting struct {
	keys              []string
	where, text, note string
}

var settings = map[string]setting{
	"codex": {
		keys:  []string{"OPENAI_API_KEY", "GATEWAY_KEY"},
		where: "tell Codex, in ~/.codex/config.toml",
		text: `model = "auto-strong"
model_provider = "understudy"

[model_providers.understudy]
name = "understudy"
base_url = "http://127.0.0.1:8787/v1"
env_key = "UNDERSTUDY_KEY"
wire_api = "responses"`,
		note: "and export UNDERSTUDY_KEY=any where Codex starts",
	},
	"claude-code": {
		keys:  []string{"ANTHROPIC_API_KEY", "GATEWAY_KEY"},
		where: "tell Claude Code, in the shell it starts from",
		text: `export ANTHROPIC_BASE_URL=http://127.0.0.1:8787
export ANTHROPIC_AUTH_TOKEN=any
export ANTHROPIC_MODEL=auto-strong
export ANTHROPIC_DEFAULT_HAIKU_MODEL=auto-strong     # its small jobs; may be another virtual model
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1    # no telemetry, no updates`,
	},
	"open-webui": {
		keys:  []string{"OPENAI_API_KEY", "GATEWAY_KEY", "OPEN_WEBUI_KEY"},
		where: "tell Open WebUI, in its environment (or under Admin Panel, Settings, Connections, OpenAI API)",
		text: `OPENAI_API_BASE_URL=http://127.0.0.1:8787/v1
OPENAI_API_KEY=the value of OPEN_WEBUI_KEY`,
		note: "which is a key that you make up for it alone: openssl rand -hex 20",
	},
	"pool": {
		keys:  []string{"PRIMARY_KEY", "SECONDARY_KEY"},
		where: "tell your client its base URL; its models stay as they are, and any text will do as its key",
		text:  "http://127.0.0.1:8787/v1",
	},
}
