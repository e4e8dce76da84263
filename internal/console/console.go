package console

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/term"

	"understudy/internal/control"
)

// Source is what a console works on: its own process, or another one. The functions
// may be called from several goroutines.
type Source struct {
	// Run runs one command. Its error says what is wrong with the line.
	Run func(ctx context.Context, line string) (control.Output, error)
	// View shows everything as it is now.
	View func(ctx context.Context) (control.View, error)
	// Changed gives a sign when there is a new View; nil where nobody tells. The
	// console looks once a second without.
	Changed func(ctx context.Context) <-chan struct{}
}

// Options are what a console runs with. Source, In and Out are required.
type Options struct {
	Source Source
	In     io.Reader
	Out    io.Writer
	// Err takes the errors of a Plain console; nil is Out.
	Err io.Writer
	// Log is what a Live console prints above its prompt; nil where there is none.
	Log *Log
	// History is the file that keeps the lines typed; "" keeps them only for now.
	History string
	// Stop begins the end of the process whose console this is, and must not wait. It
	// is called for quit, Ctrl-D and Ctrl-C, for each of them again; the console then
	// stays until its context is done. nil is a console that only ends itself.
	Stop func()
	// Stopping is closed when that end has begun, whoever began it; nil is never.
	Stopping <-chan struct{}
	// Prompt is what a Plain console prints before every line; a Live one has its own.
	Prompt string
}

// Mode is what kind of console there can be.
type Mode uint8

const (
	// Plain is lines in and lines out: one end at least is no terminal.
	Plain Mode = iota
	// Dumb is a terminal that can do nothing but print: a Plain console with a prompt.
	Dumb
	// Live is a terminal with a prompt, a bar and colours.
	Live
)

// ModeOf says what kind of console two streams allow. A process in the background of
// its terminal has none: it would be stopped as soon as it asked for a key.
func ModeOf(in io.Reader, out io.Writer) Mode {
	i, ok := terminal(in)
	if !ok {
		return Plain
	}
	if _, ok := terminal(out); !ok || !foreground(i) {
		return Plain
	}
	if kind := os.Getenv("TERM"); kind == "dumb" || kind == "" && runtime.GOOS != "windows" {
		return Dumb
	}
	return Live
}

// terminal is the terminal behind a stream.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// errorText is how a console shows the error of a command.
func errorText(err error) string { return "error: " + clean(err.Error()) }

// isQuit says whether a line ends the console. It is known here too, so that a console
// ends even where its process does not answer any more.
func isQuit(line string) bool {
	return slices.Contains([]string{"quit", "exit", "q"}, strings.ToLower(strings.TrimSpace(line)))
}

// hidden is how a mask begins in a line from the history.
const hidden = "***"

// masked refuses a line that holds a key only as its mask: it would be written into
// the file in place of the key.
func masked(line string) bool { return strings.Contains(line, hidden) }

var errMasked = errors.New("a key in this line is only a mask (" + hidden + "), as the history keeps it: type the key again, or name a variable with api_key_env")
