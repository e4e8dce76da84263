package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tunnelBuffer is the size of one read of a tunnel, which has two.
	tunnelBuffer = 16 << 10
	// tunnelLinger is how long a tunnel of which one side has ended waits for the
	// other: a closing handshake takes moments.
	tunnelLinger = 30 * time.Second
	// tunnelQuiet is how long nothing must have come through a tunnel that is
	// broken off while the program ends: an answer in the middle is let out.
	tunnelQuiet = 10 * time.Second
	// tunnelLook is how often that is looked at.
	tunnelLook = 200 * time.Millisecond
)

// errStuck ends a tunnel whose receiver takes nothing.
var errStuck = errors.New("nothing is taken")

// A tunnel is two connections, of a client and of an upstream, that have left HTTP:
// what one says the other hears, byte by byte, until either ends.
type tunnel struct {
	client, upstream io.ReadWriteCloser
	// clientIdle and upstreamIdle are how long either may take nothing; 0 = for ever.
	clientIdle, upstreamIdle time.Duration

	last    atomic.Int64 // when bytes came through last, in Unix nanoseconds
	down    atomic.Int64 // bytes to the client
	dropped atomic.Bool  // broken off because the program ends
	once    sync.Once
}

// side is which of a tunnel's connections broke.
type side uint8

const (
	neither side = iota
	clientSide
	upstreamSide
)

// run copies both ways until the tunnel has ended. early are bytes that the client
// sent before the handshake was over. Where one side ends in order, whatever becomes
// of the other one then is in order too.
func (t *tunnel) run(early []byte) (broke side, err error) {
	type end struct {
		side side
		err  error
	}
	ends := make(chan end, 2)
	go func() {
		s, err := t.copy(t.client, t.upstream, clientSide, upstreamSide, t.clientIdle, &t.down, nil)
		ends <- end{s, err}
	}()
	go func() {
		s, err := t.copy(t.upstream, t.client, upstreamSide, clientSide, t.upstreamIdle, nil, early)
		ends <- end{s, err}
	}()
	first := <-ends
	if first.err == nil {
		late := time.AfterFunc(tunnelLinger, t.cut)
		defer late.Stop()
	} else {
		t.cut()
	}
	<-ends
	t.cut()
	return first.side, first.err
}

// copy carries one direction to its end, and tells the receiver that it was the end.
func (t *tunnel) copy(dst io.WriteCloser, src io.Reader, to, from side, idle time.Duration, count *atomic.Int64, early []byte) (side, error) {
	stuck := false
	send := func(p []byte) error {
		t.last.Store(time.Now().UnixNano())
		if idle > 0 {
			watch := time.AfterFunc(idle, t.cut)
			defer func() { stuck = !watch.Stop() }()
		}
		n, err := dst.Write(p)
		if count != nil {
			count.Add(int64(n))
		}
		return err
	}
	if len(early) > 0 {
		if err := send(early); err != nil {
			return to, err
		}
	}
	buf := make([]byte, tunnelBuffer)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if werr := send(buf[:n]); werr != nil {
				if stuck {
					werr = errStuck
				}
				return to, werr
			}
		}
		if err == io.EOF {
			// Not every connection can end one direction alone; then the other one's
			// end is waited for.
			if half, ok := dst.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return neither, nil
		}
		if err != nil {
			return from, err
		}
	}
}

// cut breaks both connections off.
func (t *tunnel) cut() {
	t.once.Do(func() {
		t.client.Close()
		t.upstream.Close()
	})
}

// quiet says for how long nothing has come through.
func (t *tunnel) quiet(now time.Time) time.Duration {
	return now.Sub(time.Unix(0, t.last.Load()))
}

// tunnels are those that are open, and the requests that open or book one. Its zero
// value is ready.
type tunnels struct {
	mu       sync.Mutex
	requests int
	open     map[*tunnel]bool
}

// enter counts a request in; leave counts it out once it is booked.
func (ts *tunnels) enter() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.requests++
}

func (ts *tunnels) leave() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.requests--
}

// carry runs a tunnel that the end of the program finds.
func (ts *tunnels) carry(t *tunnel, early []byte) (broke side, err error) {
	t.last.Store(time.Now().UnixNano())
	ts.mu.Lock()
	if ts.open == nil {
		ts.open = map[*tunnel]bool{}
	}
	ts.open[t] = true
	ts.mu.Unlock()
	defer func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.open, t)
	}()
	return t.run(early)
}

// look breaks off the tunnels that have been quiet for so long, and counts the
// requests that are left.
func (ts *tunnels) look(quiet time.Duration, now time.Time) (left int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t := range ts.open {
		if t.quiet(now) >= quiet {
			t.dropped.Store(true)
			t.cut()
		}
	}
	return ts.requests
}

// EndTunnels breaks every WebSocket off once nothing comes through it any more, and
// what is left when ctx is done; it returns when all are booked. They have no end
// of their own, and net/http's server does not know them. Nothing may open new ones
// meanwhile.
func (h *Handler) EndTunnels(ctx context.Context) {
	tick := time.NewTicker(tunnelLook)
	defer tick.Stop()
	quiet := tunnelQuiet
	for h.tunnels.look(quiet, time.Now()) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			quiet = 0
			<-tick.C
		}
	}
}
