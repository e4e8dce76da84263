package console

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// key does what a key stands for; the line editor knows the rest.
func (l *loop) key(k tea.KeyPressMsg) tea.Cmd {
	if l.leaving {
		return nil
	}
	name := k.String()
	if l.search.on && l.searchKey(name, k.Text) {
		return nil
	}
	if name != "tab" && name != "shift+tab" && name != "esc" {
		l.menu.close()
	}
	switch name {
	case "enter", "ctrl+j":
		return l.submit()
	case "tab":
		l.complete(1)
	case "shift+tab":
		l.complete(-1)
	case "esc":
		if l.menu.open() {
			l.setLine(l.menu.before+l.menu.after, len([]rune(l.menu.before)))
			l.menu.close()
		}
	case "up", "ctrl+p":
		if line, ok := l.history.earlier(l.input.Value()); ok {
			l.setLine(line, len([]rune(line)))
		}
	case "down", "ctrl+n":
		if line, ok := l.history.later(); ok {
			l.setLine(line, len([]rune(line)))
		}
	case "ctrl+r":
		l.search.start(l.input.Value(), len(l.history.lines))
	case "ctrl+c":
		return l.interrupt()
	case "ctrl+l":
		// The cursor is in the first line of the frame, which then is drawn from the top.
		return tea.Sequence(tea.Raw(ansi.CursorHomePosition+ansi.EraseEntireScreen), tea.ClearScreen)
	case "ctrl+z":
		if l.o.Stop == nil {
			return tea.Suspend
		}
		l.print(fold("Ctrl-Z does nothing here: it would hold up the proxy too", l.columns, 0)...)
		return l.flush()
	case "ctrl+d":
		if l.input.Value() == "" {
			return l.leave()
		}
		fallthrough
	default:
		var cmd tea.Cmd
		l.input, cmd = l.input.Update(k)
		return cmd
	}
	return nil
}

// setLine puts a line into the prompt; the cursor is counted in characters.
func (l *loop) setLine(line string, cursor int) {
	l.input.SetValue(line)
	l.input.SetCursor(cursor)
}

// complete finishes the word before the cursor, as far as there is only one way;
// otherwise it opens the menu, in which the next calls go on.
func (l *loop) complete(by int) {
	if l.menu.open() {
		l.setLine(l.menu.move(by))
		return
	}
	line := []rune(l.input.Value())
	before, after := string(line[:l.input.Position()]), string(line[l.input.Position():])
	start, options := complete(before, l.view)
	if len(options) == 0 {
		return
	}
	_, last := split(before)
	word := quoted(common(options))
	if len(options) == 1 {
		if word = quoted(options[0].text); !options[0].open && !strings.HasPrefix(after, " ") {
			word += " "
		}
	} else if len(common(options)) <= len(last.text) || word != common(options) {
		word = before[start:] // nothing to add, or not without quotes
	}
	before = before[:start] + word
	l.setLine(before+after, len([]rune(before)))
	if len(options) > 1 {
		l.menu = menu{options: options, selected: -1, start: start, before: before, after: after}
	}
}

// A search goes back through the history for a text that is typed meanwhile.
type search struct {
	on    bool
	text  string
	at    int    // the line found; the length of the history before anything is
	found string // that line
	draft string // what stood in the prompt
}

func (s *search) start(draft string, at int) { *s = search{on: true, draft: draft, at: at} }

func (s *search) stop() { *s = search{} }

// searchKey handles a key during a search; false is a key that ends it and then does
// what it always does.
func (l *loop) searchKey(name, text string) bool {
	s := &l.search
	find := func(before int) {
		if s.text == "" {
			s.at, s.found = len(l.history.lines), ""
		} else if at := l.history.find(s.text, before); at >= 0 {
			s.at, s.found = at, l.history.lines[at]
		}
	}
	switch {
	case name == "ctrl+r":
		find(s.at)
	case name == "backspace" || name == "ctrl+h":
		if r := []rune(s.text); len(r) > 0 {
			s.text = string(r[:len(r)-1])
		}
		find(len(l.history.lines))
	case name == "esc" || name == "ctrl+g" || name == "ctrl+c" && l.o.Stop == nil:
		l.setLine(s.draft, len([]rune(s.draft)))
		s.stop()
	case text != "":
		s.text += text
		find(len(l.history.lines))
	default:
		line := s.draft
		if s.found != "" {
			line = s.found
		}
		l.setLine(line, len([]rune(line)))
		s.stop()
		// Enter takes the line found, to be looked at; it does not run it yet.
		return name == "enter" || name == "ctrl+j"
	}
	return true
}
