package movein

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"understudy/internal/config"
)

// Problems are what keeps a file from being read, each with its place and never
// with a secret.
type Problems []config.Problem

// Error is the first of them, and how many there are.
func (p Problems) Error() string {
	switch len(p) {
	case 0:
		return "no problem"
	case 1:
		return p[0].String()
	}
	return p[0].String() + " (and " + strconv.Itoa(len(p)-1) + " more)"
}

// maxProblems bounds the list: after so many the rest helps nobody.
const maxProblems = 50

// file is one source while it is read.
type file struct {
	path     string // as the user named it
	source   config.Source
	problems Problems
}

func (f *file) problem(line, column int, path, what, cure string) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, config.Problem{File: f.path, Line: line, Column: column, Path: path, What: what, Cure: cure})
	}
}

// wrong reports a value of another type than wanted, never the value.
func (f *file) wrong(t *config.Tree, path, want string) {
	what := path + ": " + t.Kind.String() + " where " + want + " is due"
	cure := "write " + want
	if t.Kind == config.TreeNull {
		what, cure = path+": no value", "write "+want+", or remove the key"
	}
	f.problem(t.Line, t.Column, path, what, cure)
}

// section is one mapping of a source. It remembers which keys were asked for, so
// that no key is passed over in silence.
type section struct {
	*file
	tree  *config.Tree
	path  string
	asked map[string]bool
}

// section takes a value as a mapping; one that is none is a problem, nothing is
// an empty one.
func (f *file) section(t *config.Tree, path string) *section {
	s := &section{file: f, tree: &config.Tree{Kind: config.TreeMapping}, path: path, asked: map[string]bool{}}
	switch {
	case t == nil:
	case t.Kind == config.TreeMapping:
		s.tree = t
	case t.Kind == config.TreeNull:
		s.tree = &config.Tree{Kind: config.TreeMapping, Line: t.Line, Column: t.Column}
	default:
		name := path
		if name == "" {
			name = "the file"
		}
		f.wrong(t, name, "a mapping")
	}
	return s
}

// at is the path of a key of the section, as people are shown it.
func (s *section) at(key string) string {
	if !plainKey(key) || config.LooksSecret(key) {
		key = "?"
	}
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

// plainKey reports a key that a message may show as it is.
func plainKey(key string) bool {
	return key != "" && len(key) <= 60 && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && r != '/' && r != '*' && r != ':' && r != ',' && r != '@' && r != '+' && r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// has reports a key that is there and has a value, without asking for it.
func (s *section) has(key string) bool {
	t := s.tree.Find(key)
	return t != nil && t.Kind != config.TreeNull
}

// value asks for a key; nil where it is not there or has no value.
func (s *section) value(key string) *config.Tree {
	s.asked[key] = true
	if !s.has(key) {
		return nil
	}
	return s.tree.Find(key)
}

// text is a key's text; a number counts as its digits.
func (s *section) text(key string) string {
	t := s.value(key)
	if t == nil {
		return ""
	}
	return s.line(t, s.at(key))
}

// line takes a value as one line of text.
func (f *file) line(t *config.Tree, path string) string {
	if t.Kind != config.TreeText && (t.Kind != config.TreeNumber || t.Text == "") {
		f.wrong(t, path, "text")
		return ""
	}
	text := strings.TrimSpace(t.Text)
	if hasControl(text) {
		f.problem(t.Line, t.Column, path, path+": a control character in it", "remove the line break or control character")
		return ""
	}
	return text
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r)
	})
}

// number is a key's number, given as one or as text; ok is false where there is
// none.
func (s *section) number(key string) (v float64, ok bool) {
	t := s.value(key)
	if t == nil {
		return 0, false
	}
	v = t.Number
	if t.Kind == config.TreeText {
		var err error
		v, err = strconv.ParseFloat(strings.TrimSpace(t.Text), 64)
		ok = err == nil
	} else {
		ok = t.Kind == config.TreeNumber
	}
	if _, ref := reference(t.Text); ref && t.Kind == config.TreeText {
		s.problem(t.Line, t.Column, s.at(key), s.at(key)+": a variable where a number is due", "write the number itself: only keys come from variables here")
		return 0, false
	}
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		s.wrong(t, s.at(key), "a number")
		return 0, false
	}
	return v, true
}

// whole is number where it is a whole one within bounds. What is outside of them
// is a problem.
func (s *section) whole(key string, low, high int64) (int64, bool) {
	t := s.tree.Find(key)
	v, ok := s.number(key)
	if !ok {
		return 0, false
	}
	if v != math.Trunc(v) || v < float64(low) || v > float64(high) {
		s.problem(t.Line, t.Column, s.at(key), s.at(key)+": out of range", "write a whole number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
		return 0, false
	}
	return int64(v), true
}

// flag is a key's truth, given as true or false or as text; ok is false where
// there is none.
func (s *section) flag(key string) (v, ok bool) {
	t := s.value(key)
	if t == nil {
		return false, false
	}
	if t.Kind == config.TreeText {
		if b, err := strconv.ParseBool(strings.ToLower(t.Text)); err == nil {
			return b, true
		}
	}
	if t.Kind != config.TreeBool {
		s.wrong(t, s.at(key), "true or false")
		return false, false
	}
	return t.Bool, true
}

// list is a key's items; a value that is no list is a problem.
func (s *section) list(key string) []*config.Tree {
	t := s.value(key)
	if t == nil {
		return nil
	}
	if t.Kind != config.TreeList {
		s.wrong(t, s.at(key), "a list")
		return nil
	}
	return t.Items
}

// texts is a list of text, or a single one.
func (s *section) texts(key string) []string {
	t := s.value(key)
	if t == nil {
		return nil
	}
	return s.lines(t, s.at(key))
}

func (f *file) lines(t *config.Tree, path string) (list []string) {
	if t.Kind == config.TreeText {
		return []string{f.line(t, path)}
	}
	if t.Kind != config.TreeList {
		f.wrong(t, path, "a list of text")
		return nil
	}
	for i, item := range t.Items {
		if text := f.line(item, path+"["+strconv.Itoa(i)+"]"); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// sub is a key's mapping, empty where it is not there.
func (s *section) sub(key string) *section {
	return s.file.section(s.value(key), s.at(key))
}

// rest are the keys that nobody has asked for, in the file's order.
func (s *section) rest() (list []config.TreePair) {
	for _, p := range s.tree.Pairs {
		if !s.asked[p.Key] {
			list = append(list, p)
		}
	}
	return list
}

// index is the path of an item of a list.
func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
