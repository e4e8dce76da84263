package handover

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// A Socket is a listener that the service manager has opened.
type Socket struct {
	// Name is "proxy" or "admin".
	Name string
	net.Listener
}

// The names of sockets.
const (
	Proxy = "proxy"
	Admin = "admin"
)

// Sockets takes the listeners that a service manager passes (sd_listen_fds(3)). They
// are told apart by FileDescriptorName=; where no name is one that we know, the first
// one is the proxy's and the second the admin listener's.
func Sockets() ([]Socket, error) {
	files := activation.Files(true)
	var list []Socket
	known := slices.ContainsFunc(files, func(f *os.File) bool { return f.Name() == Proxy || f.Name() == Admin })
	for i, f := range files {
		name := f.Name()
		if !known && i < 2 {
			name = []string{Proxy, Admin}[i]
		}
		l, err := net.FileListener(f)
		_ = f.Close() // the listener has a copy
		if err != nil {
			return nil, fmt.Errorf("the socket %q from the service manager is no listener (ListenStream=): %w", f.Name(), err)
		}
		if _, tcp := l.(*net.TCPListener); !tcp {
			return nil, fmt.Errorf("the socket %q from the service manager is %s: only TCP is served (ListenStream=host:port)", f.Name(), l.Addr().Network())
		}
		if name != Proxy && name != Admin || slices.ContainsFunc(list, func(s Socket) bool { return s.Name == name }) {
			return nil, fmt.Errorf("the socket %q from the service manager (%s) has no use: name one %q and, if need be, one %q (FileDescriptorName=)", f.Name(), l.Addr(), Proxy, Admin)
		}
		list = append(list, Socket{name, l})
	}
	return list, nil
}

// A Manager is the service manager, as far as it wants to be told how we are
// (sd_notify(3), Type=notify). It is nil, or asks for nothing, where there is none.
type Manager struct{}

// tell sends lines in one datagram. Nobody waits for an answer, and a manager that
// cannot be reached changes nothing for us.
func (m *Manager) tell(lines ...string) {
	if m != nil {
		_, _ = daemon.SdNotify(false, strings.Join(lines, "\n"))
	}
}

func statusLine(text string) string {
	return "STATUS=" + strings.Join(strings.Fields(text), " ")
}

// Ready says that requests are served, after a start or a reload.
func (m *Manager) Ready(status string) { m.tell("READY=1", statusLine(status)) }

// Reloading says that a reload or an upgrade begins; Ready or Handed ends it.
func (m *Manager) Reloading() {
	lines := []string{"RELOADING=1"}
	if now := daemon.SdNotifyMonotonicUsec(); now != "" {
		lines = append(lines, strings.TrimSpace(now))
	}
	m.tell(lines...)
}

// Stopping says that the end has begun.
func (m *Manager) Stopping() { m.tell("STOPPING=1", statusLine("finishing running requests")) }

// Handed says that another process serves now, and is the service from here on.
func (m *Manager) Handed(pid int) {
	m.tell("MAINPID="+strconv.Itoa(pid), "READY=1", statusLine(fmt.Sprintf("serving (process %d, after an upgrade)", pid)))
}

// Alive answers the watchdog.
func (m *Manager) Alive() { m.tell("WATCHDOG=1") }

// Watchdog is how often Alive is wanted; 0 = never. The manager gives up after twice
// that.
func (m *Manager) Watchdog() time.Duration {
	if m == nil {
		return 0
	}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0
	}
	return limit / 2
}
