package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"unicode"

	"understudy/internal/files"
)

// maxSecretFile bounds a file that holds one key; a larger one is a mistake.
const maxSecretFile = 64 << 10

// ErrMissing is wrapped by the error of a credential whose variable or file is
// not there, or empty.
var ErrMissing = errors.New("missing secret")

// Credential says where a secret comes from: the file itself, an environment
// variable, another file, or nowhere. The zero value is nowhere.
type Credential struct {
	kind    credentialKind
	literal Secret
	name    string // of the variable, or the path as written
	dir     string // what a relative path is relative to
}

type credentialKind uint8

const (
	credentialNone credentialKind = iota
	credentialLiteral
	credentialEnv
	credentialFile
)

// LiteralCredential is a secret that stands in the configuration itself.
func LiteralCredential(text string) Credential {
	return Credential{kind: credentialLiteral, literal: NewSecret(text)}
}

// EnvCredential is a secret in an environment variable.
func EnvCredential(variable string) Credential {
	return Credential{kind: credentialEnv, name: variable}
}

// FileCredential is a secret in a file of its own. A relative path counts from
// dir, "~/" from the user's home.
func FileCredential(path, dir string) Credential {
	return Credential{kind: credentialFile, name: path, dir: dir}
}

// IsNone reports whether no credential is configured.
func (c Credential) IsNone() bool { return c.kind == credentialNone }

// IsLiteral reports whether the secret stands in the configuration itself.
func (c Credential) IsLiteral() bool { return c.kind == credentialLiteral }

// Env returns the name of the environment variable, "" if it is not one.
func (c Credential) Env() string {
	if c.kind == credentialEnv {
		return c.name
	}
	return ""
}

// Source names the origin without the secret: "literal", "env NAME",
// "file PATH" or "none". A name that looks like a key itself is masked.
func (c Credential) Source() string {
	if !shownName(c.name) {
		c.name = "***"
	}
	switch c.kind {
	case credentialLiteral:
		return "literal"
	case credentialEnv:
		return "env " + c.name
	case credentialFile:
		return "file " + c.name
	}
	return "none"
}

// Resolve reads the secret now. White space at the end of a file is dropped.
// An error names the variable or the file, never a value, and wraps
// [ErrMissing] where there is nothing. A credential that is none resolves to
// the zero Secret.
func (c Credential) Resolve() (Secret, error) {
	switch c.kind {
	case credentialLiteral:
		return c.literal, nil
	case credentialEnv:
		return c.usable(os.Getenv(c.name))
	case credentialFile:
		text, err := readSecretFile(c.path())
		if err != nil {
			return Secret{}, fmt.Errorf("read %s: %w", c.Source(), err)
		}
		return c.usable(text)
	}
	return Secret{}, nil
}

// usable refuses what no header can carry.
func (c Credential) usable(text string) (Secret, error) {
	if text == "" {
		return Secret{}, fmt.Errorf("%s is not set or empty: %w", c.Source(), ErrMissing)
	}
	if hasControl(text) {
		return Secret{}, fmt.Errorf("%s holds a line break or another control character", c.Source())
	}
	return NewSecret(text), nil
}

func (c Credential) path() string {
	return absolute(c.name, c.dir)
}

func readSecretFile(path string) (string, error) {
	f, _, err := files.Open(path)
	if errors.Is(err, files.ErrNotRegular) {
		return "", fmt.Errorf("%w: it is no regular file, which can be read for every request anew", ErrMissing)
	}
	if err != nil {
		// The cause without the path: Source has said it.
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err
		}
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("more than %d bytes, which is no key", maxSecretFile)
	}
	return strings.TrimRightFunc(string(text), unicode.IsSpace), nil
}

// Missing names what is not usable now, "" if all is well: "env NAME" or
// "file PATH".
func (c Credential) Missing() string {
	if _, err := c.Resolve(); err != nil {
		return c.Source()
	}
	return ""
}

// String is Source; a credential never prints its secret.
func (c Credential) String() string { return c.Source() }

// LogValue is Source for slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.Source()) }

// MarshalText is Source, for JSON and YAML.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.Source()), nil }

// Resolve reads the header's value now: the variable's where it is set, else
// the static one.
func (h HeaderValue) Resolve() (Secret, error) {
	if h.Env == "" {
		return h.Value, nil
	}
	s, err := EnvCredential(h.Env).Resolve()
	if err != nil && !h.Value.IsZero() && os.Getenv(h.Env) == "" {
		return h.Value, nil
	}
	return s, err
}

// Missing names the variable that is not usable now, "" if all is well.
func (h HeaderValue) Missing() string {
	if _, err := h.Resolve(); err != nil {
		return "env " + h.Env
	}
	return ""
}
