package proxy

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A reading is a text with some layers of escapes undone: what a reader of it may
// see. Upstreams quote requests back in JSON, in JSON within JSON, in URLs and in
// pages, each in a spelling of its own.
type reading struct {
	text string
	at   []int32 // where in the original each byte comes from, and where it ends; nil: it is the original
}

// maxReadings bounds how many readings a text has: the plainest come first.
const maxReadings = 16

// origin is the part of the original that the bytes from i to j come from.
func (r reading) origin(i, j int) (from, to int) {
	if r.at == nil {
		return i, j
	}
	return int(r.at[i]), int(r.at[j])
}

// readings are a text itself and what it says where it is escaped.
func readings(text string) []reading {
	all := []reading{{text: text}}
	for i := 0; i < len(all); i++ {
		for _, e := range escapes {
			if len(all) == maxReadings {
				return all
			}
			next, ok := all[i].undo(e)
			if ok && !slices.ContainsFunc(all, func(r reading) bool { return r.text == next.text }) {
				all = append(all, next)
			}
		}
	}
	return all
}

// escape is one way to write characters by others.
type escape struct {
	marks string // what such a spelling begins with
	read  func(s string) (char string, size int)
}

// escapes are the ways that are undone. Size 0 means that s does not begin with one.
var escapes = []escape{
	{`\`, jsonEscape},
	{`%`, percentEscape},
	{`%+`, func(s string) (string, int) {
		if s[0] == '+' {
			return " ", 1
		}
		return percentEscape(s)
	}},
	{`&`, pageEscape},
}

// undo reads a text as written with one kind of escape; not ok where there is none.
func (r reading) undo(e escape) (reading, bool) {
	first := strings.IndexAny(r.text, e.marks)
	if first < 0 {
		return reading{}, false
	}
	var b strings.Builder
	b.Grow(len(r.text))
	at := make([]int32, 0, len(r.text)+1)
	found := false
	for i := 0; i < len(r.text); {
		from, _ := r.origin(i, i)
		size := 0
		if i >= first && strings.IndexByte(e.marks, r.text[i]) >= 0 {
			var char string
			if char, size = e.read(r.text[i:]); size > 0 {
				found = true
				b.WriteString(char)
				for range len(char) {
					at = append(at, int32(from))
				}
			}
		}
		if size == 0 {
			size = 1
			b.WriteByte(r.text[i])
			at = append(at, int32(from))
		}
		i += size
	}
	_, end := r.origin(len(r.text), len(r.text))
	return reading{b.String(), append(at, int32(end))}, found
}

// jsonEscape undoes a backslash as JSON, and most languages' literals, write it.
func jsonEscape(s string) (char string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case '"', '\\', '/', '\'':
		return s[1:2], 2
	case 'n', 'r', 't', 'b', 'f':
		return map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'f': "\f"}[s[1]], 2
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return octalEscape(s)
	case 'u':
		if len(s) > 2 && s[2] == '{' {
			return bracedEscape(s)
		}
		r, ok := hexRune(s, 2, 6)
		if !ok {
			return "", 0
		}
		if utf16.IsSurrogate(r) {
			if low, ok := hexRune(s, 8, 12); ok && s[6] == '\\' && s[7] == 'u' && utf16.DecodeRune(r, low) != utf8.RuneError {
				return string(utf16.DecodeRune(r, low)), 12
			}
		}
		return string(r), 6
	case 'U':
		if r, ok := hexRune(s, 2, 10); ok {
			return string(r), 10
		}
	case 'x':
		if len(s) > 2 && s[2] == '{' {
			return bracedEscape(s)
		}
		if r, ok := hexRune(s, 2, 4); ok {
			return string([]byte{byte(r)}), 4
		}
	}
	return "", 0
}

// octalEscape undoes a backslash with up to three octal digits, as C, shells and Python
// write bytes.
func octalEscape(s string) (char string, size int) {
	n := 0
	for size = 1; size < min(len(s), 4) && '0' <= s[size] && s[size] <= '7' && n < 0o40; size++ {
		n = n<<3 + int(s[size]-'0')
	}
	return string([]byte{byte(n)}), size
}

// bracedEscape undoes \u{..}, as JavaScript, Rust and Swift write characters, and \x{..}.
func bracedEscape(s string) (char string, size int) {
	if end := strings.IndexByte(s[:min(len(s), 12)], '}'); end > 3 {
		if r, ok := hexRune(s, 3, end); ok {
			return string(r), end + 1
		}
	}
	return "", 0
}

// percentEscape undoes a URL's escape.
func percentEscape(s string) (char string, size int) {
	if r, ok := hexRune(s, 1, 3); ok && s[0] == '%' {
		return string([]byte{byte(r)}), 3
	}
	return "", 0
}

// pageEscape undoes the references that pages are escaped with.
func pageEscape(s string) (char string, size int) {
	name, _, found := strings.Cut(s[:min(len(s), 10)], ";")
	if !found {
		return "", 0
	}
	size = len(name) + 1
	switch name = name[1:]; name {
	case "amp":
		return "&", size
	case "lt":
		return "<", size
	case "gt":
		return ">", size
	case "quot":
		return `"`, size
	case "apos":
		return "'", size
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		base := 10
		if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
			digits, base = hex, 16
		}
		if n, err := strconv.ParseInt(digits, base, 32); err == nil && n >= 0 {
			return string(rune(n)), size
		}
	}
	return "", 0
}

// hexRune reads the hex digits s[from:to].
func hexRune(s string, from, to int) (rune, bool) {
	if len(s) < to {
		return 0, false
	}
	n, err := strconv.ParseUint(s[from:to], 16, 32)
	return rune(n), err == nil
}
