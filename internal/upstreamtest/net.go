// Package upstreamtest is a network in memory, for tests that run inside a
// testing/synctest bubble.
//
// Sockets of the operating system keep a bubble's clock from moving, since a
// goroutine that waits in the kernel is not durably blocked. Connections of a
// Net wait on condition variables only, so that a stall of sixty seconds passes
// in milliseconds and is measured to the nanosecond. They differ from net.Pipe
// in what proxies are tested for: writes are buffered up to a limit and block
// beyond it, one direction can be closed alone, and a peer can reset.
//
// The package knows connections and addresses. It knows nothing of HTTP, of
// upstreams or of the program under test. It is for tests only.
package upstreamtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// DefaultBuffer is how many bytes one direction of a connection holds before a
// write blocks, where Net.Buffer does not say otherwise.
const DefaultBuffer = 64 << 10

// Net is a network of its own: what listens on one Net cannot be dialled on
// another. Nothing listens at first, and an address where nothing listens
// refuses. A Net used in a bubble must be made in that bubble. Its methods may be
// called by several goroutines.
type Net struct {
	// Buffer is how many bytes each direction of a connection holds, 0 meaning
	// DefaultBuffer. It holds for connections dialled after it was set and must
	// not be set while others dial.
	Buffer int

	mu        sync.Mutex
	listeners map[string]*listener
	failing   map[string]error // nil error: a black hole
	dials     map[string]int
	ports     uint16
}

// NewNet returns a network where nothing listens yet.
func NewNet() *Net {
	return &Net{
		listeners: make(map[string]*listener),
		failing:   make(map[string]error),
		dials:     make(map[string]int),
	}
}

// Listen listens at addr, a "host:port" whose host may be any name or IP
// literal, for the network resolves no names. Port 0 takes a free one. It panics
// where addr is no such pair or is taken, as both are mistakes of the test. The
// caller closes the listener; connections that were not accepted by then are
// reset.
func (n *Net) Listen(addr string) net.Listener {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(fmt.Sprintf("upstreamtest: listen %q: %v", addr, err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		addr = net.JoinHostPort(host, strconv.Itoa(int(n.port())))
	}
	if n.listeners[addr] != nil {
		panic(fmt.Sprintf("upstreamtest: listen %q: the address is taken", addr))
	}
	l := &listener{net: n, addr: address(addr)}
	l.came.L = &l.mu
	n.listeners[addr] = l
	return l
}

// DialContext connects to the listener at addr; it has the signature of
// http.Transport.DialContext. Its errors are those of a net.Dialer: a
// *net.OpError around ECONNREFUSED where nothing listens, around ctx.Err() where
// a black hole swallowed the call, or around what Fail was told. A connection
// stands as soon as it is dialled, accepted or not, as with a kernel's backlog.
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: err}
	}
	n.mu.Lock()
	n.dials[addr]++
	why, failing := n.failing[addr]
	l, buffer, port := n.listeners[addr], n.Buffer, n.port()
	n.mu.Unlock()

	switch {
	case ctx.Err() != nil:
		return fail(ctx.Err())
	case failing && why == nil:
		<-ctx.Done()
		return fail(ctx.Err())
	case failing:
		return fail(why)
	case l == nil:
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	here := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	client, server := pipe(here, l.addr, buffer)
	if !l.offer(server) {
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return client, nil
}

// Blackhole makes dials to addr wait until their context ends, whether or not
// somebody listens there. Heal takes it back.
func (n *Net) Blackhole(addr string) { n.fail(addr, nil) }

// Fail makes dials to addr fail with err at once, for example with a
// *net.DNSError. Heal takes it back. It panics where err is nil.
func (n *Net) Fail(addr string, err error) {
	if err == nil {
		panic("upstreamtest: Fail without an error")
	}
	n.fail(addr, err)
}

func (n *Net) fail(addr string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing[addr] = err
}

// Heal undoes Blackhole and Fail for later dials to addr.
func (n *Net) Heal(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.failing, addr)
}

// Dials returns how often addr was dialled so far, refused dials included.
func (n *Net) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

// port returns a port not given out before; n.mu is held.
func (n *Net) port() uint16 {
	n.ports++
	return 10000 + n.ports
}

// listener is one address where somebody listens.
type listener struct {
	net  *Net
	addr net.Addr

	mu     sync.Mutex
	came   sync.Cond // queue or closed changed
	queue  []*Conn
	closed bool
}

// offer queues c for Accept; false where the listener is closed.
func (l *listener) offer(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.queue = append(l.queue, c)
	l.came.Signal()
	return true
}

func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.came.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

func (l *listener) Close() error {
	l.net.mu.Lock()
	if l.net.listeners[l.addr.String()] == l {
		delete(l.net.listeners, l.addr.String())
	}
	l.net.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	l.closed = true
	l.came.Broadcast()
	var errs []error
	for _, c := range l.queue {
		errs = append(errs, c.Reset())
	}
	l.queue = nil
	return errors.Join(errs...)
}

func (l *listener) Addr() net.Addr { return l.addr }

// address returns a *net.TCPAddr for an IP literal, as users of a connection may
// expect one, and the name as it is otherwise.
func address(addr string) net.Addr {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return name(addr)
}

// name is an address whose host is no IP literal.
type name string

func (name) Network() string  { return "tcp" }
func (n name) String() string { return string(n) }
