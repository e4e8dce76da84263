package drill

import (
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Ruin is a way in which an answer comes to harm.
type Ruin uint8

const (
	// Unharmed leaves an answer as it is.
	Unharmed Ruin = iota
	// Reset resets the connection in place of a byte.
	Reset
	// Close ends the connection in good order in place of a byte.
	Close
	// Silence sends nothing from a byte on.
	Silence
	// Trickle sends one byte at a time from a byte on.
	Trickle
	// Garbage sends sixteen other bytes in place of those from a byte on.
	Garbage
	// WrongLength announces At bytes of body, whatever comes. What is more than
	// that stays on the connection, which is kept.
	WrongLength
	// BadChunk chunks the answer, and gives the chunk that holds byte At of the body
	// a size that is not its own, or none. Behind it all the connection ends.
	BadChunk
	// BadGzip announces gzip and sends it, damaged from its byte At on. What
	// follows is damaged too.
	BadGzip
	// Interims sends At answers with status 1xx before the real one.
	Interims
	// HugeHead adds At bytes of header lines.
	HugeHead
	// GoAway says at a byte that the connection takes no further requests, and goes
	// on with this answer. This one and the next two are HTTP/2's: see package h2.
	GoAway
	// GoAwayUnanswered says that this request was not looked at either, and ends the
	// connection.
	GoAwayUnanswered
	// ResetStream ends this answer with an error, and the connection goes on.
	ResetStream
	ruins
)

// Ruins are all ways to come to harm, Unharmed first.
var Ruins = func() (all []Ruin) {
	for r := range ruins {
		all = append(all, r)
	}
	return all
}()

func (r Ruin) String() string {
	return [...]string{"unharmed", "reset", "fin", "silence", "trickle", "garbage", "wrong-length", "bad-chunk", "bad-gzip", "interims", "huge-head", "goaway", "goaway-unanswered", "reset-stream"}[r]
}

// Harm is what happens to one answer, and where.
type Harm struct {
	Ruin Ruin
	// At is the byte it happens at, from 0: of the answer as it goes over the wire,
	// status line, headers and framing included. For WrongLength, BadChunk and
	// BadGzip it counts in the body as it is sent, and for the others it says how
	// much. An answer that has no such byte stays whole.
	At int
	// Gap is the time between two bytes of a Trickle; 0 is a second. After Most bytes
	// the rest comes at once; 0 is never.
	Gap  time.Duration
	Most int
	// Seed decides what Garbage and a BadChunk look like.
	Seed uint64
}

func (h Harm) String() string { return fmt.Sprintf("%s at %d", h.Ruin, h.At) }

// Harmed returns a script that plays another one, whose answer comes to harm. With
// Sequence it does so on any attempt.
func Harmed(script Script, h Harm) Script {
	return func(w *Wire, r Request, n int) {
		w.harm = &harming{Harm: h, random: rand.New(rand.NewPCG(h.Seed, uint64(h.At)))}
		defer func() { w.harm = nil }()
		script(w, r, n)
	}
}

// Record has every byte that is sent from now on told to f, just before it goes out.
func (w *Wire) Record(f func(p []byte)) { w.record = f }

// harming is the harm of a running answer.
type harming struct {
	Harm
	random *rand.Rand
	sent   int // of the whole answer, or of gzip's bytes
	done   bool
	zip    *gzip.Writer
	zipped []byte // what zip has written and nobody has taken
}

// Write takes what the compressor writes, and damages it.
func (h *harming) Write(p []byte) (int, error) {
	for _, b := range p {
		if h.sent >= h.At {
			b ^= 0xa5
		}
		h.sent++
		h.zipped = append(h.zipped, b)
	}
	return len(p), nil
}

// is says whether an answer comes to this harm.
func (h *harming) is(r Ruin) bool { return h != nil && h.Ruin == r }

// framing is how the body's end is told under this harm.
func (h *harming) framing(f Framing) Framing {
	switch {
	case h.is(WrongLength):
		return Length(max(0, h.At))
	case h.is(BadChunk), h.is(BadGzip):
		return Chunked
	}
	return f
}

// header is what the head holds under this harm.
func (h *harming) header(header []string) []string {
	switch {
	case h.is(BadGzip):
		header = append(header[:len(header):len(header)], "Content-Encoding", "gzip")
	case h.is(HugeHead):
		header = header[:len(header):len(header)]
		const line = 4000
		for left := h.At; left > 0; left -= line {
			header = append(header, "x-filler", strings.Repeat("f", min(left, line)))
		}
	}
	return header
}

// interims sends what comes before the head under this harm.
func (h *harming) interims(w *Wire) {
	if !h.is(Interims) {
		return
	}
	for i := 0; i < h.At && w.err == nil; i++ {
		w.Interim(102 + i%2)
	}
}

// pack is a piece of the body as it is sent.
func (h *harming) pack(p []byte) []byte {
	if !h.is(BadGzip) {
		return p
	}
	if h.zip == nil {
		h.zip = gzip.NewWriter(h)
	}
	// Nothing here can fail: h takes everything.
	_, _ = h.zip.Write(p)
	_ = h.zip.Flush()
	return h.take()
}

// rest is what ends the body before its framing does.
func (h *harming) rest() []byte {
	if !h.is(BadGzip) || h.zip == nil {
		return nil
	}
	_ = h.zip.Close()
	return h.take()
}

func (h *harming) take() []byte {
	p := h.zipped
	h.zipped = nil
	return p
}

// size is the size line of a chunk of n bytes, the first of which is byte from of
// the body.
func (h *harming) size(from int64, n int) string {
	if h.is(BadChunk) && !h.done && int64(h.At) < from+int64(n) {
		h.done = true
		return []string{"zz", "", fmt.Sprintf("%x", n+1+h.random.IntN(4096)), fmt.Sprintf("%x", n-1), "-1", "fffffffffffffffff"}[h.random.IntN(6)]
	}
	return fmt.Sprintf("%x", n)
}

// strike does to the bytes of an answer what happens to them, and returns those that
// are to be sent still.
func (h *harming) strike(w *Wire, p []byte) []byte {
	from := h.sent
	switch h.Ruin {
	case Reset, Close, Silence, Trickle, Garbage:
		h.sent += len(p)
	default:
		return p
	}
	if h.At >= h.sent {
		return p
	}
	at := max(0, h.At-from)
	switch h.Ruin {
	case Reset:
		w.send(p[:at])
		w.Reset()
	case Close:
		w.send(p[:at])
		w.FIN()
	case Silence:
		w.send(p[:at])
		w.Silence()
		w.hangUp()
	case Trickle:
		w.send(p[:at])
		for i, b := range p[at:] {
			if h.Most > 0 && from+at+i >= h.At+h.Most {
				return p[at+i:]
			}
			if !w.Pause(orSecond(h.Gap)) {
				w.hangUp()
				return nil
			}
			w.send([]byte{b})
		}
	case Garbage:
		p = append([]byte(nil), p...)
		for i := at; i < len(p) && from+i < h.At+16; i++ {
			p[i] = byte(h.random.Uint32())
		}
		return p
	}
	return nil
}
