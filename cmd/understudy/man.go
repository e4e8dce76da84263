package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand prints the manual page.
type manCommand struct{}

// Run prints understudy(1), made from the grammar of the command line.
func (manCommand) Run(std streams) error {
	p, err := newParser(&grammar{}, std, func(int) {})
	if err != nil {
		return err
	}
	return manual(std.out, p.Model.Node, thisBuild())
}

// manual writes understudy(1) in the man macros of roff.
func manual(w io.Writer, app *kong.Node, b build) error {
	m := &roff{}
	day, _, _ := strings.Cut(b.Date, "T")
	m.line(`.TH UNDERSTUDY 1 "%s" "understudy %s" "User Commands"`, day, escapeRoff(b.Version))
	m.line(".nh\n.ad l") // names of files and flags are not to be broken
	m.section("NAME")
	m.text("understudy - one local address for several LLM APIs")
	m.section("SYNOPSIS")
	m.line(".B understudy")
	m.line("[\\fIcommand\\fR] [\\fIoption\\fR ...]")
	m.section("DESCRIPTION")
	m.text("understudy forwards each request, unchanged but for base URL, credential and model, to the right upstream. When that one fails, another takes over before the client sees a byte.")
	m.line(".PP")
	m.text("Without a command it serves, as with serve. Every command has --help.")
	m.section("COMMANDS")
	walk(app, func(n *kong.Node) {
		if n.Parent == nil || len(n.Children) > 0 {
			return
		}
		m.command(n)
	})
	m.section("EXIT STATUS")
	for _, e := range exitCodes {
		m.item("\\fB"+escapeRoff(e[0])+"\\fR", e[1])
	}
	m.section("FILES")
	for _, e := range usedFiles {
		m.item("\\fI"+escapeRoff(e[0])+"\\fR", e[1])
	}
	m.section("ENVIRONMENT")
	for _, e := range variables {
		m.item("\\fB"+escapeRoff(e[0])+"\\fR", e[1])
	}
	m.section("SIGNALS")
	for _, e := range signalWords {
		m.item("\\fB"+escapeRoff(e[0])+"\\fR", e[1])
	}
	m.section("EXAMPLES")
	for _, e := range manExamples {
		m.item(escapeRoff(e[1]), "")
		m.line(".nf")
		m.text(e[0])
		m.line(".fi")
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

// walk visits the commands that people see, in the order of the grammar.
func walk(n *kong.Node, visit func(*kong.Node)) {
	visit(n)
	for _, c := range n.Children {
		if !c.Hidden {
			walk(c, visit)
		}
	}
}

// roff collects a page.
type roff struct{ b strings.Builder }

func (m *roff) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *roff) section(name string) { m.line(".SH %s", name) }

// roffWidth is how long a line of a page may be, in bytes.
const roffWidth = 80

// text writes a paragraph of text that is nothing but text. Its lines stay lines, and
// long ones are broken.
func (m *roff) text(text string) {
	for line := range strings.Lines(text) {
		at := 0
		for i, word := range strings.Fields(line) {
			word = escapeRoff(word)
			switch {
			case i == 0:
			case at+1+len(word) > roffWidth:
				m.b.WriteString("\n")
				at = 0
			default:
				m.b.WriteString(" ")
				at++
			}
			m.b.WriteString(word)
			at += len(word)
		}
		m.b.WriteString("\n")
	}
}

// item writes a term, in roff, and what it is.
func (m *roff) item(term, about string) {
	m.line(".TP\n%s", term)
	if about != "" {
		m.text(about)
	}
}

// command writes what a command is, and what it takes.
func (m *roff) command(n *kong.Node) {
	m.line(".SS %s", escapeRoff(`"`+synopsis(n)+`"`))
	m.text(n.Help)
	for _, p := range n.Positional {
		m.item("\\fI"+escapeRoff(p.Name)+"\\fR", withDefault(p.Help, p.Default))
	}
	for _, f := range n.Flags {
		term := "\\fB" + escapeRoff("--"+f.Name) + "\\fR"
		if f.Tag.Negatable != "" {
			term = "\\fB" + escapeRoff("--[no-]"+f.Name) + "\\fR"
		}
		if f.Short != 0 {
			term = "\\fB" + escapeRoff("-"+string(f.Short)) + "\\fR, " + term
		}
		if !f.IsBool() {
			term += " \\fI" + escapeRoff(flagValue(f)) + "\\fR"
		}
		m.item(term, withDefault(f.Help, flagDefault(f)))
	}
}

func withDefault(help, def string) string {
	if def == "" {
		return help
	}
	return help + " Default: " + def + "."
}

// escapeRoff makes text mean itself: backslashes, hyphens that are typed, and lines
// that begin like requests.
func escapeRoff(text string) string {
	text = strings.NewReplacer("\\", "\\e", "-", "\\-", "'", "\\(aq", "`", "\\(ga", "^", "\\(ha", "~", "\\(ti").Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = "\\&" + l
		}
	}
	return strings.Join(lines, "\n")
}
