package daemon

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A row is a listener in a rush that lets nobody in but by the places it is given.
type row struct {
	*crowdListener
	t     *testing.T
	let   chan net.Conn
	ended chan error
}

// newRow is one in which a rush has been on since a time.
func newRow(t *testing.T, most int, since time.Time) *row {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newRowAt(t, clientListener{inner}, most, since)
}

// newRowAt is one whose listener is given.
func newRowAt(t *testing.T, inner net.Listener, most int, since time.Time) *row {
	t.Helper()
	r := newRush(slog.New(slog.DiscardHandler))
	r.sound = func() {} // none returns
	r.behind.Store(true)
	r.inside.Store(fewInside)
	r.since, r.last, r.batch = since, time.Now(), firstBatch
	w := &row{crowdListener: bounded(inner, most, false, r), t: t, let: make(chan net.Conn, 100), ended: make(chan error, 1)}
	go func() {
		for {
			c, err := w.Accept()
			if err != nil {
				w.ended <- err
				return
			}
			w.let <- c
		}
	}()
	t.Cleanup(func() {
		inner.Close()
		for len(w.let) > 0 {
			(<-w.let).Close()
		}
	})
	return w
}

// come has a client come, and waits until it is in line or the system's queue.
func (w *row) come() net.Conn {
	w.t.Helper()
	return dial(w.t, w.Addr().String())
}

// stand has so many clients come, and waits until so many of them are in line.
func (w *row) stand(come int, inLine int64) (clients []net.Conn) {
	w.t.Helper()
	for range come {
		clients = append(clients, w.come())
	}
	for end := time.Now().Add(time.Minute); w.open.Load() < inLine; runtime.Gosched() {
		if time.Now().After(end) {
			w.t.Fatalf("%d stand in line", w.open.Load())
		}
	}
	return clients
}

// farewell closes the listener, of which all in line and its caller must be told.
func (w *row) farewell(clients []net.Conn) {
	w.t.Helper()
	w.Listener.Close()
	for _, c := range clients {
		refused(w.t, c)
	}
	if err := <-w.ended; !errors.Is(err, net.ErrClosed) {
		w.t.Error(err)
	}
}

// places lets so many in.
func (w *row) places(n int) {
	w.rush.mu.Lock()
	defer w.rush.mu.Unlock()
	w.rush.places = n
}

// who is the client that was let in next.
func (w *row) who(clients []net.Conn) int {
	w.t.Helper()
	select {
	case c := <-w.let:
		return slices.IndexFunc(clients, func(d net.Conn) bool { return d.LocalAddr().String() == c.RemoteAddr().String() })
	case <-time.After(time.Minute):
		w.t.Fatal("nobody was let in")
	}
	return -1
}

// refused is what a client is told who is turned away.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "2" || string(body) != rushBody {
		t.Errorf("%d %q %q, %v", resp.StatusCode, resp.Header.Get("Retry-After"), body, err)
	}
}

// Within the grace nobody is turned away, however long they stand there, and who came
// first is let in first.
func TestWhoCameFirstIsLetInFirst(t *testing.T) {
	w := newRow(t, 100, time.Now().Add(time.Hour))
	var clients []net.Conn
	for range 10 {
		clients = append(clients, w.come())
	}
	for n := 0; n < 10; {
		w.places(2)
		for range 2 {
			if got := w.who(clients); got != n {
				t.Fatalf("%d. is client %d", n, got)
			}
			n++
		}
	}
	if _, turned := w.rush.seen(time.Now()); turned != 0 {
		t.Errorf("%d were turned away", turned)
	}
}

// After the grace who has stood in line for too long is told to come again, and gives
// the place back; who gets a place in time is let in.
func TestWhoStandsInLineForTooLongIsTurnedAway(t *testing.T) {
	w := newRow(t, 100, time.Now().Add(-rushGrace))
	var clients []net.Conn
	for range 5 {
		clients = append(clients, w.come())
	}
	for _, c := range clients {
		refused(t, c)
		c.Close()
	}
	for end := time.Now().Add(time.Minute); w.open.Load() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d places are taken", w.open.Load())
		}
	}
	w.places(1)
	if got := w.who([]net.Conn{w.come()}); got != 0 {
		t.Errorf("somebody else came in: %d", got)
	}
	if _, turned := w.rush.seen(time.Now()); turned != 5 {
		t.Errorf("%d were turned away", turned)
	}
}

// Half of the connections may stand in line; the others are left to the system and come
// after them.
func TestTheLineIsBounded(t *testing.T) {
	const most = 20
	w := newRow(t, most, time.Now().Add(time.Hour))
	clients := w.stand(most, most/mostWaiting)
	for n := range most {
		if n := w.open.Load(); n > most/mostWaiting+int64(n) {
			t.Fatalf("%d are in, or in line", n)
		}
		w.places(1)
		if got := w.who(clients); got != n {
			t.Fatalf("%d. is client %d", n, got)
		}
	}
}

// Where nobody is let in any more, who stands in line is told to come again.
func TestTheLineIsToldOfTheEnd(t *testing.T) {
	w := newRow(t, 100, time.Now().Add(time.Hour))
	clients := w.stand(5, 5)
	w.farewell(clients)
}

// Those who stand in line are told of the end although nobody else is taken in who
// might tell of it: as many stand there as may.
func TestAFullLineIsToldOfTheEnd(t *testing.T) {
	const most = 10
	w := newRow(t, most, time.Now().Add(time.Hour))
	clients := w.stand(most/mostWaiting, most/mostWaiting)
	w.farewell(clients)
}

// However few may be told at once in a rush, all who stand in line are told of its end.
func TestALongLineIsToldOfTheEnd(t *testing.T) {
	w := newRow(t, 100, time.Now().Add(time.Hour))
	for range turnedAtOnce {
		w.turns <- struct{}{} // others are being turned away
	}
	clients := w.stand(5, 5)
	for _, c := range clients {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	w.farewell(clients)
}

// A failing is a listener that can accept nobody for once, as where there are too few
// descriptors.
type failing struct {
	clientListener
	fail, failed chan struct{}
}

// Accept implements net.Listener.
func (l failing) Accept() (net.Conn, error) {
	select {
	case <-l.fail:
		close(l.failed)
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	default:
		return l.clientListener.Accept()
	}
}

// A failure that passes sends nobody away who stands in line.
func TestTheLineOutlastsAFailureThatPasses(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := failing{clientListener{inner}, make(chan struct{}, 1), make(chan struct{})}
	w := newRowAt(t, l, 100, time.Now().Add(time.Hour))
	clients := w.stand(3, 3)
	l.fail <- struct{}{}
	<-l.failed
	for n := range clients {
		w.places(1)
		if got := w.who(clients); got != n {
			t.Fatalf("%d. is client %d", n, got)
		}
	}
}
