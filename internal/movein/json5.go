package movein

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"understudy/internal/config"
)

// json5 reads JSON as people write it by hand (JSON5: comments, trailing commas,
// keys and texts in single quotes or, keys, in none), because claude-code-router
// does. The libraries for it lose the places of values, without which no mistake
// can be pointed at.
type json5 struct {
	*file
	src    []byte
	at     int
	line   int // of at, from 1
	start  int // of that line
	depth  int
	failed bool
}

const (
	maxBytes = 1 << 20
	maxDepth = 100
)

// parseJSON returns nil where it has reported a mistake.
func (f *file) parseJSON(src []byte) *config.Tree {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	switch {
	case len(src) > maxBytes:
		f.problem(0, 0, "", "the file is larger than 1 MiB", "split off what is no configuration")
		return nil
	case !utf8.Valid(src):
		f.problem(0, 0, "", "not UTF-8", "save the file as UTF-8")
		return nil
	}
	j := &json5{file: f, src: src, line: 1}
	t := j.value()
	if j.space(); !j.failed && j.at < len(j.src) {
		j.fail("something behind the end of the value", "remove it")
	}
	if j.failed {
		return nil
	}
	return t
}

// fail reports a mistake at the place that the reader has come to, once.
func (j *json5) fail(what, cure string) {
	if !j.failed {
		j.failed = true
		line, column := j.place()
		j.problem(line, column, "", "not valid JSON: "+what, cure)
	}
}

func (j *json5) place() (line, column int) {
	return j.line, utf8.RuneCount(j.src[j.start:min(j.at, len(j.src))]) + 1
}

func (j *json5) peek() byte {
	if j.at < len(j.src) {
		return j.src[j.at]
	}
	return 0
}

func (j *json5) next() {
	if j.src[j.at] == '\n' {
		j.line, j.start = j.line+1, j.at+1
	}
	j.at++
}

// space goes past white space and comments.
func (j *json5) space() {
	for j.at < len(j.src) && !j.failed {
		rest := j.src[j.at:]
		switch r, n := utf8.DecodeRune(rest); {
		case bytes.HasPrefix(rest, []byte("//")):
			for j.at < len(j.src) && j.src[j.at] != '\n' {
				j.next()
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				j.fail("a comment that does not end", "end it by */")
				return
			}
			for range end + 4 {
				j.next()
			}
		case unicode.IsSpace(r) || r == '\ufeff':
			for range n {
				j.next()
			}
		default:
			return
		}
	}
}

// value reads one value. After a mistake it returns whatever it has.
func (j *json5) value() *config.Tree {
	j.space()
	t := &config.Tree{}
	t.Line, t.Column = j.place()
	if j.depth++; j.depth > maxDepth {
		j.fail("nested too deeply", "at most 100 levels")
		return t
	}
	defer func() { j.depth-- }()
	switch c := j.peek(); {
	case j.at >= len(j.src):
		j.fail("a value is missing", "check brackets and commas")
	case c == '{':
		j.mapping(t)
	case c == '[':
		j.items(t)
	case c == '"' || c == '\'':
		t.Kind, t.Text = config.TreeText, j.quoted(c)
	default:
		j.word(t)
	}
	return t
}

func (j *json5) mapping(t *config.Tree) {
	t.Kind = config.TreeMapping
	seen := map[string]bool{}
	j.next()
	for {
		if j.space(); j.failed {
			return
		}
		if j.peek() == '}' {
			j.next()
			return
		}
		p := config.TreePair{}
		p.Line, p.Column = j.place()
		switch c := j.peek(); c {
		case '"', '\'':
			p.Key = j.quoted(c)
		default:
			if p.Key = j.name(); p.Key == "" {
				j.fail("a key is missing", "write \"key\": value")
			}
		}
		if j.space(); !j.failed && j.peek() != ':' {
			j.fail("no colon behind a key", "write \"key\": value")
		}
		if j.failed {
			return
		}
		if seen[p.Key] {
			j.problem(p.Line, p.Column, "", "a key that stands twice", "keep one of them")
			j.failed = true
			return
		}
		seen[p.Key] = true
		j.next()
		p.Value = j.value()
		t.Pairs = append(t.Pairs, p)
		if !j.separator('}') {
			return
		}
	}
}

func (j *json5) items(t *config.Tree) {
	t.Kind = config.TreeList
	j.next()
	for {
		if j.space(); j.failed {
			return
		}
		if j.peek() == ']' {
			j.next()
			return
		}
		t.Items = append(t.Items, j.value())
		if !j.separator(']') {
			return
		}
	}
}

// separator goes past a comma, or to the closing bracket; false after a mistake.
func (j *json5) separator(closing byte) bool {
	j.space()
	switch {
	case j.failed:
		return false
	case j.peek() == ',':
		j.next()
	case j.peek() != closing:
		j.fail("a comma or a closing bracket is missing", "check commas, quotes and brackets")
		return false
	}
	return true
}

// name is a key without quotes.
func (j *json5) name() string {
	begin := j.at
	for j.at < len(j.src) {
		r, n := utf8.DecodeRune(j.src[j.at:])
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (j.at == begin || !unicode.IsDigit(r)) {
			break
		}
		j.at += n
	}
	return string(j.src[begin:j.at])
}

// word is a number, true, false or null.
func (j *json5) word(t *config.Tree) {
	begin := j.at
	for j.at < len(j.src) && !bytes.ContainsRune([]byte(" \t\r\n,:]}[{\"'/"), rune(j.src[j.at])) {
		j.at++
	}
	switch text := string(j.src[begin:j.at]); text {
	case "true", "false":
		t.Kind, t.Bool = config.TreeBool, text == "true"
	case "null":
	default:
		digits := strings.TrimPrefix(text, "+")
		v, err := strconv.ParseFloat(digits, 64)
		plain := !strings.ContainsFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789+-.eE", r) })
		if i, hex := strconv.ParseInt(digits, 0, 64); hex == nil && strings.HasPrefix(strings.TrimPrefix(digits, "-"), "0x") {
			v, err, plain = float64(i), nil, true
		}
		if err != nil || !plain {
			j.at = begin
			j.fail("a word that is no value", "put text in quotes")
			return
		}
		t.Kind, t.Number, t.Text, t.Whole = config.TreeNumber, v, text, !strings.ContainsAny(digits, ".eE")
	}
}

var escapes = map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '0': "\x00", '\n': ""}

// quoted reads a text in quotes.
func (j *json5) quoted(quote byte) string {
	var b strings.Builder
	j.next()
	for j.at < len(j.src) {
		switch c := j.src[j.at]; {
		case c == quote:
			j.next()
			return b.String()
		case c == '\n':
			j.fail("a text that does not end on its line", "close its quote")
			return ""
		case c != '\\':
			b.WriteByte(c)
			j.next()
		default:
			j.next()
			if j.at == len(j.src) {
				break
			}
			e := j.src[j.at]
			width := map[byte]int{'u': 4, 'x': 2}[e]
			if width == 0 {
				if text, ok := escapes[e]; ok {
					b.WriteString(text)
				} else {
					b.WriteByte(e)
				}
				j.next()
				continue
			}
			j.next()
			r, ok := j.hex(width)
			if utf16.IsSurrogate(r) && ok {
				if second := j.at; bytes.HasPrefix(j.src[second:], []byte(`\u`)) {
					j.at += 2
					low, fine := j.hex(4)
					if pair := utf16.DecodeRune(r, low); fine && pair != unicode.ReplacementChar {
						r = pair
					} else {
						j.at = second
					}
				}
			}
			if !ok {
				j.fail("an escape that is none", "write \\uXXXX with four hex digits")
				return ""
			}
			b.WriteRune(r)
		}
	}
	j.fail("a text that does not end", "close its quote")
	return ""
}

func (j *json5) hex(width int) (rune, bool) {
	if j.at+width > len(j.src) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(j.src[j.at:j.at+width]), 16, 32)
	if err != nil || slices.Contains(j.src[j.at:j.at+width], '_') {
		return 0, false
	}
	j.at += width
	return rune(v), true
}
