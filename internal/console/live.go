package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

var (
	// ErrPanic says that the console had a mistake of its own and is gone. The
	// terminal is as it was before, and the trace has been written to Err.
	ErrPanic = errors.New("the console failed")
	// ErrStuck says that the terminal takes no output: it could not be left in order.
	ErrStuck = errors.New("the terminal takes no output")
	// ErrLost says that the terminal is gone.
	ErrLost = errors.New("the terminal is gone")
)

// patience is how long a terminal may take to be left in order.
const patience = time.Second

// Interactive runs a Live console until quit, or until ctx is done. o.In and o.Out are
// terminals. The terminal is given back as it was found, whatever happens; a terminal
// that takes no output holds up the end by no more than a second.
func Interactive(ctx context.Context, o Options) error {
	restore := Guard(o.In, o.Out)
	ended := make(chan error, 1)
	go func() { ended <- interactive(ctx, o) }() // ends with ctx, but for a stuck terminal
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		restore()
		return ErrStuck
	}
}

func interactive(ctx context.Context, o Options) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel() // lets go what waits for the loop
	h, err := openHistory(o.History)
	in, lost := watch(o.In)
	out, drawn := watchDrawing(o.Out)
	l := newLoop(running, o, h, paint(os.Getenv("NO_COLOR") == ""))
	l.ended, l.lost, l.drawn = ctx.Done(), lost, drawn
	l.print(fold("help lists the commands, Tab completes them, quit ends "+whatEnds(o), l.columns, 0)...)
	if err != nil {
		l.print(errorText(err))
	}
	if o.Log != nil {
		o.Log.attach()
		defer o.Log.detach()
	}
	sizes := &resizer{loop: l, out: out, reflows: reflows(os.Getenv)}
	program := tea.NewProgram(l, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFilter(sizes.filter))
	sizes.send = program.Send
	_, err = program.Run()
	switch {
	case l.failed != nil:
		errs := o.Err
		if errs == nil {
			errs = o.Out
		}
		fmt.Fprintf(errs, "panic in the console: %v\n\n%s\n", l.failed.value, l.failed.stack)
		return ErrPanic
	case errors.Is(err, tea.ErrProgramPanic):
		return ErrPanic
	case isClosed(lost):
		return ErrLost
	case err != nil:
		return fmt.Errorf("console: %w", err)
	}
	return nil
}

func whatEnds(o Options) string {
	if o.Stop != nil {
		return "the proxy"
	}
	return "the console"
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A watched terminal tells when it is gone: the loop itself would go on without.
type watched struct {
	*os.File
	once sync.Once
	gone chan struct{}
}

func watch(in io.Reader) (io.Reader, <-chan struct{}) {
	f, ok := in.(*os.File)
	if !ok {
		return in, nil
	}
	w := &watched{File: f, gone: make(chan struct{})}
	return w, w.gone
}

// Read reads keys.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	if n == 0 && err != nil {
		w.once.Do(func() { close(w.gone) })
	}
	return n, err
}

// A drawing terminal tells when something has been drawn for the first time: what is
// printed before would be put where the prompt is thought to be, over other text.
type drawing struct {
	*os.File
	once  sync.Once
	drawn chan struct{}
}

func watchDrawing(out io.Writer) (io.Writer, <-chan struct{}) {
	drawn := make(chan struct{})
	f, ok := out.(*os.File)
	if !ok {
		close(drawn)
		return out, drawn
	}
	return &drawing{File: f, drawn: drawn}, drawn
}

// Write writes to the terminal.
func (d *drawing) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	// The first frame asks for bracketed paste; nothing before it does.
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		d.once.Do(func() { close(d.drawn) })
	}
	return n, err
}

// leaveTerminal undoes what a console asks of a terminal: the cursor is shown, pastes
// and keys come as they always do.
const leaveTerminal = ansi.SetModeTextCursorEnable + ansi.ResetModeBracketedPaste + ansi.ResetModifyOtherKeys + "\x1b[<1u\r\n"

// Guard remembers how a terminal is, and gives a function that puts it back: for ways
// out that do not come through the console, such as a panic elsewhere. It does nothing
// where there is no terminal.
func Guard(in io.Reader, out io.Writer) (restore func()) {
	f, ok := terminal(in)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		// The keyboard can be put back even where the screen takes nothing.
		_ = term.Restore(int(f.Fd()), state)
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = io.WriteString(out, leaveTerminal)
		}()
		select {
		case <-written:
		case <-time.After(patience / 4):
		}
	}
}
