//go:build unix

package h1

import (
	"syscall"
)

// Alive says that kept connections can be checked before they are used again.
const Alive = true

// alive says whether a kept connection is still open and silent: one that the
// upstream has closed, or sent something on that nobody asked for, must not be used.
func (k *conn) alive() bool {
	sc, ok := k.Conn.(syscall.Conn)
	if !ok {
		return true // not a connection of the system's
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && open
}
