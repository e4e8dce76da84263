package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// table measures all rows and prints them.
func (b *bench) table(ctx context.Context) error {
	asked, err := b.rows()
	if err != nil {
		return err
	}
	rows, err := b.measureAll(ctx, asked, steps())
	if err != nil {
		return err
	}
	if err := b.report(rows); err != nil {
		return err
	}
	return errors.Join(complete(rows, columns(), b.smoke), missed(rows, b.strict))
}

// measureAll does each step with every contender before the next step, so that what is
// compared was measured within half a minute; the order turns with each repetition.
func (b *bench) measureAll(ctx context.Context, asked []contender, steps []step) ([]*row, error) {
	rows := make([]*row, len(asked))
	for i, c := range asked {
		rows[i] = &row{Name: c.name, Judged: c.judge}
	}
	for rep := range b.reps {
		if _, enough := b.late(); enough {
			break
		}
		for _, r := range rows {
			r.perRep = append(r.perRep, map[string]float64{})
		}
		for _, s := range steps {
			for i := range asked {
				k := (i + rep) % len(asked)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				o, err := b.measure(ctx, asked[k], s)
				if err != nil {
					return nil, err
				}
				rows[k].take(o, b.quiet)
				b.progress(rep, s, rows[k], o)
			}
		}
		for i, c := range asked {
			mib, err := size(c.program(b))
			if err != nil {
				return nil, err
			}
			rows[i].perRep[rep]["size"] = mib
			rows[i].perRep[rep]["start"] = median(rows[i].starts(len(steps)))
		}
	}
	for _, r := range rows {
		r.settle(rows[0])
	}
	return rows, nil
}

// take adds a step's outcome to the current repetition.
func (r *row) take(o outcome, quiet float64) {
	r.Reps = append(r.Reps, o)
	for k, v := range o.Figures {
		r.perRep[len(r.perRep)-1][k] = v
	}
	if r.Bad += o.Bad; o.Why != "" {
		r.Why = o.Why
	}
	if o.Others > quiet {
		r.Noisy++
	}
}

// starts are how long the last n starts took.
func (r *row) starts(n int) (ms []float64) {
	for _, o := range r.Reps[len(r.Reps)-n:] {
		ms = append(ms, o.Figures["start"])
	}
	return ms
}

// progress says on a terminal's line what was measured.
func (b *bench) progress(rep int, s step, r *row, o outcome) {
	note := ""
	if o.Bad > 0 {
		note = fmt.Sprintf("  %d bad: %s", o.Bad, o.Why)
	}
	if o.Others > b.quiet {
		note += fmt.Sprintf("  (others used %.1f cores)", o.Others)
	}
	fmt.Fprintf(os.Stderr, "%4.0f s  %d/%d  %-8s  %s%s\n", time.Since(b.began).Seconds(), rep+1, b.reps, s.name, strings.TrimSpace(r.Name), note)
}

// report prints the table, and writes the file that -json names.
func (b *bench) report(rows []*row) error {
	if b.json != "-" {
		fmt.Print(about(b))
		render(os.Stdout, rows, columns(), b.smoke)
	}
	return b.save(struct {
		About string `json:"about"`
		Rows  []*row `json:"rows"`
	}{about(b), rows})
}

// save writes what was measured to the file that -json names.
func (b *bench) save(what any) error {
	if b.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return err
	}
	if b.json == "-" {
		_, err = os.Stdout.Write(append(text, '\n'))
		return err
	}
	return os.WriteFile(b.json, append(text, '\n'), 0o644)
}

// about says what was measured where.
func about(b *bench) string {
	return fmt.Sprintf("understudy %s, %s, %d cores shared by proxy, upstream and generator; %s\n\n",
		b.commit, runtime.Version(), runtime.NumCPU(), b.how())
}

// how says what the figures are.
func (b *bench) how() string {
	switch once := []string{"crowd", "soak", "overload", "profile"}; {
	case b.smoke:
		return "a smoke test, too short for its figures to mean anything"
	case slices.Contains(once, b.scenario) || b.reps == 1:
		return "measured once"
	}
	return fmt.Sprintf("medians of %d repetitions", b.reps)
}

// render prints the rows, the goals and, unless it was a smoke test, how our own rows
// stand to them.
func render(to io.Writer, rows []*row, columns []column, smoke bool) {
	lines := [][]string{{""}, {""}}
	for _, c := range columns {
		lines[0], lines[1] = append(lines[0], c.head), append(lines[1], heading(c))
	}
	for _, r := range rows {
		line := []string{r.Name}
		for _, c := range columns {
			line = append(line, cell(c, r))
		}
		lines = append(lines, line)
	}
	goals, beyond := []string{"goal"}, []string{"beyond it"}
	for _, c := range columns {
		goals, beyond = append(goals, limit(c, c.goal)), append(beyond, limit(c, c.stretch))
	}
	if strings.Join(goals[1:], "") != "" {
		lines = append(lines, make([]string, len(goals)), goals, beyond)
	}
	for _, r := range rows {
		if !r.Judged || smoke {
			continue
		}
		line := []string{r.Name}
		for _, c := range columns {
			line = append(line, verdict(c, r))
		}
		lines = append(lines, line)
	}
	align(to, lines)
	fmt.Fprintf(to, "\nratios are to the %s, each within its repetition", bare)
	for _, r := range rows {
		if r.Bad > 0 {
			fmt.Fprintf(to, "\n%s: %d answers were wrong, the last: %s", strings.TrimSpace(r.Name), r.Bad, r.Why)
		}
		if r.Noisy > 0 {
			fmt.Fprintf(to, "\n%s: %d of %d steps while other processes were at work", strings.TrimSpace(r.Name), r.Noisy, len(r.Reps))
		}
	}
	fmt.Fprintln(to)
}

func heading(c column) string {
	if c.relative {
		return c.unit + " ratio"
	}
	return c.unit
}

func cell(c column, r *row) string {
	v, ok := r.Medians[c.key]
	if !ok {
		return "-"
	}
	text := fmt.Sprintf("%.*f", c.digits, v)
	if c.relative {
		text += fmt.Sprintf(" %5.2f", r.Ratios[c.key])
	}
	return text
}

func limit(c column, v float64) string {
	if v == 0 {
		return ""
	}
	if c.relative {
		return fmt.Sprintf("≤ %.2f", v)
	}
	return "≤ " + strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func verdict(c column, r *row) string {
	switch {
	case c.goal == 0:
		return ""
	case c.met(r):
		return "met"
	}
	return "missed"
}

// align prints lines with the first column to the left and the others to the right.
func align(to io.Writer, lines [][]string) {
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l[0]))
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t\n", strings.Join(l[1:], "\t"))
	}
	_ = w.Flush()
	i := 0
	for right := range strings.Lines(text.String()) {
		left := lines[i][0] + strings.Repeat(" ", width-utf8.RuneCountInString(lines[i][0]))
		fmt.Fprintln(to, strings.TrimRight(left+right, " \n"))
		i++
	}
}

// complete returns an error where a figure is missing, or, in a smoke test, where an
// answer of ours was wrong: the bare proxy cuts streams of an upstream that answers at once.
func complete(rows []*row, columns []column, smoke bool) error {
	var err error
	for _, r := range rows {
		for _, c := range columns {
			if _, ok := r.Medians[c.key]; !ok {
				err = errors.Join(err, fmt.Errorf("%s has no figure for %s", strings.TrimSpace(r.Name), c.head))
			}
			if _, ok := r.Ratios[c.key]; c.relative && !ok {
				err = errors.Join(err, fmt.Errorf("%s has no ratio for %s", strings.TrimSpace(r.Name), c.head))
			}
		}
		if smoke && r.Judged && r.Bad > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d answers were wrong, the last: %s", strings.TrimSpace(r.Name), r.Bad, r.Why))
		}
	}
	return err
}

// missed returns an error where strict is asked for and a goal is missed.
func missed(rows []*row, strict bool) error {
	var err error
	for _, r := range rows {
		for _, c := range columns() {
			if v, text, _ := c.judged(r); strict && r.Judged && c.goal > 0 && !c.met(r) {
				err = errors.Join(err, fmt.Errorf("%s: %s is %s (%v), more than %v", r.Name, c.head, text, v, c.goal))
			}
		}
		if strict && r.Judged && r.Bad > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d answers were wrong", r.Name, r.Bad))
		}
	}
	return err
}
