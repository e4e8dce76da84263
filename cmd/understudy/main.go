// Command understudy is one local address for several LLM APIs: it forwards each
// request to the right upstream, and where that one fails another takes over
// before the client sees a byte.
package main

import (
	"errors"
	"fmt"
	"io"
	library "log"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"understudy/internal/daemon"
	"understudy/internal/held"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // a bad command line or configuration
)

// grammar is the command line.
type grammar struct {
	Serve   serveCommand   `cmd:"" default:"withargs" help:"Run the proxy (what happens without a command too)."`
	Check   checkCommand   `cmd:"" help:"Check a configuration and print a summary without secrets."`
	Route   routeCommand   `cmd:"" help:"Show who would serve a session, and in which order."`
	Console consoleCommand `cmd:"" help:"Talk to a running process: see and change everything."`
	Explain explainCommand `cmd:"" help:"Tell how a request went, and why."`
	Rules   rulesCommand   `cmd:"" help:"Try rules on failures, made up or logged."`
	Init    initCommand    `cmd:"" help:"Write a commented configuration to start from."`
	Schema  schemaCommand  `cmd:"" help:"Print the JSON Schema of the configuration, for editors."`
	Import  importCommand  `cmd:"" help:"Turn the configuration of LiteLLM, CLIProxyAPI, claude-code-router or an older program into one."`
	Demo    demoCommand    `cmd:"" help:"Show what it does, with fake upstreams and no key."`
	Drill   drillCommand   `cmd:"" help:"Put a configuration through faults, with fake upstreams, and print a scorecard."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Man        manCommand        `cmd:"" help:"Print the manual page."`
	Completion completionCommand `cmd:"" help:"Print a script with which a shell completes commands."`

	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running process whether it serves; exit 0 or 1."`
}

// serving is the part of the grammar that whoever starts the proxy needs: reading all of
// it takes a tenth of the time to the first answer.
type serving struct {
	Serve serveCommand `cmd:"" default:"withargs"`
}

// configFlag is the option that most commands share.
type configFlag struct {
	Config string `short:"c" placeholder:"FILE" complete:"configurations" help:"Configuration file. Without it: understudy.yaml, understudy.toml, config.yaml or config.toml here, beside the program, or in the user's configuration directory."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() { os.Exit(start()) }

// start is main without the process' end.
func start() int {
	held.KeepHeadroom()
	if code, is := asService(); is {
		return code
	}
	return run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
}

// newParser makes the parser of a command line, which is what grammar, a pointer to a
// struct, describes. It calls exit after it has printed help.
func newParser(grammar any, std streams, exit func(int)) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("understudy"), kong.Description("One local address for several LLM APIs. When one fails, another takes over before the client sees a byte."),
		kong.Writers(std.out, std.err), kong.Exit(exit), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.UsageOnError())
}

// run is main without the process: args in, an exit code out.
func run(args []string, std streams) int {
	library.SetOutput(io.Discard) // net/http quotes upstreams there as they come; see serve
	if command := parseServing(args); command != nil {
		return finish(command.Run(std), std)
	}
	exit := -1
	parser, err := newParser(&grammar{}, std, func(code int) { exit = code })
	if err != nil {
		fmt.Fprintf(std.err, "understudy: %v\n", err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == completeWord {
		return suggest(parser.Model.Node, args[1:], std)
	}
	command, err := parser.Parse(args)
	if exit >= 0 {
		return exit // help was asked for
	}
	if err != nil {
		fmt.Fprintf(std.err, "understudy: %v\nrun `understudy --help` for the commands and their options\n", err)
		return exitUsage
	}
	return finish(command.Run(std), std)
}

// parseServing parses a command line that starts the proxy; nil for every other one, for
// one that asks for help, and for one with a mistake, which the whole grammar tells.
func parseServing(args []string) *kong.Context {
	if len(args) > 0 && args[0] != "serve" && !strings.HasPrefix(args[0], "-") {
		return nil
	}
	helped := false
	parser, err := newParser(&serving{}, streams{out: io.Discard, err: io.Discard}, func(int) { helped = true })
	if err != nil {
		return nil
	}
	command, err := parser.Parse(args)
	if err != nil || helped {
		return nil
	}
	return command
}

// finish is the exit code of a command that has come to err.
func finish(err error, std streams) int {
	if err != nil {
		return report(err, std.err)
	}
	return exitOK
}

// quiet is an error that has been told already.
type quiet struct{ code int }

func (q quiet) Error() string { return fmt.Sprintf("exit %d", q.code) }

// report tells an error in a person's words and gives the exit code that goes
// with it.
func report(err error, w io.Writer) int {
	if q, ok := errors.AsType[quiet](err); ok {
		return q.code
	}
	if problems, ok := errors.AsType[daemon.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(w, p.String())
		}
		fmt.Fprintf(w, "understudy: %s in the configuration\n", count(len(problems), "mistake"))
		return exitUsage
	}
	fmt.Fprintf(w, "understudy: %v\n", err)
	if errors.Is(err, errNoConfig) || errors.Is(err, daemon.ErrOpen) || errors.Is(err, errNoSuchModel) || errors.Is(err, errNoSuchScenario) || errors.Is(err, os.ErrNotExist) {
		return exitUsage
	}
	return exitFailed
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
