package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrFailed says that at least one of the lines of a Plain console could not be run;
// each has been told.
var ErrFailed = errors.New("not every line could be run")

// maxPlainLine bounds a line, in bytes. A command is shorter.
const maxPlainLine = 256 << 10

// Lines runs a Plain console: a line in, its output out, errors to o.Err, until the
// input ends, a line says quit, or ctx is done.
func Lines(ctx context.Context, o Options) error {
	if o.Err == nil {
		o.Err = o.Out
	}
	lines, ended := readLines(ctx, o.In)
	failed := false
	for {
		fmt.Fprint(o.Out, o.Prompt)
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if err == nil && failed {
				err = ErrFailed
			}
			return err
		case line := <-lines:
			r := reply{}
			if isQuit(line) {
				r.out.Quit = true
			} else if strings.TrimSpace(line) != "" {
				r = o.Source.ask(ctx, line)
			}
			w := o.Out
			if r.err != nil {
				w, failed = o.Err, true
			}
			for _, text := range r.lines(0, false) {
				if _, err := fmt.Fprintln(w, text); err != nil {
					return fmt.Errorf("write the output: %w", err)
				}
			}
			switch {
			case !r.out.Quit:
			case o.Stop != nil:
				o.Stop()
			case failed:
				return ErrFailed
			default:
				return nil
			}
		}
	}
}

// readLines reads lines in the background, because a read cannot be broken off. The
// second channel gets nil at the end of the input, else the error.
func readLines(ctx context.Context, r io.Reader) (<-chan string, <-chan error) {
	lines, ended := make(chan string), make(chan error, 1)
	go func() { // ends with the input, or with the first line after ctx is done
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, maxPlainLine)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		err := scanner.Err()
		if err != nil {
			err = fmt.Errorf("read a line: %w", err)
		}
		ended <- err
	}()
	return lines, ended
}
