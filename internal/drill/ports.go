package drill

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Refused returns a base URL whose port refuses connections, and will go on to do
// so until release: the port is held as the local end of a connection, so that
// nobody else can listen there meanwhile. It panics where no port is to be had.
func Refused() (url string, release func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	in, err := l.Accept()
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	return "http://" + out.LocalAddr().String(), func() {
		out.Close()
		in.Close()
	}
}

// BlackHole returns a base URL that neither accepts nor refuses connections: a
// listener that accepts nothing and whose backlog is full, so that the system drops
// what comes. release ends it. Where the system refuses rather than drops, as
// Windows does, BlackHole returns an error.
func BlackHole() (url string, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	shrinkBacklog(l.(*net.TCPListener))
	var held []net.Conn
	release = func() {
		l.Close()
		for _, c := range held {
			c.Close()
		}
	}
	const most = 5000 // above the backlog of any system that could not be shrunk
	for range most {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 250*time.Millisecond)
		timeout, ok := errors.AsType[net.Error](err)
		switch {
		case err == nil:
			held = append(held, c)
		case ok && timeout.Timeout():
			return "http://" + l.Addr().String(), release, nil
		default:
			release()
			return "", nil, fmt.Errorf("filling a backlog: %w", err)
		}
	}
	release()
	return "", nil, fmt.Errorf("the backlog took %d connections", most)
}

// TLSHang returns an upstream that takes connections and what comes over them, and
// answers nothing: a TLS handshake with it never ends. Its URL for that purpose is
// "https://" + Addr(). The caller calls Close.
func TLSHang() *Upstream {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	return StartRaw(l, func(c net.Conn) { io.Copy(io.Discard, c) })
}
