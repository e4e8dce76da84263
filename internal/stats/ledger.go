package stats

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Other is the name under which everything beyond the limits on distinct names
// is booked. A model that is really called so shares those books.
const Other = "other"

// How many candidates and models have books of their own. One with steady
// traffic occupies some 100 KB, an unused one 3 KB.
const (
	maxCandidates = 1024
	maxModels     = 512
)

// clockSlack is by how many seconds one record may be older than another that
// was added before it. More than that means that the clock was set back.
const clockSlack = 10

// Ledger is where every request is booked, once. It may be used by any number of
// goroutines; no call does I/O or waits. Add holds a lock for well under a
// microsecond, and reading one candidate's or model's books holds up only those,
// for some twenty. It is made by NewLedger.
//
// Time is wall-clock time, because the history outlives the process. A clock
// that is set back makes the ledger drop what it booked for the time after, from
// the windows and the history, never from the totals; a clock that runs far
// ahead only lets the windows run empty.
type Ledger struct {
	mu         sync.Mutex // guards all below; taken before a series' own, never after
	totals     Totals
	running    map[string]int64 // by model, only those above 0
	candidates shelf
	models     shelf
	journal    journal
	newest     int64 // Unix seconds of the latest record

	// booking is held by who books a record, shared with others who do, from
	// before it has a number until it is everywhere it belongs; and alone by who
	// needs to know which records are in the books and which are not.
	booking sync.RWMutex
	tap     func(*Sequenced, *Bodies)
}

// Totals are the counters of the whole process and, as far as a state file was
// imported, of those before it.
type Totals struct {
	// Requests are the finished ones that a chain had a say in: the sum of the
	// next six. Ignored and refused ones are not among them.
	Requests        int64 `json:"requests"`
	Successes       int64 `json:"successes"`
	PassedThrough   int64 `json:"passed_through"`
	Empty           int64 `json:"empty"`
	Exhausted       int64 `json:"exhausted"`
	Broken          int64 `json:"broken"`
	ClientCancelled int64 `json:"client_cancelled"`
	// Ignored are requests to the endpoints that statistics ignore, whatever
	// became of them.
	Ignored int64 `json:"ignored"`
	// Refused are requests that we answered ourselves.
	Refused int64 `json:"refused"`
	// InFlight are those entered and not yet added, of every sort.
	InFlight int64 `json:"-"`
}

// A shelf is the books of one sort.
type shelf struct {
	model bool
	limit int
	books map[string]*series
}

// open gives the books of a name, new ones if need be, and the common ones when
// there are too many names.
func (s *shelf) open(name string) *series {
	if b := s.books[name]; b != nil {
		return b
	}
	if len(s.books) >= s.limit && name != Other {
		return s.open(Other)
	}
	b := newSeries(s.model)
	s.books[name] = b
	return b
}

// NewLedger makes an empty ledger whose journal keeps so many records;
// DefaultJournal where the number is not positive.
func NewLedger(journalSize int) *Ledger {
	if journalSize <= 0 {
		journalSize = DefaultJournal
	}
	return &Ledger{
		running:    map[string]int64{},
		candidates: shelf{limit: maxCandidates, books: map[string]*series{}},
		models:     shelf{model: true, limit: maxModels, books: map[string]*series{}},
		journal:    journal{ring: make([]*Sequenced, 0, journalSize)},
	}
}

// Tap has f called with every record that is added, once it is booked, together
// with its bodies, nil without any. f runs on the request's own goroutine and must
// not block; several may run at once, in no certain order. There is one tap.
func (l *Ledger) Tap(f func(*Sequenced, *Bodies)) {
	l.booking.Lock()
	defer l.booking.Unlock()
	l.tap = f
}

// Enter counts a request as in flight. Exactly one Add with the same model must
// follow, whatever becomes of the request.
func (l *Ledger) Enter(model string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.InFlight++
	l.running[model]++
}

// Add books a finished request and counts it out of those in flight. Attempts
// are booked for the moment they ended, the request for its own end.
//
// An ignored request is counted as such, kept in the journal, and booked nowhere
// else. A refused one is no model's; attempts it made all the same are booked.
func (l *Ledger) Add(r Record) {
	kept := &Sequenced{Record: r}
	kept.Bodies = nil
	bound(&kept.Record)
	l.booking.RLock()
	defer l.booking.RUnlock()
	l.book(&r, kept)
	if l.tap != nil {
		l.tap(kept, r.Bodies)
	}
}

// Adopt books a record that another process has finished, as if it had been one of
// this one's: it enters the journal, and the tap hears of it.
func (l *Ledger) Adopt(r Record) {
	l.Enter(r.Model)
	l.Add(r)
	l.markFreezesOf(&r)
}

// markFreezesOf marks what a record's attempts were frozen for.
func (l *Ledger) markFreezesOf(r *Record) {
	for i := range r.Tries {
		if t := &r.Tries[i]; t.Froze > 0 && !t.Start.IsZero() {
			froze := t.Start.Add(max(t.End, 0))
			l.MarkFrozen(t.Candidate, froze, froze.Add(t.Froze))
		}
	}
}

// Replay books a record that another process added, one that is in no state that
// was imported. It is in no journal, and no tap hears of it. What lies after now is
// left out of the windows.
func (l *Ledger) Replay(r Record, now time.Time) {
	if r.Start.Add(max(r.End, 0)).After(now.Add(clockSlack * time.Second)) {
		r.Start = time.Time{}
		r.Tries = slices.Clone(r.Tries)
		for i := range r.Tries {
			r.Tries[i].Start = time.Time{}
		}
	}
	l.booking.RLock()
	defer l.booking.RUnlock()
	l.book(&r, nil)
	l.markFreezesOf(&r)
}

// book enters a record in the books. One that is kept also enters the journal and
// leaves those in flight; nil is a replayed one.
func (l *Ledger) book(r *Record, kept *Sequenced) {
	end := r.Start.Add(max(r.End, 0))

	// The books of up to eight attempts are gathered without allocating.
	var model *series
	var few [8]*series
	candidates := few[:0]

	l.mu.Lock()
	if kept != nil {
		l.journal.add(kept)
		l.leave(r.Model)
	}
	l.count(r)
	if !r.Ignored {
		if !r.Start.IsZero() && kept != nil {
			l.tick(end.Unix())
		}
		if r.Ending != Refused && r.Model != "" {
			model = l.models.open(r.Model)
		}
		for i := range r.Tries {
			candidates = append(candidates, l.candidates.open(r.Tries[i].Candidate))
		}
	}
	l.mu.Unlock()

	if model != nil {
		e := ofRequest(r, end)
		model.book(&e)
	}
	for i, c := range candidates {
		e := ofTry(r, &r.Tries[i], end)
		c.book(&e)
	}
}

func (l *Ledger) leave(model string) {
	l.totals.InFlight = max(0, l.totals.InFlight-1)
	if n := l.running[model]; n > 1 {
		l.running[model] = n - 1
	} else {
		delete(l.running, model)
	}
}

func (l *Ledger) count(r *Record) {
	t := &l.totals
	if r.Ignored {
		t.Ignored++
		return
	}
	switch r.Ending {
	case Success:
		t.Successes++
	case PassedThrough:
		t.PassedThrough++
	case EmptyPassed:
		t.Empty++
	case Exhausted:
		t.Exhausted++
	case Broken:
		t.Broken++
	case Cancelled:
		t.ClientCancelled++
	default:
		t.Refused++
		return
	}
	t.Requests++
}

// tick moves the ledger's idea of the present. What was booked for a future that
// a clock set back has taken away is dropped: it would come up again, as if it
// were new, when the clock gets there.
func (l *Ledger) tick(now int64) {
	if now < l.newest-clockSlack {
		for _, shelf := range []*shelf{&l.candidates, &l.models} {
			for _, s := range shelf.books {
				s.forget(now)
			}
		}
		l.newest = now
	}
	l.newest = max(l.newest, now)
}

// ofRequest is a request as its model books it.
func ofRequest(r *Record, end time.Time) event {
	e := event{at: end.Unix(), timed: !r.Start.IsZero(), latency: -1, first: -1}
	switch r.Ending {
	case Success:
		e.class = succeeded
		if r.Status != switched {
			e.setTimes(r.End.Microseconds(), r.FirstContent.Microseconds())
		}
	case EmptyPassed:
		e.class = empty
	case Cancelled:
		e.class = abandoned
	default:
		e.class = failed
	}
	e.setTokens(r.Usage)
	if r.Winner >= 0 && r.Winner < len(r.Tries) {
		e.answered = e.answered || answered(r, &r.Tries[r.Winner])
	}
	for i := range r.Tries {
		t := &r.Tries[i]
		if t.Froze > 0 {
			e.froze++
		}
		if t.Hedged {
			e.hedged++
		}
		if e.class == failed && t.Verdict == Failed {
			e.failure = clip(cmp.Or(t.Text, t.Class, t.Verdict.String()))
		}
	}
	if e.class == failed && e.failure == "" {
		e.failure = r.Ending.String()
		if len(r.Skips) > 0 {
			e.failure = clip("every candidate was passed over: " + r.Skips[0].Reason)
		}
	}
	return e
}

// ofTry is an attempt as its candidate books it.
func ofTry(r *Record, t *Try, end time.Time) event {
	at := end
	if ended := t.Start.Add(max(t.End, 0)); !t.Start.IsZero() && ended.Before(end) {
		at = ended
	}
	e := event{at: at.Unix(), timed: !r.Start.IsZero(), latency: -1, first: -1}
	switch t.Verdict {
	case OK:
		e.class = succeeded
		if t.Status != switched {
			e.setTimes(t.End.Microseconds(), t.FirstContent.Microseconds())
		}
	case Empty:
		e.class = empty
	case Failed:
		e.class, e.kind = failed, cmp.Or(t.Class, Other)
	default:
		e.class = abandoned
	}
	e.setTokens(t.Usage)
	e.answered = e.answered || answered(r, t)
	if t.Froze > 0 {
		e.froze = 1
	}
	if t.Hedged {
		e.hedged = 1
	}
	if e.class == failed || e.class == empty {
		e.failure = clip(cmp.Or(t.Text, t.Class, t.Verdict.String()))
	}
	return e
}

// switched is the status of a WebSocket, which lasts for as long as somebody wants:
// that is no latency.
const switched = 101

// answered says whether an attempt's answer should have reported its tokens: it
// said something, or was whole. A refusal has none to report, and neither has an
// answer to anything but a POST, a WebSocket apart.
func answered(r *Record, t *Try) bool {
	if r.Method != "POST" && t.Status != switched {
		return false
	}
	return t.Verdict == OK || t.Verdict == Empty || t.FirstContent > 0
}

// MarkFrozen marks a candidate's history as frozen from one time until another,
// which may lie ahead; Thaw takes back what lies ahead. Marks add up.
func (l *Ledger) MarkFrozen(candidate string, from, until time.Time) {
	l.mu.Lock()
	s := l.candidates.open(candidate)
	shared := s == l.candidates.books[Other]
	l.mu.Unlock()
	if shared {
		// One candidate's freeze says nothing of all the others.
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen.mark(from, until)
}

// Thaw ends a candidate's marks at a time, as when a person lifts its freeze.
func (l *Ledger) Thaw(candidate string, at time.Time) {
	l.mu.Lock()
	s := l.candidates.books[candidate]
	l.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen.thaw(at)
}

// Retain forgets the books of the candidates and models that are not to be kept,
// as after a reload. It asks without holding a lock. Requests still running for
// one of them open new books when they end. The totals and the journal stay.
func (l *Ledger) Retain(keepCandidate, keepModel func(name string) bool) {
	l.candidates.retain(&l.mu, keepCandidate)
	l.models.retain(&l.mu, keepModel)
}

func (s *shelf) retain(mu *sync.Mutex, keep func(string) bool) {
	mu.Lock()
	names := s.names()
	mu.Unlock()
	var gone []string
	for _, name := range names {
		if !keep(name) {
			gone = append(gone, name)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range gone {
		delete(s.books, name)
	}
}

// names gives the names in no particular order. The ledger's lock is held.
func (s *shelf) names() []string {
	names := make([]string, 0, len(s.books))
	for name := range s.books {
		names = append(names, name)
	}
	return names
}
