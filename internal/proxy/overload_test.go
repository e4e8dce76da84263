package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/drill"
)

// Five times more than it can do: what is too much is shed with 503 or 429 that say
// when to come back, what can be done is done at capacity all the while, and a second
// after it is over a request takes as long as ever.
func TestOverload(t *testing.T) {
	const takes, places, offered, span = 200 * time.Millisecond, 8, 200, 15 * time.Second
	for name, c := range map[string]struct {
		cfg    string
		status int
	}{
		"memory": {chain(1, "server: {max_body_bytes: 64 KiB, max_held_bytes: 332 KiB}"), 503},
		"limits": {strings.Replace(chain(1, "server: {queue_timeout: 0.5}"), "model: m1}", fmt.Sprintf("model: m1, max_parallel: %d}", places), 1), 429},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, c.cfg)
			s.play("u1", after(takes, 0))
			body := padded(40 << 10)
			var mu sync.Mutex
			got := map[int]int{}
			var wg sync.WaitGroup
			for range int(span.Seconds() * offered) {
				wg.Go(func() {
					r := s.ask("POST", chatPath, body)
					mu.Lock()
					defer mu.Unlock()
					if got[r.status]++; r.status != 200 && r.header.Get("Retry-After") == "" {
						t.Errorf("%d without Retry-After: %s", r.status, r.body)
					}
				})
				<-time.After(time.Second / offered)
			}
			<-time.After(time.Second)
			r := s.ask("POST", chatPath, body)
			s.from(r, "u1")
			equal(t, "took", r.took, takes)
			wg.Wait()
			capacity := int(span/takes) * places
			if n := got[200]; n < capacity*95/100 || n > capacity*105/100+places {
				t.Errorf("%d were served, the capacity is %d", n, capacity)
			}
			if len(got) != 2 || got[c.status] == 0 {
				t.Errorf("statuses %v", got)
			}
			s.holds(0, 0)
			s.idle()
		})
	}
}

// An answer whose coded bytes decode to nothing, for ever, is damaged, and soon so.
func TestCodedBytesThatSayNothing(t *testing.T) {
	var member bytes.Buffer
	gzip.NewWriter(&member).Close()
	members := bytes.Repeat(member.Bytes(), 2000)
	var sent atomic.Int64
	u1 := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", "gzip")
		for sent.Load() < 256<<20 && w.Err() == nil {
			w.Chunk(members)
			sent.Add(int64(len(members)))
		}
	})
	u2 := play(t, page(sseType, okSSE))
	r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
	got := r.post(chatPath, chatBody("vm", true), "Accept-Encoding", "gzip")
	if got.Status != 200 || got.Get("X-Understudy-Candidate") != "u2" {
		t.Errorf("%d by %q", got.Status, got.Get("X-Understudy-Candidate"))
	}
	if tries := r.settle()[0].Tries; len(tries) != 2 || tries[0].Class != "bad_stream" {
		t.Errorf("%+v", tries)
	}
	u1.Close()
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d MiB were sent", n>>20)
	}
}

// What goes through a tunnel is copied with one buffer each way, however long its
// frames are.
func TestFramesAreNotCollected(t *testing.T) {
	const size = 128 << 20
	client, clientFar := net.Pipe()
	upstream, upstreamFar := net.Pipe()
	pipe := &tunnel{client: client, upstream: upstream, clientIdle: time.Minute, upstreamIdle: time.Minute}
	ended := make(chan error, 1)
	used := peak(func() {
		go func() {
			_, err := pipe.run(nil)
			ended <- err
		}()
		go func() { _, _ = io.CopyN(upstreamFar, sevens{}, size) }() // ends when all is read
		if n, err := io.CopyN(io.Discard, clientFar, size); n != size || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	upstreamFar.Close()
	clientFar.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if used > 8<<20 {
		t.Errorf("%d KiB of memory were in use", used>>10)
	}
}
