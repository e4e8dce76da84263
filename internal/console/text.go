package console

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// width is how many columns a text takes on a terminal. Colours take none.
func width(s string) int { return ansi.StringWidthWc(s) }

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

func disturbs(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// cut is the beginning of a text that fits a width; what is left out shows as a dot
// in its place.
func cut(s string, columns int) string {
	if width(s) <= columns {
		return s
	}
	if columns <= 0 {
		return ""
	}
	return ansi.TruncateWc(s, columns, "…")
}

// fold breaks a line between words so that no piece is wider than the terminal; the
// pieces after the first are indented. A word that is too long is broken inside. A
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
	used := 0
	for i, r := range s {
		if w := width(string(r)); i > 0 && used+w > columns {
			return s[:i]
		} else {
			used += w
		}
	}
	return s
}

// foldLog breaks a line of the log, colours and all, wherever the terminal ends.
func foldLog(line string, columns int) []string {
	line = strings.ReplaceAll(line, "\t", " ")
	if columns <= 0 || width(line) <= columns {
		return []string{line}
	}
	return strings.Split(ansi.WrapWc(line, columns, ""), "\n")
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
