package archive

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"understudy/internal/stats"
)

// A block is the records of one batch in one BLOB: what a request costs is then a
// few dozen bytes and a share of one row, not a row and its place in an index. The
// layout is positional; its version stands first, and a version that is added
// reads the former ones.
//
//	version, boot's base time, number of strings, strings, number of records, records
//
// Strings that repeat, which is nearly all of them, stand once.
const blockVersion = 1

// An encoder makes one block.
type encoder struct {
	buf     []byte // the records
	strings []byte // the table
	known   map[string]uint64
	base    int64 // Unix nanoseconds of the first record
	seq     uint64
	n       int
	plan    *stats.Planned // of the last plan that was encoded, and how it came out
	planned uint64
	scratch []byte
}

func newEncoder() *encoder { return &encoder{known: map[string]uint64{}} }

// reset begins another block and keeps the memory.
func (e *encoder) reset() {
	e.buf, e.strings, e.n, e.plan = e.buf[:0], e.strings[:0], 0, nil
	clear(e.known)
}

// bytes is the block, valid until the encoder is used again.
func (e *encoder) bytes() []byte {
	out := append(e.scratch[:0], blockVersion)
	out = binary.AppendVarint(out, e.base)
	out = binary.AppendUvarint(out, e.seq)
	out = binary.AppendUvarint(out, uint64(len(e.known)))
	out = append(out, e.strings...)
	out = binary.AppendUvarint(out, uint64(e.n))
	e.scratch = append(out, e.buf...)
	return e.scratch
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) int(n int64)   { e.buf = binary.AppendVarint(e.buf, n) }

func (e *encoder) duration(d time.Duration) { e.int(int64(d)) }

// text writes a string by its place in the table.
func (e *encoder) text(s string) { e.uint(e.intern(s)) }

func (e *encoder) intern(s string) uint64 {
	at, ok := e.known[s]
	if !ok {
		at = uint64(len(e.known))
		e.known[s] = at
		e.strings = binary.AppendUvarint(e.strings, uint64(len(s)))
		e.strings = append(e.strings, s...)
	}
	return at
}

func (e *encoder) flags(flags ...bool) {
	bits := uint64(0)
	for i, on := range flags {
		if on {
			bits |= 1 << i
		}
	}
	e.uint(bits)
}

// moment writes a time relative to the block's first.
func (e *encoder) moment(t time.Time) {
	if t.IsZero() {
		e.uint(0)
		return
	}
	e.uint(1)
	e.int(t.UnixNano() - e.base)
}

func (e *encoder) usage(u stats.Usage) {
	if u == stats.NoUsage() {
		e.uint(0)
		return
	}
	e.uint(1)
	for _, n := range [...]int64{u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning, u.Total} {
		e.int(n)
	}
}

// add appends a record.
func (e *encoder) add(s *stats.Sequenced) {
	r := &s.Record
	if e.n == 0 {
		e.base, e.seq = 0, s.Seq
		if !r.Start.IsZero() {
			e.base = r.Start.UnixNano()
		}
	}
	e.n++
	e.int(int64(s.Seq - e.seq))
	e.id(r.ID)
	e.moment(r.Start)
	for _, d := range [...]time.Duration{r.Released, r.FirstContent, r.End} {
		e.duration(d)
	}
	for _, s := range [...]string{r.Model, r.Client, r.Method, r.Path, r.Dialect, r.Strategy} {
		e.text(s)
	}
	e.flags(r.Stream, r.Ignored)
	e.int(int64(r.Status))
	e.uint(uint64(r.Ending))
	e.int(int64(r.Winner))
	e.uint(uint64(r.Omitted))
	e.usage(r.Usage)
	e.int(r.Bytes)
	e.uint(e.planOf(r.Plan))
	e.uint(uint64(len(r.Tries)))
	for i := range r.Tries {
		e.try(&r.Tries[i])
	}
	e.uint(uint64(len(r.Skips)))
	for i := range r.Skips {
		k := &r.Skips[i]
		e.text(k.Candidate)
		e.text(k.Name)
		e.text(k.Reason)
		e.duration(k.Left)
	}
}

// idPrefix begins the ids that the proxy gives, before 24 hexadecimal digits.
const idPrefix = "req_"

// id writes a request's id, which no other record shares, and so not in the table.
func (e *encoder) id(id string) {
	if packed, ok := packID(id); ok {
		e.uint(0)
		e.buf = append(e.buf, packed[:]...)
		return
	}
	e.uint(uint64(len(id)) + 1)
	e.buf = append(e.buf, id...)
}

// packID is an id of the proxy's in 12 bytes.
func packID(id string) (packed [12]byte, ok bool) {
	digits, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(digits) != 2*len(packed) || strings.ToLower(digits) != digits {
		return packed, false
	}
	n, err := hex.Decode(packed[:], []byte(digits))
	return packed, err == nil && n == len(packed)
}

// planOf writes a plan into the table of strings: requests mostly share it.
func (e *encoder) planOf(plan []stats.Planned) uint64 {
	if len(plan) == 0 {
		return e.intern("")
	}
	if e.plan == &plan[0] {
		return e.planned
	}
	var b []byte
	b = binary.AppendUvarint(b, uint64(len(plan)))
	for i := range plan {
		p := &plan[i]
		for _, s := range [...]string{p.Candidate, p.Name, p.Model} {
			b = binary.AppendUvarint(b, e.intern(s))
		}
		b = binary.AppendVarint(b, int64(p.Tier))
	}
	e.plan, e.planned = &plan[0], e.intern("plan\x00"+string(b))
	return e.planned
}

func (e *encoder) try(t *stats.Try) {
	for _, s := range [...]string{t.Candidate, t.Name, t.Model} {
		e.text(s)
	}
	e.moment(t.Start)
	for _, d := range [...]time.Duration{t.Connected, t.Header, t.FirstByte, t.FirstContent, t.Released, t.End} {
		e.duration(d)
	}
	e.uint(uint64(t.Verdict))
	e.int(int64(t.Status))
	e.usage(t.Usage)
	e.int(t.Bytes)
	e.flags(t.Hedged, t.Failure != nil, t.Class != "" || t.Fault != "" || t.Rule != "" || t.Action != "" || t.Text != "" || t.Wait != 0 || t.Froze != 0)
	if t.Class != "" || t.Fault != "" || t.Rule != "" || t.Action != "" || t.Text != "" || t.Wait != 0 || t.Froze != 0 {
		for _, s := range [...]string{t.Class, t.Fault, t.Rule, t.Action, t.Text} {
			e.text(s)
		}
		e.duration(t.Wait)
		e.duration(t.Froze)
	}
	if f := t.Failure; f != nil {
		for _, s := range [...]string{f.Kind, f.Phase, f.Code, f.Message, f.Account, f.Body, f.Next, f.Scope} {
			e.text(s)
		}
		e.flags(f.Cut, f.Errored, f.Empty, f.WellFormed, f.HasRetryAfter, f.Unreached)
		e.int(int64(f.Embedded))
		e.duration(f.RetryAfter)
		e.int(int64(f.Number))
		e.duration(f.Wait)
		e.duration(f.Freeze)
	}
}
