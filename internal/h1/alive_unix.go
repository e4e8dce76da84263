//go:build unix

package h1

import (
	"syscall"
)

// Alive says that kept connections can be checked before they are used again.
const Alive = true

// liveness is what looking at a connection takes, once it has been looked at.
type liveness struct {
	raw  syscall.RawConn // nil unless the connection is the system's
	look func(fd uintptr) bool
	open bool
}

// alive says whether a kept connection is still open and silent: one that the
// upstream has closed, or sent something on that nobody asked for, must not be used.
func (k *conn) alive() bool {
	if k.raw == nil {
		sc, ok := k.Conn.(syscall.Conn)
		if !ok {
			return true // not a connection of the system's
		}
		raw, err := sc.SyscallConn()
		if err != nil {
			return false
		}
		k.raw, k.look = raw, k.peek
	}
	return k.raw.Read(k.look) == nil && k.open
}

// peek notes whether nothing is there to be read, and the connection is open.
func (k *conn) peek(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	k.open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	return true
}
