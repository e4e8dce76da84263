package proxy

import (
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A memory is where a large body lies. It is used again once everybody who reads it
// has said so: made and cleared anew for each request, the bodies that wait for the
// collector take several times what those that are needed do.
//
// Whoever reads the body where the request may end meanwhile holds the memory: an
// attempt, what writes to an upstream. A nil memory belongs to a small body, which is
// the collector's.
type memory struct {
	bytes   []byte
	class   int
	since   time.Time // when it was last given back
	holders atomic.Int32
}

// A shelf keeps memories that nobody holds. A sync.Pool would keep one for each
// processor, out of the others' reach.
type shelf struct {
	mu     sync.Mutex
	spare  map[int][]*memory // by class, the one used last at the end
	bytes  int64             // of them
	extra  *memory           // the last one for which there was no room
	before bool              // the collector's next coming is waited for
}

const (
	// shelfBytes bounds what is kept for nobody, but for one memory more, of whatever size:
	// made anew for each request, a body of 32 MiB costs five times what reading it does.
	shelfBytes = 10 << 20
	// shelfTime is how long a memory is kept for nobody; the collector's coming is when
	// that is looked at, every two minutes at least.
	shelfTime = 10 * time.Second
)

var memories shelf

// take gives a memory of a class, nil if none is there.
func (s *shelf) take(class int) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.spare[class]
	if len(kept) == 0 {
		m := s.extra
		if m == nil || m.class != class {
			return nil
		}
		s.extra = nil
		return m
	}
	m := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	s.spare[class] = kept[:len(kept)-1]
	s.bytes -= int64(len(m.bytes))
	return m
}

// put keeps a memory: where there is no room, in the place of the last one for which there
// was none.
func (s *shelf) put(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.since = time.Now()
	if s.bytes+int64(len(m.bytes)) > shelfBytes {
		s.extra = m
	} else {
		if s.spare == nil {
			s.spare = map[int][]*memory{}
		}
		s.spare[m.class] = append(s.spare[m.class], m)
		s.bytes += int64(len(m.bytes))
	}
	if !s.before {
		s.before = true
		s.await()
	}
}

// await has the shelf cleared when the collector comes: what it finds then is garbage,
// and the news of that is when to look. It needs no goroutine that waits.
func (s *shelf) await() {
	type bell struct{ _ *shelf }
	runtime.AddCleanup(&bell{s}, func(s *shelf) { s.clear(time.Now()) }, s)
}

// clear lets go what has been kept for nobody too long.
func (s *shelf) clear(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for class, kept := range s.spare {
		n := 0
		for n < len(kept) && now.Sub(kept[n].since) >= shelfTime {
			s.bytes -= int64(len(kept[n].bytes))
			n++
		}
		if kept = slices.Delete(kept, 0, n); len(kept) == 0 {
			delete(s.spare, class)
		} else {
			s.spare[class] = kept
		}
	}
	if s.extra != nil && now.Sub(s.extra.since) >= shelfTime {
		s.extra = nil
	}
	if s.before = len(s.spare) > 0 || s.extra != nil; s.before {
		s.await()
	}
}

// spoil is what becomes of a memory that nobody holds any more, before it is used
// again; tests set it to find whoever reads on.
var spoil = func([]byte) {}

// newMemory gives room for n bytes, held once. What was in it before may still be there.
func newMemory(n int64) *memory {
	class, size := classOf(n)
	m := memories.take(class)
	if m == nil {
		m = &memory{bytes: make([]byte, size), class: class}
	}
	m.holders.Store(1)
	return m
}

// classOf is the class of memories for n bytes, and their size: an eighth of a power
// of two apart, so that no more than an eighth is in vain.
func classOf(n int64) (class int, size int64) {
	n = max(n, 16)
	power := bits.Len64(uint64(n - 1))
	half := int64(1) << (power - 1)
	step := half / 8
	eighths := (n - half + step - 1) / step
	return power*8 + int(eighths) - 1, half + eighths*step
}

// hold keeps the memory from being used again until release.
func (m *memory) hold() {
	if m != nil {
		m.holders.Add(1)
	}
}

// release ends a hold. The last one gives the memory back.
func (m *memory) release() {
	if m == nil || m.holders.Add(-1) != 0 {
		return
	}
	spoil(m.bytes)
	memories.put(m)
}

// A bodyReader reads a body that lies in a memory, in parts, for net/http, which may
// close it while it still reads and has done with it only then.
type bodyReader struct {
	mu     sync.Mutex
	parts  [][]byte
	memory *memory // held; nil once it is closed
}

func newBodyReader(parts [][]byte, m *memory) *bodyReader {
	m.hold()
	return &bodyReader{parts: append([][]byte(nil), parts...), memory: m}
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return 0, io.ErrClosedPipe
	}
	for len(r.parts) > 0 && n < len(p) {
		m := copy(p[n:], r.parts[0])
		n += m
		if r.parts[0] = r.parts[0][m:]; len(r.parts[0]) == 0 {
			r.parts = r.parts[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. It may be called more than once.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.release()
	r.memory, r.parts = nil, nil
	return nil
}
