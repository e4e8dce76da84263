//go:build unix

package drill

import (
	"net"
	"syscall"
)

// shrinkBacklog makes l's backlog as small as the system allows. Go asks for the
// largest; listening once more with another size changes it.
func shrinkBacklog(l *net.TCPListener) {
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	// Where it fails, filling the backlog takes longer.
	_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) })
}
