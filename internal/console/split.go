package console

import "strings"

// A word is one of a command line, as control reads it.
type word struct {
	text  string // without quotes
	start int    // where it begins in the line, in bytes
	json  bool   // it begins with a bracket
}

// split takes a line apart that need not be finished: the last word is the one that
// the line ends in, "" after a blank.
func split(line string) (words []word, last word) {
	for i := 0; ; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		w, end := nextWord(line, i)
		if end == len(line) {
			return words, w
		}
		words, i = append(words, w), end
	}
}

// nextWord reads the word that begins at a place, and says where it ends.
func nextWord(line string, start int) (w word, end int) {
	w.start = start
	var b strings.Builder
	quote, depth, inText := byte(0), 0, false
	i := start
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case depth > 0: // inside a JSON value
			b.WriteByte(c)
			switch {
			case inText && c == '\\' && i+1 < len(line):
				i++
				b.WriteByte(line[i])
			case c == '"':
				inText = !inText
			case inText:
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
			}
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case c == '\\' && quote == '"' && i+1 < len(line) && (line[i+1] == '"' || line[i+1] == '\\'):
				i++
				b.WriteByte(line[i])
			default:
				b.WriteByte(c)
			}
		case c == ' ' || c == '\t':
			w.text = b.String()
			return w, i
		case c == '\'' || c == '"':
			quote = c
		case (c == '{' || c == '[') && (i == start || line[i-1] == '='):
			depth, w.json = 1, w.json || i == start
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	w.text = b.String()
	return w, i
}

// quoted is a word as it is to be typed: in quotes where it needs them.
func quoted(text string) string {
	if text != "" && !strings.ContainsAny(text, " \t'\"") && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return text
	}
	if !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
