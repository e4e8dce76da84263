package console

import (
	"runtime/debug"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// slow is how long a command runs before the bar names it.
const slow = time.Second

// View draws what is drawn again and again: the prompt first, so that nothing below
// moves it.
func (l *loop) View() (v tea.View) {
	defer func() {
		if value := recover(); value != nil {
			// The next message ends the loop; there is one within a second.
			l.broken = &panicMsg{value, debug.Stack()}
			v = tea.NewView("")
		}
	}()
	if l.gone || l.broken != nil {
		return tea.NewView("")
	}
	if l.resizing {
		return l.drawnView // nothing is drawn until the terminal keeps its size
	}
	lines := l.frame()
	v = tea.NewView(strings.Join(lines, "\n"))
	_, x := l.promptLine()
	v.Cursor = tea.NewCursor(x, 0)
	v.Cursor.Blink = false
	l.drawnView, l.drawnPrompt, l.drawnCursor = v, lines[0], x
	return v
}

// frame is the lines of the screen, the first of them the prompt.
func (l *loop) frame() []string {
	prompt, _ := l.promptLine()
	lines := []string{prompt}
	room := l.rows - 1
	menu := l.menu.lines(l.columns, min(room, max(l.rows/3, 2), 8), l.paint)
	lines = append(lines, menu...)
	room -= len(menu)
	return append(lines, l.bar().lines(l.columns, min(room, max(l.rows/3, 2), 10), l.paint)...)
}

func (l *loop) bar() bar {
	b := bar{view: l.view, trouble: l.trouble, stopping: l.stopping}
	if l.view != nil {
		b.age = max(l.now.Sub(l.got), 0)
	}
	if l.running != "" && l.now.Sub(l.since) >= slow {
		b.running = l.running
	}
	return b
}

// promptLine is the prompt with what is typed, and the column of the cursor.
func (l *loop) promptLine() (line string, x int) {
	prompt, typed, cursor := promptText(l.columns), l.input.Value(), l.input.Position()
	if l.search.on {
		prompt = cut("search '"+l.search.text+"': ", l.columns/2)
		typed, cursor = l.search.found, 0
		if i := strings.Index(typed, l.search.text); i > 0 {
			cursor = len([]rune(typed[:i]))
		}
	}
	room := l.columns - width(prompt) - 1 // the cursor may stand behind the text
	text, x := window(hide(typed), cursor, room)
	return l.paint.bold(prompt) + text, min(width(prompt)+x, l.columns-1)
}
