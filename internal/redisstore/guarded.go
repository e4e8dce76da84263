package redisstore

import (
	"errors"
	"net"
	"syscall"
)

const (
	// mostElements bounds what replies may announce and not have sent yet. The client makes
	// room for what is announced: a few bytes would take gigabytes.
	mostElements = 1 << 20
	// mostBytes bounds one string of a reply.
	mostBytes = 64 << 20
)

// errAnnounced is a reply that announces more than any of ours has.
var errAnnounced = errors.New("the store announces more than it can have")

// A guarded connection reads RESP along (redis.io, "Redis serialization protocol
// specification") and ends where a reply announces too much. It is as good as the
// connection beneath otherwise.
type guarded struct {
	net.Conn
	kind  byte  // of the line being read; 0: at its beginning
	n     int64 // what it announces
	none  bool  // it announces nothing: -1
	skip  int64 // bytes of a string that are still to come, its end included
	owing int64 // elements that are
}

// guard guards a connection; one of the system's stays one, so that the client can see
// whether it is open.
func guard(c net.Conn) net.Conn {
	if _, ok := c.(syscall.Conn); ok {
		return &guardedSocket{guarded{Conn: c}}
	}
	return &guarded{Conn: c}
}

type guardedSocket struct{ guarded }

// SyscallConn implements syscall.Conn.
func (g *guardedSocket) SyscallConn() (syscall.RawConn, error) {
	return g.Conn.(syscall.Conn).SyscallConn()
}

// Read implements io.Reader.
func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.follow(p[:n]) {
		g.Close()
		return 0, errAnnounced
	}
	return n, err
}

// follow reads bytes along, and is false where they announce too much.
func (g *guarded) follow(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if g.skip > 0 {
			n := min(g.skip, int64(len(b)-i))
			g.skip -= n
			i += int(n) - 1
			continue
		}
		switch c := b[i]; {
		case g.kind == 0:
			g.kind, g.n, g.none = c, 0, false
		case c == '\n':
			if !g.line() {
				return false
			}
			g.kind = 0
		case c == '-':
			g.none = true
		case '0' <= c && c <= '9':
			g.n = min(10*g.n+int64(c-'0'), 1<<40)
		}
	}
	return true
}

// line takes a whole line into account.
func (g *guarded) line() bool {
	g.owing = max(0, g.owing-1)
	if g.none {
		return true
	}
	switch g.kind {
	case '*', '~', '>', '%', '|': // arrays, sets, pushes; maps and attributes, in pairs
		g.owing += 2 * g.n
	case '$', '=', '!': // strings
		if g.n > mostBytes {
			return false
		}
		g.skip = g.n + 2
	}
	return g.owing <= 2*mostElements
}
