package config

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// The functions of this file find the end of what goccy found the start of.

// unknown marks a range that could not be found: the value can be read, not
// edited.
var unknown = span{-1, -1}

// quoted is the range of a quoted text that starts at an offset.
func (r *yamlReader) quoted(start int) span {
	if start >= len(r.src) {
		return unknown
	}
	q := r.src[start]
	if q != '"' && q != '\'' {
		return unknown
	}
	for i := start + 1; i < len(r.src); i++ {
		switch {
		case q == '"' && r.src[i] == '\\':
			i++
		case r.src[i] == q && q == '\'' && i+1 < len(r.src) && r.src[i+1] == q:
			i++
		case r.src[i] == q:
			return span{start, i + 1}
		}
	}
	return unknown
}

// maxBlanks bounds how far goccy is thought to be off.
const maxBlanks = 200

// plainSpan is the range of an unquoted scalar whose text is known. goccy
// places a scalar with blanks behind it too far to the right, and folds one
// that runs over several lines.
func (r *yamlReader) plainSpan(start int, text string) span {
	if text == "" {
		return span{start, start}
	}
	for at := start; at >= max(r.lineStart(start), start-maxBlanks); at-- {
		if bytes.HasPrefix(r.src[at:], []byte(text)) && (at == 0 || strings.IndexByte(" \t\n[{,:-?!\xbf", r.src[at-1]) >= 0) {
			return span{at, at + len(text)}
		}
	}
	return r.foldedSpan(start, text)
}

// foldedSpan follows a plain scalar over its lines until it has read the text.
func (r *yamlReader) foldedSpan(start int, text string) span {
	rest, at := text, start
	for first := true; ; first = false {
		end := r.lineEnd(at)
		line := bytes.TrimRight(r.src[at:end], "\r\n")
		word := bytes.TrimLeft(line, " \t")
		at += len(line) - len(word)
		if !first {
			switch {
			case len(bytes.TrimSpace(word)) == 0 && strings.HasPrefix(rest, "\n"):
				rest = rest[1:]
				if end >= len(r.src) {
					return unknown
				}
				at = end
				continue
			case strings.HasPrefix(rest, " "), strings.HasPrefix(rest, "\n"):
				rest = strings.TrimLeft(rest, " \n")
			}
		}
		if len(rest) <= len(word) {
			if bytes.HasPrefix(word, []byte(rest)) {
				return span{start, at + len(rest)}
			}
			return unknown
		}
		part := bytes.TrimRight(word, " \t")
		if len(part) == 0 || !strings.HasPrefix(rest, string(part)) || end >= len(r.src) {
			return unknown
		}
		rest, at = rest[len(part):], end
	}
}

// blockScalar is the range of a | or > text: from that character to the end of
// its last line that is not blank.
func (r *yamlReader) blockScalar(start int) span {
	end := r.lineEnd(start)
	last := start + len(bytes.TrimRight(r.src[start:end], "\r\n"))
	indent := -1
	for at := end; at < len(r.src); at = r.lineEnd(at) {
		line := bytes.TrimRight(r.src[at:r.lineEnd(at)], "\r\n")
		word := bytes.TrimLeft(line, " ")
		if len(word) == 0 {
			continue
		}
		if indent < 0 {
			indent = len(line) - len(word)
			if indent <= r.indentOf(start) {
				break
			}
		}
		if len(line)-len(word) < indent {
			break
		}
		last = at + len(line)
	}
	return span{start, last}
}

// indentOf is the number of blanks at the start of the line that holds an
// offset; a dash counts as one, for what stands behind it is nested.
func (d *document) indentOf(offset int) int {
	line := d.src[d.lineStart(offset):]
	return len(line) - len(bytes.TrimLeft(line, " "))
}

// wordEnd is where an anchor, alias or tag that starts at an offset ends.
func (r *yamlReader) wordEnd(start int) int {
	for i := start; i < len(r.src); i++ {
		if strings.IndexByte(" \t\r\n,[]{}", r.src[i]) >= 0 {
			return i
		}
	}
	return len(r.src)
}

// colonEnd is the offset behind the colon that follows a key.
func (r *yamlReader) colonEnd(keyEnd int) int {
	if keyEnd < 0 {
		return 0
	}
	for i := keyEnd; i < len(r.src); i++ {
		switch r.src[i] {
		case ':':
			return i + 1
		case ' ', '\t', '\r', '\n':
		default:
			return keyEnd
		}
	}
	return keyEnd
}

var (
	yamlInt   = lazily(`^[-+]?[0-9][0-9_]*$`)
	yamlFloat = lazily(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$`)
	yamlInf   = lazily(`^[-+]?\.(inf|Inf|INF)$`)
)

// plainScalar types an unquoted scalar by YAML 1.2's core schema, with the
// underscores in numbers that YAML 1.1 allowed.
func plainScalar(s string) *node {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return &node{kind: kindNull}
	case "true", "True", "TRUE":
		return &node{kind: kindBool, bool: true}
	case "false", "False", "FALSE":
		return &node{kind: kindBool}
	case ".nan", ".NaN", ".NAN":
		return &node{kind: kindFloat, num: math.NaN()}
	}
	switch {
	case yamlInf().MatchString(s):
		return &node{kind: kindFloat, num: math.Inf(1 - 2*strings.Count(s, "-"))}
	case yamlInt().MatchString(s):
		return intNode(strings.ReplaceAll(s, "_", ""), 10)
	case strings.HasPrefix(s, "0x"):
		if n := intNode(s[2:], 16); n.kind == kindInt {
			return n
		}
	case strings.HasPrefix(s, "0o"):
		if n := intNode(s[2:], 8); n.kind == kindInt {
			return n
		}
	case yamlFloat().MatchString(s):
		if f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil || math.IsInf(f, 0) {
			return &node{kind: kindFloat, num: f}
		}
	}
	return &node{kind: kindText, text: s}
}

// intNode is a whole number, a float where it does not fit, text where it is
// none.
func intNode(digits string, base int) *node {
	i, err := strconv.ParseInt(digits, base, 64)
	if err == nil {
		return &node{kind: kindInt, int: i, num: float64(i)}
	}
	if base == 10 {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return &node{kind: kindFloat, num: f}
		}
	}
	return &node{kind: kindText, text: digits}
}
