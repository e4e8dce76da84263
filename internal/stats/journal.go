package stats

import "slices"

// DefaultJournal is how many records a ledger keeps where nobody says otherwise.
const DefaultJournal = 1000

// The journal keeps at most this many of a record's tries and skips: the first
// and the last ones, because a request that goes round for minutes may make
// thousands.
const (
	maxTries   = 64
	maxSkips   = 64
	maxPlanned = 64
)

// maxQuoted bounds, in bytes, what the journal keeps in all of the bodies of one
// record's failures.
const maxQuoted = 16 << 10

// Sequenced is a record with its place in the journal. It is shared by all who
// read it and never written to.
type Sequenced struct {
	// Seq counts from 1 in the order in which records were added, since the
	// process began.
	Seq uint64
	Record
}

// A journal is the last records, in a ring.
type journal struct {
	ring []*Sequenced
	last uint64 // the newest record's number; 0 if there was none
}

func (j *journal) add(s *Sequenced) {
	j.last++
	s.Seq = j.last
	if len(j.ring) < cap(j.ring) {
		j.ring = append(j.ring, s)
		return
	}
	j.ring[(j.last-1)%uint64(len(j.ring))] = s
}

// oldest is the first number that is kept, or would be kept next.
func (j *journal) oldest() uint64 { return j.last - uint64(len(j.ring)) + 1 }

// from gives the kept records from a number on, oldest first, at most limit.
func (j *journal) from(seq uint64, limit int) []*Sequenced {
	first := max(seq, j.oldest())
	list := make([]*Sequenced, min(j.last-first+1, uint64(max(limit, 0))))
	for i := range list {
		list[i] = j.ring[(first+uint64(i)-1)%uint64(len(j.ring))]
	}
	return list
}

// Seq is the newest record's number, 0 before the first: a cheap way to learn
// whether anything finished since one last looked.
func (l *Ledger) Seq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journal.last
}

// Since gives the records after a number, oldest first, at most limit of them, and
// how many that came after it are no longer kept. A number that was never given
// out is from before a restart: then everything kept is new.
func (l *Ledger) Since(seq uint64, limit int) (records []Sequenced, dropped uint64) {
	l.mu.Lock()
	if seq > l.journal.last {
		seq = 0
	}
	list := l.journal.from(seq+1, limit)
	if oldest := l.journal.oldest(); oldest > seq+1 {
		dropped = oldest - seq - 1
	}
	l.mu.Unlock()
	records = make([]Sequenced, len(list))
	for i, s := range list {
		records[i] = *s
	}
	return records, dropped
}

// Latest gives the newest records that match, newest first, at most limit of them.
// match runs without any lock; nil matches all.
func (l *Ledger) Latest(limit int, match func(*Record) bool) []Sequenced {
	var records []Sequenced
	for _, s := range slices.Backward(l.kept()) {
		if len(records) >= limit {
			break
		}
		if match == nil || match(&s.Record) {
			records = append(records, *s)
		}
	}
	return records
}

// Find gives the record of a request id, as long as the journal keeps it.
func (l *Ledger) Find(id string) (Record, bool) {
	for _, s := range slices.Backward(l.kept()) {
		if s.ID == id {
			return s.Record, true
		}
	}
	return Record{}, false
}

func (l *Ledger) kept() []*Sequenced {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journal.from(1, len(l.journal.ring))
}

// bound cuts a record down to what the journal may keep of it. It copies what it
// changes, as the slices are still the caller's to read.
func bound(r *Record) {
	if excess := len(r.Tries) - maxTries; excess > 0 {
		half := maxTries / 2
		r.Tries = slices.Concat(r.Tries[:half], r.Tries[half+excess:])
		r.Omitted = excess
		switch {
		case r.Winner >= half+excess:
			r.Winner -= excess
		case r.Winner >= half:
			r.Winner = -1
		}
	}
	if excess := len(r.Skips) - maxSkips; excess > 0 {
		half := maxSkips / 2
		r.Skips = slices.Concat(r.Skips[:half], r.Skips[half+excess:])
	}
	if len(r.Plan) > maxPlanned {
		r.Plan = slices.Clone(r.Plan[:maxPlanned])
	}
	if slices.ContainsFunc(r.Tries, func(t Try) bool { return len(t.Text) > maxText }) {
		r.Tries = slices.Clone(r.Tries)
		for i := range r.Tries {
			r.Tries[i].Text = clip(r.Tries[i].Text)
		}
	}
	quoted := 0
	for i := range r.Tries {
		f := r.Tries[i].Failure
		if f == nil {
			continue
		}
		if quoted += len(f.Body); quoted <= maxQuoted {
			continue
		}
		if quoted -= len(f.Body); f.Body != "" {
			r.Tries = slices.Clone(r.Tries)
			short := *f
			short.Body, short.Cut = "", true
			r.Tries[i].Failure = &short
		}
	}
}
