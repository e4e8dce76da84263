package console

import (
	"bytes"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// While sizes come nothing is drawn or printed; then once, and what was to be printed
// is.
func TestSizesSettleBeforeAnythingIsDrawn(t *testing.T) {
	h := newHand(t, Options{})
	var out bytes.Buffer
	settled := make(chan tea.Msg, 1)
	r := &resizer{loop: h.loop, out: &out, reflows: true, send: func(m tea.Msg) { settled <- m }}
	pass := func(msg tea.Msg) bool {
		if msg = r.filter(h.loop, msg); msg == nil {
			return false
		}
		_, cmd := h.Update(msg)
		h.do(cmd)
		return true
	}
	if !pass(tea.WindowSizeMsg{Width: 80, Height: 24}) {
		t.Fatal("the first size is held back")
	}
	h.press("a line of some length")
	before := h.View()
	for _, columns := range []int{70, 40, 20, 10} {
		if pass(tea.WindowSizeMsg{Width: columns, Height: 24}) {
			t.Fatal("a size is passed on at once")
		}
	}
	h.press("!")
	h.print("a log line")
	h.do(h.flush())
	if h.View().Content != before.Content || len(h.printed) != 0 {
		t.Errorf("drawn %q, printed %q", h.View().Content, h.printed)
	}
	if !pass(<-settled) {
		t.Fatal("the last size does not come")
	}
	if h.columns != 10 || strings.Join(h.printed, "") != "a log line" || h.View().Content == before.Content {
		t.Errorf("%d columns, printed %q, drawn %q", h.columns, h.printed, h.View().Content)
	}
	// 33 columns of prompt and line in rows of 10: the cursor has three rows above it.
	if out.String() != "\x1b[3A\r\x1b[J" {
		t.Errorf("%q", out.String())
	}
	if !pass(tea.KeyPressMsg{Code: 'x', Text: "x"}) {
		t.Error("a key is lost")
	}
}

func TestRowsOfARewrappedPrompt(t *testing.T) {
	for _, c := range []struct {
		prompt        string
		cursor        int
		columns, rows int
	}{
		{"understudy> ", 12, 80, 0}, {"understudy> ", 12, 13, 0}, {"understudy> ", 12, 12, 1}, {"understudy> ", 12, 5, 2},
		{"understudy> typed behind it", 12, 20, 0}, {"\x1b[1munderstudy> \x1b[0mab", 14, 7, 2},
		{"> 便宜的模型", 12, 5, 2}, // a wide character does not fit the last column
		{"", 0, 5, 0}, {"x", 1, 0, 0},
	} {
		l := &loop{drawnPrompt: c.prompt, drawnCursor: c.cursor}
		if got := l.rewrapped(c.columns); got != c.rows {
			t.Errorf("%q with the cursor at %d in %d columns: %d rows above, want %d", c.prompt, c.cursor, c.columns, got, c.rows)
		}
	}
}

func TestWhichTerminalsReflow(t *testing.T) {
	for env, want := range map[string]bool{
		"TERM=xterm-256color": true, "TERM=linux": false, "TERM=screen": false, "TERM=screen-256color TMUX=x": true,
		"TERM=xterm XTERM_VERSION=1": false, "TERM=xterm XTERM_VERSION=1 TMUX=x": true,
	} {
		got := reflows(func(name string) string {
			for pair := range strings.FieldsSeq(env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}
