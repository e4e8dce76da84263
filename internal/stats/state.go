package stats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// stateVersion goes up when a file of an older version would be misread. Fields
// that are only added do not need that: unknown ones are passed over, missing
// ones are 0.
const stateVersion = 1

// ErrDamaged is why a State was not imported: it says something that no ledger
// can have said, or is of a version this one does not know.
var ErrDamaged = errors.New("damaged statistics")

// State is what a ledger keeps over a restart: totals, windows, history and last
// errors. Not in it are the journal, the last minute's rates and what is in
// flight. It is meant to be encoded as JSON and to be looked into by nobody.
type State struct {
	Version    int                    `json:"version"`
	Totals     Totals                 `json:"totals"`
	Candidates map[string]savedSeries `json:"candidates,omitempty"`
	Models     map[string]savedSeries `json:"models,omitempty"`
}

type savedSeries struct {
	All         savedBucket   `json:"all,omitzero"`
	Short       []savedBucket `json:"10s,omitempty"`
	Middle      []savedBucket `json:"1m,omitempty"`
	Long        []savedBucket `json:"10m,omitempty"`
	Frozen      [][2]int64    `json:"frozen,omitempty"` // ten-minute cells since 1970, both ends included
	Freezes     int64         `json:"freezes,omitempty"`
	Hedges      int64         `json:"hedges,omitempty"`
	Streak      int64         `json:"streak,omitempty"`
	LastError   string        `json:"last_error,omitempty"`
	LastErrorAt time.Time     `json:"last_error_at,omitzero"`

	Failed map[string]int64 `json:"failed,omitempty"` // by class
}

// savedBucket has short names, as a file holds thousands of them.
type savedBucket struct {
	Index        int64          `json:"i,omitempty"`
	Classes      [4]int64       `json:"n,omitzero"` // abandoned, succeeded, failed, empty
	Answered     int64          `json:"answered,omitempty"`
	Sums         [figures]int64 `json:"tokens,omitzero"` // input, output, cached, cache_write, reasoning, total
	Reported     [figures]int64 `json:"reported,omitzero"`
	Cache        [2]int64       `json:"cache,omitzero"` // input, cached
	Latency      int64          `json:"us,omitempty"`
	First        int64          `json:"first_us,omitempty"`
	Firsts       int64          `json:"firsts,omitempty"`
	LatencyCells packed         `json:"us_cells,omitempty"`
	FirstCells   packed         `json:"first_cells,omitempty"`
}

// Export gives what is to be kept, as of now. It shares nothing with the ledger.
func (l *Ledger) Export(now time.Time) State {
	state, _ := l.Checkpoint(now)
	return state
}

// Checkpoint is Export together with the number of the newest record that is in
// the state: every record up to it is, and none after it. Who adds a record
// meanwhile waits while the books are copied, for some twenty microseconds per
// candidate and model that has any; they are encoded afterwards.
func (l *Ledger) Checkpoint(now time.Time) (State, uint64) { return l.checkpoint(now, nil) }

// Divert is Checkpoint, and sets another tap at the same moment: the former one has
// heard of every record that is in the state, and f hears of every one that is not.
func (l *Ledger) Divert(now time.Time, f func(*Sequenced, *Bodies)) (State, uint64) {
	return l.checkpoint(now, f)
}

func (l *Ledger) checkpoint(now time.Time, tap func(*Sequenced, *Bodies)) (State, uint64) {
	l.booking.Lock()
	if tap != nil {
		l.tap = tap
	}
	l.mu.Lock()
	state, seq := State{Version: stateVersion, Totals: l.totals}, l.journal.last
	state.Totals.InFlight = 0
	candidates, models := l.candidates.copied(), l.models.copied()
	l.mu.Unlock()
	l.booking.Unlock()
	state.Candidates, state.Models = exported(candidates, now), exported(models, now)
	return state, seq
}

// copied gives the books as they are. The ledger's lock is held.
func (s *shelf) copied() map[string]*series {
	books := make(map[string]*series, len(s.books))
	for name, b := range s.books {
		books[name] = b.copied()
	}
	return books
}

func exported(books map[string]*series, now time.Time) map[string]savedSeries {
	saved := make(map[string]savedSeries, len(books))
	for name, b := range books {
		saved[name] = b.export(now)
	}
	return saved
}

// copied gives books of their own that say the same. The last minute's rates are
// left out: nobody saves them.
func (s *series) copied() *series {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &series{
		model: s.model, all: s.all.copied(), frozen: slices.Clone(s.frozen), freezes: s.freezes, hedges: s.hedges,
		streak: s.streak, lastError: s.lastError, lastErrorAt: s.lastErrorAt,
		failed: maps.Clone(s.failed),
	}
	for i, to := range c.rings() {
		*to = s.rings()[i].copied()
	}
	return c
}

// export encodes books that nobody writes to.
func (s *series) export(now time.Time) savedSeries {
	out := savedSeries{
		All:     saveBucket(&s.all),
		Freezes: s.freezes, Hedges: s.hedges, Streak: s.streak,
		LastError: s.lastError, LastErrorAt: s.lastErrorAt, Failed: s.failed,
	}
	for i, list := range []*[]savedBucket{&out.Short, &out.Middle, &out.Long} {
		s.rings()[i].each(now.Unix(), HistoryCells, func(_ int64, b *bucket) {
			if b != nil {
				*list = append(*list, saveBucket(b))
			}
		})
	}
	oldest := cellAt(now) - HistoryCells
	for _, r := range s.frozen {
		if r.to > oldest {
			out.Frozen = append(out.Frozen, [2]int64{r.from, r.to})
		}
	}
	return out
}

// Import adds what a state holds to what is booked already; it is meant for a
// ledger that is still empty. What lies after now, or too far back for a window,
// is left out. A damaged state is refused whole, with ErrDamaged, and changes
// nothing.
func (l *Ledger) Import(state State, now time.Time) error {
	if state.Version != stateVersion {
		return fmt.Errorf("%w: version %d, not %d", ErrDamaged, state.Version, stateVersion)
	}
	if t := &state.Totals; min(t.Requests, t.Successes, t.PassedThrough, t.Empty, t.Exhausted, t.Broken, t.ClientCancelled, t.Ignored, t.Refused) < 0 {
		return fmt.Errorf("%w: a negative total", ErrDamaged)
	}
	for sort, all := range map[string]map[string]savedSeries{"candidate": state.Candidates, "model": state.Models} {
		for name, s := range all {
			if err := s.check(); err != nil {
				return fmt.Errorf("%w: %s %q: %w", ErrDamaged, sort, name, err)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.add(&state.Totals)
	for name, s := range state.Candidates {
		l.candidates.open(name).restore(&s, now)
	}
	for name, s := range state.Models {
		l.models.open(name).restore(&s, now)
	}
	return nil
}

func (t *Totals) add(o *Totals) {
	t.Requests = plus(t.Requests, o.Requests)
	t.Successes = plus(t.Successes, o.Successes)
	t.PassedThrough = plus(t.PassedThrough, o.PassedThrough)
	t.Empty = plus(t.Empty, o.Empty)
	t.Exhausted = plus(t.Exhausted, o.Exhausted)
	t.Broken = plus(t.Broken, o.Broken)
	t.ClientCancelled = plus(t.ClientCancelled, o.ClientCancelled)
	t.Ignored = plus(t.Ignored, o.Ignored)
	t.Refused = plus(t.Refused, o.Refused)
}

func (s *series) restore(saved *savedSeries, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := saved.All.bucket()
	s.all.add(&all)
	for i, list := range [][]savedBucket{saved.Short, saved.Middle, saved.Long} {
		r := s.rings()[i]
		current := floorDiv(now.Unix(), r.width)
		for _, b := range list {
			if b.Index > current || b.Index <= current-int64(len(r.slots)) {
				continue
			}
			if slot := r.slot(b.Index * r.width); slot != nil {
				restored := b.bucket()
				slot.add(&restored)
			}
		}
	}
	for _, r := range saved.Frozen {
		s.frozen.add(cellRange{r[0], r[1]})
	}
	s.freezes = plus(s.freezes, saved.Freezes)
	s.hedges = plus(s.hedges, saved.Hedges)
	s.streak = plus(s.streak, saved.Streak)
	for class, n := range saved.Failed {
		s.fail(clip(class), n)
	}
	if at := saved.LastErrorAt; s.lastError == "" && !at.After(now) {
		s.lastError, s.lastErrorAt = clip(saved.LastError), at
	}
}

func (s *savedSeries) check() error {
	if min(s.Freezes, s.Hedges, s.Streak) < 0 {
		return errors.New("a negative counter")
	}
	if err := s.All.check(); err != nil {
		return err
	}
	for _, n := range s.Failed {
		if n < 0 {
			return errors.New("a negative counter")
		}
	}
	for _, list := range [][]savedBucket{s.Short, s.Middle, s.Long} {
		for i := range list {
			if err := list[i].check(); err != nil {
				return err
			}
		}
	}
	// Far beyond any freeze, and far from where adding one would overflow.
	const farthest = 1 << 40
	for _, r := range s.Frozen {
		if r[0] > r[1] || r[0] < -farthest || r[1] > farthest {
			return errors.New("a freeze that ends before it begins, or never")
		}
	}
	return nil
}

func (b *savedBucket) check() error {
	least := min(b.Answered, b.Latency, b.First, b.Firsts, b.Cache[0], b.Cache[1])
	for _, n := range b.Classes {
		least = min(least, n)
	}
	for i := range figures {
		least = min(least, b.Sums[i], b.Reported[i])
	}
	if least < 0 {
		return errors.New("a negative count")
	}
	if _, ok := b.LatencyCells.histogram(); !ok {
		return errors.New("a broken latency histogram")
	}
	if _, ok := b.FirstCells.histogram(); !ok {
		return errors.New("a broken histogram of first contents")
	}
	return nil
}

func saveBucket(b *bucket) savedBucket {
	return savedBucket{
		Index: b.index, Classes: b.classes, Answered: b.answered,
		Sums: b.sums, Reported: b.reported, Cache: [2]int64{b.cacheInput, b.cacheHits},
		Latency: b.latency, First: b.first, Firsts: b.firsts,
		LatencyCells: pack(b.latencyCells), FirstCells: pack(b.firstCells),
	}
}

// bucket gives what was saved, which check has found good.
func (b *savedBucket) bucket() bucket {
	latencies, _ := b.LatencyCells.histogram()
	firsts, _ := b.FirstCells.histogram()
	return bucket{
		index: b.Index,
		counts: counts{
			classes: b.Classes, answered: b.Answered, sums: b.Sums, reported: b.Reported,
			cacheInput: b.Cache[0], cacheHits: min(b.Cache[1], b.Cache[0]),
			latency: b.Latency, first: b.First, firsts: b.Firsts,
		},
		latencyCells: latencies, firstCells: firsts,
	}
}

// packed is a histogram in the file, where it is most of what there is: for each
// cell, in order, two varints: how far it is from the one before, and its count.
// JSON shows it in base64.
type packed []byte

func pack(h histogram) packed {
	var p packed
	last := uint16(0)
	for _, c := range h {
		p = binary.AppendUvarint(p, uint64(c.cell-last))
		p = binary.AppendUvarint(p, uint64(c.n))
		last = c.cell
	}
	return p
}

// histogram unpacks; ok is false for bytes that pack never wrote.
func (p packed) histogram() (h histogram, ok bool) {
	cell := uint64(0)
	for rest := []byte(p); len(rest) > 0; {
		step, n := binary.Uvarint(rest)
		if n <= 0 || step >= cells || step == 0 && len(h) > 0 {
			return nil, false
		}
		cell += step
		number, m := binary.Uvarint(rest[n:])
		if m <= 0 || number > math.MaxUint32 || cell >= cells {
			return nil, false
		}
		h = append(h, count{uint16(cell), uint32(number)})
		rest = rest[n+m:]
	}
	return h, true
}
