package console

import (
	"strings"
)

// gap is how many blanks stand between the columns of a table.
const gap = 2

// layout fits the output of a command to a terminal: tables that are too wide are
// broken between columns, prose between words. A width of 0 is no bound.
func layout(text string, columns int, p paint) (lines []string) {
	var rows []string
	flush := func() {
		lines = append(lines, tableLines(rows, columns, p)...)
		rows = nil
	}
	for line := range strings.SplitSeq(clean(text), "\n") {
		if strings.Contains(strings.TrimRight(line, " "), strings.Repeat(" ", gap)) {
			rows = append(rows, line)
			continue
		}
		flush()
		lines = append(lines, fold(line, columns, gap)...)
	}
	flush()
	return lines
}

// A column is one of a table, its cells padded to its width.
type column struct {
	head  string
	cells []string
	width int
	prose bool // its cells may be broken between words
}

// tableLines prints the rows of what seems to be a table.
func tableLines(rows []string, columns int, p paint) (lines []string) {
	cols := takeApart(rows)
	if len(rows) < 2 || len(cols) < 2 {
		for _, row := range rows {
			lines = append(lines, fold(row, columns, gap)...)
		}
		return lines
	}
	if total := total(cols); columns <= 0 || total <= columns {
		return printed(cols, 0, p)
	}
	last := len(cols) - 1
	if others := total(cols[:last]); cols[last].prose && columns-others-gap >= min(24, columns/2) {
		return printed(cols, columns, p)
	}
	// Several tables below one another, the first columns in each of them; or, where
	// these leave no room for others, one row below another.
	keys := 1
	if cols[1].head == "#" {
		keys = 2
	}
	if total(cols[:keys]) > columns/2 {
		return stacked(cols, columns, p)
	}
	for rest := cols[keys:]; len(rest) > 0; {
		n := 1
		for n < len(rest) && total(cols[:keys])+gap+total(rest[:n+1]) <= columns {
			n++
		}
		if lines != nil {
			lines = append(lines, "")
		}
		lines = append(lines, printed(append(cols[:keys:keys], rest[:n]...), columns, p)...)
		rest = rest[n:]
	}
	return lines
}

// stacked prints a table row by row, a line for every cell that says something.
func stacked(cols []column, columns int, p paint) (lines []string) {
	for i := 1; i < len(cols[0].cells); i++ {
		if first := strings.TrimSpace(cols[0].cells[i]); first != "" {
			for _, part := range fold(first, columns, gap) {
				lines = append(lines, p.bold(part))
			}
		}
		for _, c := range cols[1:] {
			text := strings.TrimSpace(c.cells[i])
			if text == "" {
				continue
			}
			if len(cols) > 2 {
				text = c.head + " " + text
			}
			margin := strings.Repeat(" ", min(gap, columns/4))
			for _, part := range fold(text, columns-len(margin), gap) {
				lines = append(lines, margin+part)
			}
		}
	}
	return lines
}

func total(cols []column) (n int) {
	for i := range cols {
		if n > 0 {
			n += gap
		}
		n += cols[i].width
	}
	return n
}

// takeApart finds the columns of a table: where several rows have blanks in the same
// two places, one ends.
func takeApart(rows []string) (cols []column) {
	var grid [][]string // by row and place on the screen; "" behind a wide character
	end := 0
	for _, row := range rows {
		var places []string
		for _, r := range row {
			places = append(places, string(r))
			switch w := runeWidth(r); w {
			case 0: // joins what stands before it
				places = places[:len(places)-1]
				if n := len(places); n > 0 {
					places[n-1] += string(r)
				}
			case 2:
				places = append(places, "")
			}
		}
		grid = append(grid, places)
		end = max(end, len(places))
	}
	blank := func(x int) bool {
		for _, places := range grid {
			if x < len(places) && places[x] != " " {
				return false
			}
		}
		return true
	}
	for x := 0; x < end; {
		if blank(x) {
			x++
			continue
		}
		start := x
		for x < end && (!blank(x) || x+1 < end && !blank(x+1)) {
			x++
		}
		c := column{width: x - start}
		for i, places := range grid {
			cell := strings.Join(places[min(start, len(places)):min(x, len(places))], "")
			cell += strings.Repeat(" ", c.width-width(cell))
			if c.cells = append(c.cells, cell); i == 0 {
				c.head = strings.TrimSpace(cell)
			}
			c.prose = c.prose || i > 0 && strings.Contains(strings.TrimSpace(cell), " ")
		}
		cols = append(cols, c)
	}
	return cols
}

// printed prints columns side by side. Where they are wider than the terminal, the
// last one is broken.
func printed(cols []column, columns int, p paint) (lines []string) {
	last := len(cols) - 1
	others := total(cols[:last])
	margin := others
	if margin > 0 {
		margin += gap
	}
	room := columns - margin
	for i := range cols[0].cells {
		var line strings.Builder
		for _, c := range cols[:last] {
			line.WriteString(p.cell(c.head, c.cells[i], i == 0))
			line.WriteString(strings.Repeat(" ", gap))
		}
		final := []string{strings.TrimRight(cols[last].cells[i], " ")}
		if columns > 0 && cols[last].width > room {
			final = fold(strings.TrimSpace(final[0]), max(room, 1), 0)
		}
		for n, part := range final {
			if n > 0 {
				line.Reset()
				line.WriteString(strings.Repeat(" ", margin))
			}
			line.WriteString(p.cell(cols[last].head, part, i == 0))
			lines = append(lines, strings.TrimRight(line.String(), " "))
		}
	}
	return lines
}

// cell colours a cell of a table by what its column is.
func (p paint) cell(head, text string, heading bool) string {
	if heading {
		return p.bold(text)
	}
	if head == "state" {
		switch strings.TrimSpace(text) {
		case "ready":
			return p.green(text)
		case "frozen":
			return p.red(text)
		case "probation":
			return p.yellow(text)
		case "disabled":
			return p.dim(text)
		}
	}
	return text
}
