package config

import (
	"fmt"
	"strings"
)

// Severity tells whether a problem keeps a file from being used.
type Severity uint8

// Error refuses the file; Warning does not.
const (
	Error Severity = iota
	Warning
)

// String is "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one thing that is wrong with a file. It never holds the value of a
// secret.
type Problem struct {
	Severity Severity
	File     string
	// Line and Column count from 1, the column in characters; both are 0 where
	// the problem is with the file as a whole.
	Line, Column int
	Path         string // "virtual_models.auto[0].base_url", lists from 0
	What         string // what is wrong
	Cure         string // what would be right; may be ""
}

// String is "file:line:column: what: cure".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: %s", p.File, p.Line, p.Column, p.What)
	} else {
		fmt.Fprintf(&b, "%s: %s", p.File, p.What)
	}
	if p.Cure != "" {
		b.WriteString(": " + p.Cure)
	}
	return b.String()
}
