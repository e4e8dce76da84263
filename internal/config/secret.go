package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that no way of printing shows: not fmt with any verb, not
// JSON, YAML or slog. Only [Secret.Reveal] gives it out.
//
// The text stands behind a pointer because fmt prints the unexported fields of
// a struct without asking their methods; a pointer it meets there is printed as
// an address.
type Secret struct {
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text itself, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret, or an empty one.
func (s Secret) IsZero() bool { return s.text == nil }

// Mask returns what people may see: the first six and the last four characters
// around "***", or only "***" where the secret is shorter than twenty.
func (s Secret) Mask() string { return Mask(s.Reveal()) }

// Mask is [Secret.Mask] for a text that is no Secret, such as a client's key.
// It counts characters, and an empty text stays empty.
func Mask(text string) string {
	if text == "" {
		return ""
	}
	r := []rune(text)
	if len(r) < 20 {
		return "***"
	}
	return string(r[:6]) + "***" + string(r[len(r)-4:])
}

// Digest is the SHA-256 of the text.
func (s Secret) Digest() [32]byte { return sha256.Sum256([]byte(s.Reveal())) }

// Equal compares in constant time for texts of equal length.
func (s Secret) Equal(t Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(t.Reveal())) == 1
}

// String is "***", or "" where there is no secret. Not even the mask: text that
// ends in logs by accident should give nothing away.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return "***"
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format writes String whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// LogValue is String for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON, YAML and everything else that encodes text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }
