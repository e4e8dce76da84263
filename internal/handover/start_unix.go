//go:build unix

package handover

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Start starts an heir. It has this process's standard streams, environment and
// directory.
func Start(p Command) (*Heir, error) {
	near, far, err := pair()
	if err != nil {
		return nil, fmt.Errorf("make a link: %w", err)
	}
	defer syscall.Close(far)
	link, err := linkOf(near)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(p.Descriptors)
	if err != nil {
		link.Close()
		return nil, fmt.Errorf("name the descriptors: %w", err)
	}
	// os/exec would put the listeners, which this process still accepts on, into
	// blocking mode.
	files := []uintptr{0, 1, 2, uintptr(far)}
	for _, d := range p.Descriptors {
		files = append(files, uintptr(d.FD))
	}
	pid, err := syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{Env: append(environment(), variable+"="+string(names)), Files: files})
	if err != nil {
		link.Close()
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	return watch(pid, link)
}

// environment is this process's, without what a service manager has said to it alone.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(one string) bool {
		name, _, _ := strings.Cut(one, "=")
		return slices.Contains([]string{variable, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"}, name)
	})
}

func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

// pair makes two ends of a link, neither of which other programs get.
func pair() (near, far int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return ends[0], ends[1], nil
}

// linkOf makes a link of a descriptor, which is closed whatever comes of it.
func linkOf(fd int) (*Link, error) {
	f := os.NewFile(uintptr(fd), "link")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is no link", fd)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no link: %w", fd, err)
	}
	return newLink(c), nil
}

// Of gives a listener's descriptor, one of its own that the caller closes.
func Of(l net.Listener) (int, error) {
	tcp, ok := l.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("%T has no descriptor", l)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("pass a listener on: %w", err)
	}
	fd, failed := 0, error(nil)
	err = raw.Control(func(original uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, failed = syscall.Dup(int(original)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("pass a listener on: %w", err)
	}
	return fd, nil
}

// CloseFD closes a descriptor that Of gave.
func CloseFD(fd int) { _ = syscall.Close(fd) } // nothing was written to it
