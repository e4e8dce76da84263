package control

import (
	"strings"
	"unicode"
)

// A table is rows of text that are printed with their columns lined up, as seen
// on a terminal: wide characters count twice.
type table struct {
	rows [][]string
	// right marks the columns whose cells end in line instead of beginning so.
	right map[int]bool
}

// newTable begins with a heading; those that begin with ">" are of columns of
// numbers, which stand to the right.
func newTable(heading ...string) *table {
	t := &table{right: map[int]bool{}}
	for i, h := range heading {
		if bare, ok := strings.CutPrefix(h, ">"); ok {
			heading[i], t.right[i] = bare, true
		}
	}
	t.rows = append(t.rows, heading)
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// String has no blanks at the ends of lines and no line break at the end.
func (t *table) String() string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			gap := strings.Repeat(" ", widths[i]-width(cell))
			if t.right[i] {
				line.WriteString(gap + cell)
			} else {
				line.WriteString(cell + gap)
			}
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return strings.Join(lines, "\n")
}

// width is how many columns a text takes on a terminal.
func width(s string) (n int) {
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide says whether terminals give a character two columns: the East Asian
// scripts, full-width forms and emoji (Unicode Standard Annex 11, in blocks).
func wide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f || 0x2e80 <= r && r <= 0x303e || 0x3041 <= r && r <= 0xa4cf ||
		0xa960 <= r && r <= 0xa97c || 0xac00 <= r && r <= 0xd7a3 || 0xf900 <= r && r <= 0xfaff ||
		0xfe30 <= r && r <= 0xfe6f || 0xff00 <= r && r <= 0xff60 || 0xffe0 <= r && r <= 0xffe6 ||
		0x1f300 <= r && r <= 0x1f64f || 0x1f680 <= r && r <= 0x1f6ff || 0x1f900 <= r && r <= 0x1f9ff || 0x20000 <= r && r <= 0x3fffd)
}
