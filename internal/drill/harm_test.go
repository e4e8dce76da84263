package drill

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// answerTo is how an answer goes over the wire, and its body.
func answerTo(t *testing.T, script Script, q Query) (raw []byte, r Reply) {
	t.Helper()
	u := Start(func(w *Wire, req Request, n int) {
		w.Record(func(p []byte) { raw = append(raw, p...) })
		script(w, req, n)
	})
	defer u.Close()
	c, err := Dial(t.Context(), u.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return raw, c.Ask(t.Context(), q)
}

// Whatever ends an answer does so at the byte that was named: before it everything
// came as it would have, and behind it nothing did. So it is on a first request and
// on a later one.
func TestAnswersComeToHarmAtTheByteNamed(t *testing.T) {
	dated := func(a Answer) Script { // the same bytes each time
		return func(w *Wire, r Request, n int) {
			p := a.play(formOf(r))
			p.header = append(p.header, "Date", "Thu, 01 Jan 2026 00:00:00 GMT")
			p.perform(w, 0)
		}
	}(Answer{Text: "short"})
	for _, ask := range []ask{asks[0], asks[1]} {
		var whole []byte
		u := Start(func(w *Wire, r Request, n int) {
			w.Record(func(p []byte) { whole = append(whole, p...) })
			dated(w, r, n)
		})
		r := Ask(t.Context(), u.Addr(), ask.query)
		u.Close()
		if !r.Clean || !bytes.HasSuffix(whole, []byte("\r\n")) && ask.streams() {
			t.Fatalf("%s: %+v", ask.name, r)
		}
		for at := 0; at < len(whole); at += 1 + len(whole)/60 {
			for _, ruin := range []Ruin{Reset, Close, Silence, Garbage} {
				t.Run(fmt.Sprint(ask.name, " ", ruin, " ", at), func(t *testing.T) {
					var sent []byte
					u := Start(Sequence(dated, func(w *Wire, r Request, n int) {
						sent = nil
						w.Record(func(p []byte) { sent = append(sent, p...) })
						Harmed(dated, Harm{Ruin: ruin, At: at, Seed: 7})(w, r, n)
					}))
					defer u.Close()
					c, err := Dial(t.Context(), u.Addr())
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if first := c.Ask(t.Context(), ask.query); !first.Clean {
						t.Fatalf("the first attempt: %v", first.Err)
					}
					q := ask.query
					q.Method = "POST"
					if ruin == Silence {
						q.Header = append(q.Header[:len(q.Header):len(q.Header)], "Connection", "close")
					}
					if _, err := c.Conn().Write(append(q.head(u.Addr()), q.Body...)); err != nil {
						t.Fatal(err)
					}
					got := make([]byte, len(whole)+1)
					if ruin == Silence {
						n, err := io.ReadFull(c.br, got[:at])
						if err != nil || !bytes.Equal(got[:n], whole[:at]) {
							t.Fatalf("%q, %v", got[:n], err)
						}
						c.Conn().SetReadDeadline(time.Now().Add(5 * time.Millisecond))
						if n, err := c.br.Read(got); n > 0 {
							t.Errorf("%d bytes more (%v)", n, err)
						}
						return
					}
					if ruin == Garbage {
						n, _ := io.ReadFull(c.br, got[:len(whole)])
						if n != len(whole) || bytes.Equal(got[:n], whole) || !bytes.Equal(got[:at], whole[:at]) || at+16 < n && !bytes.Equal(got[at+16:n], whole[at+16:]) {
							t.Errorf("%q", got[:n])
						}
						return
					}
					n, err := io.ReadFull(c.br, got)
					if ruin == Close && (!errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || n != at) || !bytes.HasPrefix(whole, got[:n]) || n > at {
						t.Errorf("%d bytes, %v", n, err)
					}
					if ruin == Reset && !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("%v, want a reset", err)
					}
					u.Close()
					if !bytes.Equal(sent, whole[:at]) {
						t.Errorf("recorded %q", sent)
					}
				})
			}
		}
	}
}

func TestAnswersTrickle(t *testing.T) {
	u := Start(Harmed(Healthy(Answer{Text: "short"}), Harm{Ruin: Trickle, At: 300, Gap: time.Millisecond}))
	defer u.Close()
	r := Ask(t.Context(), u.Addr(), asks[1].query)
	if !r.Clean || Spoken(r.Body) != "short" || len(r.Arrivals) < 20 {
		t.Errorf("%d arrivals, %+v", len(r.Arrivals), r)
	}
	few := Start(Harmed(Healthy(Answer{Text: "short"}), Harm{Ruin: Trickle, At: 350, Gap: time.Millisecond, Most: 4}))
	defer few.Close()
	r = Ask(t.Context(), few.Addr(), asks[1].query)
	if !r.Clean || Spoken(r.Body) != "short" || len(r.Arrivals) > 6 {
		t.Errorf("%d arrivals, %+v", len(r.Arrivals), r)
	}
}

func TestHarmOfTheFraming(t *testing.T) {
	const text = "The whole of it."
	stream, plain := asks[0].query, asks[1].query
	healthy := Healthy(Answer{Text: text})
	harmed := func(q Query, h Harm) Reply {
		_, r := answerTo(t, Harmed(healthy, h), q)
		return r
	}
	for _, q := range []Query{stream, plain} {
		_, whole := answerTo(t, healthy, q)
		if r := harmed(q, Harm{Ruin: WrongLength, At: 40}); !r.Clean || r.Get("Content-Length") != "40" || !bytes.Equal(r.Body, whole.Body[:40]) {
			t.Errorf("a length too short: %+v", r)
		}
		if r := harmed(q, Harm{Ruin: WrongLength, At: len(whole.Body) + 5}); r.Clean || !errors.Is(r.Err, io.ErrUnexpectedEOF) || !bytes.Equal(r.Body, whole.Body) {
			t.Errorf("a length too long: %+v", r)
		}
		for seed := range uint64(20) {
			if r := harmed(q, Harm{Ruin: BadChunk, At: 40, Seed: seed}); r.Clean || r.Err == nil || !strings.Contains(r.Get("Transfer-Encoding"), "chunked") {
				t.Errorf("bad chunking: %+v", r)
			}
		}
		if r := harmed(q, Harm{Ruin: BadChunk, At: 1 << 20}); !r.Clean || !bytes.Equal(r.Body, whole.Body) {
			t.Errorf("no such byte: %+v", r)
		}
		for _, at := range []int{0, 5, 15, 60, 100} {
			r := harmed(q, Harm{Ruin: BadGzip, At: at})
			z, err := gzip.NewReader(bytes.NewReader(r.Body))
			if err == nil {
				_, err = io.ReadAll(z)
			}
			if !r.Clean || r.Get("Content-Encoding") != "gzip" || err == nil {
				t.Errorf("bad gzip at %d: %v, %+v", at, err, r)
			}
		}
		if r := harmed(q, Harm{Ruin: Interims, At: 300}); !r.Clean || len(r.Interim) != 300 || !bytes.Equal(r.Body, whole.Body) {
			t.Errorf("1xx: %d, %v", len(r.Interim), r.Err)
		}
		if r := harmed(q, Harm{Ruin: HugeHead, At: 100_000}); !r.Clean || len(r.Head) < 100_000 || len(r.Head) > 102_000 || !bytes.Equal(r.Body, whole.Body) {
			t.Errorf("head: %d bytes, %v", len(r.Head), r.Err)
		}
		if r := harmed(q, Harm{}); !r.Clean || !bytes.Equal(r.Body, whole.Body) || len(r.Interim) > 0 {
			t.Errorf("unharmed: %+v", r)
		}
	}
	seen := map[string]bool{}
	for _, r := range Ruins {
		if s := r.String(); s == "" || seen[s] {
			t.Errorf("%d is called %q", r, s)
		} else {
			seen[s] = true
		}
	}
}
