package control

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"understudy/internal/config"
)

// Span is a part of a text: its bytes from Start up to End.
type Span struct{ Start, End int }

// Secrets finds what may be a secret in a command line as it is typed, which need
// not be finished or well-formed: the values of secret keys, whether in key=value,
// JSON or behind the key's name, passwords in URLs, and what looks like a vendor's
// key wherever it stands. The spans are in order and do not overlap. It errs towards
// finding too much.
func Secrets(line string) []Span {
	var found []Span
	named := false // the word before was the name of a secret key
	for _, w := range rawWords(line) {
		text := line[w.Start:w.End]
		switch name, value, pair := strings.Cut(text, "="); {
		case named:
			found = append(found, unquoted(line, w))
		case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
			found = append(found, jsonSecrets(text, w.Start, false)...)
		case pair && (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")):
			found = append(found, jsonSecrets(value, w.End-len(value), strings.Trim(name, `"'`) == "headers")...)
		case pair && secretName(strings.Trim(name, `"'`)):
			found = append(found, unquoted(line, Span{w.End - len(value), w.End}))
		}
		named = !strings.Contains(text, "=") && secretName(strings.Trim(text, `"'`))
	}
	for _, m := range userInfo().FindAllStringSubmatchIndex(line, -1) {
		found = append(found, Span{m[2], m[3]})
	}
	for _, m := range queryValue().FindAllStringSubmatchIndex(line, -1) {
		found = append(found, Span{m[2], m[3]})
	}
	for _, m := range bareWord().FindAllStringIndex(line, -1) {
		if text := line[m[0]:m[1]]; mixed(text) || keyLike().MatchString(text) && len(text) >= 12 && strings.ContainsAny(text, "0123456789") {
			found = append(found, Span{m[0], m[1]})
		}
	}
	return joinSpans(found)
}

// Masked is a command line as it may be shown again or kept: its secrets are masked.
// What is a mask already stays as it is.
func Masked(line string) string {
	var b strings.Builder
	last := 0
	for _, s := range Secrets(line) {
		secret := line[s.Start:s.End]
		b.WriteString(line[last:s.Start])
		if strings.Contains(secret, "***") {
			b.WriteString(secret)
		} else {
			b.WriteString(config.Mask(secret))
		}
		last = s.End
	}
	return b.String() + line[last:]
}

var (
	userInfo   = lazily(`://([^/\s"'@]+)@`)
	queryValue = lazily(`(?i)[?&][a-z0-9_.-]*(?:key|token|secret|sig|pass|auth|code|cred)[a-z0-9_.-]*=([^&#\s"']+)`)
	bareWord   = lazily(`[^\s"'{}\[\],=:@/?&]+`)
	// secretWord are the names that secrets go by, in headers and elsewhere.
	secretWord = lazily(`(?i)key|token|secret|passw|authorization|cookie|credential`)
)

// lazily compiles an expression when it is first used: a process that nobody looks into
// uses none.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// secretName says whether a key's value is a secret: any header's may be one.
func secretName(name string) bool {
	if strings.HasPrefix(name, "headers.") {
		return true
	}
	for _, other := range []string{"_env", "_file", "_sha256", "_style"} {
		if strings.HasSuffix(name, other) {
			return false
		}
	}
	return name == "proxy" || secretWord().MatchString(name) && !strings.HasPrefix(name, "header_env") && !strings.ContainsAny(name, ":/?")
}

// rawWords finds the words of a line that may not be finished: as words does, with
// quotes and brackets still in them.
func rawWords(line string) (list []Span) {
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		start := i
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			switch c := line[i]; {
			case c == '\'' || c == '"':
				var b strings.Builder
				n, err := quoted(&b, line[i:])
				if err != nil {
					n = len(line) - i
				}
				i += n
			case (c == '{' || c == '[') && (i == start || line[i-1] == '='):
				n := jsonEnd(line[i:])
				if n < 0 {
					n = len(line) - i
				}
				i += n
			default:
				i++
			}
		}
		list = append(list, Span{start, i})
	}
	return list
}

// unquoted is a span without the quotes around it.
func unquoted(line string, s Span) Span {
	if s.Start < s.End && (line[s.Start] == '\'' || line[s.Start] == '"') {
		quote := line[s.Start]
		s.Start++
		if s.Start < s.End && line[s.End-1] == quote {
			s.End--
		}
	}
	return s
}

// jsonSecrets finds the values of secret keys in a JSON text that may not be
// finished, and those of all headers; at is where the text stands in the line.
func jsonSecrets(text string, at int, headers bool) (found []Span) {
	name, depth, inside := "", 0, -1 // inside is the depth of the headers we are in
	if headers {
		inside = 1
	}
	isValue := false
	secret := func(start, end int) {
		if isValue && (inside > 0 && depth >= inside || secretName(name)) {
			found = append(found, Span{at + start, at + end})
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			if isValue {
				secret(i+1, end)
			} else {
				name = text[i+1 : end]
			}
			i = end
		case c == ':':
			isValue = true
		case c == '{' || c == '[':
			depth++
			if isValue && name == "headers" && inside < 0 {
				inside = depth
			}
			isValue = c == '[' && isValue
		case c == '}' || c == ']':
			if depth == inside {
				inside = -1
			}
			depth--
			isValue = false
		case c == ',':
			// In a list of secrets the next is one too; keys follow in a mapping.
			isValue = false
		case isValue && !unicode.IsSpace(rune(c)):
			end := i
			for end < len(text) && !strings.ContainsRune(",}] \t", rune(text[end])) {
				end++
			}
			secret(i, end)
			i = end - 1
		}
	}
	return found
}

// joinSpans sorts spans and joins those that touch or overlap; empty ones go.
func joinSpans(list []Span) (joined []Span) {
	slices.SortFunc(list, func(a, b Span) int { return a.Start - b.Start })
	for _, s := range list {
		switch last := len(joined) - 1; {
		case s.Start >= s.End:
		case last >= 0 && s.Start <= joined[last].End:
			joined[last].End = max(joined[last].End, s.End)
		default:
			joined = append(joined, s)
		}
	}
	return joined
}
