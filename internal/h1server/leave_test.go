package h1server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// watches are the ways in which a connection is watched.
var watches = map[string]time.Duration{"at once": 0, "after a while": 5 * time.Millisecond}

// await waits for what must come.
func await[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

func TestAClientThatLeavesCancelsItsRequest(t *testing.T) {
	for watch, after := range watches {
		for name, text := range map[string]string{"without a body": getRun, "with a body": postOf(9, ""), "with a long body": postOf(70_000, ""), "with another one behind": getRun + getRun} {
			for how, leave := range map[string]func(c interface {
				SetLinger(int) error
				Close() error
			}){
				"end": func(c interface {
					SetLinger(int) error
					Close() error
				}) {
					c.Close()
				},
				"reset": func(c interface {
					SetLinger(int) error
					Close() error
				}) {
					_ = c.SetLinger(0)
					c.Close()
				},
			} {
				t.Run(watch+" "+name+" "+how, func(t *testing.T) {
					running, cancelled := make(chan error, 2), make(chan error, 2)
					address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, err := io.Copy(io.Discard, r.Body)
						running <- err
						<-r.Context().Done()
						cancelled <- r.Context().Err()
					})}})
					c := dial(t, address)
					_, _ = io.WriteString(c, text)
					if err := await(t, "the request", running); err != nil {
						t.Fatal(err)
					}
					leave(c)
					if err := await(t, "the end of the request", cancelled); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
		}
	}
}

// Before its body has come a client that leaves is noticed by who reads it.
func TestABodyThatEndsEarlyCancelsItsRequest(t *testing.T) {
	for watch, after := range watches {
		t.Run(watch, func(t *testing.T) {
			running, ended := make(chan struct{}), make(chan error, 2)
			address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(running)
				_, err := io.Copy(io.Discard, r.Body)
				ended <- err
				<-r.Context().Done()
				ended <- r.Context().Err()
			})}})
			c := dial(t, address)
			text := postOf(9, "")
			_, _ = io.WriteString(c, text[:len(text)-3])
			await(t, "the request", running)
			c.Close()
			if err := await(t, "the body's end", ended); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the body ends with %v", err)
			}
			if err := await(t, "the end of the request", ended); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// Who sends no more may still read.
func TestAHalfClosedClientGetsItsAnswers(t *testing.T) {
	for watch, after := range map[string]time.Duration{"at once": 0, "after a while": 5 * time.Millisecond, "never": time.Hour} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(watch, " ", n), func(t *testing.T) {
				address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if after < time.Hour {
						<-r.Context().Done() // it is known that the client has ended
					}
					_, _ = io.WriteString(w, r.URL.Path)
				})}})
				c := dial(t, address)
				var all strings.Builder
				for i := range n {
					fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
				}
				_, _ = io.WriteString(c, all.String()) // in one piece
				_ = c.CloseWrite()
				in := bufio.NewReader(c)
				for i := range n {
					a, err := answerFrom(in)
					if err != nil || a.Body != fmt.Sprint("/", i) {
						t.Fatalf("answer %d: %+v, %v", i, a, err)
					}
				}
				if _, err := in.ReadByte(); err != io.EOF {
					t.Errorf("then %v", err)
				}
			})
		}
	}
}

// Requests that come while another runs are served in their order and as they were
// sent, wherever the pieces are cut: the watch reads a byte of them.
func TestRequestsThatComeWhileOneRuns(t *testing.T) {
	const odd = "GET /%6fdd HTTP/1.1\r\nHost: a\r\n\r\n"
	chunked := "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	body := "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789"
	plain := "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n"
	first := "GET /first HTTP/1.1\r\nHost: a\r\n\r\n"
	for watch, after := range watches {
		for name, c := range map[string]struct {
			rest string
			want []string
		}{
			"plain":               {plain + body, []string{"GET /plain ", "POST /body 0123456789"}},
			"a body":              {body + plain, []string{"POST /body 0123456789", "GET /plain "}},
			"odd":                 {odd + body, []string{"GET /odd ", "POST /body 0123456789"}},
			"chunks":              {chunked + plain, []string{"POST /chunked abc", "GET /plain "}},
			"a body and odd":      {body + odd, []string{"POST /body 0123456789", "GET /odd "}},
			"a plain one and odd": {plain + chunked + body, []string{"GET /plain ", "POST /chunked abc", "POST /body 0123456789"}},
		} {
			t.Run(watch+" "+name, func(t *testing.T) {
				t.Parallel()
				running, go_ := make(chan *Conn), make(chan struct{})
				var key connKey
				address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{
					ConnContext: key.note,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						b, err := io.ReadAll(r.Body)
						if err != nil {
							t.Error(err)
						}
						if r.URL.Path == "/first" {
							running <- key.of(r)
							<-go_
						}
						_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, b)
					})}})
				// The rest is cut in three: what comes with the first request, what comes while
				// it runs, and what comes later.
				for i := 0; i < len(c.rest); i += 1 + len(c.rest)/40 {
					for _, j := range []int{i + 1, i + 2, len(c.rest)} {
						if j > len(c.rest) {
							continue
						}
						k := dial(t, address)
						_, _ = io.WriteString(k, first+c.rest[:i])
						conn := await(t, "the request", running)
						_, _ = io.WriteString(k, c.rest[i:j])
						conn.awaitByte(t)
						go_ <- struct{}{}
						in := bufio.NewReader(k)
						if a, err := answerFrom(in); err != nil || a.Body != "GET /first " {
							t.Fatalf("cut at %d and %d: %+v, %v", i, j, a, err)
						}
						_, _ = io.WriteString(k, c.rest[j:])
						for _, want := range c.want {
							if a, err := answerFrom(in); err != nil || a.Body != want {
								t.Fatalf("cut at %d and %d: %+v, %v, want %q", i, j, a, err, want)
							}
						}
						k.Close()
					}
				}
			})
		}
	}
}

// awaitByte waits until a watch has read a byte.
func (c *Conn) awaitByte(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.came {
		c.changed.Wait()
	}
}

// A connKey finds a request's connection.
type connKey struct{ _ byte }

func (k *connKey) note(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, k, c)
}

func (k *connKey) of(r *http.Request) *Conn {
	c, _ := r.Context().Value(k).(*Conn)
	return c
}

// A goroutine that a handler has left behind reads nothing of the next request.
func TestABodyIsNobodysAfterItsRequest(t *testing.T) {
	left := make(chan error, 1)
	bodies := make(chan io.Reader, 1)
	address := ours(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/run" {
			bodies <- r.Body
			return
		}
		b, err := io.ReadAll(<-bodies)
		left <- err
		_, _ = fmt.Fprintf(w, "%q", b)
	})}})
	all := answersOf(t, address, postOf(9, "")+lastly)
	if err := await(t, "a late read", left); !errors.Is(err, http.ErrBodyReadAfterClose) || len(all) != 2 || all[1].Body != `""` {
		t.Errorf("the late reader got %v, the client %+v", err, all)
	}
}

// One that still waits for the body takes the connection with it.
func TestABodyThatIsStillReadEndsTheConnection(t *testing.T) {
	reading, read := make(chan struct{}), make(chan error, 1)
	address := ours(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := r.Body.(*body)
		go func() {
			_, err := io.ReadAll(r.Body)
			read <- err
		}()
		for there := false; !there; {
			b.conn.mu.Lock()
			there = b.reading
			b.conn.mu.Unlock()
		}
		close(reading)
		_, _ = io.WriteString(w, "no")
	})}})
	c := dial(t, address)
	_, _ = io.WriteString(c, "POST /run HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
	await(t, "the reader", reading)
	in := bufio.NewReader(c)
	if a, err := answerFrom(in); err != nil || !a.Close {
		t.Errorf("%+v, %v", a, err)
	}
	_, _ = io.WriteString(c, "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n")
	if a, err := answerFrom(in); err == nil {
		t.Errorf("then %+v", a)
	}
	await(t, "the reader's end", read)
}

// Writes of such a goroutine go nowhere.
func TestAnAnswerIsNobodysAfterItsRequest(t *testing.T) {
	writers := make(chan http.ResponseWriter, 1)
	address := ours(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/run" {
			w.(http.Flusher).Flush() // chunks, which know no end
			writers <- w
			return
		}
		late := <-writers
		late.WriteHeader(103)
		for _, n := range []int{1, 100_000} {
			if _, err := late.Write(make([]byte, n)); err == nil {
				t.Error("a late write succeeds")
			}
		}
		if err := http.NewResponseController(late).Flush(); err == nil {
			t.Error("a late flush succeeds")
		}
		_, _ = io.WriteString(w, "last")
	})}})
	if all := answersOf(t, address, getRun+lastly); len(all) != 2 || all[0].Body != "" || all[1].Body != "last" {
		t.Errorf("the client got\n%s", shown(all))
	}
}

// An answer that is given before the body has come reaches a client that sends on for a
// while before it reads.
func TestAnEarlyAnswerArrives(t *testing.T) {
	address := ours(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too much", http.StatusRequestEntityTooLarge)
	})}})
	for _, size := range []int{300 << 10, 1 << 20, 8 << 20, 64 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			c := dial(t, address)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = fmt.Fprintf(c, "POST /run HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)
				for piece := make([]byte, 64<<10); size > 0; size -= len(piece) {
					if _, err := c.Write(piece); err != nil {
						return
					}
				}
			}()
			select {
			case <-sent:
			case <-time.After(lingerTime / 3):
			}
			if a, err := answerFrom(bufio.NewReader(c)); err != nil || !a.Close || a.Body != "too much\n" {
				t.Errorf("%+v, %v", a, err)
			}
			c.Close()
			await(t, "the sender", sent)
		})
	}
}
