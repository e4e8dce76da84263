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
		add(p.red("no answer") + ": " + inline(firstLine(b.trouble)))
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
		add(p.red("the file is not in force") + ": " + inline(firstLine(text)))
	}
	if s := &b.view.Store; s.State == control.StoreAway && s.Problem != "" {
		add(p.yellow("the store is away") + ", this instance goes by what it knows: " + inline(firstLine(s.Problem)))
	}
	if keys := b.view.Config.NeedsRestart; len(keys) > 0 {
		add(p.yellow("needs a restart") + ": " + inline(strings.Join(keys, ", ")))
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
	words := wording(shown, columns)
	heading := words.heading && most > 1
	if heading {
		most--
	}
	hidden := 0
	if len(shown) > most {
		hidden = len(shown) - (most - 1)
		busy := slices.Clone(shown)
		slices.SortStableFunc(busy, func(x, y *control.Model) int { return int(busyness(y) - busyness(x)) })
		busy = busy[:most-1]
		shown = slices.DeleteFunc(shown, func(m *control.Model) bool { return !slices.Contains(busy, m) })
	}
	lines := modelLines(shown, words, columns, p)
	if words.heading && len(lines) > 0 && (!heading || lines[0] == "") {
		lines = lines[1:]
	}
	switch {
	case hidden == 1:
		lines = append(lines, p.dim("and 1 more, stats shows all"))
	case hidden > 0:
		lines = append(lines, p.dim(fmt.Sprintf("and %d more, stats shows all", hidden)))
	}
	return lines
}

func busyness(m *control.Model) int64 { return m.RPM + 2*m.InFlight }

// A words says how the figures of a model are named: behind each of them, or in a
// heading.
type words struct {
	units   [4]string
	heading bool
}

// wordings are the ways to name the figures, from roomy to narrow.
var wordings = []words{
	{units: [4]string{" rpm", " tpm", " average", " cache hits"}},
	{units: [4]string{" rpm", " tpm", "", " cache"}},
	{heading: true},
}

// figures are a model's, as they are shown.
func (w words) figures(m *control.Model) [4]string {
	return [4]string{
		strconv.FormatInt(m.RPM, 10) + w.units[0], tokens(m.TPM, m.TPMIncomplete) + w.units[1],
		latency(m.AvgLatency) + w.units[2], share(m.CacheHit) + w.units[3],
	}
}

// rows are the figures of all models, padded, with the heading where there is one.
func (w words) rows(models []*control.Model) (rows [][4]string, total int) {
	if w.heading {
		rows = append(rows, [4]string{"rpm", "tpm", "time", "hits"})
	}
	for _, m := range models {
		rows = append(rows, w.figures(m))
	}
	for i := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, width(row[i]))
		}
		for n := range rows {
			rows[n][i] = strings.Repeat(" ", widest-width(rows[n][i])) + rows[n][i]
		}
		total += gap + widest
	}
	return rows, total
}

// wording is the most telling one that finds room beside the names.
func wording(models []*control.Model, columns int) (w words) {
	if len(models) == 0 {
		return w
	}
	names := 0
	for _, m := range models {
		names = max(names, width(inline(m.Name)))
	}
	for _, w = range wordings {
		if _, total := w.rows(models); min(names, 24)+total <= columns {
			break
		}
	}
	return w
}

// modelLines are the models' figures in columns, the heading first where there is one.
func modelLines(models []*control.Model, w words, columns int, p paint) (lines []string) {
	if len(models) == 0 {
		return nil
	}
	rows, total := w.rows(models)
	var names []string
	if w.heading {
		names = append(names, "")
	}
	room := 0
	for _, m := range models {
		names = append(names, inline(m.Name))
		room = max(room, width(inline(m.Name)))
	}
	room = min(room, max(columns-total, min(8, columns)))
	for n, row := range rows {
		name := cut(names[n], room)
		line := p.bold(name) + strings.Repeat(" ", room-width(name))
		for _, cell := range row {
			if width(line)+gap+width(cell) > columns {
				break // whole figures, or none
			}
			line += strings.Repeat(" ", gap) + cell
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// A mention is a candidate in the bar, and what is said about it: of a long one the name
// is cut.
type mention struct{ name, says string }

func (m mention) width() int { return width(m.name) + 1 + width(m.says) }

func (m mention) text(columns int) string {
	return cut(m.name, max(columns-1-width(m.says), 1)) + " " + m.says
}

// frozen names who is frozen and for how long, on so many lines at most.
func (b bar) frozen(columns, most int, p paint) []string {
	var items []mention
	for i := range b.view.Freezes {
		f := &b.view.Freezes[i]
		// Until and Time are of one clock; that one may differ from ours.
		if left := f.Until.Sub(b.view.Time) - b.age; left > 0 {
			items = append(items, mention{inline(f.Model + "/" + f.Candidate), seconds(left)})
		}
	}
	frozen, disabled := len(items), 0
	for i := range b.view.Models {
		for j := range b.view.Models[i].Candidates {
			switch k := &b.view.Models[i].Candidates[j]; k.State {
			case control.StateDisabled:
				disabled++
			case control.StateProbation:
				items = append(items, mention{inline(b.view.Models[i].Name + "/" + k.Name), "on probation"})
			}
		}
	}
	switch {
	case len(items) == 0 && disabled > 0:
		return []string{p.green(fmt.Sprintf("all enabled candidates are available, %d disabled", disabled))}
	case len(items) == 0:
		return []string{p.green("all candidates are available")}
	case frozen == 0:
		return mentions("", items, columns, most, p)
	case columns < 30:
		return mentions("* ", items, columns, most, p) // the sign of the histories
	}
	return mentions("frozen: ", items, columns, most, p)
}

// mentions puts items one behind another behind a label, on so many lines at most; what
// finds no place is counted.
func mentions(label string, items []mention, columns, most int, p paint) []string {
	var lines []string
	margin := strings.Repeat(" ", len(label))
	line, used, empty := p.red(label), len(label), true
	for i, item := range items {
		// There must be room for what follows: a comma, or on the last line how many are
		// left out.
		more, last := "", len(lines) == most-1
		if rest := len(items) - i - 1; last && rest > 0 {
			more = fmt.Sprintf(", and %d more", rest)
		} else if rest > 0 {
			more = ","
		}
		switch {
		case empty:
			text := item.text(columns - used - width(more))
			line, used, empty = line+text, used+width(text), false
		case used+2+item.width()+width(more) <= columns:
			line, used = line+", "+item.text(columns), used+2+item.width()
		case !last:
			lines = append(lines, line+",")
			text := item.text(columns - len(margin) - width(more))
			line, used = margin+text, len(margin)+width(text)
		default:
			return append(lines, line+fmt.Sprintf(", and %d more", len(items)-i))
		}
	}
	return append(lines, line)
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
