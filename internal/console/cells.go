package console

import (
	"fmt"
	"strings"

	"understudy/internal/control"
)

// The signs of a history's cells: a colour only repeats what they say.
var signs = map[string]string{"ok": "#", "mixed": "+", "failing": "x", "frozen": "*", "idle": "."}

var cellLegend = []string{"# ok", "+ mixed", "x failing", "* frozen", ". idle"}

// cellsPerLine are the numbers of cells that a line may have, all of them parts of a
// day that people can name.
var cellsPerLine = []int{144, 72, 48, 36, 24, 18, 12, 6}

// histories draws the last day of a virtual model and its candidates, or of all
// virtual models where none is named: a sign for every ten minutes.
func histories(v *control.View, name string, columns int, p paint) (lines []string) {
	type row struct {
		name    string
		history *control.History
	}
	var rows []row
	for i := range v.Models {
		m := &v.Models[i]
		if name == "" || m.Name == name {
			rows = append(rows, row{m.Name, &m.History})
		}
		for j := range m.Candidates {
			if k := &m.Candidates[j]; m.Name == name {
				rows = append(rows, row{fmt.Sprintf("%d %s", k.Index, k.Name), &k.History})
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	h := rows[0].history
	minutes := h.CellSeconds / 60
	lines = append(lines, fold(fmt.Sprintf("the last %d hours, a sign for every %d minutes, now at the end:", len(h.States)*minutes/60, minutes), columns, gap)...)
	lines = append(lines, beside(cellLegend, columns)...)
	names := 0
	for _, r := range rows {
		names = max(names, width(inline(r.name)))
	}
	for _, r := range rows {
		// All in one line with its name, where there is room for that.
		if columns <= 0 || names+gap+len(r.history.States) <= columns {
			name := inline(r.name)
			lines = append(lines, name+strings.Repeat(" ", names-width(name)+gap)+p.cells(r.history.States))
			continue
		}
		lines = append(lines, cut(inline(r.name), columns))
		lines = append(lines, cellLines(r.history, columns, p)...)
	}
	return lines
}

// cellLines breaks a history into lines that say how long ago they begin.
func cellLines(h *control.History, columns int, p paint) (lines []string) {
	const label = 6 // "  -24h", and a blank
	front := true
	per := 0
	for _, n := range cellsPerLine {
		if label+1+n <= columns {
			per = n
			break
		}
	}
	if per == 0 {
		front, per = false, max(columns, 1)
	}
	for i := 0; i < len(h.States); i += per {
		ago := (len(h.States) - i) * h.CellSeconds / 3600
		line := p.cells(h.States[i:min(i+per, len(h.States))])
		if front {
			line = p.dim(fmt.Sprintf("%*s ", label, fmt.Sprintf("-%dh", ago))) + line
		}
		lines = append(lines, line)
	}
	return lines
}

// cells are the signs of a history, those of a kind in one colour.
func (p paint) cells(states []string) string {
	var b strings.Builder
	for i := 0; i < len(states); {
		n := i
		for n < len(states) && states[n] == states[i] {
			n++
		}
		sign, ok := signs[states[i]]
		if !ok {
			sign = "?"
		}
		text := strings.Repeat(sign, n-i)
		switch states[i] {
		case "ok":
			text = p.green(text)
		case "mixed":
			text = p.yellow(text)
		case "failing":
			text = p.red(text)
		case "frozen":
			text = p.blue(text)
		case "idle":
			text = p.dim(text)
		}
		b.WriteString(text)
		i = n
	}
	return b.String()
}

// beside puts texts side by side, on as many lines as it takes.
func beside(texts []string, columns int) (lines []string) {
	line := ""
	for _, text := range texts {
		switch longer := line + strings.Repeat(" ", gap) + text; {
		case line == "":
			line = text
		case columns <= 0 || width(longer) <= columns:
			line = longer
		default:
			lines, line = append(lines, line), text
		}
	}
	lines = append(lines, line)
	for i := range lines {
		if columns > 0 {
			lines[i] = cut(lines[i], columns)
		}
	}
	return lines
}
