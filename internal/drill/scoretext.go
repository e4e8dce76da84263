package drill

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// colours are the terminal's codes for the verdicts.
var colours = map[Verdict]string{Pass: "32", Partial: "33", Safe: "36", Fail: "1;31"}

// Text writes the scorecard as tables for a terminal. paint gives s the look of a
// terminal code, or leaves it alone.
func (s *Scorecard) Text(w io.Writer, paint func(code, s string) string) error {
	t := &table{w: w, paint: paint}
	t.line("%s %s", paint("1", "understudy drill"), s.Config)
	if s.Fast {
		t.line("%s", paint("2", "Clocks are divided as each table says, the file's and the faults' alike; --no-fast leaves them as they are."))
	}
	for _, c := range s.Cards {
		t.card(c)
	}
	t.line("")
	verdict := paint("1;32", "nothing failed")
	if s.Failed() {
		verdict = paint("1;31", fmt.Sprintf("%d failed", s.Total.Fail))
	}
	t.line("%s: %s, in %.0f s", verdict, s.Total, s.Seconds)
	return t.err
}

// table writes lines until one cannot be written.
type table struct {
	w     io.Writer
	paint func(code, s string) string
	err   error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

func (t *table) card(c Card) {
	t.line("")
	name := c.Model
	if name == "*" {
		name = "the pool (*)"
	}
	if c.Skipped != "" {
		t.line("%s  %s", t.paint("1", name), t.paint("33", "not drilled: "+c.Skipped))
		return
	}
	t.line("%s  %s", t.paint("1", name), t.paint("2", c.Summary()))
	width := c.titleWidth()
	for _, set := range c.Sets() {
		t.line("")
		t.line("  %s", t.paint("1", set.Title))
		t.line("  %s", t.paint("2", fmt.Sprintf("%-4s %-7s  %s  %8s  %7s  %s", "", "verdict", pad("the first upstream", width), "attempts", "time", "the client got")))
		for _, r := range set.Results {
			t.line("  %-4s %s  %s  %8s  %7s  %s", r.ID, t.paint(colours[r.Verdict], fmt.Sprintf("%-7s", r.Verdict)), pad(r.Title, width), r.Attempts(), r.Time(), clip(r.Client))
			for _, note := range []string{r.Why, r.Twice()} {
				if note != "" {
					t.line("  %s", t.paint("2", strings.Repeat(" ", 14)+note))
				}
			}
		}
		t.line("  %s", t.totals(set.Counts))
	}
}

// totals is the line below a table.
func (t *table) totals(c Counts) string {
	var parts []string
	for _, v := range Verdicts {
		text := fmt.Sprintf("%d %s", c.Of(v), v)
		if c.Of(v) > 0 {
			text = t.paint(colours[v], text)
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%d of %d: %s", c.Pass, c.All(), strings.Join(parts, ", "))
}

// titleWidth is the width of the widest title.
func (c Card) titleWidth() (n int) {
	n = len("the first upstream")
	for _, r := range c.Results {
		n = max(n, utf8.RuneCountInString(r.Title))
	}
	return n
}

// Summary says in one line what was drilled and how.
func (c Card) Summary() string {
	who := "1 candidate, nobody to fail over to: " + strings.Join(c.Candidates, "")
	if n := len(c.Candidates); n > 1 {
		who = fmt.Sprintf("%d candidates: %s", n, strings.Join(c.Candidates, ", "))
	}
	how := fmt.Sprintf("delivery %s, asked as %s, %s", c.Delivery, c.Dialect, who)
	if c.Factor > 1 {
		how += fmt.Sprintf("; clocks ÷ %.3g", c.Factor)
	}
	return how
}

// Attempts shows the attempts at the candidate called first and at the others.
func (r Result) Attempts() string { return fmt.Sprintf("%d + %d", r.First, r.Others) }

// Twice says where a second try changed the verdict, "" elsewhere.
func (r Result) Twice() string {
	if r.Before == "" {
		return ""
	}
	return fmt.Sprintf("%s at first, beside all others; this is the second try", r.Before)
}

// pad fills s with spaces to a width in characters.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// clip keeps a sentence on its line.
func clip(s string) string {
	const most = 70
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
