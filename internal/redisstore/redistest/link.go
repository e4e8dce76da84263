package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Link is a way to a server that can be cut: then connections stay open, new ones
// are accepted, and nothing gets through in either direction, as with a network that
// swallows packets.
type Link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   chan struct{} // closed while whole
	conns map[net.Conn]bool
}

// NewLink opens a way to addr that ends with the test.
func NewLink(t testing.TB, addr string) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	whole := make(chan struct{})
	close(whole)
	k := &Link{listener: l, to: addr, cut: whole, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() { k.accept(&wg) })
	t.Cleanup(func() {
		l.Close()
		k.Mend()
		k.mu.Lock()
		for c := range k.conns {
			c.Close()
		}
		k.mu.Unlock()
		wg.Wait()
	})
	return k
}

// Addr is what to connect to.
func (k *Link) Addr() string { return k.listener.Addr().String() }

// Cut has everything swallowed from now on.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = make(chan struct{})
}

// Mend ends a Cut; what was held back is delivered.
func (k *Link) Mend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.cut:
	default:
		close(k.cut)
	}
}

func (k *Link) whole() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cut
}

func (k *Link) accept(wg *sync.WaitGroup) {
	for {
		c, err := k.listener.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { k.carry(c) })
	}
}

func (k *Link) keep(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns[c] = true
}

func (k *Link) drop(c net.Conn) {
	c.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, c)
}

func (k *Link) carry(c net.Conn) {
	k.keep(c)
	defer k.drop(c)
	<-k.whole()
	s, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	k.keep(s)
	defer k.drop(s)
	var wg sync.WaitGroup
	pump := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			<-k.whole()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
			if err != nil {
				if err != io.EOF {
					from.Close()
				}
				return
			}
		}
	}
	wg.Go(func() { pump(s, c) })
	wg.Go(func() { pump(c, s) })
	wg.Wait()
}
