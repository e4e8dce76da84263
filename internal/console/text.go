package console

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// width is how many columns a text takes on a terminal. Colours take none.
func width(s string) (n int) {
	for i := 0; i < len(s); {
		if skip := escape(s[i:]); skip > 0 {
			i += skip
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		n, i = n+runeWidth(r), i+size
	}
	return n
}

// runeWidth is the width of one character, by itself: most terminals add up.
func runeWidth(r rune) int {
	if r < 0x7f {
		return 1
	}
	return ansi.StringWidthWc(string(r))
}

// escape is the length of the colour that a text begins with, 0 if it does not.
func escape(s string) int {
	if len(s) < 2 || s[0] != 0x1b || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
	}
	return len(s)
}

// clean is a text without anything that could disturb a terminal. What comes from
// this program is so already; another process's answer may not be.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if !strings.ContainsFunc(s, disturbs) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case disturbs(r):
			return '?'
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// inline is a clean text on one line.
func inline(s string) string { return strings.ReplaceAll(clean(s), "\n", " ") }

func disturbs(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// uncoloured is a text without its colours.
func uncoloured(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if skip := escape(s[i:]); skip > 0 {
			i += skip
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// cut is the beginning of a text that fits a width; what is left out shows as a dot
// in its place. Colours go on to where they end.
func cut(s string, columns int) string {
	if width(s) <= columns {
		return s
	}
	if columns <= 0 {
		return ""
	}
	var b strings.Builder
	used, full := 0, false
	for i := 0; i < len(s); {
		if skip := escape(s[i:]); skip > 0 {
			b.WriteString(s[i : i+skip])
			i += skip
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch w := runeWidth(r); {
		case full:
		case used+w > columns-1:
			b.WriteString("…")
			full = true
		default:
			b.WriteRune(r)
			used += w
		}
	}
	return b.String()
}

// fold breaks a line between words so that no piece is wider than the terminal; the
// pieces after the first are indented. Colours go on from piece to piece. A word that is too long is broken inside. A
// width of 0 or less is no bound.
func fold(line string, columns, indent int) []string {
	if columns <= 0 || width(line) <= columns {
		return []string{line}
	}
	if indent > columns/2 {
		indent = 0
	}
	margin := strings.Repeat(" ", indent)
	var out []string
	current, used, blank := "", 0, true // blank: nothing but the margin so far
	next := func() {
		out = append(out, strings.TrimRight(current, " "))
		current, used, blank = margin, indent, true
	}
	for _, word := range strings.SplitAfter(line, " ") {
		bare := width(strings.TrimRight(word, " "))
		if !blank && used+bare > columns {
			next()
		}
		for used+bare > columns { // too long for a line of its own
			head := hardCut(word, columns-used)
			if width(head) > columns-used && used > 0 { // a wide character behind blanks
				current, used = "", 0
				continue
			}
			current += head
			word = word[len(head):]
			bare = width(strings.TrimRight(word, " "))
			next()
		}
		if word != "" {
			current += word
			used += width(word)
			blank = blank && strings.TrimSpace(word) == ""
		}
	}
	if strings.TrimSpace(current) != "" {
		next()
	}
	return out
}

// hardCut is the longest beginning of a text that fits, at least one character.
func hardCut(s string, columns int) string {
	used, some := 0, false
	for i := 0; i < len(s); {
		if skip := escape(s[i:]); skip > 0 {
			i += skip
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if used += runeWidth(r); some && used > columns {
			return s[:i]
		}
		i, some = i+size, true
	}
	return s
}

// paint colours text; where it is off it leaves it alone.
type paint bool

func (p paint) code(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.code("1", s) }
func (p paint) dim(s string) string    { return p.code("2", s) }
func (p paint) red(s string) string    { return p.code("31", s) }
func (p paint) green(s string) string  { return p.code("32", s) }
func (p paint) yellow(s string) string { return p.code("33", s) }
func (p paint) blue(s string) string   { return p.code("36", s) }
