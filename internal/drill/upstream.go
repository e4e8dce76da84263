// Package drill plays upstreams that fail. An Upstream is an HTTP/1.1 server over
// raw connections whose answers are scripts, so that it can do what no decent
// server library lets one do: cut a chunk in two, reset before the first header,
// send comments for ever, fall silent after two characters. Faults is the
// catalogue of such scripts, Healthy the answer of an upstream that is well, in
// the dialect of whatever request comes in, and Ask a client that tells a whole
// answer from one that was cut. Scenarios puts faults to whole chains behind a proxy
// and judges what reached the client and the upstreams; a Scorecard collects the
// verdicts. It serves the tests, `understudy demo` and `understudy drill`.
//
// The package knows the vendors' bytes and how connections break. It never knows
// the proxy, which it sees from both ends only: no configuration, no rules. It
// detects dialects and reads answers by itself, so that an error in the proxy's own
// reading cannot hide behind it.
//
// Everything here runs over any net.Listener and waits only where a testing/synctest
// bubble can see it, so that it also runs over a network in memory.
package drill

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Script answers one request, the n-th of its upstream counted from 1, by writing
// to w, and returns when the answer is done. What it left unfinished (chunks
// without an End, a body shorter than announced, no answer at all) is cut off with
// a FIN. Scripts of different connections run at the same time.
type Script func(w *Wire, r Request, n int)

// Sequence answers the first request with the first script, the second with the
// second, and every one after the last with the last.
func Sequence(scripts ...Script) Script {
	return func(w *Wire, r Request, n int) {
		scripts[min(n, len(scripts))-1](w, r, n)
	}
}

// Upstream is a fake upstream. Its methods may be called by several goroutines.
type Upstream struct {
	l    net.Listener
	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever something below changes
	conns    map[net.Conn]struct{}
	accepted int
	gone     int
	closed   bool
	requests []Request
}

// Start runs script on a free port of 127.0.0.1. It panics where there is none;
// StartOn is for callers who can do better. The caller calls Close.
func Start(script Script) *Upstream {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	return StartOn(l, script)
}

// StartOn runs script on l, which the Upstream then owns.
func StartOn(l net.Listener, script Script) *Upstream {
	u := newUpstream(l)
	u.run(func(c net.Conn, nth int) { u.serve(c, nth, script) })
	return u
}

// StartRaw runs serve for every connection to l, without reading requests: for
// peers that do not speak HTTP. serve need not close the connection; it must
// return when reading from it fails, since Close waits for it.
func StartRaw(l net.Listener, serve func(c net.Conn)) *Upstream {
	return StartConns(l, func(_ *Upstream, c net.Conn, _ int) { serve(c) })
}

// StartConns is StartRaw for peers that speak another version of HTTP: serve also gets
// the Upstream, for Record, and the number of the connection, counted from 1.
func StartConns(l net.Listener, serve func(u *Upstream, c net.Conn, nth int)) *Upstream {
	u := newUpstream(l)
	u.run(func(c net.Conn, nth int) { serve(u, c, nth) })
	return u
}

func newUpstream(l net.Listener) *Upstream {
	return &Upstream{
		l:       l,
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		conns:   make(map[net.Conn]struct{}),
	}
}

// run accepts connections until Close and hands each, with its number, to serve.
func (u *Upstream) run(serve func(c net.Conn, nth int)) {
	u.wg.Go(func() {
		for {
			c, err := u.l.Accept()
			if err != nil {
				return
			}
			nth := u.enter(c)
			if nth == 0 {
				c.Close()
				return
			}
			u.wg.Go(func() {
				defer u.leave(c)
				serve(c, nth)
			})
		}
	})
}

// serve reads requests from c and lets script answer them, until one of them ends
// the connection.
func (u *Upstream) serve(c net.Conn, conn int, script Script) {
	br := bufio.NewReaderSize(c, 64<<10)
	for nth := 1; ; nth++ {
		r, err := readRequest(br, c)
		if err != nil {
			return
		}
		r.Conn, r.Nth, r.At = conn, nth, time.Now()
		w := &Wire{u: u, c: c, br: br, head: r.Method == "HEAD"}
		script(w, r, u.Record(r))
		if !w.finish(r) {
			return
		}
	}
}

// URL returns the base URL, "http://host:port".
func (u *Upstream) URL() string { return "http://" + u.Addr() }

// Addr returns the "host:port" it listens at.
func (u *Upstream) Addr() string { return u.l.Addr().String() }

// Close stops listening, closes all connections and waits until every script has
// returned. A second call does nothing.
func (u *Upstream) Close() {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.done)
		u.l.Close()
		for c := range u.conns {
			c.Close()
		}
		u.notify()
	}
	u.mu.Unlock()
	u.wg.Wait()
}

// Requests returns copies of all requests that arrived whole, in order of arrival.
func (u *Upstream) Requests() []Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Request, len(u.requests))
	for i, r := range u.requests {
		out[i] = r.clone()
	}
	return out
}

// Count returns how many requests arrived whole.
func (u *Upstream) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.requests)
}

// Gone returns how many peers left in the middle of an answer.
func (u *Upstream) Gone() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone
}

// Open returns how many connections are open now.
func (u *Upstream) Open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

// Accepted returns how many connections came so far.
func (u *Upstream) Accepted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accepted
}

// Await waits until cond is true, asking it again whenever a request arrives, a
// peer leaves or a connection opens or closes, and reports whether it became true
// before ctx ended. cond calls methods of u: Await(ctx, func() bool { return
// u.Gone() == 1 }).
func (u *Upstream) Await(ctx context.Context, cond func() bool) bool {
	for {
		u.mu.Lock()
		changed := u.changed
		u.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cond()
		}
	}
}

// notify wakes everybody in Await; u.mu is held.
func (u *Upstream) notify() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// enter notes a new connection and returns its number, 0 after Close.
func (u *Upstream) enter(c net.Conn) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0
	}
	u.conns[c] = struct{}{}
	u.accepted++
	u.notify()
	return u.accepted
}

// leave closes a connection and forgets it.
func (u *Upstream) leave(c net.Conn) {
	c.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
	u.notify()
}

// Record keeps a request that arrived whole and returns its number, counted from 1. It
// is for the serve of StartConns; scripts' requests are recorded already.
func (u *Upstream) Record(r Request) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, r)
	u.notify()
	return len(u.requests)
}

// lost counts a peer that left in the middle of an answer, unless it was Close
// that ended the connection.
func (u *Upstream) lost() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.gone++
		u.notify()
	}
}
