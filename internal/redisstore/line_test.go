package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// fake is a server of the tests' own making: play has every connection that comes, and
// its number.
func fake(t *testing.T, play func(c net.Conn, n int)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				play(c, n)
			})
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { l.Close() })
	return &server{addr: l.Addr().String()}
}

// echo answers every command with its last word.
func echo(c net.Conn) {
	for r := newReplyReader(c); ; {
		v, err := r.next()
		if err != nil {
			return
		}
		words := v.([]any)
		last := words[len(words)-1].(string)
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(last), last)
	}
}

func opens(t *testing.T, to *server) *line {
	t.Helper()
	l := newLine(to)
	t.Cleanup(l.Close)
	return l
}

// Commands go out behind each other over one connection, and everybody gets the answer
// to what was asked, whoever has left meanwhile.
func TestAnswersComeToWhoAsked(t *testing.T) {
	l := opens(t, fake(t, func(c net.Conn, n int) {
		if n > 0 {
			t.Error("a second connection")
		}
		echo(c)
	}))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				ctx, leave := context.WithCancel(t.Context())
				if (i+j)%5 == 0 {
					leave()
				}
				word := fmt.Sprint(i, " ", j)
				v, err := l.do(ctx, "ECHO", word)
				if v != word && !(err != nil && ctx.Err() != nil) {
					t.Errorf("%q is answered with %q, %v", word, v, err)
				}
				leave()
			}
		})
	}
	wg.Wait()
}

// A connection that the server ended while nobody asked costs nobody an answer.
func TestAConnectionThatEndedIsMadeAnew(t *testing.T) {
	ended := make(chan struct{})
	l := opens(t, fake(t, func(c net.Conn, n int) {
		if n > 0 {
			echo(c)
			return
		}
		_, _ = newReplyReader(c).next()
		io.WriteString(c, "+first\r\n")
		c.Close()
		close(ended)
	}))
	if v, err := l.do(t.Context(), "PING"); v != "first" {
		t.Fatal(v, err)
	}
	<-ended
	until(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.link == nil
	})
	if v, err := l.do(t.Context(), "ECHO", "second"); v != "second" {
		t.Error(v, err)
	}
}

// Where an answer does not come, who asked is told in time, and the next one asks over
// another connection: also where everybody leaves before.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	for name, patience := range map[string]time.Duration{"who asks waits": time.Minute, "who asks leaves": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			l := opens(t, fake(t, func(c net.Conn, n int) {
				if n == 0 {
					_, _ = io.Copy(io.Discard, c)
					return
				}
				echo(c)
			}))
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if v, err := l.do(ctx, "PING"); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v", v, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			until(t, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				v, _ := l.do(ctx, "ECHO", "again")
				return v == "again"
			})
		})
	}
}

// What nobody asked for, and what is no reply, ends the connection; nobody takes it for
// an answer.
func TestWhatNobodyAskedForIsNoAnswer(t *testing.T) {
	for _, says := range []string{"+OK\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		greeted := make(chan struct{})
		l := opens(t, fake(t, func(c net.Conn, n int) {
			if n == 0 {
				_, _ = newReplyReader(c).next()
				io.WriteString(c, "+one\r\n"+says)
				close(greeted)
				_, _ = io.Copy(io.Discard, c) // until it is given up
				return
			}
			echo(c)
		}))
		if v, err := l.do(t.Context(), "PING"); v != "one" {
			t.Fatal(v, err)
		}
		<-greeted
		until(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.link == nil
		})
		if v, err := l.do(t.Context(), "ECHO", "two"); v != "two" {
			t.Errorf("%q: %v, %v", says, v, err)
		}
	}
}

// A store that announces gigabytes is given up; nothing is made room for.
func TestAStoreThatAnnouncesGigabytes(t *testing.T) {
	l := opens(t, fake(t, func(c net.Conn, _ int) {
		_, _ = newReplyReader(c).next()
		io.WriteString(c, "*2000000000\r\n")
		_, _ = io.Copy(io.Discard, c)
	}))
	if v, err := l.do(t.Context(), "PING"); !errors.Is(err, errAnnounced) {
		t.Errorf("%v, %v", v, err)
	}
}

// Who waits when it is closed is told, and who comes after.
func TestAClosedLine(t *testing.T) {
	asked := make(chan struct{})
	l := newLine(fake(t, func(c net.Conn, _ int) {
		_, _ = newReplyReader(c).next()
		close(asked)
		_, _ = io.Copy(io.Discard, c)
	}))
	errs := make(chan error)
	go func() {
		_, err := l.do(t.Context(), "PING")
		errs <- err
	}()
	<-asked
	l.Close()
	if err := <-errs; !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if _, err := l.do(t.Context(), "PING"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// What is said first: a password with or without a user, and the database.
func TestGreeting(t *testing.T) {
	for _, c := range []struct{ user, password, database, want string }{
		{"", "", "", ""},
		{"", "p w", "", "*2\r\n$4\r\nAUTH\r\n$3\r\np w\r\n"},
		{"u", "p", "3", "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"},
		{"u", "", "0", "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"},
	} {
		got := make(chan string, 1)
		s := fake(t, func(conn net.Conn, _ int) {
			text := make([]byte, len(c.want))
			for i := range text { // an answer behind each command
				if _, err := io.ReadFull(conn, text[i:i+1]); err != nil {
					break
				}
				if i+1 == len(text) || c.want[i+1] == '*' {
					io.WriteString(conn, "+OK\r\n")
				}
			}
			got <- string(text)
		})
		s.user, s.password, s.database = c.user, c.password, c.database
		l, err := s.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if text := <-got; text != c.want {
			t.Errorf("%+v: %q", c, text)
		}
	}
	// A server that refuses is not spoken to.
	s := fake(t, func(c net.Conn, _ int) {
		_, _ = bufio.NewReader(c).ReadString('\n')
		io.WriteString(c, "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	})
	s.password = "hunter2"
	if _, err := s.dial(t.Context()); err == nil || err.(refusal).code() != "WRONGPASS" {
		t.Error(err)
	}
}

func TestServersByTheirURLs(t *testing.T) {
	for text, want := range map[string]server{
		"redis://redis.example.com":            {addr: "redis.example.com:6379"},
		"redis://10.0.0.1:7000/":               {addr: "10.0.0.1:7000"},
		"redis://:p%40ss@h:1/12":               {addr: "h:1", password: "p@ss", database: "12"},
		"REDIS://user:pass@[2001:db8::1]:2/0":  {addr: "[2001:db8::1]:2", user: "user", password: "pass", database: "0"},
		"redis://user@h":                       {addr: "h:6379", user: "user"},
		"redis://":                             {addr: "localhost:6379"},
		"rediss://user:pass@redis.example.com": {addr: "redis.example.com:6379", user: "user", password: "pass", tls: &tls.Config{ServerName: "redis.example.com"}},
	} {
		got, err := parseServer(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if (got.tls == nil) != (want.tls == nil) || got.tls != nil && (got.tls.ServerName != want.tls.ServerName || got.tls.MinVersion != tls.VersionTLS12) {
			t.Errorf("%s: TLS %+v", text, got.tls)
		}
		got.tls, want.tls = nil, nil
		if *got != want {
			t.Errorf("%s: %+v", text, *got)
		}
	}
	for _, text := range []string{"", "h:6379", "http://h", "redis://h:x", "redis://h/a", "redis://h/1/2", "redis://h/-1", "redis://hunter2:%zz@h"} {
		if s, err := parseServer(text, nil); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}

// until waits for something to become so.
func until(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatal("it never is")
		}
		tick := time.NewTimer(time.Millisecond)
		<-tick.C
	}
}
