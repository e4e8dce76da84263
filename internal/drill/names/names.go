// Package names plays a name server that fails.
package names

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// A Server is a name server on loopback. It says that names which begin with
// "nxdomain" are none, fails for those that begin with "servfail", gives garbage for
// "garbage", and does not answer for "silent"; all others are 127.0.0.1.
type Server struct {
	c  net.PacketConn
	wg sync.WaitGroup
}

// Start starts a Server on a free port. It panics where there is none. The
// caller calls Close.
func Start() *Server {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("names: %v", err))
	}
	s := &Server{c: c}
	s.wg.Go(s.serve)
	return s
}

// Resolver returns a resolver that asks this name server alone.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.c.LocalAddr().String())
	}}
}

// Close ends it.
func (s *Server) Close() {
	s.c.Close()
	s.wg.Wait()
}

func (s *Server) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.c.ReadFrom(buf)
		if err != nil {
			return
		}
		if out := reply(buf[:n]); out != nil {
			_, _ = s.c.WriteTo(out, from) // who asked may be gone
		}
	}
}

// reply is the answer to a query; nil for none.
func reply(query []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	switch name := q.Name.String(); {
	case strings.HasPrefix(name, "silent"):
		return nil
	case strings.HasPrefix(name, "garbage"):
		return append(query[:2:2], "\xff\xff this is no answer"...)
	case strings.HasPrefix(name, "nxdomain"):
		m.RCode = dnsmessage.RCodeNameError
	case strings.HasPrefix(name, "servfail"):
		m.RCode = dnsmessage.RCodeServerFailure
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}
