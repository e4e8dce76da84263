package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/control"
)

// A bar is what the status bar shows.
type bar struct {
	view *control.View
	// age is how old the View is: countdowns go on without a new one.
	age time.Duration
	// trouble is why there is no newer View, "" if there is none.
	trouble string
	// stopping says that the process is coming to its end.
	stopping bool
	// running is the command that is taking its time, "" if none is.
	running string
}

// stale is the age at which a View is said to be old.
const stale = 3 * time.Second

// lines draws the bar: the virtual models, then who is frozen, then what else people
// should know. It is never wider than the terminal, nor has more lines than most.
func (b bar) lines(columns, most int, p paint) []string {
	if most <= 0 || columns <= 0 {
		return nil
	}
	alerts := b.alerts(p)
	if b.view == nil {
		return fitting(alerts, columns, most)
	}
	// Every part has one line at least, as far as there are so many; the frozen ones
	// may have several where there is room.
	alerts = fitting(alerts, columns, max(0, min(len(alerts), most-2)))
	frozen := b.frozen(columns, max(1, min(3, most-len(alerts)-len(b.view.Models))), p)
	models := b.models(columns, most-len(alerts)-len(frozen), p)
	return fitting(slices.Concat(models, frozen, alerts), columns, most)
}

// fitting cuts lines to the width of the terminal and to so many.
func fitting(lines []string, columns, most int) []string {
	lines = slices.Clone(lines[:min(len(lines), most)])
	for i, line := range lines {
		lines[i] = cut(line, columns)
	}
	return lines
}

// alerts are the things out of the ordinary.
func (b bar) alerts(p paint) (list []string) {
	add := func(line string) { list = append(list, line) }
	if b.stopping {
		text := "stopping"
		if b.view != nil {
			text += fmt.Sprintf(": %d running requests may finish", b.view.Totals.InFlight)
		}
		add(p.yellow(text) + ", Ctrl-C stops at once")
	}
	if b.trouble != "" {
		add(p.red("no answer") + ": " + clean(firstLine(b.trouble)))
	} else if b.view != nil && b.age >= stale {
		add(p.red("no answer") + " for " + seconds(b.age))
	}
	if b.running != "" {
		add("running: " + b.running)
	}
	if b.view == nil {
		return list
	}
	if text := b.view.Config.Error; text != "" {
		add(p.red("the file is not in force") + ": " + clean(firstLine(text)))
	}
	if keys := b.view.Config.NeedsRestart; len(keys) > 0 {
		add(p.yellow("needs a restart") + ": " + clean(strings.Join(keys, ", ")))
	}
	if b.view.TargetMode {
		add(p.yellow("target mode is on"))
	}
	return list
}

func firstLine(text string) string {
	first, _, more := strings.Cut(text, "\n")
	if more {
		first += " …"
	}
	return first
}

// models draws a line per virtual model. Where they are too many, the busiest ones
// are shown, in the order of the file.
func (b bar) models(columns, most int, p paint) []string {
	all := b.view.Models
	shown := make([]*control.Model, len(all))
	for i := range all {
		shown[i] = &all[i]
	}
	if most <= 0 {
		return nil
	}
	hidden := 0
	if len(shown) > most {
		hidden = len(shown) - (most - 1)
		busy := slices.Clone(shown)
		slices.SortStableFunc(busy, func(x, y *control.Model) int { return int(busyness(y) - busyness(x)) })
		busy = busy[:most-1]
		shown = slices.DeleteFunc(shown, func(m *control.Model) bool { return !slices.Contains(busy, m) })
	}
	lines := modelLines(shown, columns, p)
	switch {
	case hidden == 1:
		lines = append(lines, p.dim("and 1 more: stats"))
	case hidden > 0:
		lines = append(lines, p.dim(fmt.Sprintf("and %d more: stats", hidden)))
	}
	return lines
}

func busyness(m *control.Model) int64 { return m.RPM + 2*m.InFlight }

// How the figures are named, from roomy to narrow.
var wordings = [][4]string{{" rpm", " tpm", " average", " cache hits"}, {" rpm", " tpm", "", " cache"}, {"r", "t", "", ""}}

// modelLines are the models' figures in columns, as wordy as there is room for.
func modelLines(models []*control.Model, columns int, p paint) (lines []string) {
	if len(models) == 0 {
		return nil
	}
	names := 0
	for _, m := range models {
		names = max(names, width(clean(m.Name)))
	}
	var cells [][4]string
	figures := 0
	for _, words := range wordings {
		cells = cells[:0]
		var widths [4]int
		for _, m := range models {
			row := [4]string{
				strconv.FormatInt(m.RPM, 10) + words[0], tokens(m.TPM, m.TPMIncomplete) + words[1],
				latency(m.AvgLatency) + words[2], share(m.CacheHit) + words[3],
			}
			for i, cell := range row {
				widths[i] = max(widths[i], width(cell))
			}
			cells = append(cells, row)
		}
		figures = 0
		for n := range cells {
			for i, cell := range cells[n] {
				cells[n][i] = strings.Repeat(" ", widths[i]-width(cell)) + cell
			}
		}
		for _, w := range widths {
			figures += gap + w
		}
		if min(names, 24)+figures <= columns {
			break
		}
	}
	room := max(columns-figures, min(8, columns))
	names = min(names, room)
	for n, m := range models {
		name := cut(clean(m.Name), names)
		line := p.bold(name) + strings.Repeat(" ", names-width(name))
		for _, cell := range cells[n] {
			if width(line)+gap+width(cell) > columns {
				break // whole figures, or none
			}
			line += strings.Repeat(" ", gap) + cell
		}
		lines = append(lines, line)
	}
	return lines
}

// frozen names who is frozen and for how long, on so many lines at most.
func (b bar) frozen(columns, most int, p paint) []string {
	var items []string
	for i := range b.view.Freezes {
		f := &b.view.Freezes[i]
		// Until and Time are of one clock; that one may differ from ours.
		if left := f.Until.Sub(b.view.Time) - b.age; left > 0 {
			items = append(items, clean(f.Model+"/"+f.Candidate)+" "+seconds(left))
		}
	}
	disabled := 0
	var trials []string
	for i := range b.view.Models {
		for j := range b.view.Models[i].Candidates {
			switch k := &b.view.Models[i].Candidates[j]; k.State {
			case control.StateDisabled:
				disabled++
			case control.StateProbation:
				trials = append(trials, clean(b.view.Models[i].Name+"/"+k.Name)+" on probation")
			}
		}
	}
	items = append(items, trials...)
	if len(items) == 0 {
		text := "all candidates are available"
		if disabled > 0 {
			text = fmt.Sprintf("all enabled candidates are available, %d disabled", disabled)
		}
		return []string{p.green(text)}
	}
	label := "frozen: "
	if len(trials) == len(items) {
		label = ""
	}
	return itemLines(label, items, columns, most, p)
}

// itemLines puts items one behind another, on so many lines at most; what finds no
// place is counted.
func itemLines(label string, items []string, columns, most int, p paint) (lines []string) {
	line := ""
	for i, item := range items {
		rest := len(items) - i
		more := ""
		if rest > 1 {
			more = fmt.Sprintf(", and %d more", rest-1)
		}
		front := ", "
		if line == "" {
			front = label
		}
		// On the last line there must be room to say how many are left out.
		needed := width(line) + width(front) + width(item)
		if len(lines) == most-1 {
			needed += width(more)
		}
		switch {
		case needed <= columns || line == "":
			line += front + item
		case len(lines) < most-1:
			lines = append(lines, line+",")
			line = strings.Repeat(" ", len(label)) + item
		default:
			return append(lines, colourLabel(line+fmt.Sprintf(", and %d more", rest), label, p))
		}
	}
	lines = append(lines, line)
	lines[0] = colourLabel(lines[0], label, p)
	return lines
}

func colourLabel(line, label string, p paint) string {
	if rest, ok := strings.CutPrefix(line, label); ok && label != "" {
		return p.red(strings.TrimRight(label, " ")) + " " + rest
	}
	return line
}

// seconds is a time to wait, in the two greatest units that it has; what still lasts
// is never shown as over.
func seconds(d time.Duration) string {
	s := int64(math.Ceil(d.Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

// tokens is a number of tokens, short.
func tokens(n *int64, incomplete bool) string {
	if n == nil {
		return "?"
	}
	text := strconv.FormatInt(*n, 10)
	switch {
	case *n >= 9_999_500:
		text = fmt.Sprintf("%.0fM", float64(*n)/1e6)
	case *n >= 999_950:
		text = fmt.Sprintf("%.1fM", float64(*n)/1e6)
	case *n >= 99_950:
		text = fmt.Sprintf("%.0fk", float64(*n)/1e3)
	case *n >= 10_000:
		text = fmt.Sprintf("%.1fk", float64(*n)/1e3)
	}
	if incomplete {
		text += "+"
	}
	return text
}

func latency(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms < 999.5:
		return fmt.Sprintf("%.0fms", *ms)
	case *ms < 99_950:
		return fmt.Sprintf("%.1fs", *ms/1000)
	}
	return fmt.Sprintf("%.0fs", *ms/1000)
}

func share(part *float64) string {
	if part == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**part)
}
