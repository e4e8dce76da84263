package drill

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
)

//go:embed scorecard.css
var scorecardCSS string

//go:embed scorecard.tmpl
var scorecardHTML string

var scorecardPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("scorecard").Parse(scorecardHTML)) })

// HTML writes the scorecard as one page that needs nothing besides: no script, no
// font, no picture. Its own policy lets it load nothing, and style itself by the one
// sheet in it.
func (s *Scorecard) HTML(w io.Writer) error {
	sum := sha256.Sum256([]byte(scorecardCSS))
	return scorecardPage().Execute(w, struct {
		Card      *Scorecard
		Style     template.CSS
		StyleHash template.HTMLAttr
		Verdicts  []Verdict
	}{s, template.CSS(scorecardCSS), template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(sum[:])), Verdicts}) //nolint:gosec // the sheet is ours
}

// Set is one of the two tables of a card.
type Set struct {
	Title   string
	Counts  Counts
	Results []Result
}

// Sets are the tables of a card that have lines.
func (c Card) Sets() (sets []Set) {
	all := []Set{{Title: "FailoverBench's sixteen, methodology v0.1", Counts: c.Benchmark}, {Title: "ours", Counts: c.Own}}
	for _, r := range c.Results {
		i := 1
		if r.Benchmark() {
			i = 0
		}
		all[i].Results = append(all[i].Results, r)
	}
	for _, set := range all {
		if len(set.Results) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

// Time is how long the client waited.
func (r Result) Time() string { return brisk(seconds(r.Seconds)) }

// Line says in one line what the proxy made of an attempt.
func (s Step) Line() string {
	parts := []string{s.Candidate + " after " + brisk(seconds(s.Seconds))}
	switch {
	case s.Text != "":
		parts = append(parts, s.Text)
	case s.Status > 0:
		parts = append(parts, fmt.Sprint(s.Status))
	}
	if s.Action != "" {
		action := s.Action
		if s.Waited > 0 {
			action += fmt.Sprintf(" after %.2g s", s.Waited)
		}
		if s.Frozen > 0 {
			action += fmt.Sprintf(", frozen for %.2g s", s.Frozen)
		}
		parts = append(parts, action)
	}
	return strings.Join(parts, ": ")
}
