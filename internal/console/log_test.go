package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

func TestLogKeepsLinesWhileAConsoleIsThere(t *testing.T) {
	var out strings.Builder
	l := NewLog(&out)
	fmt.Fprintln(l, "before")
	l.attach()
	fmt.Fprintln(l, "one")
	fmt.Fprint(l, "two\nthree\r\n")
	if out.String() != "before\n" {
		t.Errorf("written through: %q", out.String())
	}
	select {
	case <-l.ready:
	default:
		t.Error("nobody is told")
	}
	lines, dropped := l.take()
	if strings.Join(lines, "|") != "one|two|three" || dropped != 0 {
		t.Errorf("%q %d", lines, dropped)
	}
	fmt.Fprintln(l, "left over")
	l.detach()
	fmt.Fprintln(l, "after")
	if out.String() != "before\nleft over\nafter\n" {
		t.Errorf("%q", out.String())
	}
}

// Nobody takes anything: the writers go on, the newest lines stay, the others are
// counted.
func TestLogNeverWaits(t *testing.T) {
	l := NewLog(io.Discard)
	l.attach()
	const writers, each = 8, 1000
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range each {
				fmt.Fprintf(l, "line %d\n", i)
			}
		})
	}
	wg.Wait()
	lines, dropped := l.take()
	if len(lines) != maxLogLines || dropped != writers*each-maxLogLines {
		t.Errorf("%d kept, %d dropped", len(lines), dropped)
	}
	fmt.Fprintln(l, "the newest")
	if lines, dropped = l.take(); len(lines) != 1 || dropped != 0 {
		t.Errorf("%q %d", lines, dropped)
	}
}

func TestLogTellsWhatWasDroppedWhenTheConsoleGoes(t *testing.T) {
	var out strings.Builder
	l := NewLog(&out)
	l.attach()
	for i := range maxLogLines + 2 {
		fmt.Fprintln(l, i)
	}
	l.detach()
	if !strings.HasPrefix(out.String(), "(2 log lines dropped: the terminal took none)\n2\n") {
		t.Errorf("%q", out.String()[:60])
	}
}
