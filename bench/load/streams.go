package load

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// StatusError is an answer with another status than 200.
type StatusError int

// Error tells the status.
func (e StatusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// ErrCut is a stream that ended well by HTTP's rules, but without its last event.
var ErrCut = errors.New("the stream has no end mark")

// A Pattern is what a stream is to look like.
type Pattern struct {
	Deltas int
	Gap    time.Duration // between two deltas
}

// Header is the pattern as the mock's headers.
func (p Pattern) Header() []string {
	return []string{"X-Bench-Chunks", strconv.Itoa(p.Deltas), "X-Bench-Gap-Us", strconv.FormatInt(p.Gap.Microseconds(), 10)}
}

// Streamed is what became of streams.
type Streamed struct {
	Tally
	Deltas  int             // that arrived
	Missing int             // that did not
	Delays  []time.Duration // of each delta, from its writing to its arrival
}

// A watcher reads one stream's deltas.
type watcher struct {
	deltas int
	delays []time.Duration
	carry  []byte // the end of the last piece, where a stamp may have begun
	tail   []byte
	each   func()       // called at each delta; nil: nobody counts along
	timed  *atomic.Bool // whether delays are noted now; nil: they always are
}

const (
	stampSize = 2 + 19 // "@T" and 19 digits
	endSize   = 32     // what is kept of a stream's end
)

// piece looks for stamps.
func (w *watcher) piece(b []byte) {
	now := time.Now().UnixNano()
	if len(w.carry) > 0 {
		w.carry = append(w.carry, b[:min(len(b), stampSize-len(w.carry))]...)
		if len(w.carry) < stampSize {
			w.keep(b)
			return // a piece so short that the stamp goes on behind it
		}
		w.stamps(w.carry, now)
		w.carry = w.carry[:0]
	}
	rest := w.stamps(b, now)
	if i := bytes.LastIndexByte(rest, '@'); i >= 0 && len(rest)-i < stampSize && bytes.HasPrefix([]byte("@T"), rest[i:min(i+2, len(rest))]) {
		w.carry = append(w.carry, rest[i:]...)
	}
	w.keep(b)
}

// keep keeps the stream's end.
func (w *watcher) keep(b []byte) {
	w.tail = append(w.tail, b[max(0, len(b)-endSize):]...)
	w.tail = w.tail[:copy(w.tail, w.tail[max(0, len(w.tail)-endSize):])]
}

// stamps reads the whole stamps in b and returns what follows the last.
func (w *watcher) stamps(b []byte, now int64) []byte {
	for {
		i := bytes.Index(b, []byte("@T"))
		if i < 0 || len(b) < i+stampSize {
			return b
		}
		at, err := strconv.ParseInt(string(b[i+2:i+stampSize]), 10, 64)
		b = b[i+stampSize:]
		if err != nil {
			continue
		}
		if w.deltas++; w.each != nil {
			w.each()
		}
		if w.timed == nil || w.timed.Load() {
			w.delays = append(w.delays, time.Duration(now-at))
		}
	}
}

// whole says whether the last piece ended as a stream must.
func (w *watcher) whole() bool { return bytes.Contains(w.tail, []byte("[DONE]")) }

// follow requests one stream and counts it in s.
func follow(c *conn, request []byte, p Pattern, by time.Time, s *Streamed, w watcher) {
	w.delays = s.Delays
	status, err := c.do(request, by, w.piece)
	if err == nil && status == 200 && !w.whole() {
		err = ErrCut
	}
	s.count(status, err)
	s.Delays = w.delays
	s.Deltas += w.deltas
	s.Missing += p.Deltas - w.deltas
}

// Streams opens n streams within ramp and follows each to its end; each then asks
// for the next one, rounds in all.
func Streams(to Target, body []byte, p Pattern, n, rounds int, ramp time.Duration) Streamed {
	request := to.Request(body, p.Header()...)
	each := make([]Streamed, n)
	by := time.Now().Add(ramp + time.Duration(rounds)*(time.Duration(p.Deltas)*p.Gap+requestTime))
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c := conn{to: to}
			defer c.drop()
			time.Sleep(ramp * time.Duration(i) / time.Duration(n))
			for range rounds {
				follow(&c, request, p, by, &each[i], watcher{})
			}
		})
	}
	wg.Wait()
	return join(each)
}

func join(each []Streamed) Streamed {
	var all Streamed
	for i := range each {
		all.add(each[i].Tally)
		all.Deltas += each[i].Deltas
		all.Missing += each[i].Missing
		all.Delays = append(all.Delays, each[i].Delays...)
	}
	return all
}

// opening is how many streams a Crowd opens at once.
const opening = 64

// openTime bounds the wait for a stream's first delta.
const openTime = 60 * time.Second

// A Crowd is many streams held open together.
type Crowd struct {
	wires  []net.Conn // what was dialled
	each   []Streamed
	wg     sync.WaitGroup
	open   atomic.Int64
	deltas atomic.Int64
	full   atomic.Bool // all have been opened
}

// Gather opens n streams and returns when each has shown its first delta or failed.
// Delays are noted from then on: while streams are opened the cores do that.
func Gather(to Target, body []byte, p Pattern, n int) *Crowd {
	g := &Crowd{each: make([]Streamed, n)}
	request := to.Request(body, p.Header()...)
	by := time.Now().Add(openTime + time.Duration(n)*5*time.Millisecond + time.Duration(p.Deltas)*p.Gap + requestTime)
	turn := make(chan struct{}, opening)
	var begun sync.WaitGroup
	for i := range n {
		turn <- struct{}{}
		c := &conn{to: to}
		if err := c.dial(); err != nil {
			g.each[i].count(0, err)
			<-turn
			continue
		}
		g.wires = append(g.wires, c.c)
		begun.Add(1)
		g.wg.Go(func() {
			defer c.drop()
			var once sync.Once
			pass := func() { <-turn; begun.Done() }
			defer once.Do(pass)
			follow(c, request, p, by, &g.each[i], watcher{timed: &g.full, each: func() {
				once.Do(func() { g.open.Add(1); pass() })
				g.deltas.Add(1)
			}})
		})
	}
	begun.Wait()
	g.full.Store(true)
	return g
}

// Open is how many streams have shown a delta.
func (g *Crowd) Open() int { return int(g.open.Load()) }

// Deltas is how many deltas have arrived until now.
func (g *Crowd) Deltas() int { return int(g.deltas.Load()) }

// Wait follows the streams to their ends.
func (g *Crowd) Wait() Streamed {
	g.wg.Wait()
	return join(g.each)
}

// Leave breaks all streams off. It returns an error where some never showed a delta.
func (g *Crowd) Leave() error {
	for _, c := range g.wires {
		_ = c.SetDeadline(time.Unix(1, 0)) // wakes the reader, who closes it
	}
	g.wg.Wait()
	silent, err := 0, error(nil)
	for i := range g.each {
		if g.each[i].Deltas == 0 {
			silent, err = silent+1, g.each[i].Err
		}
	}
	if silent > 0 {
		return fmt.Errorf("%d of %d streams showed no delta: %w", silent, len(g.each), err)
	}
	return nil
}
