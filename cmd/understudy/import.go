package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"understudy/internal/config"
	"understudy/internal/movein"
)

// importCommand turns another proxy's configuration into one of ours.
type importCommand struct {
	Files  []string `arg:"" name:"file" complete:"files" help:"Configuration of LiteLLM, CLIProxyAPI or claude-code-router, a pool or a chain; several become one. - is stdin."`
	From   string   `enum:",litellm,cliproxyapi,claude-code-router,pool,chain" default:"" placeholder:"KIND" help:"What the files are: litellm, cliproxyapi, claude-code-router, pool or chain. Without it their keys tell."`
	Output string   `short:"o" placeholder:"FILE" complete:"configurations" help:"Where to write it, readable by you alone; without it, to stdout."`
	Keys   string   `enum:"env,inline" default:"env" help:"Keys that stand in the files: env names a variable for each, which you export; inline writes them into FILE."`
	Native bool     `help:"LiteLLM: each vendor's own API instead of its chat completions, for clients that speak it."`
}

// maxImport is one byte more than is read, so that a larger file is told so.
const maxImport = 1<<20 + 1

// errStdout keeps keys off the terminal.
var errStdout = errors.New("--keys inline needs -o FILE: keys are not printed")

// Run writes the configuration to -o or stdout, and what there is to say about it
// to stderr.
func (c *importCommand) Run(std streams) error {
	options := movein.Options{Native: c.Native}
	if c.Keys == "inline" {
		if options.Keys = movein.KeysInline; c.Output == "" {
			return usage(std.err, errStdout)
		}
	}
	if c.Output != "" {
		format, err := config.FormatOf(c.Output)
		if err != nil {
			return usage(std.err, err)
		}
		options.Format = format.String()
	}
	var inputs []movein.Input
	for _, name := range c.Files {
		text, err := readImport(name, std.in)
		if err != nil {
			return err
		}
		inputs = append(inputs, movein.Input{Path: name, Bytes: text, Kind: movein.Kind(c.From)})
	}
	res, err := movein.Import(inputs, options)
	if problems, ok := errors.AsType[movein.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(std.err, p.String())
		}
		fmt.Fprintf(std.err, "understudy: nothing was written\n")
		return quiet{exitUsage}
	}
	if err != nil {
		return usage(std.err, err)
	}
	if c.Output == "" {
		if _, err := std.out.Write(res.Bytes); err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
	} else if err := writeNew(c.Output, res.Bytes, 0o600); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and stays as it is: name another file, or move it away", c.Output)
	} else if err != nil {
		return err
	}
	return c.tell(std.err, res)
}

// usage tells an error of the command line.
func usage(w io.Writer, err error) error {
	fmt.Fprintf(w, "understudy: %v\n", err)
	return quiet{exitUsage}
}

func readImport(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxImport))
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		return text, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, errors.Unwrap(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxImport))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, errors.Unwrap(err))
	}
	return text, nil
}

// tellMissing lists what has no counterpart, with each reason once behind all that
// it is the reason for.
func tellMissing(w io.Writer, list []movein.Missing) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\nno counterpart (%d; a comment stands where each matters)\n", len(list))
	width := 0
	places := map[string][]string{}
	var reasons []string
	at := func(m movein.Missing) string { return fmt.Sprintf("%s:%d", m.File, m.Line) }
	for _, m := range list {
		width = max(width, len(at(m)))
	}
	for _, m := range list {
		if places[m.Why] == nil {
			reasons = append(reasons, m.Why)
		}
		places[m.Why] = append(places[m.Why], fmt.Sprintf("  %-*s  %s\n", width, at(m), m.Key))
	}
	for _, why := range reasons {
		fmt.Fprint(w, strings.Join(places[why], ""), wrapped(why, 6, 100))
	}
}

// wrapped is a text in lines of at most so many characters, all indented.
func wrapped(text string, indent, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
			b.WriteString(strings.Repeat(" ", indent))
			column = indent
		case column+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}

// tell says what was taken over, what was not, and what to do next.
func (c *importCommand) tell(w io.Writer, res movein.Result) error {
	file := c.Output
	if file == "" {
		file = "FILE"
	}
	var titles []string
	for _, k := range res.Kinds {
		titles = append(titles, k.Title())
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "from %s: %s\n", strings.Join(titles, ", "), strings.Join(res.Carried, ", "))
	if len(res.Exports) > 0 {
		fmt.Fprintf(out, "\nexport these: the keys stand in the source, and are not in the result (or import with --keys inline -o FILE)\n")
		for _, e := range res.Exports {
			fmt.Fprintf(out, "  %s\t%s\t%s:%d  %s\n", e.Name, e.Masked, e.File, e.Line, e.Path)
		}
	}
	if len(res.Variables) > 0 {
		fmt.Fprintf(out, "\nexport these too, as before: %s\n", strings.Join(res.Variables, ", "))
	}
	tellMissing(out, res.Missing)
	if len(res.Clients) > 0 {
		fmt.Fprintf(out, "\nclients\n")
		for _, line := range res.Clients {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	fmt.Fprintf(out, "\nnext\n  understudy check -c %s\n  understudy drill -c %s --fast\n  understudy serve -c %s\n", file, file, file)
	return out.Flush()
}
