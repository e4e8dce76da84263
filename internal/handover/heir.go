package handover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrUnsupported is why there are no upgrades on a system.
var ErrUnsupported = errors.New("upgrades need a Unix system: a process here cannot pass its listeners on")

// Command is what an heir is started with.
type Command struct {
	// Path is the file, Args its arguments, with the name it is called by first.
	Path string
	Args []string
	// Descriptors are passed on; they stay the caller's.
	Descriptors []Descriptor
}

// Program is the file that this process was started from, by the name it was called:
// a link that points to another file by now leads to that one. "" = it is unknown.
func Program() string {
	file, err := os.Executable()
	if err != nil {
		return ""
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return file
	}
	if called, err = filepath.Abs(called); err != nil {
		return file
	}
	if one, err := os.Stat(called); err != nil {
		return file
	} else if other, err := os.Stat(file); err != nil || !os.SameFile(one, other) {
		return file // called by a name that says nothing
	}
	return called
}

// Descriptor is something open that an heir gets.
type Descriptor struct {
	Name string `json:"name"`
	// Address is what it was opened for: an address as it is configured, or a file's
	// path; "" where nobody here has opened it.
	Address string `json:"address,omitempty"`
	FD      int    `json:"-"`
}

// Heir is a process that is to take over.
type Heir struct {
	PID      int
	process  *os.Process
	link     *Link
	messages chan Message // closed when the heir has closed its end
	ended    chan struct{}
	how      string // it ended; set once ended is closed
}

// watch begins to follow a process that was started.
func watch(pid int, link *Link) (*Heir, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		link.Close()
		return nil, fmt.Errorf("find process %d: %w", pid, err)
	}
	h := &Heir{PID: pid, process: process, link: link, messages: make(chan Message, 16), ended: make(chan struct{})}
	go func() { // ends with the process
		defer close(h.ended)
		if state, err := process.Wait(); err != nil {
			h.how = err.Error()
		} else {
			h.how = state.String()
		}
	}()
	go func() { // ends with the link
		defer close(h.messages)
		for {
			m, err := link.Receive()
			if err != nil {
				return
			}
			h.messages <- m
		}
	}()
	return h, nil
}

// Expect waits for a message. The error says why it does not come: the heir's own
// reason, how it ended, or that it takes too long.
func (h *Heir) Expect(ctx context.Context, k Kind) error {
	began := time.Now()
	late := func() error {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		return fmt.Errorf("process %d was not %s after %v", h.PID, k, time.Since(began).Round(100*time.Millisecond))
	}
	select {
	case m, ok := <-h.messages:
		if !ok {
			break
		}
		if m.Kind == k {
			return nil
		}
		reason := ""
		if m.Kind != Failed || m.Read(&reason) != nil {
			return fmt.Errorf("process %d says %q, not %q", h.PID, m.Kind, k)
		}
		return errors.New(reason)
	case <-ctx.Done():
		return late()
	}
	select {
	case <-h.ended:
		return fmt.Errorf("process %d ended before it was %s: %s", h.PID, k, h.how)
	case <-ctx.Done():
		return late()
	}
}

// Messages are those that nobody has expected; closed once the heir is gone.
func (h *Heir) Messages() <-chan Message { return h.messages }

// Send sends it a message.
func (h *Heir) Send(k Kind, body any) error { return h.link.Send(k, body) }

// Close closes the link; the heir lives on.
func (h *Heir) Close() { h.link.Close() }

// Kill ends an heir that is not wanted any more, and waits until it is gone.
func (h *Heir) Kill() {
	_ = h.process.Kill() // it may have gone already
	<-h.ended
	h.link.Close()
}
