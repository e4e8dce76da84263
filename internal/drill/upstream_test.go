package drill

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

func TestRequestsAreRecordedAsTheyCame(t *testing.T) {
	u := Start(Healthy(Answer{}))
	defer u.Close()
	for _, chunked := range []bool{false, true} {
		r := Ask(t.Context(), u.Addr(), Query{
			Path: "/v1/chat/completions?a=%2F", Body: []byte(`{"model":"m1"}`), Chunked: chunked, Piece: 3,
			Header: []string{"X-Twice", "1", "x-twice", " 2 ", "Authorization", "Bearer k"},
		})
		if !r.Clean || r.Status != 200 {
			t.Fatalf("chunked %v: %+v", chunked, r)
		}
	}
	got := u.Requests()
	if len(got) != 2 || u.Count() != 2 || u.Accepted() != 2 {
		t.Fatalf("%d requests, count %d, %d connections", len(got), u.Count(), u.Accepted())
	}
	for i, r := range got {
		if r.Method != "POST" || r.Target != "/v1/chat/completions?a=%2F" || r.Path() != "/v1/chat/completions" || r.Query() != "a=%2F" {
			t.Errorf("request line %s %s, path %s, query %s", r.Method, r.Target, r.Path(), r.Query())
		}
		if string(r.Body) != `{"model":"m1"}` || r.Model() != "m1" || r.Stream() {
			t.Errorf("body %s, model %s", r.Body, r.Model())
		}
		if got := r.Values("X-TWICE"); !slices.Equal(got, []string{"1", "2"}) || r.Get("authorization") != "Bearer k" {
			t.Errorf("header %v", r.Header)
		}
		if r.Header[1] != (Field{"X-Twice", "1"}) || r.Header[2] != (Field{"x-twice", "2"}) {
			t.Errorf("header lines %v are not in order or not spelt as sent", r.Header)
		}
		if !bytes.HasPrefix(r.Head, []byte("POST /v1/chat/completions?a=%2F HTTP/1.1\r\n")) || !bytes.HasSuffix(r.Head, []byte("\r\n\r\n")) || !bytes.Contains(r.Head, []byte("x-twice:  2 \r\n")) {
			t.Errorf("raw head %q", r.Head)
		}
		if r.Conn != i+1 || r.Nth != 1 || r.At.IsZero() {
			t.Errorf("connection %d, request %d, at %v", r.Conn, r.Nth, r.At)
		}
	}
	got[0].Body[0] = 'X'
	if u.Requests()[0].Body[0] == 'X' {
		t.Error("Requests gives out its own bytes")
	}
}

func TestOneConnectionCarriesSeveralRequests(t *testing.T) {
	u := Start(Sequence(Healthy(Answer{Text: "one"}), Healthy(Answer{Text: "two"})))
	defer u.Close()
	c, err := Dial(t.Context(), u.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, want := range []string{"one", "two", "two"} {
		r := c.Ask(t.Context(), post("/v1/chat/completions", `{"stream":true}`))
		if got := Spoken(r.Body); got != want || !r.Clean {
			t.Errorf("answer %d is %q (%v), want %q", i+1, got, r.Err, want)
		}
	}
	rs := u.Requests()
	if u.Accepted() != 1 || rs[2].Conn != 1 || rs[2].Nth != 3 {
		t.Errorf("%d connections; the last request was number %d of connection %d", u.Accepted(), rs[2].Nth, rs[2].Conn)
	}
}

// The same upstream serves net/http's client, which is stricter than ours.
func TestNetHTTPClientUnderstands(t *testing.T) {
	u := Start(func(w *Wire, r Request, n int) {
		w.Interim(103, "Link", "</x>")
		w.Head(200, Chunked, "X-Up", "1")
		w.Chunk([]byte("hello "))
		w.Chunk(nil)
		w.Chunk([]byte("world"))
		w.End("X-Sum", "7")
	})
	defer u.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Post(u.URL()+"/", "text/plain", io.LimitReader(neverEnding('a'), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if string(body) != "hello world" || err != nil || resp.Header.Get("X-Up") != "1" || resp.Trailer.Get("X-Sum") != "7" {
		t.Errorf("%s %v %v %v", body, err, resp.Header, resp.Trailer)
	}
	if got := len(u.Requests()[0].Body); got != 100_000 {
		t.Errorf("%d bytes of body arrived", got)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestUnfinishedAnswersAreCut(t *testing.T) {
	for name, script := range map[string]Script{
		"nothing":     func(w *Wire, r Request, n int) {},
		"no end":      func(w *Wire, r Request, n int) { w.Head(200, Chunked); w.Chunk([]byte("x")) },
		"too short":   func(w *Wire, r Request, n int) { w.Head(200, Length(5)); w.Chunk([]byte("x")) },
		"until close": func(w *Wire, r Request, n int) { w.Head(200, UntilClose); w.Chunk([]byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := stageOn(t, script)
				r := th.ask(t, t.Context(), Query{})
				if clean := name == "until close"; r.Clean != clean {
					t.Errorf("clean is %v: %+v", r.Clean, r)
				}
				if !r.Clean && !errors.Is(r.Err, io.ErrUnexpectedEOF) {
					t.Errorf("ended with %v, want io.ErrUnexpectedEOF", r.Err)
				}
			})
		})
	}
}

func TestBodilessAnswersKeepTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, func(w *Wire, r Request, n int) {
			if r.Method == "HEAD" {
				w.JSON(200, []byte(`{"a":1}`))
				return
			}
			w.Head(204, Length(0))
		})
		c := th.client(t)
		head := c.Ask(t.Context(), Query{Method: "HEAD", Path: "/v1/models"})
		if head.Status != 200 || head.Get("content-length") != "7" || len(head.Body) != 0 || !head.Clean {
			t.Errorf("HEAD: %+v", head)
		}
		if r := c.Ask(t.Context(), Query{Method: "DELETE"}); r.Status != 204 || r.Get("Content-Length") != "" || !r.Clean {
			t.Errorf("204: %+v", r)
		}
		if th.Accepted() != 1 {
			t.Errorf("%d connections, want 1", th.Accepted())
		}
	})
}

func TestRawAnswersAreBytesAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, func(w *Wire, r Request, n int) {
			w.Raw([]byte("HTTP/1.1 299 Odd\r\nx-A:b\r\ncontent-length: 3\r\n\r\nabc"))
		})
		c := th.client(t)
		for range 2 {
			r := c.Ask(t.Context(), Query{})
			if r.Status != 299 || r.Reason != "Odd" || string(r.Body) != "abc" || !r.Clean || string(r.Head) != "HTTP/1.1 299 Odd\r\nx-A:b\r\ncontent-length: 3\r\n\r\n" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A script that waits learns at once that its peer has left.
func TestWaitingScriptsSeeThePeerLeave(t *testing.T) {
	wait := map[string]func(w *Wire) bool{
		"pause":   func(w *Wire) bool { return w.Pause(time.Hour) },
		"gone":    func(w *Wire) bool { return !w.Gone(time.Hour) },
		"silence": func(w *Wire) bool { w.Silence(); return false },
		"wait":    func(w *Wire) bool { return w.Wait(make(chan struct{})) },
	}
	for name, f := range wait {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var here bool
				var at time.Time
				th := stageOn(t, func(w *Wire, r Request, n int) {
					w.Head(200, Chunked)
					here = f(w)
					at = time.Now()
					w.Chunk([]byte("nobody reads this"))
				})
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				r := th.ask(t, ctx, Query{})
				if !errors.Is(r.Err, context.DeadlineExceeded) || r.Elapsed != 5*time.Second || r.Status != 200 {
					t.Errorf("the client saw %+v", r)
				}
				if !th.Await(t.Context(), func() bool { return th.Gone() == 1 && th.Open() == 0 }) {
					t.Error("nobody was counted as gone")
				}
				if here || at.Sub(start) != 5*time.Second {
					t.Errorf("the script went on after %v, peer there: %v", at.Sub(start), here)
				}
			})
		})
	}
}

func TestPauseAndWaitTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go_ := make(chan struct{})
		th := stageOn(t, func(w *Wire, r Request, n int) {
			w.Head(200, Chunked)
			if !w.Pause(3*time.Second) || w.Gone(2*time.Second) || !w.Wait(go_) {
				return
			}
			w.Chunk([]byte("x"))
			w.End()
		})
		time.AfterFunc(7*time.Second, func() { close(go_) })
		r := th.ask(t, t.Context(), Query{})
		if !r.Clean || len(r.Arrivals) != 1 || r.Arrivals[0].At != 7*time.Second || r.HeadAt != 0 {
			t.Errorf("%+v", r)
		}
		if th.Gone() != 0 {
			t.Errorf("%d gone, want none", th.Gone())
		}
	})
}

func TestPipelinedBytesAreNoLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, func(w *Wire, r Request, n int) {
			if n == 1 && !w.Pause(time.Second) {
				return
			}
			w.JSON(200, []byte("{}"))
		})
		c := th.client(t)
		c.Conn().Write([]byte("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"))
		for range 2 {
			if r := c.Ask(t.Context(), Query{Method: "GET", Path: "/3"}); !r.Clean {
				t.Errorf("%+v", r)
			}
		}
		if th.Gone() != 0 {
			t.Errorf("%d gone, want none", th.Gone())
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	u := Start(func(w *Wire, r Request, n int) {
		switch n {
		case 1:
			w.Silence()
		case 2:
			w.Head(200, Chunked)
			for w.Err() == nil { // the client does not read: this blocks
				w.Chunk(make([]byte, 64<<10))
			}
		case 3:
			w.Wait(nil)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan Reply, 3)
	for i := range 3 {
		q := Query{}
		if i == 1 {
			q.Watch = func(Reply) bool { <-ctx.Done(); return false }
		}
		go func() { done <- Ask(ctx, u.Addr(), q) }()
		if !u.Await(t.Context(), func() bool { return u.Count() == i+1 }) {
			t.Fatal("no request")
		}
	}
	if u.Open() != 3 {
		t.Errorf("%d connections open, want 3", u.Open())
	}
	u.Close()
	u.Close()
	if u.Open() != 0 || u.Gone() != 0 {
		t.Errorf("after Close %d connections are open and %d peers counted as gone", u.Open(), u.Gone())
	}
	cancel()
	for range 3 {
		if r := <-done; r.Clean {
			t.Errorf("a clean answer: %+v", r)
		}
	}
	if _, err := Dial(t.Context(), u.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after Close: %v", err)
	}
}

func TestAwaitGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, Healthy(Answer{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if th.Await(ctx, func() bool { return th.Count() == 1 }) {
			t.Error("a request was seen that nobody sent")
		}
	})
}

func TestMalformedRequestsAreNotAnswered(t *testing.T) {
	for _, bad := range []string{
		"nonsense\r\n\r\n", "GET /\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
	} {
		synctest.Test(t, func(t *testing.T) {
			th := stageOn(t, Healthy(Answer{}))
			c := th.client(t)
			c.Conn().Write([]byte(bad))
			if got, _ := io.ReadAll(c.Conn()); len(got) > 0 || th.Count() != 0 {
				t.Errorf("%q: answered %q, %d requests", bad, got, th.Count())
			}
		})
	}
}

func TestRawUpstreamsNeedNotSpeakHTTP(t *testing.T) {
	n := upstreamtest.NewNet()
	u := StartRaw(n.Listen("u1.test:80"), func(c net.Conn) {
		io.WriteString(c, "+OK hello\r\n")
		io.Copy(io.Discard, c)
	})
	defer u.Close()
	c, err := n.DialContext(t.Context(), "tcp", "u1.test:80")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 11)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "+OK hello\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	c.Close()
	if !u.Await(t.Context(), func() bool { return u.Open() == 0 && u.Accepted() == 1 }) {
		t.Error("the connection stayed open")
	}
}

// On a socket, Reset is seen as a reset and FIN is not, with all bytes before.
func TestResetAndFINOnSockets(t *testing.T) {
	for _, how := range []Ending{RST, FIN} {
		u := Start(func(w *Wire, r Request, n int) {
			w.Head(200, Chunked)
			w.Chunk([]byte("first"))
			w.Chunk([]byte("second"))
			w.Stop(how)
		})
		r := Ask(t.Context(), u.Addr(), Query{})
		u.Close()
		if r.Clean || r.Status != 200 || string(r.Body) != "firstsecond" {
			t.Errorf("%v: %+v", how, r)
		}
		want := map[Ending]error{RST: syscall.ECONNRESET, FIN: io.ErrUnexpectedEOF}[how]
		if !errors.Is(r.Err, want) {
			t.Errorf("%v: ended with %v, want %v", how, r.Err, want)
		}
	}
}

func TestUpgradedConnectionsCanBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, func(w *Wire, r Request, n int) {
			w.Raw([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n"))
			p := make([]byte, 5)
			if _, err := io.ReadFull(w, p); err == nil {
				w.Raw([]byte(strings.ToUpper(string(p))))
			}
			w.FIN()
		})
		c := th.client(t)
		r := c.Ask(t.Context(), Query{Header: []string{"Connection", "Upgrade", "Upgrade", "echo"}})
		if r.Status != 101 || !r.Clean {
			t.Fatalf("%+v", r)
		}
		io.WriteString(c.Conn(), "hello")
		if got, err := io.ReadAll(c.Conn()); string(got) != "HELLO" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
