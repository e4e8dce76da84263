package h1server

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"
)

// patience bounds what a test waits for that should come at once.
const patience = 20 * time.Second

// lastly asks for an answer that ends the connection: it comes where the answer before
// it has left the connection of use.
const lastly = "GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// quiet is a log that nobody reads.
var quiet = log.New(io.Discard, "", 0)

// listen opens a listener of this machine.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ours serves a handler by this package, until the test ends.
func ours(t testing.TB, s *Server) (address string) {
	t.Helper()
	if s.HTTP.ErrorLog == nil {
		s.HTTP.ErrorLog = quiet
	}
	l := listen(t)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return l.Addr().String()
}

// theirs serves a handler by net/http alone.
func theirs(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	s := &http.Server{Handler: h, ErrorLog: quiet}
	l := listen(t)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// dial connects to a server, for no longer than the test's patience.
func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// An answer is what a client makes of one.
type answer struct {
	Status  string
	Header  http.Header // but for Date, which is "now" where it is
	Body    string
	Trailer http.Header
	Close   bool
	Chunked bool
	Cut     bool // it is not whole
}

// answersOf sends a text on one connection, and reads all answers.
func answersOf(t testing.TB, address, text string) (all []answer) {
	t.Helper()
	c := dial(t, address)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c, text) // the server may close before it has read all
	}()
	defer func() { c.Close(); <-sent }()
	in := bufio.NewReader(c)
	for {
		a, err := answerFrom(in)
		if err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Fatalf("after %+v: %v", all, err)
			}
			return all
		}
		if all = append(all, a); a.Cut || a.Close {
			return all
		}
	}
}

// answerFrom reads one answer.
func answerFrom(in *bufio.Reader) (a answer, err error) {
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return a, err
	}
	b, err := io.ReadAll(r.Body)
	a = answer{Status: r.Status, Header: r.Header, Body: string(b), Trailer: r.Trailer, Close: r.Close, Cut: err != nil, Chunked: len(r.TransferEncoding) > 0}
	if r.StatusCode < 200 {
		a.Close = false // net/http says in a hint too that the connection ends
		a.Header.Del("Connection")
	}
	if d := r.Header.Get("Date"); d != "" {
		if at, err := time.Parse(http.TimeFormat, d); err == nil && time.Since(at).Abs() < time.Minute {
			a.Header.Set("Date", "now")
		}
	}
	return a, nil
}
