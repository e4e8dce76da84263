package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// style is how a scalar is written.
type style uint8

const (
	anyStyle     style = iota
	doubleQuoted       // "..."
	singleQuoted       // '...'
)

// styleOf is the style of a scalar that stands in the file.
func (d *document) styleOf(n *node) style {
	if n.kind == kindText && n.span.known() && n.span.end > n.span.start {
		switch d.src[n.span.start] {
		case '"':
			return doubleQuoted
		case '\'':
			return singleQuoted
		}
	}
	return anyStyle
}

// scalarText writes a scalar in the file's spelling. flow tells that it stands
// between brackets.
func (d *document) scalarText(v any, s style, flow bool) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case date:
		return string(v)
	case string:
		if d.format == TOML {
			return tomlText(v, s)
		}
		return yamlText(v, s, flow)
	}
	return ""
}

func floatText(f float64) string {
	if math.Abs(f) >= 1e21 || math.Abs(f) < 1e-6 && f != 0 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// yamlPlain are texts that need no quotes anywhere: nothing in them means
// something in YAML.
var yamlPlain = lazily(`^[\pL\pN_./][\pL\pN_./:@+=%~()-]*( [\pL\pN_./@+=%~()-]+)*$`)

// yamlReserved are words that older readers take for something else.
var yamlReserved = lazily(`^(?i:y|n|yes|no|[0-9.:_-]+|[0-9]+e[0-9]+)$`)

func yamlText(s string, st style, flow bool) string {
	plain := yamlPlain().MatchString(s) && !strings.Contains(s+" ", ": ") && !yamlReserved().MatchString(s) &&
		plainScalar(s).kind == kindText && (!flow || !strings.Contains(s, ":"))
	printable := !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	switch {
	case st == anyStyle && plain:
		return s
	case st == singleQuoted && printable && s != "":
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return escapedText(s)
}

func tomlText(s string, st style) string {
	printable := !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	if st == singleQuoted && printable && !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	return escapedText(s)
}

// escapedText writes a text in double quotes so that YAML and TOML read the same.
func escapedText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var tomlBareKey = lazily(`^[A-Za-z0-9_-]+$`)

// keyText writes a key.
func (d *document) keyText(key string) string {
	if d.format == TOML {
		if tomlBareKey().MatchString(key) {
			return key
		}
		return tomlText(key, anyStyle)
	}
	if key == "<<" || strings.ContainsAny(key, ":") {
		return yamlText(key, doubleQuoted, true)
	}
	return yamlText(key, anyStyle, true)
}

// flowPair writes a pair between brackets.
func (d *document) flowPair(key string, v any) string {
	if d.format == TOML {
		return d.keyText(key) + " = " + d.flowText(v)
	}
	return d.keyText(key) + ": " + d.flowText(v)
}

// flowText writes a value on one line.
func (d *document) flowText(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = d.flowText(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Map:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = d.flowPair(e.Key, e.Value)
		}
		if d.format == TOML && len(v) > 0 {
			return "{ " + strings.Join(parts, ", ") + " }"
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return d.scalarText(v, anyStyle, true)
}

// shortFlow is the length up to which a nested mapping or list goes on one line.
const shortFlow = 60

// short reports a collection that reads well on one line: of scalars only.
func (d *document) short(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !isScalar(item) {
				return false
			}
		}
	case Map:
		for _, e := range v {
			if list, ok := e.Value.([]any); !isScalar(e.Value) && (!ok || !d.short(list)) {
				return false
			}
		}
	}
	return len(d.flowText(v)) <= shortFlow
}

func isScalar(v any) bool {
	switch v.(type) {
	case Map, []any:
		return false
	}
	return true
}

// blockValue writes what follows the colon of a YAML key that is indented by so
// many blanks: text on the same line, or lines of its own. It ends without a
// line break.
func (d *document) blockValue(v any, indent int) string {
	if isScalar(v) {
		return " " + d.scalarText(v, anyStyle, false)
	}
	if m, ok := v.(Map); ok && len(m) > 0 && !d.short(v) {
		return d.newline() + strings.Repeat(" ", indent+2) + d.blockMap(m, indent+2)
	}
	if list, ok := v.([]any); ok && len(list) > 0 && !d.short(v) {
		return d.newline() + strings.Repeat(" ", indent+2) + d.blockList(list, indent+2)
	}
	return " " + d.flowText(v)
}

// blockMap writes pairs one per line. The first line is not indented: what
// stands before it is.
func (d *document) blockMap(m Map, indent int) string {
	lines := make([]string, len(m))
	for i, e := range m {
		lines[i] = d.keyText(e.Key) + ":" + d.blockValue(e.Value, indent)
	}
	return strings.Join(lines, d.newline()+strings.Repeat(" ", indent))
}

func (d *document) blockList(list []any, indent int) string {
	lines := make([]string, len(list))
	for i, item := range list {
		lines[i] = "- " + d.blockItem(item, indent)
	}
	return strings.Join(lines, d.newline()+strings.Repeat(" ", indent))
}

// blockItem writes what stands behind a dash at a column.
func (d *document) blockItem(v any, indent int) string {
	if m, ok := v.(Map); ok && len(m) > 0 {
		return d.blockMap(m, indent+2)
	}
	if isScalar(v) {
		return d.scalarText(v, anyStyle, false)
	}
	return d.flowText(v)
}
