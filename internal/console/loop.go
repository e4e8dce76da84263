package console

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"understudy/internal/control"
)

// The messages that come from outside the loop.
type (
	tickMsg time.Time // a second has passed
	viewMsg struct {  // a View, or why there is none
		view control.View
		err  error
	}
	changedMsg struct{} // a new View is worth asking for
	logMsg     struct { // lines of the log
		lines   []string
		dropped int
	}
	redrawMsg   struct{} // the frame is to be drawn anew
	replyMsg    reply    // a line has run
	printedMsg  struct{} // what was to be printed is printed
	stoppingMsg struct{} // the process is coming to its end
	endMsg      struct{} // it has come to it
	lostMsg     struct{} // the terminal is gone
	panicMsg    struct { // a mistake of ours, caught
		value any
		stack []byte
	}
)

// logPace is the shortest time between two printings of the log.
const logPace = 50 * time.Millisecond

// redrawing is how long after a new size the frame is drawn once more: a terminal may
// have moved its lines while the first was written.
const redrawing = 250 * time.Millisecond

// viewTime is how long a View may take before it counts as missing.
const viewTime = 5 * time.Second

// A loop is the state of a Live console: what the loop owns. Only the loop touches
// it.
type loop struct {
	o       Options
	ctx     context.Context // done when the loop has ended; commands run under it
	ended   <-chan struct{} // closed when the loop is to end
	paint   paint
	input   textinput.Model
	history *history
	menu    menu
	search  search
	lost    <-chan struct{} // closed when the terminal is gone
	drawn   <-chan struct{} // closed when the prompt has been drawn first

	columns, rows int
	resizing      bool // the terminal changes its size: nothing is drawn or printed

	drawnView   tea.View // what was drawn last
	drawnPrompt string
	drawnCursor int

	view     *control.View
	got      time.Time // when the View came
	now      time.Time // the last tick
	trouble  string
	fetching bool
	signs    <-chan struct{} // of Source.Changed

	waiting []string           // lines to run after the one that runs
	running string             // the line that runs, masked; "" if none does
	since   time.Time          // when it began
	cancel  context.CancelFunc // breaks it off

	above    []string                     // lines to print above the prompt
	put      func(lines []string) tea.Cmd // prints some, then sends a printedMsg
	printing bool                         // at first too, until the prompt is there

	stopping bool
	leaving  bool      // quits as soon as everything is printed
	gone     bool      // nothing is drawn any more
	broken   *panicMsg // of the drawing: the next message ends the loop
	failed   *panicMsg // why it has ended
}

// newLoop makes a loop; ctx is to be done when it has ended.
func newLoop(ctx context.Context, o Options, h *history, p paint) *loop {
	input := textinput.New()
	input.Prompt = ""
	input.SetVirtualCursor(false)
	// Reading the clipboard would start another program; the terminal pastes.
	input.KeyMap.Paste.SetEnabled(false)
	// A textinput that is focused in Init of a value stays deaf: this is a pointer,
	// and it is focused before anything runs.
	input.Focus()
	l := &loop{o: o, ctx: ctx, paint: p, input: input, history: h, columns: 80, rows: 24, now: time.Now(), printing: true, put: put}
	if o.Source.Changed != nil {
		l.signs = o.Source.Changed(ctx)
	}
	return l
}

// Init begins everything that goes on beside the typing.
func (l *loop) Init() tea.Cmd {
	return tea.Batch(l.tick(), l.look(), l.waitSign(), l.waitLog(0), l.waitFor(l.o.Stopping, stoppingMsg{}), l.waitFor(l.ended, endMsg{}), l.waitFor(l.lost, lostMsg{}), l.waitFor(l.drawn, printedMsg{}))
}

func (l *loop) tick() tea.Cmd {
	return tea.Every(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// waitFor sends a message when a channel is closed; a nil one never is.
func (l *loop) waitFor(c <-chan struct{}, msg tea.Msg) tea.Cmd {
	if c == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-c:
			return msg
		case <-l.ctx.Done():
			return nil
		}
	}
}

// look asks for a View, one at a time.
func (l *loop) look() tea.Cmd {
	if l.fetching {
		return nil
	}
	l.fetching = true
	return safely(func() tea.Msg {
		ctx, cancel := context.WithTimeout(l.ctx, viewTime)
		defer cancel()
		v, err := l.o.Source.View(ctx)
		return viewMsg{v, err}
	})
}

func (l *loop) waitSign() tea.Cmd {
	if l.signs == nil {
		return nil
	}
	return func() tea.Msg {
		if _, more := <-l.signs; !more {
			return nil
		}
		return changedMsg{}
	}
}

// waitLog takes the log's lines, after a pause so that many come together.
func (l *loop) waitLog(pause time.Duration) tea.Cmd {
	if l.o.Log == nil {
		return nil
	}
	return func() tea.Msg {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return nil // what is left is taken at the end
		}
		select {
		case <-l.o.Log.ready:
		case <-l.ctx.Done():
			return nil
		}
		lines, dropped := l.o.Log.take()
		return logMsg{lines, dropped}
	}
}

// safely catches the panic of what runs beside the loop. Bubble Tea would catch it too,
// but leave in a hurry.
func safely(run func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if value := recover(); value != nil {
				msg = panicMsg{value, debug.Stack()}
			}
		}()
		return run()
	}
}

// Update does what a message asks for.
func (l *loop) Update(msg tea.Msg) (model tea.Model, cmd tea.Cmd) {
	defer func() {
		if value := recover(); value != nil {
			model, cmd = l, l.fail(panicMsg{value, debug.Stack()})
		}
	}()
	if l.broken != nil {
		return l, l.fail(*l.broken)
	}
	switch msg := msg.(type) {
	case panicMsg:
		return l, l.fail(msg)
	case tea.WindowSizeMsg:
		l.columns, l.rows = max(msg.Width, 1), max(msg.Height, 1)
		return l, tea.Batch(l.flush(), tea.Tick(redrawing, func(time.Time) tea.Msg { return redrawMsg{} }))
	case redrawMsg:
		return l, tea.ClearScreen // of the frame
	case tea.KeyPressMsg:
		return l, l.key(msg)
	case tea.PasteMsg:
		l.menu.close()
		l.search.stop()
		var cmd tea.Cmd
		l.input, cmd = l.input.Update(msg)
		return l, cmd
	case tickMsg:
		l.now = time.Time(msg)
		return l, tea.Batch(l.tick(), l.look())
	case changedMsg:
		return l, tea.Batch(l.waitSign(), l.look())
	case viewMsg:
		l.fetching = false
		if msg.err != nil {
			l.trouble = msg.err.Error()
		} else {
			l.view, l.trouble, l.got = &msg.view, "", time.Now()
			l.now = l.got
		}
	case logMsg:
		l.takeLog(msg)
		return l, tea.Batch(l.waitLog(logPace), l.flush())
	case replyMsg:
		return l, l.finish(reply(msg))
	case printedMsg:
		l.printing = false
		return l, l.flush()
	case stoppingMsg:
		if !l.stopping {
			l.stopping = true
			l.print(fold("stopping: no new requests are taken, running ones may finish; Ctrl-C stops at once", l.columns, 0)...)
		}
		return l, l.flush()
	case endMsg:
		return l, l.end()
	case lostMsg:
		l.gone = true
		return l, tea.Quit
	case tea.ResumeMsg:
		return l, l.look()
	}
	return l, nil
}

// fail ends the loop after a panic; what it was is told once the terminal is as before.
func (l *loop) fail(what panicMsg) tea.Cmd {
	l.failed, l.gone = &what, true
	return tea.Quit
}

// print leaves lines to be printed above the prompt.
func (l *loop) print(lines ...string) { l.above = append(l.above, lines...) }

// flush prints what waits, no more at a time than the screen takes: longer pieces
// would be scrolled away before they are drawn.
func (l *loop) flush() tea.Cmd {
	if l.printing || l.resizing {
		return nil
	}
	if len(l.above) == 0 {
		if l.leaving {
			l.gone = true
			return tea.Quit
		}
		return nil
	}
	n := min(len(l.above), max(1, l.rows-len(l.frame())-1))
	chunk := l.above[:n:n]
	l.above, l.printing = l.above[n:], true
	for i, line := range chunk {
		if line == "" {
			chunk[i] = " " // an empty text would not be printed at all
		}
	}
	return l.put(chunk)
}

// put prints lines above the frame.
func put(lines []string) tea.Cmd {
	return tea.Sequence(tea.Println(strings.Join(lines, "\n")), func() tea.Msg { return printedMsg{} })
}

func (l *loop) takeLog(msg logMsg) {
	if msg.dropped > 0 {
		l.print(fold(droppedText(msg.dropped), l.columns, 0)...)
	}
	for _, line := range msg.lines {
		l.print(fold(strings.ReplaceAll(line, "\t", " "), l.columns, gap)...)
	}
}

// submit runs the line in the prompt.
func (l *loop) submit() tea.Cmd {
	line := l.input.Value()
	l.input.Reset()
	l.menu.close()
	l.print(fold(promptText(l.columns)+clean(control.Masked(line)), l.columns, gap)...)
	if strings.TrimSpace(line) == "" {
		return l.flush()
	}
	if err := l.history.add(line); err != nil {
		l.print(fold(errorText(err), l.columns, gap)...)
	}
	if isQuit(line) {
		return tea.Batch(l.leave(), l.flush())
	}
	l.waiting = append(l.waiting, line)
	return tea.Batch(l.next(), l.flush())
}

// next runs the next line that waits, if none runs.
func (l *loop) next() tea.Cmd {
	if l.running != "" || len(l.waiting) == 0 {
		return nil
	}
	line := l.waiting[0]
	l.waiting = l.waiting[1:]
	ctx, cancel := context.WithCancel(l.ctx)
	l.running, l.since, l.cancel = control.Masked(strings.TrimSpace(line)), time.Now(), cancel
	return safely(func() tea.Msg { return replyMsg(l.o.Source.ask(ctx, line)) })
}

// finish shows what became of a line.
func (l *loop) finish(r reply) tea.Cmd {
	l.cancel()
	l.running, l.cancel = "", nil
	l.print(r.lines(l.columns, l.paint)...)
	if r.out.Quit {
		return tea.Batch(l.leave(), l.flush())
	}
	return tea.Batch(l.next(), l.look(), l.flush())
}

// leave ends the console, or the process where it is its own.
func (l *loop) leave() tea.Cmd {
	if l.o.Stop != nil {
		l.o.Stop()
		return nil
	}
	l.leaving = true
	return l.flush()
}

// end prints what is left and goes.
func (l *loop) end() tea.Cmd {
	if l.cancel != nil {
		l.cancel()
	}
	if l.o.Log != nil {
		lines, dropped := l.o.Log.take()
		l.takeLog(logMsg{lines, dropped})
	}
	l.leaving = true
	return l.flush()
}

// interrupt is what Ctrl-C does: in its own process it stops that; elsewhere it
// breaks off the command that runs, else the line being typed, else the console.
func (l *loop) interrupt() tea.Cmd {
	switch {
	case l.o.Stop != nil:
		l.o.Stop()
	case l.cancel != nil:
		l.waiting = nil
		l.cancel()
	case l.input.Value() != "":
		l.input.Reset()
		l.history.rewind()
	default:
		return l.leave()
	}
	return nil
}
