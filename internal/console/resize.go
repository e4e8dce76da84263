package console

import (
	"io"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// settling is how long a terminal must keep its size before anything is drawn in it: who
// drags a window gives it many.
const settling = 80 * time.Millisecond

// A resizer stands between the terminal's new sizes and the loop. While they come, what
// is on the screen is left alone; then it is drawn once, from the row where the prompt
// now begins.
type resizer struct {
	loop    *loop
	out     io.Writer
	reflows bool          // the terminal breaks its lines anew
	send    func(tea.Msg) // to the loop, from elsewhere

	known bool // there has been a size
	last  tea.WindowSizeMsg
	timer *time.Timer
}

// settledMsg is sent when no new size has come for a while.
type settledMsg struct{}

// filter is called for every message, on the loop's goroutine.
func (r *resizer) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if !r.known {
			r.known, r.last = true, msg
			return msg
		}
		r.last, r.loop.resizing = msg, true
		if r.timer == nil {
			r.timer = time.AfterFunc(settling, func() { r.send(settledMsg{}) })
		} else {
			r.timer.Reset(settling)
		}
		return nil
	case settledMsg:
		r.loop.resizing = false
		if rows := r.loop.rewrapped(r.last.Width); r.reflows && rows > 0 && !r.loop.gone {
			// Between two frames: each of them is written at once.
			_, _ = io.WriteString(r.out, ansi.CursorUp(rows)+"\r"+ansi.EraseScreenBelow)
		}
		return r.last
	}
	return msg
}

// reflows says whether a terminal breaks its lines anew when it gets another width.
// Most do; where one does not, going back would wipe out other text.
func reflows(env func(string) string) bool {
	switch kind := env("TERM"); {
	case env("TMUX") != "":
		return true
	case kind == "linux", strings.HasPrefix(kind, "screen"), env("XTERM_VERSION") != "":
		return false
	}
	return runtime.GOOS != "windows" // where the old console keeps its lines
}

// rewrapped is how many rows the prompt that was drawn last takes up to its cursor on a
// terminal of that width that has broken the line anew, less one.
func (l *loop) rewrapped(columns int) (rows int) {
	if columns <= 0 {
		return 0
	}
	column, at := 0, 0
	for _, r := range uncoloured(l.drawnPrompt) {
		w := runeWidth(r)
		if at += w; at > l.drawnCursor {
			break
		}
		if column += w; column > columns {
			rows, column = rows+1, w
		}
	}
	if column == columns {
		rows++ // the cursor stands behind the last character
	}
	return rows
}
