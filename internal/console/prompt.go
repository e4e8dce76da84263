package console

import (
	"strings"

	"understudy/internal/control"
)

// promptText is what stands before the line being typed, as long as there is room.
func promptText(columns int) string {
	switch {
	case columns >= 40:
		return "understudy> "
	case columns >= 6:
		return "> "
	}
	return ""
}

// hide is a line as it may be seen while it is typed: a character for every one of
// the line, those of secrets as stars. Of a long one the beginning and the end show,
// as in a mask; what is a mask already shows as it is.
func hide(line string) []rune {
	shown := []rune(nil)
	last := 0
	for _, s := range control.Secrets(line) {
		shown = append(shown, []rune(line[last:s.Start])...)
		secret := []rune(line[s.Start:s.End])
		for i := range secret {
			if masked(line[s.Start:s.End]) {
				break
			}
			if len(secret) < 20 || i >= 6 && i < len(secret)-4 {
				secret[i] = '*'
			}
		}
		shown = append(shown, secret...)
		last = s.End
	}
	return append(shown, []rune(line[last:])...)
}

// window is the part of a line that is seen, and the column of the cursor in it. It
// moves by half its width, so that the text stands still while the cursor moves. A sign
// stands where the line has begun before.
func window(line []rune, cursor, columns int) (text string, x int) {
	if columns <= 0 {
		return "", 0
	}
	at := width(string(line[:cursor]))
	from, end := 0, columns
	var b strings.Builder
	if at >= columns {
		half := max(columns/2, 1)
		from = ((at-columns)/half + 1) * half
		x, end = at-from, from+columns
		b.WriteByte('<')
		from++
	} else {
		x = at
	}
	column := 0
	for _, r := range line {
		w := runeWidth(r)
		switch {
		case column < from && column+w > from && from < end: // half of a wide character
			b.WriteByte(' ')
		case column >= from && column+w <= end:
			b.WriteRune(r)
		}
		column += w
	}
	return b.String(), x
}
