package drill

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/upstreamtest"
)

func TestAskTellsACleanEndFromACut(t *testing.T) {
	tests := []struct {
		name, answer string
		clean        bool
		body         string
		err          error // where not clean
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", true, "abc", nil},
		{"length short", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", false, "abc", io.ErrUnexpectedEOF},
		{"length nonsense", "HTTP/1.1 200 OK\r\nContent-Length: 4x\r\n\r\nabc", false, "", errMalformed},
		{"until close", "HTTP/1.1 200 OK\r\n\r\nabc", true, "abc", nil},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=1\r\nab\r\n1\r\nc\r\n0\r\nT: v\r\n\r\n", true, "abc", nil},
		{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, "abc", io.ErrUnexpectedEOF},
		{"cut in the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false, "abc", io.ErrUnexpectedEOF},
		{"cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabc", false, "abc", io.ErrUnexpectedEOF},
		{"broken size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", false, "", errMalformed},
		{"chunk too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", false, "ab", errMalformed},
		{"cut head", "HTTP/1.1 200 OK\r\nContent-Le", false, "", io.ErrUnexpectedEOF},
		{"no head", "", false, "", io.ErrUnexpectedEOF},
		{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", false, "", errMalformed},
		{"no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true, "", nil},
		{"interim", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", true, "x", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := stageOn(t, func(w *Wire, r Request, n int) { w.Raw([]byte(test.answer)); w.FIN() })
				r := th.ask(t, t.Context(), Query{})
				if r.Clean != test.clean || string(r.Body) != test.body || !errors.Is(r.Err, test.err) {
					t.Errorf("clean %v, body %q, error %v", r.Clean, r.Body, r.Err)
				}
				if test.name == "chunks" && (len(r.Arrivals) != 2 || get(r.Trailer, "t") != "v") {
					t.Errorf("arrivals %v, trailer %v", r.Arrivals, r.Trailer)
				}
				if test.name == "interim" && (len(r.Interim) != 1 || r.Interim[0] != 103) {
					t.Errorf("interim %v", r.Interim)
				}
			})
		})
	}
}

func TestAskSeesWhenThingsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, Healthy(Answer{Text: "one two three", Gap: time.Second, Usage: Usage{Input: -1}}))
		r := th.ask(t, t.Context(), asks[0].query)
		// The role, three words, a finish reason, [DONE].
		if len(r.Arrivals) != 6 {
			t.Fatalf("%d arrivals", len(r.Arrivals))
		}
		for i, a := range r.Arrivals {
			if a.At != time.Duration(i)*time.Second {
				t.Errorf("piece %d arrived at %v", i, a.At)
			}
		}
		if r.Elapsed != 5*time.Second || r.HeadAt != 0 {
			t.Errorf("head after %v, over after %v", r.HeadAt, r.Elapsed)
		}
	})
}

func TestAskWaitsForAHundred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, Healthy(Answer{}))
		q := post("/v1/responses", `{"model":"m1"}`)
		q.Expect = true
		r := th.ask(t, t.Context(), q)
		if !r.Clean || len(r.Interim) != 1 || r.Interim[0] != 100 || string(th.Requests()[0].Body) != `{"model":"m1"}` {
			t.Errorf("%+v", r)
		}
	})
	// A final answer instead: the body is not sent, and the connection lives on.
	synctest.Test(t, func(t *testing.T) {
		n := upstreamtest.NewNet()
		u := StartRaw(n.Listen("u1.test:80"), func(c net.Conn) {
			br := bufio.NewReader(c)
			for {
				if _, _, err := readHead(br); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
			}
		})
		defer u.Close()
		c, err := n.DialContext(t.Context(), "tcp", u.Addr())
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(c, u.Addr())
		defer client.Close()
		q := post("/v1/responses", `{"model":"m1"}`)
		q.Expect = true
		for range 2 {
			if r := client.Ask(t.Context(), q); !r.Clean || r.Status != 413 || len(r.Interim) != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A server that answers before it has read all and then closes is understood.
func TestAskTakesAnAnswerThatComesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := upstreamtest.NewNet()
		u := StartRaw(n.Listen("u1.test:80"), func(c net.Conn) {
			readHead(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")
		})
		defer u.Close()
		c, err := n.DialContext(t.Context(), "tcp", u.Addr())
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(c, u.Addr())
		defer client.Close()
		r := client.Ask(t.Context(), Query{Body: make([]byte, 1<<20)})
		if r.Status != 401 || !r.Clean || string(r.Body) != "{}" {
			t.Errorf("%+v", r)
		}
	})
}

func TestAskUploadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, Healthy(Answer{}))
		q := post("/v1/responses", strings.Repeat(" ", 10)+`{"model":"m1"}`)
		q.Piece, q.Gap = 5, time.Second
		start := time.Now()
		r := th.ask(t, t.Context(), q)
		if !r.Clean || th.Requests()[0].At.Sub(start) != 4*time.Second {
			t.Errorf("the request was whole after %v: %+v", th.Requests()[0].At.Sub(start), r)
		}
	})
}

func TestAskLeavesWhenWatchHasEnough(t *testing.T) {
	for _, how := range []Ending{FIN, RST} {
		synctest.Test(t, func(t *testing.T) {
			th := stageOn(t, Healthy(Answer{Gap: time.Second}))
			q := asks[0].query
			q.Leave = how
			q.Watch = func(r Reply) bool { return len(r.Arrivals) < 3 }
			r := th.ask(t, t.Context(), q)
			if !errors.Is(r.Err, ErrLeft) || r.Clean || len(r.Arrivals) != 3 {
				t.Errorf("%v: %+v", how, r)
			}
			if !th.Await(t.Context(), func() bool { return th.Gone() == 1 }) {
				t.Errorf("%v: the upstream did not notice", how)
			}
		})
	}
}

// A Watch that blocks is a client that does not read: the upstream's writes block.
func TestAWatchThatBlocksHoldsTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done time.Duration
		start := time.Now()
		th := stageOn(t, func(w *Wire, r Request, n int) {
			w.Head(200, Chunked)
			w.Chunk(make([]byte, 1<<20))
			done = time.Since(start)
			w.End()
		})
		r := th.ask(t, t.Context(), Query{Watch: func(r Reply) bool {
			if len(r.Arrivals) == 0 {
				<-time.After(time.Minute)
			}
			return true
		}})
		if !r.Clean || len(r.Body) != 1<<20 || done != time.Minute {
			t.Errorf("%d bytes, clean %v, written after %v", len(r.Body), r.Clean, done)
		}
	})
}

func TestAskEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, func(w *Wire, r Request, n int) { w.Silence() })
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		if r := th.ask(t, ctx, Query{}); r.Err != cause || r.Elapsed != 3*time.Second || r.Status != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAskOnAConnectionThatDied(t *testing.T) {
	for _, name := range []string{"idle-fin", "idle-reset", "idle-close"} {
		synctest.Test(t, func(t *testing.T) {
			fault, _ := Find(name)
			th := stageOn(t, fault.Script(Answer{}))
			c := th.client(t)
			if r := c.Ask(t.Context(), asks[1].query); !r.Clean || Spoken(r.Body) != DefaultText {
				t.Errorf("%s: first %+v", name, r)
			}
			if r := c.Ask(t.Context(), asks[1].query); r.Clean || r.Status != 0 || r.Err == nil {
				t.Errorf("%s: second %+v", name, r)
			}
			if th.Count() != 1 {
				t.Errorf("%s: %d requests recorded, want 1", name, th.Count())
			}
		})
	}
}
