package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"understudy/internal/control"
	"understudy/internal/files"
)

// maxHistory is how many lines are kept; the file may grow to twice as many before it
// is cut.
const maxHistory = 1000

// A history is the lines that were typed, in this console and former ones, their
// secrets masked. It is not safe for concurrent use.
type history struct {
	path  string
	lines []string
	at    int    // the line shown; len(lines) is the draft
	draft string // what was being typed before the history was looked at
}

// openHistory reads the lines that are kept in a file; without a path nothing is kept.
// The history works in any case: the error only says why nothing will be kept.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.path = ""
		return h, fmt.Errorf("the history cannot be read, and is not kept: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = clean(strings.TrimRight(line, "\r\n")); strings.TrimSpace(line) != "" {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) > 2*maxHistory {
		err = h.rewrite()
	} else {
		err = nil
	}
	if len(h.lines) > maxHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
	}
	h.rewind()
	return h, err
}

// rewrite cuts the file to the newest lines. Another console may be adding to it just
// then: a line of the history may be lost, nothing else.
func (h *history) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(h.path), ".history-*") // made for its owner alone
	if err != nil {
		return fmt.Errorf("the history cannot be cut: %w", err)
	}
	defer os.Remove(f.Name()) // gone already where the rename went well
	_, err = f.WriteString(strings.Join(h.lines[len(h.lines)-maxHistory:], "\n") + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = files.Replace(f.Name(), h.path)
	}
	if err != nil {
		return fmt.Errorf("the history cannot be cut: %w", err)
	}
	return nil
}

// add keeps a line, its secrets masked. Blank ones and those that repeat the last one
// are not kept.
func (h *history) add(line string) error {
	line = control.Masked(strings.TrimSpace(line))
	h.rewind()
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return nil
	}
	if h.lines = append(h.lines, line); len(h.lines) > maxHistory {
		h.lines = h.lines[1:]
	}
	h.rewind()
	if h.path == "" {
		return nil
	}
	err := h.keep(line)
	if err != nil {
		h.path = "" // told once
		err = fmt.Errorf("the history is not kept: %w", err)
	}
	return err
}

func (h *history) keep(line string) error {
	if err := files.MakePrivate(filepath.Dir(h.path)); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// A file that was there before may be open to others.
	err = f.Chmod(0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	return errors.Join(err, f.Close())
}

// rewind goes back to the line being typed.
func (h *history) rewind() { h.at, h.draft = len(h.lines), "" }

// earlier is the line before the one shown; current is what stands in the prompt.
func (h *history) earlier(current string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = current
	}
	h.at--
	return h.lines[h.at], true
}

// later is the line after the one shown, at last the one that was being typed.
func (h *history) later() (string, bool) {
	if h.at == len(h.lines) {
		return "", false
	}
	if h.at++; h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}

// find is the newest line before the place at that holds a text; -1 where none does.
func (h *history) find(text string, before int) int {
	for i := min(before, len(h.lines)) - 1; i >= 0; i-- {
		if strings.Contains(h.lines[i], text) {
			return i
		}
	}
	return -1
}
