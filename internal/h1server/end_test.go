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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

const oddRun = "GET /%72un HTTP/1.1\r\nHost: localhost\r\n\r\n"

// inBubble serves a handler on a network in memory, where time is the test's.
func inBubble(t *testing.T, s *Server, run func(t *testing.T, dial func() *upstreamtest.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		if s.HTTP.ErrorLog == nil {
			s.HTTP.ErrorLog = quiet
		}
		network := upstreamtest.NewNet()
		l := network.Listen("server:80")
		ended := make(chan error)
		go func() { ended <- s.Serve(l) }()
		run(t, func() *upstreamtest.Conn {
			c, err := network.DialContext(t.Context(), "tcp", "server:80")
			if err != nil {
				t.Fatal(err)
			}
			return c.(*upstreamtest.Conn)
		})
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
}

// states notes what a server tells of its connections.
type states struct {
	mu   sync.Mutex
	told []string
}

func (s *states) note(_ net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, state.String())
}

func (s *states) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, " ")
}

func TestConnectionsTellTheirStates(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"nothing":       {nil, "new closed"},
		"one":           {[]string{getRun}, "new active idle closed"},
		"two":           {[]string{getRun, postOf(9, "")}, "new active idle active idle closed"},
		"two at once":   {[]string{getRun + getRun}, "new active idle active idle closed"},
		"the last":      {[]string{lastly}, "new active closed"},
		"odd":           {[]string{oddRun}, "new new active idle closed"},
		"odd and plain": {[]string{oddRun, getRun}, "new new active idle active idle closed"},
		"plain and odd": {[]string{getRun, oddRun}, "new active idle new active idle closed"},
		"no head":       {[]string{"\r\n\r\n"}, "new new active closed"},
		"a preface":     {[]string{getRun, "PRI"}, "new active idle closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var told states
			inBubble(t, &Server{HTTP: &http.Server{Handler: echo, ConnState: told.note}}, func(t *testing.T, dial func() *upstreamtest.Conn) {
				k := dial()
				for _, text := range c.texts {
					_, _ = io.WriteString(k, text)
					time.Sleep(time.Second)
				}
				k.Close()
				time.Sleep(time.Second)
				if got := told.all(); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestShutdown(t *testing.T) {
	for name, c := range map[string]struct {
		before string // what is answered before
		sent   string // what stands there when the end begins
		then   string // what comes a second later
		wants  string // the answer that comes then, if any
		takes  time.Duration
	}{
		"an idle one":                   {before: getRun},
		"an idle one that is odd":       {before: oddRun},
		"a new one":                     {takes: 5 * time.Second},
		"a new one that asks":           {then: getRun, wants: "GET /run ", takes: 2 * time.Second},
		"a new one that asks oddly":     {then: oddRun, takes: time.Second},
		"a new one of HTTP/2":           {then: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", takes: time.Second},
		"a running one":                 {sent: getRun, wants: "GET /run ", takes: time.Minute},
		"a running one, used before":    {before: getRun, sent: getRun, wants: "GET /run ", takes: time.Minute},
		"a running one with one behind": {sent: getRun + getRun, wants: "GET /run ", takes: time.Minute},
		"a running one that is odd":     {sent: oddRun, wants: "GET /run ", takes: time.Minute},
		"one whose body comes":          {sent: "POST /run HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na", then: "bc", wants: "POST /run abc", takes: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(true)
			protocols.SetUnencryptedHTTP2(true)
			var ending atomic.Bool
			s := &Server{HTTP: &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if ending.Load() {
					time.Sleep(time.Second)
				} else if r.URL.Path == "/run" && c.sent != "" && r.Header.Get("X-Before") == "" {
					time.Sleep(time.Minute)
				}
				echo(w, r)
			})}}
			inBubble(t, s, func(t *testing.T, dial func() *upstreamtest.Conn) {
				k := dial()
				defer k.Close()
				in := bufio.NewReader(k)
				if c.before != "" {
					_, _ = io.WriteString(k, strings.Replace(c.before, "\r\n", "\r\nX-Before: 1\r\n", 1))
					if a, err := answerFrom(in); err != nil || a.Close {
						t.Fatalf("%+v, %v", a, err)
					}
				}
				_, _ = io.WriteString(k, c.sent)
				time.Sleep(time.Millisecond)
				ending.Store(true)
				began, shut := time.Now(), make(chan error, 1)
				var took time.Duration
				go func() {
					err := s.Shutdown(t.Context())
					took = time.Since(began)
					shut <- err
				}()
				time.Sleep(time.Second)
				_, _ = io.WriteString(k, c.then)
				a, err := answerFrom(in)
				if (err == nil) != (c.wants != "") || a.Body != c.wants || err == nil && !a.Close {
					t.Errorf("%+v, %v", a, err)
				}
				if b, err := in.ReadByte(); err == nil {
					t.Errorf("then %q", b)
				}
				if err := <-shut; err != nil {
					t.Error(err)
				}
				// net/http looks seldom where it waits for long.
				if slack := took - c.takes; slack < -10*time.Millisecond || slack > 600*time.Millisecond {
					t.Errorf("took %v, want %v", took, c.takes)
				}
			})
		})
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	s := &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}}
	inBubble(t, s, func(t *testing.T, dial func() *upstreamtest.Conn) {
		c := dial()
		defer c.Close()
		_, _ = io.WriteString(c, getRun)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	running, ended := make(chan struct{}, 2), make(chan error, 2)
	s := &Server{WatchAfter: time.Hour, HTTP: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-r.Context().Done()
		ended <- r.Context().Err()
	})}}
	address := ours(t, s)
	silent := dial(t, address)
	for _, text := range []string{getRun, oddRun} {
		_, _ = io.WriteString(dial(t, address), text)
		await(t, "a request", running)
	}
	s.Close()
	for range 2 {
		await(t, "a request's end", ended)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("a silent connection is still open")
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the listener is still open")
	}
}

// A hand-over and a shutdown at the same time: each request is answered whole, or its
// connection is closed, and none is left when Shutdown has returned.
func TestHandOversDuringAShutdown(t *testing.T) {
	for range 50 {
		var running sync.WaitGroup
		s := &Server{HTTP: &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Done()
			runtime.Gosched()
			echo(w, r)
		})}}
		l := listen(t)
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		const n = 4
		var answered sync.WaitGroup
		for range n {
			c := dial(t, l.Addr().String())
			answered.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, oddRun)
				if a, err := answerFrom(bufio.NewReader(c)); err == nil && (a.Cut || a.Body != "GET /run ") {
					t.Errorf("%+v", a)
				}
			})
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		left := make(chan struct{})
		go func() { running.Wait(); close(left) }()
		await(t, "the end of what runs", left)
		answered.Wait()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// descriptors counts this process's; -1 where the system does not tell.
func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

// What clients do in crowds, each in its own way, leaves nothing behind.
func TestACrowdLeavesNothingBehind(t *testing.T) {
	goroutines, open := runtime.NumGoroutine(), descriptors()
	var told states
	s := &Server{WatchAfter: time.Millisecond, HTTP: &http.Server{ErrorLog: quiet, ConnState: told.note, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			<-r.Context().Done()
		case "/panic":
			_, _ = io.WriteString(w, "half")
			panic("fault")
		case "/exit":
			runtime.Goexit()
		case "/ignore":
		default:
			echo(w, r)
		}
	})}}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	ways := []func(c *net.TCPConn, i int) error{
		func(c *net.TCPConn, i int) error {
			in := bufio.NewReader(c)
			for j := range 20 {
				body := fmt.Sprint(strings.Repeat("x", j*400), i)
				_, _ = fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", j, len(body), body)
				if a, err := answerFrom(in); err != nil || a.Body != fmt.Sprintf("POST /%d %s", j, body) {
					return fmt.Errorf("answer %d: %+v, %w", j, a, err)
				}
			}
			return nil
		},
		func(c *net.TCPConn, i int) error {
			_, _ = io.WriteString(c, strings.Repeat(getRun, 30)+oddRun+getRun)
			in := bufio.NewReader(c)
			for j := range 32 {
				if a, err := answerFrom(in); err != nil || a.Body != "GET /run " {
					return fmt.Errorf("answer %d: %+v, %w", j, a, err)
				}
			}
			return nil
		},
		func(c *net.TCPConn, _ int) error {
			_, err := io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
			return err
		},
		func(c *net.TCPConn, _ int) error {
			_, _ = io.WriteString(c, "GET /panic HTTP/1.1\r\nHost: a\r\n\r\n")
			_, err := io.Copy(io.Discard, c)
			return err
		},
		func(c *net.TCPConn, _ int) error {
			_, _ = io.WriteString(c, "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n")
			_, err := io.Copy(io.Discard, c)
			return err
		},
		func(c *net.TCPConn, i int) error {
			text := postOf(3000, "")
			_, err := io.WriteString(c, text[:i*97%len(text)])
			_ = c.SetLinger(0)
			return err
		},
		func(c *net.TCPConn, _ int) error {
			_, _ = io.WriteString(c, strings.Replace(postOf(300<<10, ""), "/run", "/ignore", 1))
			_, err := answerFrom(bufio.NewReader(c))
			return err
		},
	}
	var crowd sync.WaitGroup
	for i := range 210 {
		crowd.Go(func() {
			c := dial(t, l.Addr().String())
			if err := ways[i%len(ways)](c, i); err != nil {
				t.Errorf("way %d: %v", i%len(ways), err)
			}
			c.Close()
		})
	}
	crowd.Wait()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	states := strings.Fields(told.all())
	count := func(state string) (n int) {
		return len(slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s != state }))
	}
	if n := count("closed"); n != 210 {
		t.Errorf("%d connections were told closed", n)
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > goroutines || descriptors() > open; runtime.Gosched() {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before %d; %d descriptors, before %d\n%s", runtime.NumGoroutine(), goroutines, descriptors(), open, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func TestTenThousandOnOneConnection(t *testing.T) {
	address := ours(t, &Server{WatchAfter: 5 * time.Millisecond, HTTP: &http.Server{Handler: echo}})
	c := dial(t, address)
	go func() {
		out := bufio.NewWriter(c)
		for i := range 10_000 {
			_, _ = fmt.Fprintf(out, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%0*d", i, i%9+1, i%9+1, i%9)
		}
		_ = out.Flush()
	}()
	in := bufio.NewReader(c)
	for i := range 10_000 {
		want := fmt.Sprintf("POST /%d %0*d", i, i%9+1, i%9)
		if a, err := answerFrom(in); err != nil || a.Body != want {
			t.Fatalf("answer %d: %+v, %v, want %s", i, a, err, want)
		}
	}
}

// beginning is a listener that tells when it is asked for its address, which the server
// does as it begins.
type beginning struct {
	net.Listener
	asked chan struct{}
	once  sync.Once
}

// Addr implements net.Listener.
func (l *beginning) Addr() net.Addr {
	l.once.Do(func() { close(l.asked) })
	return l.Listener.Addr()
}

// A server may be ended while it begins: it ends, and nothing is read that is being
// written.
func TestAnEndThatComesWithTheBeginning(t *testing.T) {
	for n := range 100 {
		s := &Server{HTTP: &http.Server{ErrorLog: quiet}}
		l, ended := &beginning{Listener: listen(t), asked: make(chan struct{})}, make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		<-l.asked
		end := s.Close
		if n%2 == 0 {
			end = func() error { return s.Shutdown(t.Context()) }
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Fatalf("Serve ended with %v", err)
		}
	}
}
