package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whoever reads a memory that nobody holds any more reads this, in all tests.
func init() {
	spoil = func(b []byte) {
		for n := copy(b, "spoilt"); n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
}

func TestMemoriesAreLargeEnoughAndNotMuchLarger(t *testing.T) {
	sizes := map[int]int64{}
	for _, n := range []int64{0, 1, 16, 17, 31, 32, 33, readFirst, readFirst + 1, 100_000, proveBelow, proveBelow + 1, 8 << 20, 8<<20 + 1, 9 << 20, 9<<20 + 1, 33_554_431, 1 << 40} {
		class, size := classOf(n)
		if size < n || n > 32 && size > n+n/8 {
			t.Errorf("%d bytes get %d", n, size)
		}
		if before, ok := sizes[class]; ok && before != size {
			t.Errorf("class %d has sizes %d and %d", class, before, size)
		}
		sizes[class] = size
		if again, same := classOf(size); again != class || same != size {
			t.Errorf("a memory of %d bytes is of class %d, %d bytes", size, again, same)
		}
	}
}

func TestAMemoryIsUsedAgainOnceNobodyHoldsIt(t *testing.T) {
	m := newMemory(40_000)
	r := newBodyReader([][]byte{m.bytes[:3], m.bytes[3:5]}, m)
	copy(m.bytes, "abcde")
	m.release()
	got := make([]byte, 4)
	if n, err := r.Read(got); string(got[:n]) != "abcd" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
	if string(m.bytes[:5]) != "abcde" {
		t.Error("it was given back while it was read")
	}
	r.Close()
	r.Close() // as net/http may
	if string(m.bytes[:6]) != "spoilt" || m.holders.Load() != 0 {
		t.Errorf("%q, held by %d", m.bytes[:6], m.holders.Load())
	}
	if _, err := r.Read(got); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read on with %v", err)
	}
	var none *memory
	none.hold()
	none.release()
}

func TestTheShelfLetsGoWhatNobodyNeeds(t *testing.T) {
	var s shelf
	now := time.Now()
	for range 3 {
		s.put(&memory{bytes: make([]byte, 1000), class: 7})
	}
	s.put(&memory{bytes: make([]byte, 2000), class: 8})
	s.put(&memory{bytes: make([]byte, shelfBytes), class: 9})    // too large beside the others,
	s.put(&memory{bytes: make([]byte, 5*shelfBytes), class: 10}) // and one of those is kept
	if s.take(9) != nil || s.take(10) == nil || s.take(10) != nil || s.take(8) == nil || s.bytes != 3000 {
		t.Errorf("%d bytes: %v", s.bytes, s.spare)
	}
	s.put(&memory{bytes: make([]byte, 5*shelfBytes), class: 10})
	s.clear(now.Add(shelfTime / 2))
	if s.bytes != 3000 {
		t.Errorf("%d bytes are left too early", s.bytes)
	}
	s.clear(now.Add(2 * shelfTime))
	if s.bytes != 0 || len(s.spare) != 0 || s.take(7) != nil || s.take(10) != nil {
		t.Errorf("%d bytes are left", s.bytes)
	}
	s.put(&memory{bytes: make([]byte, 10), class: 1})
	s.spare[1][0].since = now.Add(-2 * shelfTime)
	for end := time.Now().Add(patience); ; runtime.GC() { // which the shelf waits for
		s.mu.Lock()
		left := s.bytes
		s.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the collector came, and the shelf was not cleared")
		}
	}
}

// lateReader is an upstream that answers 503 before it reads the body, and goes on
// reading after that: what writes to it outlives the attempt, and the request.
func lateReader(t *testing.T, foreign *atomic.Int64) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}")
				mine := req.Header.Get("X-Letter")[0]
				body, _ := io.ReadAll(req.Body) // cut, where the proxy has given it up
				if at := bytes.IndexByte(body, mine); at >= 0 && strings.Trim(string(body[at:]), string(mine)+`"}]`) != "" {
					foreign.Add(1)
				}
			})
		}
	})
	return "http://" + l.Addr().String()
}

// Large bodies lie in memory that is used again. Each must reach every upstream as it
// is, although others come and go, and although some are still being written when
// their request has ended.
func TestLargeBodiesStayApart(t *testing.T) {
	var foreign atomic.Int64
	late := lateReader(t, &foreign)
	sum := func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		io.Copy(h, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}]}`, hex.EncodeToString(h.Sum(nil)))
	}
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			second := httptest.NewUnstartedServer(http.HandlerFunc(sum))
			if second.EnableHTTP2 = secure; secure {
				second.StartTLS()
			} else {
				second.Start()
			}
			t.Cleanup(second.Close)
			h, addr, log := wired(t, over("rules:\n  - {match: {status: 503}, action: next}\nserver: {auto_hedge_threshold: 0}\n", late, second.URL))
			if secure {
				pair := h.transports.get("")
				pair.pooled.TLSClientConfig = second.Client().Transport.(*http.Transport).TLSClientConfig
				pair.fresh.TLSClientConfig = pair.pooled.TLSClientConfig.Clone()
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for round := range 12 {
						letter := string(rune('A' + (i+round)%26))
						text := strings.Repeat(letter, 40_000+(i*7+round)%5*150_000)
						body := func(model string) string {
							return `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]}`
						}
						resp := send(t, addr, "/v1/chat/completions", body("vm"), "X-Letter", letter)
						answer, err := io.ReadAll(resp.Body)
						want := sha256.Sum256([]byte(body("m2")))
						if err != nil || !strings.Contains(string(answer), hex.EncodeToString(want[:])) {
							t.Errorf("%d bytes of %s: %s, %v\n%s", len(text), letter, answer, err, log)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
	if n := foreign.Load(); n > 0 {
		t.Errorf("%d bodies that were written late held what is not theirs", n)
	}
}
