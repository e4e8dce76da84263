package console

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"understudy/internal/control"
)

// session runs a Plain console over some lines.
func session(t *testing.T, d *double, o Options, input string) (out, errs string, err error) {
	t.Helper()
	var w, e strings.Builder
	o.Source, o.In, o.Out, o.Err = d.source(), strings.NewReader(input), &w, &e
	err = Lines(t.Context(), o)
	return w.String(), e.String(), err
}

func TestPlainIsLinesInAndLinesOut(t *testing.T) {
	d := &double{}
	out, errs, err := session(t, d, Options{}, "vm\n\n   \nfreeze ls\nstats") // the last without a line break
	if out != "did vm\ndid freeze ls\ndid stats\n" || errs != "" || err != nil {
		t.Errorf("%q %q %v", out, errs, err)
	}
	if d.lines() != "vm\nfreeze ls\nstats" {
		t.Errorf("asked %q", d.lines())
	}
}

func TestPlainTellsErrorsBesideAndGoesOn(t *testing.T) {
	d := &double{say: func(line string) (control.Output, error) {
		if line == "frezee" {
			return control.Output{}, errors.New("no command 'frezee'; did you mean freeze?\nhelp lists them all")
		}
		return control.Output{Text: "well"}, nil
	}}
	out, errs, err := session(t, d, Options{}, "frezee\nvm\nquit\nnever\n")
	if out != "well\n" || errs != "error: no command 'frezee'; did you mean freeze?\nhelp lists them all\n" || !errors.Is(err, ErrFailed) {
		t.Errorf("%q %q %v", out, errs, err)
	}
	if d.lines() != "frezee\nvm" {
		t.Errorf("asked %q", d.lines())
	}
}

func TestPlainQuits(t *testing.T) {
	for _, word := range []string{"quit", "exit", "q", " QUIT "} {
		d := &double{}
		if _, _, err := session(t, d, Options{}, word+"\nvm\n"); err != nil || d.lines() != "" {
			t.Errorf("%s: %v, asked %q", word, err, d.lines())
		}
	}
}

// In its own process a console asks for the end of it and stays until that comes.
func TestPlainStopsItsProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stops := 0
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "quit\nq\n") }()
	o := Options{Source: (&double{}).source(), In: r, Out: io.Discard, Stop: func() {
		if stops++; stops == 2 {
			cancel()
		}
	}}
	if err := Lines(ctx, o); err != nil || stops != 2 {
		t.Errorf("%v after %d", err, stops)
	}
	w.Close()
}

func TestPlainShowsNothingToObey(t *testing.T) {
	d := &double{say: func(string) (control.Output, error) { return control.Output{Text: "a\x1b[2Jb\nc"}, nil }}
	if out, _, _ := session(t, d, Options{}, "vm\n"); out != "a?[2Jb\nc\n" {
		t.Errorf("%q", out)
	}
}

// A mask in place of a key would be written into the file.
func TestPlainRefusesAMask(t *testing.T) {
	d := &double{}
	_, errs, err := session(t, d, Options{}, "cand set a 1 api_key sk-pro***1234\n")
	if d.lines() != "" || !strings.Contains(errs, "type the key again") || !errors.Is(err, ErrFailed) {
		t.Errorf("asked %q, said %q, %v", d.lines(), errs, err)
	}
}

func TestPlainDrawsTheDayUnderStats(t *testing.T) {
	d := &double{view: someView()}
	out, _, _ := session(t, d, Options{}, "stats auto-strong\n")
	line := ""
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, "2 Claude") {
			line = l
		}
	}
	if strings.Count(line, "#")+strings.Count(line, "*") != 144 {
		t.Errorf("no 144 cells in %q", out)
	}
	if out, _, _ = session(t, d, Options{}, "stats\n"); strings.Contains(out, "2 Claude") || !strings.Contains(out, "便宜的模型   ....") {
		t.Errorf("%s", out)
	}
}

func TestPlainLineWithoutAnEnd(t *testing.T) {
	_, _, err := session(t, &double{}, Options{}, strings.Repeat("x", maxPlainLine+1))
	if err == nil {
		t.Error("taken")
	}
}

func TestPlainPrompts(t *testing.T) {
	if out, _, _ := session(t, &double{}, Options{Prompt: "> "}, "vm\nquit\n"); out != "> did vm\n> " {
		t.Errorf("%q", out)
	}
}
