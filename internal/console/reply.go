package console

import (
	"context"
	"strings"

	"understudy/internal/control"
)

// A reply is what became of one line.
type reply struct {
	out control.Output
	err error
	// day is the View whose histories belong to the output; nil for most commands.
	day   *control.View
	chain string // the one they are of, "" for all
}

// ask runs one line.
func (s Source) ask(ctx context.Context, line string) (r reply) {
	if masked(line) {
		return reply{err: errMasked}
	}
	if r.out, r.err = s.Run(ctx, line); r.err != nil {
		return r
	}
	before, last := split(line)
	if words := append(before, last); strings.EqualFold(words[0].text, "stats") {
		// The figures are there already: without a View they stand alone.
		if v, err := s.View(ctx); err == nil {
			r.day = &v
		}
		if len(words) > 1 {
			r.chain = strings.TrimSpace(words[1].text)
		}
	}
	return r
}

// lines are a reply as it is printed.
func (r reply) lines(columns int, p paint) []string {
	if r.err != nil {
		lines := layout(errorText(r.err), columns, p)
		if rest, ok := strings.CutPrefix(lines[0], "error:"); ok {
			lines[0] = p.red("error:") + rest
		}
		return lines
	}
	var lines []string
	if r.out.Text != "" {
		lines = layout(r.out.Text, columns, p)
	}
	if r.day != nil {
		if day := histories(r.day, r.chain, columns, p); day != nil {
			lines = append(append(lines, ""), day...)
		}
	}
	return lines
}
