package config

import "regexp"

// An Expression is a regular expression (RE2). One of ours is compiled when it is first
// asked for something, which most processes never do. Its methods may be called by
// several goroutines.
type Expression struct {
	text     string
	compiled func() *regexp.Regexp
}

// NewExpression is an expression of ours; one that is none panics when it is first used.
func NewExpression(text string) *Expression { return &Expression{text, lazily(text)} }

// compileExpression is one of a file's.
func compileExpression(text string) (*Expression, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &Expression{text, func() *regexp.Regexp { return re }}, nil
}

// String is the expression as it was compiled.
func (e *Expression) String() string { return e.text }

// Match says whether it is found in b.
func (e *Expression) Match(b []byte) bool { return e.compiled().Match(b) }

// MatchString says whether it is found in s.
func (e *Expression) MatchString(s string) bool { return e.compiled().MatchString(s) }

// Groups is how many groups it has.
func (e *Expression) Groups() int { return e.compiled().NumSubexp() }

// Find is what its groups hold where it is found in b first, the whole before them; nil
// where it is not found.
func (e *Expression) Find(b []byte) [][]byte { return e.compiled().FindSubmatch(b) }

// FindString is Find in s.
func (e *Expression) FindString(s string) []string { return e.compiled().FindStringSubmatch(s) }
