package control

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/internal/config"
)

// maxLine bounds a command, in bytes.
const maxLine = 64 << 10

// words splits a command line. Blanks separate words. Single quotes keep all
// that stands between them, double quotes too, but for \" and \\; both may begin
// in the middle of a word. A { or [ at the start of a word or after its "="
// begins a JSON value, which ends with its own bracket.
func words(line string) ([]string, error) {
	switch {
	case len(line) > maxLine:
		return nil, fmt.Errorf("a line of more than %d bytes", maxLine)
	case !utf8.ValidString(line):
		return nil, errors.New("a line that is not UTF-8")
	case strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return nil, errors.New("a line break or another control character in the line")
	}
	var list []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return list, nil
		}
		word, rest, err := firstWord(line)
		if err != nil {
			return nil, err
		}
		list, line = append(list, word), rest
	}
}

func firstWord(line string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			return b.String(), line[i:], nil
		case c == '\'' || c == '"':
			n, err := quoted(&b, line[i:])
			if err != nil {
				return "", "", err
			}
			i += n - 1
		case (c == '{' || c == '[') && (i == 0 || line[i-1] == '=' && !strings.Contains(line[:i-1], "=")):
			n := jsonEnd(line[i:])
			if n < 0 {
				return "", "", fmt.Errorf("the JSON value that begins with %c does not end: its bracket, or a quote in it, is not closed", c)
			}
			b.WriteString(line[i : i+n])
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", nil
}

// quoted adds what stands between the quotes that text begins with, and tells how
// long it is with them.
func quoted(b *strings.Builder, text string) (int, error) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i + 1, nil
		case c == '\\' && quote == '"' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return 0, fmt.Errorf("a quote (%c) that is not closed", quote)
}

// jsonEnd is the length of the JSON value in brackets that text begins with, -1 if
// it does not end.
func jsonEnd(text string) int {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// keyLike is text that may well be a credential: it begins as keys of known
// vendors do, or has a long run of letters and digits mixed, which neither models
// nor addresses have.
var keyLike = lazily(`(?i)^(sk|pk|rk|xai|gsk|ghp|gho|hf|nvapi|pplx|bearer|basic)[-_ .]|^AIza|^eyJ`)

// shown is a word of a command as an error may repeat it: a key that stands in
// the wrong place is not given away whole.
func (b *builder) shown(word string) string {
	switch key, _, pair := strings.Cut(word, "="); {
	case strings.HasPrefix(word, "{"):
		return "{…}"
	case strings.HasPrefix(word, "["):
		return "[…]"
	case pair:
		return b.shown(key) + "=…"
	case keyLike().MatchString(word), mixed(word):
		return config.Mask(word)
	}
	return "'" + b.s.Redact.Quote(word, 80) + "'"
}

// mixed says whether a text has a run of at least twelve letters and digits in
// which both occur often.
func mixed(text string) bool {
	digits, letters := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		default:
			digits, letters = 0, 0
		}
		if digits >= 3 && letters >= 3 && digits+letters >= 12 {
			return true
		}
	}
	return false
}

// nearest is the known word that was probably meant, "" if none is close.
func nearest(word string, known []string) (best string) {
	limit := max(1, min(utf8.RuneCountInString(word)/2, 3))
	for _, k := range known {
		if d := edits(strings.ToLower(word), strings.ToLower(k)); d <= limit && (best == "" || d < limit) {
			best, limit = k, d
		}
	}
	return best
}

// didYouMean is a question to end an error with, "" without a guess.
func (b *builder) didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "; did you mean " + b.name(near) + "?"
	}
	return ""
}

// edits counts the letters to add, drop or change between two words.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			changed := diagonal
			if x[i] != y[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}
