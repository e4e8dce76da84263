package console

import (
	"fmt"
	"strings"
)

// A menu is the list of completions that is open below the prompt.
type menu struct {
	options  []option
	selected int // -1: none yet
	start    int // where in the line the word begins, in bytes
	before   string
	after    string // what stands behind the cursor
}

func (m *menu) open() bool { return len(m.options) > 0 }

func (m *menu) close() { *m = menu{} }

// move selects another option and gives the line with it, and where the cursor is.
func (m *menu) move(by int) (line string, cursor int) {
	switch n := len(m.options); {
	case m.selected < 0 && by < 0:
		m.selected = n - 1
	case m.selected < 0:
		m.selected = 0
	default:
		m.selected = (m.selected + by + n) % n
	}
	front := m.before[:m.start] + quoted(m.options[m.selected].text)
	return front + m.after, len([]rune(front))
}

// lines draws the menu: an option per line with its note where they all find room,
// else in columns.
func (m *menu) lines(columns, most int, p paint) (lines []string) {
	if most <= 0 || !m.open() {
		return nil
	}
	if len(m.options) <= most && columns >= 40 {
		widest := 0
		for _, o := range m.options {
			widest = max(widest, width(inline(o.text)))
		}
		for i, o := range m.options {
			text := inline(o.text)
			text = m.marked(i, text, p) + strings.Repeat(" ", widest-width(text)+gap)
			lines = append(lines, cut(strings.TrimRight(text+p.dim(inline(o.note)), " "), columns))
		}
		return lines
	}
	return m.inColumns(columns, most, p)
}

// marked is an option with the sign of the selected one.
func (m *menu) marked(i int, text string, p paint) string {
	if i == m.selected {
		return "> " + p.code("7", text)
	}
	return "  " + text
}

func (m *menu) inColumns(columns, most int, p paint) (lines []string) {
	widest := 0
	for _, o := range m.options {
		widest = max(widest, width(inline(o.text)))
	}
	widest = max(min(widest, columns-gap), 1)
	across := max(1, columns/(widest+gap))
	rows := (len(m.options) + across - 1) / across
	first := 0 // the row shown first: the selected one is always among those seen
	seen := rows
	if rows > most {
		seen = max(most-1, 1)
		if m.selected >= 0 {
			first = min(max(m.selected/across-seen+1, 0), rows-seen)
		}
	}
	for row := first; row < first+seen; row++ {
		line := ""
		for i := row * across; i < min((row+1)*across, len(m.options)); i++ {
			text := cut(inline(m.options[i].text), widest)
			line += m.marked(i, text, p) + strings.Repeat(" ", widest-width(text))
		}
		lines = append(lines, cut(strings.TrimRight(line, " "), columns))
	}
	if hidden := len(m.options) - min((first+seen)*across, len(m.options)) + first*across; hidden > 0 && most > 1 {
		lines = append(lines, p.dim(cut(fmt.Sprintf("  and %d more", hidden), columns)))
	}
	return lines
}
