package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"understudy/internal/control"
)

// A hand works a loop without a terminal: it presses keys, and does what the loop asks
// for as the program around it would.
type hand struct {
	*loop
	t       *testing.T
	double  *double
	printed []string
	quit    bool
}

func newHand(t *testing.T, o Options) *hand {
	t.Helper()
	h := &hand{t: t, double: &double{view: someView()}}
	o.Source = h.double.source()
	past, err := openHistory("")
	if err != nil {
		t.Fatal(err)
	}
	h.loop = newLoop(t.Context(), o, past, false)
	h.printing = false // the prompt is there
	h.put = func(lines []string) tea.Cmd {
		h.printed = append(h.printed, lines...)
		return func() tea.Msg { return printedMsg{} }
	}
	h.Update(viewMsg{view: *someView()})
	return h
}

// do runs what the loop asked for, and what that leads to.
func (h *hand) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			h.do(c)
		}
	case tea.QuitMsg:
		h.quit = true
	default:
		_, next := h.Update(msg)
		h.do(next)
	}
}

// key presses one key and gives what the loop asks for then.
func (h *hand) hit(k tea.KeyPressMsg) tea.Cmd {
	_, cmd := h.Update(k)
	return cmd
}

var named = map[string]rune{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "esc": tea.KeyEscape,
	"backspace": tea.KeyBackspace, "left": tea.KeyLeft, "home": tea.KeyHome,
}

// press presses keys; what is no name of one is typed.
func (h *hand) press(keys ...string) {
	for _, name := range keys {
		if bare, ok := strings.CutPrefix(name, "ctrl+"); ok {
			h.do(h.hit(tea.KeyPressMsg{Code: rune(bare[0]), Mod: tea.ModCtrl}))
			continue
		}
		bare, shift := strings.CutPrefix(name, "shift+")
		if code, ok := named[bare]; ok {
			k := tea.KeyPressMsg{Code: code}
			if shift {
				k.Mod = tea.ModShift
			}
			h.do(h.hit(k))
			continue
		}
		for _, r := range name {
			h.do(h.hit(tea.KeyPressMsg{Code: r, Text: string(r)}))
		}
	}
}

// expectLine checks what stands in the prompt.
func (h *hand) expectLine(want string) {
	h.t.Helper()
	if got := h.input.Value(); got != want {
		h.t.Errorf("the line is %q, want %q", got, want)
	}
}

func TestALineIsRunAndShown(t *testing.T) {
	h := newHand(t, Options{})
	h.press("freeze ls", "enter")
	h.expectLine("")
	if h.double.lines() != "freeze ls" || strings.Join(h.printed, "|") != "understudy> freeze ls|did freeze ls" {
		t.Errorf("asked %q, printed %q", h.double.lines(), h.printed)
	}
}

func TestAnEmptyLineRunsNothing(t *testing.T) {
	h := newHand(t, Options{})
	h.press("enter", "  ", "enter")
	if h.double.lines() != "" || len(h.printed) != 2 {
		t.Errorf("asked %q, printed %q", h.double.lines(), h.printed)
	}
}

func TestTabCompletes(t *testing.T) {
	h := newHand(t, Options{})
	h.press("fre", "tab")
	h.expectLine("freeze ")
	h.press("a", "tab", "auto", "tab")
	h.expectLine("freeze add auto-strong ")
	h.press("tab")
	if !h.menu.open() || h.menu.selected != -1 {
		t.Fatal("no menu")
	}
	h.press("tab", "tab", "tab", "tab", "tab", "tab")
	h.expectLine("freeze add auto-strong 'Direct API'")
	h.press("shift+tab")
	h.expectLine("freeze add auto-strong claude-sonnet-4-5")
	h.press("esc")
	h.expectLine("freeze add auto-strong ")
	h.press("shift+tab") // opens it again
	h.press("shift+tab")
	h.expectLine("freeze add auto-strong Spare")
	h.press(" 60")
	if h.menu.open() {
		t.Error("typing leaves the menu open")
	}
	h.expectLine("freeze add auto-strong Spare 60")
	h.press("enter")
	if h.double.lines() != "freeze add auto-strong Spare 60" {
		t.Errorf("asked %q", h.double.lines())
	}
}

func TestTabCompletesInTheMiddle(t *testing.T) {
	h := newHand(t, Options{})
	h.press("freeze ad auto-strong", "home", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "ctrl+f", "tab")
	h.expectLine("freeze add auto-strong") // there is a blank already
	if h.input.Position() != len("freeze add") {
		t.Error(h.input.Position())
	}
}

func TestTabGoesAsFarAsItCan(t *testing.T) {
	h := newHand(t, Options{})
	h.press("cand add auto-strong api", "tab")
	h.expectLine("cand add auto-strong api_key")
	if !h.menu.open() {
		t.Error("no menu")
	}
	h.press("_e", "tab")
	h.expectLine("cand add auto-strong api_key_env=") // the value follows without a blank
	h.press("NOTHING", "tab")
	h.expectLine("cand add auto-strong api_key_env=NOTHING")
}

func TestTheHistoryIsBrowsed(t *testing.T) {
	h := newHand(t, Options{})
	h.press("vm", "enter", "stats", "enter", "dra", "up")
	h.expectLine("stats")
	h.press("up", "up")
	h.expectLine("vm")
	h.press("down", "down")
	h.expectLine("dra")
	h.press("ctrl+p", "ctrl+p")
	h.expectLine("vm")
}

func TestTheHistoryIsSearched(t *testing.T) {
	h := newHand(t, Options{})
	h.press("freeze add auto-strong 1 60", "enter", "vm", "enter", "freeze ls", "enter", "dra")
	h.press("ctrl+r", "fre")
	if line, _ := h.promptLine(); line != "search 'fre': freeze ls" {
		t.Errorf("%q", line)
	}
	h.press("ctrl+r")
	if line, _ := h.promptLine(); line != "search 'fre': freeze add auto-strong 1 60" {
		t.Errorf("%q", line)
	}
	h.press("enter")
	h.expectLine("freeze add auto-strong 1 60")
	if strings.Count(h.double.lines(), "\n") != 2 {
		t.Error("it was run at once")
	}
	h.press("ctrl+r", "zzz", "backspace", "esc")
	h.expectLine("freeze add auto-strong 1 60")
	h.press("ctrl+r", "vm", "ctrl+e", "x")
	h.expectLine("vmx")
}

// A key is not seen while it is typed, nor where the line is repeated, nor in the
// history; but it is what is run.
func TestAKeyIsNeverShownWhole(t *testing.T) {
	const key = "sk-proj-abcdefghijklmnop1234"
	h := newHand(t, Options{})
	h.Update(tea.WindowSizeMsg{Width: 200, Height: 24})
	for _, r := range "cand set auto-strong 1 api_key " + key {
		h.press(string(r))
		if strings.Contains(h.View().Content, "sk-proj-a") {
			t.Fatalf("%q", h.View().Content)
		}
	}
	h.press("enter")
	if !strings.Contains(h.double.lines(), key) {
		t.Errorf("asked %q", h.double.lines())
	}
	if !strings.Contains(h.printed[0], "api_key sk-pro***1234") {
		t.Errorf("printed %q", h.printed)
	}
	h.press("up")
	h.expectLine("cand set auto-strong 1 api_key sk-pro***1234")
	h.press("enter")
	if strings.Contains(h.double.lines(), "***") || !strings.Contains(strings.Join(h.printed, " "), "type the key again") {
		t.Errorf("the mask was taken for a key: %q, %q", h.double.lines(), h.printed)
	}
}

// Lines that come faster than they run are run one after another.
func TestLinesWaitForOneAnother(t *testing.T) {
	h := newHand(t, Options{})
	h.press("one")
	first := h.hit(tea.KeyPressMsg{Code: tea.KeyEnter}) // not run yet
	h.press("two", "enter", "three", "enter")
	if h.double.lines() != "" {
		t.Fatalf("asked %q", h.double.lines())
	}
	h.do(first)
	if h.double.lines() != "one\ntwo\nthree" {
		t.Errorf("asked %q", h.double.lines())
	}
	printed := strings.Join(h.printed, "|")
	if !strings.HasSuffix(printed, "did one|did two|did three") {
		t.Errorf("printed %q", printed)
	}
}

func TestQuitEndsARemoteConsole(t *testing.T) {
	for _, keys := range [][]string{{"quit", "enter"}, {"EXIT", "enter"}, {"q", "enter"}, {"ctrl+d"}, {"ctrl+c"}} {
		h := newHand(t, Options{})
		h.press(keys...)
		if !h.quit || h.View().Content != "" {
			t.Errorf("%q: quit %v, still drawn %q", keys, h.quit, h.View().Content)
		}
	}
}

// What the process says ends the console too: it may know more words for it.
func TestQuitByTheProcess(t *testing.T) {
	h := newHand(t, Options{})
	h.double.say = func(string) (control.Output, error) { return control.Output{Quit: true}, nil }
	h.press("bye", "enter")
	if !h.quit {
		t.Error("still there")
	}
}

func TestCtrlCInARemoteConsoleTakesTheLineFirst(t *testing.T) {
	h := newHand(t, Options{})
	h.press("something", "ctrl+c")
	h.expectLine("")
	if h.quit {
		t.Fatal("gone with the line")
	}
	h.press("ctrl+c")
	if !h.quit {
		t.Error("still there")
	}
}

func TestCtrlCBreaksOffACommandOfARemoteConsole(t *testing.T) {
	h := newHand(t, Options{})
	var broken error
	h.o.Source.Run = func(ctx context.Context, _ string) (control.Output, error) {
		broken = ctx.Err()
		return control.Output{}, errors.New("broken off")
	}
	h.press("reload")
	run := h.hit(tea.KeyPressMsg{Code: tea.KeyEnter})
	h.press("ctrl+c")
	if h.quit {
		t.Fatal("gone")
	}
	h.do(run)
	if broken == nil {
		t.Error("the command goes on")
	}
}

// In its own process the console asks for the end each time, and stays.
func TestCtrlCInServeStopsTheProcess(t *testing.T) {
	stops := 0
	h := newHand(t, Options{Stop: func() { stops++ }})
	h.press("half a line", "ctrl+c", "ctrl+c")
	h.expectLine("half a line")
	if stops != 2 || h.quit {
		t.Errorf("%d stops, quit %v", stops, h.quit)
	}
	h.press("ctrl+u", "ctrl+d", "quit", "enter")
	if stops != 4 || h.quit {
		t.Errorf("%d stops, quit %v", stops, h.quit)
	}
	_, cmd := h.Update(stoppingMsg{})
	h.do(cmd)
	_, cmd = h.Update(stoppingMsg{})
	h.do(cmd)
	if n := strings.Count(strings.Join(h.printed, " "), "stopping: no new requests"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if !strings.Contains(h.View().Content, "stopping: 2 running requests may finish, Ctrl-C stops at once") {
		t.Errorf("%q", h.View().Content)
	}
	_, cmd = h.Update(endMsg{})
	h.do(cmd)
	if !h.quit {
		t.Error("still there after the end")
	}
}

func TestCtrlZIsOffInServe(t *testing.T) {
	h := newHand(t, Options{Stop: func() {}})
	h.press("ctrl+z")
	if !strings.Contains(strings.Join(h.printed, " "), "hold up the proxy") {
		t.Errorf("%q", h.printed)
	}
	if cmd := newHand(t, Options{}).hit(tea.KeyPressMsg{Code: 'z', Mod: tea.ModCtrl}); cmd == nil {
		t.Error("a remote console cannot be suspended")
	} else if _, ok := cmd().(tea.SuspendMsg); !ok {
		t.Error("a remote console cannot be suspended")
	}
}

func TestLogLinesArePrintedAboveAndTheRestAtTheEnd(t *testing.T) {
	log := NewLog(io.Discard)
	log.attach()
	h := newHand(t, Options{Log: log})
	h.press("typed so far")
	fmt.Fprintln(log, "first")
	_, dropped := h.loop.o.Log.take()
	h.Update(logMsg{lines: []string{"first", strings.Repeat("long ", 30)}, dropped: dropped + 3})
	h.expectLine("typed so far")
	if h.printed[0] != "(3 log lines dropped: the terminal took none)" || h.printed[1] != "first" || len(h.printed) != 4 {
		t.Errorf("%q", h.printed)
	}
	fmt.Fprintln(log, "last words")
	h.printing = false
	_, cmd := h.Update(endMsg{})
	h.do(cmd)
	if h.printed[len(h.printed)-1] != "last words" || !h.quit {
		t.Errorf("%q", h.printed)
	}
}

// A screen of few lines gets few at a time: longer pieces would be scrolled away
// unseen, and the prompt with them.
func TestNothingIsPrintedThatTheScreenCannotTake(t *testing.T) {
	h := newHand(t, Options{})
	for _, rows := range []int{50, 24, 10, 5, 3, 2, 1} {
		h.Update(tea.WindowSizeMsg{Width: 80, Height: rows})
		var pieces []int
		total := 0
		h.put = func(lines []string) tea.Cmd {
			pieces = append(pieces, len(lines))
			total += len(lines)
			return func() tea.Msg { return printedMsg{} }
		}
		h.print(slices.Repeat([]string{"line"}, 100)...)
		h.do(h.flush())
		if frame := len(h.frame()); frame > rows || total != 100 || slices.Max(pieces) > max(1, rows-frame-1) {
			t.Errorf("%d rows: a frame of %d, pieces of %v", rows, frame, pieces)
		}
	}
}

func TestTheFrameFitsEveryScreen(t *testing.T) {
	h := newHand(t, Options{Stop: func() {}})
	h.press("cand add 便宜的模型 ", "tab")
	for columns := range 100 {
		for rows := range 30 {
			h.Update(tea.WindowSizeMsg{Width: columns, Height: rows})
			v := h.View()
			lines := strings.Split(v.Content, "\n")
			if len(lines) > max(rows, 1) {
				t.Fatalf("%dx%d: %d lines", columns, rows, len(lines))
			}
			for _, line := range lines {
				if width(line) > max(columns, 1) {
					t.Fatalf("%dx%d: %q", columns, rows, line)
				}
			}
			if v.Cursor == nil || v.Cursor.Y != 0 || v.Cursor.X < 0 || v.Cursor.X >= max(columns, 1) {
				t.Fatalf("%dx%d: the cursor is at %v", columns, rows, v.Cursor)
			}
		}
	}
}

// The bar goes on counting without a new View, and says when none comes.
func TestTheBarGoesOnWithoutViews(t *testing.T) {
	h := newHand(t, Options{})
	at := h.got
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "4m11s"}, {time.Second, "4m10s"}, {10 * time.Second, "4m01s"}, {10 * time.Second, "no answer for 10s"}} {
		h.now = at.Add(c.after)
		if got := h.View().Content; !strings.Contains(got, c.want) {
			t.Errorf("after %v: %q", c.after, got)
		}
	}
	h.Update(viewMsg{err: errors.New("nobody answers")})
	if got := h.View().Content; !strings.Contains(got, "no answer: nobody answers") {
		t.Errorf("%q", got)
	}
	h.Update(viewMsg{view: *someView()})
	if got := h.View().Content; strings.Contains(got, "no answer") {
		t.Errorf("%q", got)
	}
}

func TestOneViewIsAskedForAtATime(t *testing.T) {
	h := newHand(t, Options{})
	first := h.look()
	if first == nil || h.look() != nil {
		t.Error("two at a time")
	}
	h.Update(viewMsg{})
	if h.look() == nil {
		t.Error("none after the first")
	}
}

func TestASlowCommandIsNamed(t *testing.T) {
	h := newHand(t, Options{})
	h.press("cand set a 1 api_key secret")
	h.hit(tea.KeyPressMsg{Code: tea.KeyEnter})
	h.now = h.since.Add(2 * time.Second)
	if got := h.View().Content; !strings.Contains(got, "running: cand set a 1 api_key ***") {
		t.Errorf("%q", got)
	}
}

// What is pasted is one line, and is not run.
func TestAPasteIsOneLine(t *testing.T) {
	h := newHand(t, Options{})
	h.Update(tea.PasteMsg{Content: "cand add auto-strong {\n  \"name\": \"x\",\n\t\"model\": \"m\"\n}\n"})
	if got := h.input.Value(); strings.ContainsAny(got, "\n\t") || !strings.HasPrefix(got, `cand add auto-strong {`) {
		t.Errorf("%q", got)
	}
	if h.double.lines() != "" {
		t.Error("it was run")
	}
}

func TestALostTerminalEndsTheLoop(t *testing.T) {
	h := newHand(t, Options{Stop: func() { t.Error("the process is stopped with it") }})
	_, cmd := h.Update(lostMsg{})
	h.do(cmd)
	if !h.quit {
		t.Error("still there")
	}
}

// A mistake of ours ends the console in order, wherever it is made.
func TestAPanicEndsTheLoop(t *testing.T) {
	for name, mistake := range map[string]func(h *hand){
		"in a command": func(h *hand) {
			h.double.say = func(string) (control.Output, error) { panic("a mistake of ours") }
			h.press("vm", "enter")
		},
		"by a key": func(h *hand) {
			h.history = nil
			h.press("up")
		},
		"while drawing": func(h *hand) {
			h.broken = &panicMsg{value: "a mistake of ours"} // as View leaves it
			if h.View().Content != "" {
				t.Error("something is drawn")
			}
			h.press("x")
		},
	} {
		h := newHand(t, Options{})
		mistake(h)
		if !h.quit || h.failed == nil || h.View().Content != "" {
			t.Errorf("%s: quit %v, failed %v", name, h.quit, h.failed)
		}
	}
}
