package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
)

// padded is a chat request whose body is about so long.
func padded(size int) string {
	return fmt.Sprintf(`{"model":"vm","stream":true,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("x", size))
}

// sending sends a body on a goroutine of its own.
func (s *scene) sending(path, body string) <-chan reply {
	got := make(chan reply, 1)
	go func() { got <- s.ask("POST", path, body) }()
	synctest.Wait()
	return got
}

// holds asserts how many bytes are held, and how many requests wait.
func (s *scene) holds(bytes int64, waiting int) {
	s.t.Helper()
	if f := s.handler.Held(); f.Taken != bytes || f.Waiting != waiting {
		s.t.Errorf("at %v: %d bytes are held and %d requests wait, want %d and %d", s.now(), f.Taken, f.Waiting, bytes, waiting)
	}
}

// Over max_held_bytes new requests wait, first come first served, for 5 s; then they
// get 503 in their dialect, with the time to come back. Nothing stays held.
func TestHeldBytes(t *testing.T) {
	small, large := padded(20<<10), padded(60<<10)
	inBubble(t, "room comes", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 100 KiB, max_body_bytes: 80 KiB}"))
		s.play("u1", after(3*time.Second, 0))
		one := s.sending(chatPath, large)
		two, three := s.sending(chatPath, large), s.sending(chatPath, small)
		s.holds(int64(len(large)), 2)
		for _, got := range []<-chan reply{one, two, three} {
			s.from(<-got, "u1")
		}
		if at := s.when("u1"); fmt.Sprint(at) != "[0s 3s 3s]" {
			t.Errorf("called at %v", at)
		}
		synctest.Wait()
		s.holds(0, 0)
	})
	inBubble(t, "room comes after the time for a body", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 100 KiB, max_body_bytes: 80 KiB, read_idle_timeout: 1}"))
		s.play("u1", after(4*time.Second, 0))
		one, two := s.sending(chatPath, large), s.sending(chatPath, large)
		s.from(<-one, "u1")
		s.from(<-two, "u1")
	})
	inBubble(t, "none comes", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 100 KiB, max_body_bytes: 80 KiB}"))
		s.play("u1", after(20*time.Second, 0))
		one := s.sending(chatPath, large)
		for path, want := range map[string]string{chatPath: `"type":"overloaded_error"`, messagesPath: `"type":"overloaded_error"`, geminiPath: `"status":"UNAVAILABLE"`, ollamaPath: `"error":"all memory`} {
			for _, body := range []string{large, padded(50 << 10)} {
				got := s.ask("POST", path, body)
				s.refused(got, 503)
				if got.took != heldPatience || got.header.Get("Retry-After") != "2" || !strings.Contains(got.body, want) {
					t.Errorf("after %v, Retry-After %q: %s", got.took, got.header.Get("Retry-After"), got.body)
				}
				if s.now() > 14*time.Second { // u1 answers soon
					s.from(<-one, "u1")
					one = s.sending(chatPath, large)
				}
			}
		}
		s.from(<-one, "u1")
		if f := s.handler.Held(); f.Refused != 8 {
			t.Errorf("%+v", f)
		}
		synctest.Wait()
		s.holds(0, 0)
		s.idle()
	})
	inBubble(t, "the client leaves", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 100 KiB, max_body_bytes: 95 KiB}"))
		s.play("u1", after(4*time.Second, 0))
		one := s.sending(chatPath, padded(90<<10))
		leave := s.leaving(small)
		s.till(time.Second)
		s.holds(int64(len(padded(90<<10))), 1)
		leave()
		synctest.Wait()
		s.holds(int64(len(padded(90<<10))), 0)
		s.from(<-one, "u1")
		equal(t, "calls", s.counts("u1"), []int{1})
	})
	inBubble(t, "never", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 50 KiB}"))
		s.play("u1", sayPong)
		got := s.ask("POST", chatPath, large)
		s.refused(got, 413)
		if got.took != 0 || !strings.Contains(got.body, "max_held_bytes") {
			t.Errorf("after %v: %s", got.took, got.body)
		}
		s.from(s.ask("POST", chatPath, small), "u1")
		s.handler.Swap(compile(t, chain(1, "server: {max_held_bytes: 500 KiB}")))
		s.from(s.ask("POST", chatPath, large), "u1")
	})
	inBubble(t, "announced, and not sent", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {max_held_bytes: 3 MiB, max_body_bytes: 3 MiB}"))
		s.play("u1", sayPong)
		c := s.dial()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", chatPath, 3<<20)
		synctest.Wait()
		s.holds(3<<20, 0)
		got := s.ask("POST", chatPath, large)
		s.from(got, "u1")
		equal(t, "took", got.took, announcedTime)
		synctest.Wait()
		s.holds(1, 0)
		c.Close()
		<-time.After(time.Minute) // the server lingers
		s.holds(0, 0)
	})
}

// dial opens a connection to the proxy.
func (b *bed) dial() net.Conn {
	b.t.Helper()
	c, err := b.net.DialContext(b.t.Context(), "tcp", "127.0.0.1:8787")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// A body that does not come, or comes too slowly, is not waited for: 408, and the
// connection ends. One that comes slowly but well is.
func TestSlowBodies(t *testing.T) {
	head := func(n int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", chatPath, n)
	}
	for name, c := range map[string]struct {
		every time.Duration // between two pieces
		piece int
		size  int
		from  time.Duration // when 408 comes, from …
		to    time.Duration // … to
	}{
		"nothing comes":       {time.Hour, 1, 2000, 60 * time.Second, 62 * time.Second},
		"a byte now and then": {10 * time.Second, 1, 2000, 60 * time.Second, 62 * time.Second},
		"it stops":            {time.Second, 1000, 1 << 20, 0, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, chain(1, ""))
			s.play("u1", sayPong)
			conn := s.dial()
			body := padded(c.size)
			go func() {
				io.WriteString(conn, head(len(body)))
				stop := len(body)
				if c.from == 0 {
					stop = 100_000
				}
				for at := 0; at < stop; at += c.piece {
					if _, err := io.WriteString(conn, body[at:min(at+c.piece, stop)]); err != nil {
						return
					}
					<-time.After(c.every)
				}
			}()
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || !strings.Contains(string(got), "Connection: close") || !strings.Contains(string(got), "read_idle_timeout") {
				t.Errorf("%q, %v", got, err)
			}
			from, to := c.from, c.to
			if from == 0 {
				from, to = 99*time.Second+60*time.Second, 102*time.Second+61*time.Second
			}
			if s.now() < from || s.now() > to {
				t.Errorf("after %v, want from %v to %v", s.now(), from, to)
			}
			conn.Close()
			equal(t, "calls", s.counts("u1"), []int{0})
			<-time.After(time.Hour) // whoever still writes is over
			s.holds(0, 0)
		})
	}
	inBubble(t, "slow and steady", func(t *testing.T) {
		s := newScene(t, chain(1, ""))
		s.play("u1", sayPong)
		conn := s.dial()
		body := padded(200_000)
		go func() {
			io.WriteString(conn, strings.Replace(head(len(body)), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
			for at := 0; at < len(body); at += 1000 {
				io.WriteString(conn, body[at:min(at+1000, len(body))])
				<-time.After(time.Second)
			}
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
			t.Errorf("%q, %v", got, err)
		}
		if q := s.cast["u1"].Requests(); len(q) != 1 || len(q[0].Body) != len(body)-len("vm")+len("m1") {
			t.Errorf("%d requests", len(q))
		}
		<-time.After(time.Minute)
	})
	inBubble(t, "0 waits for ever", func(t *testing.T) {
		s := newScene(t, chain(1, "server: {read_idle_timeout: 0}"))
		s.play("u1", sayPong)
		conn := s.dial()
		body := padded(10)
		go func() {
			io.WriteString(conn, strings.Replace(head(len(body)), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
			<-time.After(10 * time.Hour)
			io.WriteString(conn, body)
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") || s.now() != 10*time.Hour {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// peak runs something and returns how much memory was in use at most, above what was
// before.
func peak(do func()) int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapInuse, m.HeapInuse
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
	}()
	do()
	close(end)
	<-ended
	return int64(most - before)
}

// Four streams at once, each with one event of 40 MiB, arrive byte for byte, in a
// fraction of the memory that one event is long.
func TestVeryLongEventsAtOnce(t *testing.T) {
	const size, streams = 40 << 20, 4
	event := func() io.Reader {
		return io.MultiReader(strings.NewReader("event: response.completed\ndata: "+`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`),
			io.LimitReader(sevens{}, size), strings.NewReader(`"}]}]}}`+"\n\n"))
	}
	want := sha256.New()
	if _, err := io.Copy(want, event()); err != nil {
		t.Fatal(err)
	}
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		buf := make([]byte, 128<<10)
		for r := event(); w.Err() == nil; {
			n, err := r.Read(buf)
			w.Chunk(buf[:n])
			if err != nil {
				break
			}
		}
		w.End()
	})
	h, addr, log := wired(t, over("", u.URL()))
	used := peak(func() {
		var wg sync.WaitGroup
		for range streams {
			wg.Go(func() {
				resp := send(t, addr, responsesPath, requestFor(responsesPath, true))
				got := sha256.New()
				if _, err := io.Copy(got, resp.Body); err != nil {
					t.Errorf("reading: %v\n%s", err, log)
				}
				if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
					t.Error("other bytes came than were sent")
				}
			})
		}
		wg.Wait()
	})
	// Each holds 8 MiB until its release, in a buffer that has grown, and what it has grown
	// out of is there until the collector comes.
	if used > 8*streams<<20*4 {
		t.Errorf("%d MiB of memory were in use", used>>20)
	}
	t.Logf("%d MiB for %d events of %d MiB", used>>20, streams, size>>20)
	booked(t, h, streams)
	nothingHeld(t, h)
}

// Requests that decode to much more than they are do so within max_body_bytes each,
// and within max_held_bytes all together.
func TestBombsInRequests(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = io.CopyN(z, sevens{}, 40<<20)
	z.Close()
	u := play(t, page(sseType, okSSE))
	r := newRig(t, over("server: {max_held_bytes: 64 MiB}", u.URL()))
	var mu sync.Mutex
	statuses := map[int]int{}
	used := peak(func() {
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				got := r.send(drill.Query{Path: chatPath, Body: bomb.Bytes(), Header: []string{"Content-Encoding", "gzip", "Content-Type", "application/json"}})
				mu.Lock()
				statuses[got.Status]++
				mu.Unlock()
			})
		}
		wg.Wait()
	})
	r.settle()
	// 40 MiB of digits are no JSON object: whoever gets through is told so.
	if statuses[400]+statuses[503] != 12 || statuses[503] == 0 {
		t.Errorf("%v", statuses)
	}
	if used > 400<<20 {
		t.Errorf("%d MiB of memory were in use", used>>20)
	}
	t.Logf("%d MiB, %v", used>>20, statuses)
	uncalled(t, u)
	if f := r.handler.Held(); f.Taken != 0 {
		t.Errorf("%d bytes are still held", f.Taken)
	}
	if got := r.post(chatPath, chatBody("vm", true)); got.Status != http.StatusOK {
		t.Errorf("%d afterwards", got.Status)
	}
}

// Where there is no memory to hold an answer it is released earlier than it would be,
// whole all the same.
func TestAnAnswerThatFindsNoRoom(t *testing.T) {
	body := `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("7", 4<<20) + `"},"finish_reason":"stop"}]}`
	released := make(chan struct{})
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Length(len(body)), "Content-Type", jsonType)
		w.Chunk([]byte(body[:3<<20]))
		select {
		case <-released:
		case <-time.After(time.Minute):
			t.Error("it is held although there is no room")
		}
		w.Chunk([]byte(body[3<<20:]))
		w.End()
	})
	h, addr, log := wired(t, over("server: {max_body_bytes: 512 KiB, max_held_bytes: 1 MiB}", u.URL()))
	resp := send(t, addr, chatPath, chatBody("vm", false))
	close(released)
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != body || resp.StatusCode != 200 {
		t.Errorf("%d, %d of %d bytes, %v\n%s", resp.StatusCode, len(got), len(body), err, log)
	}
	booked(t, h, 1)
	nothingHeld(t, h)
}

// nothingHeld waits until what requests held has been given back, which is the last
// thing they do.
func nothingHeld(t *testing.T, h *Handler) {
	t.Helper()
	for end := time.Now().Add(time.Minute); h.Held().Taken != 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Errorf("%d bytes are still held", h.Held().Taken)
			return
		}
	}
}
