package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"understudy/internal/control"
)

// explainCommand tells how a request went.
type explainCommand struct {
	adminFlag
	ID     string `arg:"" name:"request-id" complete:"requests" help:"What the answer's X-Understudy-Request-Id says, and the log."`
	Bodies bool   `help:"Print the bodies too, where request_log.bodies keeps them."`
	JSON   bool   `name:"json" help:"Print the trail as JSON."`
}

// Run prints the decision trail of one request as a person would tell it.
func (c *explainCommand) Run(std streams) error {
	ctx := context.Background()
	p, err := c.past(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	r, err := p.find(ctx, c.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", plain(c.ID), err)
	}
	if c.JSON {
		err = printJSON(std.out, r)
	} else {
		_, err = fmt.Fprintln(std.out, r.Story())
	}
	if err != nil || !c.Bodies {
		return err
	}
	bodies, err := p.bodies(ctx, c.ID)
	if errors.Is(err, errNoRequest) {
		_, err = fmt.Fprintln(std.out, "\nNo bodies are kept of it, or they are not written yet: request_log.bodies says whose are.")
		return err
	}
	if err != nil {
		return err
	}
	for i := range bodies {
		b := &bodies[i]
		if _, err := fmt.Fprintf(std.out, "\n--- %s ---\n%s\n", b.title(&r), plain(string(b.content()))); err != nil {
			return err
		}
	}
	return nil
}

// title says whose body it is.
func (b *keptBody) title(r *control.Request) string {
	text := "the request's body"
	if b.Attempt > 0 && b.Attempt <= len(r.Attempts) {
		text = fmt.Sprintf("what %s answered in attempt %d", r.Attempts[b.Attempt-1].Candidate, b.Attempt)
	}
	text += fmt.Sprintf(", %d bytes", b.Size)
	if b.Cut {
		text += ", of which only the beginning is kept"
	}
	return text
}

// plain is a text from outside as a terminal may show it: lines and tabs stay, what
// could move a cursor or turn a line around is spelled out.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || !unseen(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}

// unseen says whether a character is none that is seen, but one that may move a cursor,
// colour a terminal or turn a line around.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
