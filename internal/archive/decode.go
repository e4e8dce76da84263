package archive

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/internal/stats"
)

// errBlock is why a block cannot be read: it holds what no encoder wrote.
var errBlock = errors.New("damaged block of the request log")

// maxParts bounds, while a block is read, how many tries, skips or planned
// candidates one record may claim to have. The ledger lets through far fewer.
const maxParts = 4096

// A decoder reads one block. After an error everything it gives is zero.
type decoder struct {
	rest    []byte
	strings []string
	base    int64
	seq     uint64
	left    int
	bad     bool
}

// decode begins a block.
func decode(block []byte) (*decoder, error) {
	if len(block) == 0 || block[0] != blockVersion {
		return nil, fmt.Errorf("%w: unknown version", errBlock)
	}
	d := &decoder{rest: block[1:]}
	d.base, d.seq = d.int(), d.uint()
	n := d.uint()
	if n > uint64(len(d.rest)) {
		return nil, errBlock
	}
	d.strings = make([]string, 0, n)
	for range n {
		d.strings = append(d.strings, string(d.take(d.uint())))
	}
	left := d.uint()
	if d.bad || left > uint64(len(d.rest)) {
		return nil, errBlock
	}
	d.left = int(left)
	return d, nil
}

// decodeAll reads a block. With errBlock come the records before the damage.
func decodeAll(block []byte) ([]stats.Sequenced, error) {
	d, err := decode(block)
	if err != nil {
		return nil, err
	}
	all := make([]stats.Sequenced, 0, d.left)
	var s stats.Sequenced
	for d.next(&s) {
		all = append(all, s)
	}
	if d.bad || len(d.rest) > 0 {
		return all, errBlock
	}
	return all, nil
}

// next reads a record; false at the end, or where the rest makes no sense.
func (d *decoder) next(s *stats.Sequenced) bool {
	if d.left == 0 || d.bad {
		return false
	}
	d.left--
	*s = stats.Sequenced{}
	r := &s.Record
	s.Seq = d.seq + uint64(d.int())
	r.ID = d.id()
	r.Start = d.moment()
	r.Released, r.FirstContent, r.End = d.duration(), d.duration(), d.duration()
	for _, to := range [...]*string{&r.Model, &r.Client, &r.Method, &r.Path, &r.Dialect, &r.Strategy} {
		*to = d.text()
	}
	d.flags(&r.Stream, &r.Ignored)
	r.Status = int(d.int())
	r.Ending = stats.Ending(d.byte(uint64(stats.Cancelled)))
	r.Winner, r.Omitted = int(d.int()), int(d.uint())
	r.Usage, r.Bytes = d.usage(), d.int()
	r.Plan = d.plan(d.text())
	r.Tries = make([]stats.Try, d.count())
	for i := range r.Tries {
		d.try(&r.Tries[i])
	}
	if skips := d.count(); skips > 0 {
		r.Skips = make([]stats.Skip, skips)
	}
	for i := range r.Skips {
		r.Skips[i] = stats.Skip{Candidate: d.text(), Name: d.text(), Reason: d.text(), Left: d.duration()}
	}
	if r.Winner >= len(r.Tries) {
		d.bad = true
	}
	return !d.bad
}

func (d *decoder) try(t *stats.Try) {
	for _, to := range [...]*string{&t.Candidate, &t.Name, &t.Model} {
		*to = d.text()
	}
	t.Start = d.moment()
	for _, to := range [...]*time.Duration{&t.Connected, &t.Header, &t.FirstByte, &t.FirstContent, &t.Released, &t.End} {
		*to = d.duration()
	}
	t.Verdict = stats.Verdict(d.byte(uint64(stats.Failed)))
	t.Status = int(d.int())
	t.Usage, t.Bytes = d.usage(), d.int()
	var judged, account bool
	d.flags(&t.Hedged, &judged, &account)
	if account {
		for _, to := range [...]*string{&t.Class, &t.Fault, &t.Rule, &t.Action, &t.Text} {
			*to = d.text()
		}
		t.Wait, t.Froze = d.duration(), d.duration()
	}
	if !judged {
		return
	}
	f := new(stats.Failure)
	for _, to := range [...]*string{&f.Kind, &f.Phase, &f.Code, &f.Message, &f.Account, &f.Body, &f.Next, &f.Scope} {
		*to = d.text()
	}
	d.flags(&f.Cut, &f.Errored, &f.Empty, &f.WellFormed, &f.HasRetryAfter, &f.Unreached)
	f.Embedded, f.RetryAfter, f.Number = int(d.int()), d.duration(), int(d.int())
	f.Wait, f.Freeze = d.duration(), d.duration()
	t.Failure = f
}

func (d *decoder) plan(text string) []stats.Planned {
	encoded, ok := strings.CutPrefix(text, "plan\x00")
	if !ok {
		return nil
	}
	in := decoder{rest: []byte(encoded), strings: d.strings}
	plan := make([]stats.Planned, in.count())
	for i := range plan {
		plan[i] = stats.Planned{Candidate: in.text(), Name: in.text(), Model: in.text(), Tier: int(in.int())}
	}
	d.bad = d.bad || in.bad
	return plan
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

// count is how many things follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > min(uint64(len(d.rest)), maxParts) {
		d.bad, d.rest = true, nil
		return 0
	}
	return int(n)
}

// byte is a small number up to the most it can be.
func (d *decoder) byte(most uint64) uint8 {
	n := d.uint()
	if n > most {
		d.bad = true
		return 0
	}
	return uint8(n)
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) text() string {
	at := d.uint()
	if at >= uint64(len(d.strings)) {
		d.bad = true
		return ""
	}
	return d.strings[at]
}

func (d *decoder) flags(to ...*bool) {
	bits := d.uint()
	for i, flag := range to {
		*flag = bits&(1<<i) != 0
	}
}

func (d *decoder) moment() time.Time {
	if d.uint() == 0 {
		return time.Time{}
	}
	return time.Unix(0, d.base+d.int())
}

func (d *decoder) usage() stats.Usage {
	if d.uint() == 0 {
		return stats.NoUsage()
	}
	return stats.Usage{Input: d.int(), Output: d.int(), Cached: d.int(), CacheWrite: d.int(), Reasoning: d.int(), Total: d.int()}
}

func (d *decoder) id() string {
	n := d.uint()
	if n > 0 {
		return string(d.take(n - 1))
	}
	packed := d.take(12)
	return idPrefix + hex.EncodeToString(packed)
}
