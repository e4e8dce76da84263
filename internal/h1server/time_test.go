package h1server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

// echo answers with what it was sent.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, b)
})

// closedAfter reads until the connection is closed, and says how long that took. What
// may come before is net/http's refusal of half a head.
func closedAfter(t *testing.T, c io.Reader) time.Duration {
	t.Helper()
	began := time.Now()
	if b, err := io.ReadAll(c); len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
		t.Errorf("before its end (%v) the connection had %q", err, b)
	}
	return time.Since(began)
}

func TestConnectionsThatWaitAreClosed(t *testing.T) {
	const head, idle = 7 * time.Second, 50 * time.Second
	server := func() *Server {
		return &Server{WatchAfter: time.Second, HTTP: &http.Server{Handler: echo, ReadHeaderTimeout: head, IdleTimeout: idle}}
	}
	for name, c := range map[string]struct {
		texts       []string // each is answered but for the last
		least, most time.Duration
	}{
		"nothing":                     {[]string{""}, head, head},
		"a piece of a head":           {[]string{"GET / HT"}, head, head},
		"a piece of a long head":      {[]string{"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n"}, head, head},
		"an answer":                   {[]string{getRun, ""}, idle - idle/deadlineSlack, idle},
		"answers":                     {[]string{getRun, postOf(9, ""), getRun, ""}, idle - idle/deadlineSlack, idle},
		"a piece of the next head":    {[]string{getRun, "GET"}, head, head},
		"a piece of the next preface": {[]string{getRun, "PR"}, head, head},
		"a letter of the next head":   {[]string{getRun, "P"}, head, head},
		"an odd one":                  {[]string{"GET /%6f HTTP/1.1\r\nHost: a\r\n\r\n", ""}, idle, idle},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, server(), func(t *testing.T, dial func() *upstreamtest.Conn) {
				k := dial()
				defer k.Close()
				in := bufio.NewReader(k)
				for i, text := range c.texts {
					_, _ = io.WriteString(k, text)
					if i < len(c.texts)-1 {
						if a, err := answerFrom(in); err != nil || a.Cut {
							t.Fatalf("%+v, %v", a, err)
						}
					}
				}
				if d := closedAfter(t, in); d < c.least || d > c.most {
					t.Errorf("closed after %v, want %v to %v", d, c.least, c.most)
				}
			})
		})
	}
}

// A head that comes in pieces has its time from the first piece on, however long the
// connection had been silent; and a silent one keeps its own time.
func TestSlowPiecesOfAHead(t *testing.T) {
	const head = 7 * time.Second
	inBubble(t, &Server{HTTP: &http.Server{Handler: echo, ReadHeaderTimeout: head}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
		c := dial()
		defer c.Close()
		time.Sleep(head - time.Second)
		began, sent := time.Now(), make(chan struct{})
		go func() {
			defer close(sent)
			for _, b := range []byte("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		if closedAfter(t, c); time.Since(began) != head {
			t.Errorf("closed after %v", time.Since(began))
		}
		<-sent
	})
}

func TestTheDeadlineOfABody(t *testing.T) {
	const patience = 3 * time.Second
	for name, set := range map[string]func(rc *http.ResponseController){
		"before it is read": func(rc *http.ResponseController) { _ = rc.SetReadDeadline(time.Now().Add(patience)) },
		"while it is read": func(rc *http.ResponseController) {
			_ = rc.SetReadDeadline(time.Now().Add(time.Hour))
			time.AfterFunc(time.Second, func() { _ = rc.SetReadDeadline(time.Now().Add(patience - time.Second)) })
		},
		"moved while it is read": func(rc *http.ResponseController) {
			_ = rc.SetReadDeadline(time.Now().Add(time.Second))
			time.AfterFunc(time.Second/2, func() { _ = rc.SetReadDeadline(time.Now().Add(patience - time.Second/2)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				set(http.NewResponseController(w))
				began := time.Now()
				b, err := io.ReadAll(r.Body)
				if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != patience || string(b) != "a" {
					t.Errorf("after %v: %q, %v", time.Since(began), b, err)
				}
				if r.Context().Err() == nil {
					t.Error("the request is not cancelled")
				}
				w.WriteHeader(http.StatusRequestTimeout)
			})}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
				c := dial()
				defer c.Close()
				_, _ = io.WriteString(c, "POST /run HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na")
				if a, err := answerFrom(bufio.NewReader(c)); err != nil || a.Status != "408 Request Timeout" || !a.Close {
					t.Errorf("%+v, %v", a, err)
				}
			})
		})
	}
}

// A deadline for a body holds for that body alone: not for the watch while its request
// runs, nor for what follows.
func TestTheDeadlineOfABodyEndsWithIt(t *testing.T) {
	for name, text := range map[string]string{"a body": postOf(9, ""), "none": getRun} {
		for after, watch := range []time.Duration{0, time.Second, time.Hour} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				inBubble(t, &Server{WatchAfter: watch, HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					rc := http.NewResponseController(w)
					_ = rc.SetReadDeadline(time.Now().Add(2 * time.Second))
					_, _ = io.Copy(io.Discard, r.Body)
					time.Sleep(time.Minute)
					if err := r.Context().Err(); err != nil {
						t.Error(err)
					}
					_, _ = io.WriteString(w, "late")
				})}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
					c := dial()
					defer c.Close()
					in := bufio.NewReader(c)
					for range 3 {
						_, _ = io.WriteString(c, text)
						if a, err := answerFrom(in); err != nil || a.Body != "late" {
							t.Fatalf("%+v, %v", a, err)
						}
						time.Sleep(time.Minute)
					}
				})
			})
		}
	}
}

const oddLast = "GET /%6cast HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestTheDeadlineOfAnAnswer(t *testing.T) {
	const patience = 3 * time.Second
	inBubble(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if r.URL.Path == "/last" { // the one before had a deadline, which has passed
			_, _ = io.WriteString(w, "last")
			return
		}
		if err := http.NewResponseController(w).SetWriteDeadline(began.Add(patience)); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/run" {
			_, _ = io.WriteString(w, "in time")
			return
		}
		piece := make([]byte, 16<<10)
		for {
			if _, err := w.Write(piece); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != patience {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				break
			}
		}
		if err := r.Context().Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the request's context: %v", err)
		}
	})}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
		c := dial()
		defer c.Close()
		in := bufio.NewReader(c)
		_, _ = io.WriteString(c, getRun)
		if a, err := answerFrom(in); err != nil || a.Body != "in time" {
			t.Fatalf("%+v, %v", a, err)
		}
		time.Sleep(time.Minute)
		for _, text := range []string{strings.Replace(lastly, "close", "keep-alive", 1), getRun, oddLast} {
			_, _ = io.WriteString(c, text)
			if a, err := answerFrom(in); err != nil || a.Body != "last" && a.Body != "in time" {
				t.Fatalf("%q: %+v, %v", text, a, err)
			}
			time.Sleep(time.Minute)
		}

		full := dial()
		defer full.Close()
		_, _ = io.WriteString(full, "GET /much HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(time.Minute)
		if a, err := answerFrom(bufio.NewReader(full)); err != nil || !a.Cut {
			t.Errorf("%+v, %v", a.Status, err)
		}
	})
}

// A connection whose body is not wanted stays for a while, however fast the body comes:
// closed at once it would be reset, and some systems forget an answer then.
func TestAConnectionLingers(t *testing.T) {
	inBubble(t, &Server{HTTP: &http.Server{Handler: http.NotFoundHandler()}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
		c := dial()
		defer c.Close()
		began, sent := time.Now(), 0
		_, _ = io.WriteString(c, "POST /run HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
		for piece := make([]byte, 64<<10); ; sent += len(piece) {
			if _, err := c.Write(piece); err != nil {
				break
			}
		}
		if d := time.Since(began); d != lingerTime || sent > 2*lingerBytes {
			t.Errorf("closed after %v and %d bytes", d, sent)
		}
		if a, err := answerFrom(bufio.NewReader(c)); err != nil || a.Status != "404 Not Found" || !a.Close {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// A watch is begun only for a request that runs for a while.
func TestAWatchBeginsAfterAWhile(t *testing.T) {
	const after = 5 * time.Millisecond
	inBubble(t, &Server{WatchAfter: after, HTTP: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		<-r.Context().Done()
		if d := time.Since(began); d != after {
			t.Errorf("cancelled after %v", d)
		}
	})}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
		c := dial()
		_, _ = io.WriteString(c, getRun)
		synctest.Wait()
		c.Close()
		time.Sleep(time.Second)
	})
}

// temporary is an error of a listener that passes.
type temporary struct{}

func (temporary) Error() string   { return "too many open files" }
func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }

// failing is a listener that fails some times first.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

func TestAListenerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := upstreamtest.NewNet()
		s := &Server{HTTP: &http.Server{Handler: echo}}
		l := &failing{network.Listen("server:80"), []error{temporary{}, temporary{}, temporary{}}}
		ended := make(chan error)
		go func() { ended <- s.Serve(l) }()
		began := time.Now()
		c, err := network.DialContext(t.Context(), "tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, getRun)
		if a, err := answerFrom(bufio.NewReader(c)); err != nil || a.Body != "GET /run " {
			t.Errorf("%+v, %v", a, err)
		}
		if d := time.Since(began); d != 35*time.Millisecond {
			t.Errorf("accepted after %v", d)
		}
		c.Close()

		gone := errors.New("gone")
		if err := s.Serve(&failing{network.Listen("other:80"), []error{gone}}); !errors.Is(err, gone) {
			t.Errorf("Serve ended with %v", err)
		}
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve ended with %v", err)
		}
		if err := s.Serve(network.Listen("late:80")); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
}
