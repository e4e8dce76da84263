package stats

import (
	"maps"
	"math"
	"time"
)

// Span names one of the windows of a Series.
type Span uint8

// The windows, from the longest to the shortest.
const (
	All Span = iota
	SixHours
	Hour
	HalfHour
	TenMinutes
	Spans // how many there are
)

var spans = [Spans]struct {
	name   string
	length time.Duration
}{
	{"all", 0},
	{"6h", 6 * time.Hour},
	{"1h", time.Hour},
	{"30m", 30 * time.Minute},
	{"10m", 10 * time.Minute},
}

// String names the window: all, 6h, 1h, 30m, 10m.
func (s Span) String() string { return spans[s].name }

// Length is the window's; 0 for All.
func (s Span) Length() time.Duration { return spans[s].length }

// Tokens are sums of what answers reported. nil means that nobody reported it,
// which is not 0: with no answers at all, nothing is known either.
type Tokens struct {
	Input, Output, Cached, CacheWrite, Reasoning, Total *int64
	// Incomplete says that an answer which should have reported its input and
	// output did not: the sums are "at least".
	Incomplete bool
	// CachedIncomplete says the same of Cached, which many upstreams never
	// report. CacheWrite and Reasoning are always "at least".
	CachedIncomplete bool
}

// Times are durations of whole successes; nil where there were none. A
// percentile is off by at most 1/32 of itself, the average not at all.
type Times struct{ Avg, P50, P95, P99 *time.Duration }

// Window is what happened in one stretch of time up to now.
type Window struct {
	// Requests are Successes + Failures + Empty and, for a model, Abandoned.
	// For a candidate they are the attempts that got a verdict.
	Requests int64
	// For a model, an upstream's error that was passed through, an exhausted
	// chain and a broken answer are all failures.
	Successes, Failures int64
	// Empty are answers that were well-formed and said nothing.
	Empty int64
	// Abandoned are requests whose client left; for a candidate, also attempts
	// that lost against another.
	Abandoned int64
	// SuccessRate is from 0 to 1, over successes, failures and empty answers;
	// nil where there were none.
	SuccessRate *float64
	Tokens
	// Latency is from the start to the last byte, FirstContent to the first
	// content, both of whole successes; those without a first content of their
	// own are not in the latter.
	Latency, FirstContent Times
	// CacheHit is cached over input tokens, from 0 to 1, over those answers that
	// reported both; nil where none did, or none read anything.
	CacheHit *float64
}

// Series is the books of one candidate or model, at one moment. It shares
// nothing with the ledger.
type Series struct {
	// Window is that of all time: what Windows[All] holds.
	Window
	// Freezes and Hedges count the attempts that froze a candidate, and those
	// that did so by auto-hedge. Freezes by people are not in them.
	Freezes, Hedges int64
	// Streak is how many requests in a row failed, for a model. For a candidate
	// it is 0: what counts there is for the health board to say.
	Streak int64
	// LastError is the last failure, for people, and LastErrorAt when it was, to
	// the second; "" and the zero time if there was none.
	LastError   string
	LastErrorAt time.Time
	// InFlight are a model's requests under way; 0 for a candidate.
	InFlight int64
	// RPM is how many successes finished in the last 60 s.
	RPM int64
	// TPM is how many tokens were reported in the last 60 s; 0 where nobody
	// answered, nil where answers came and none reported any. TPMIncomplete says
	// that only some did.
	TPM           *int64
	TPMIncomplete bool
	Windows       [Spans]Window
	// Latencies and FirstContents are those of all whole successes.
	Latencies, FirstContents Distribution
	// Failed are a candidate's failures by their class: a
	// status, network, bad_stream, stalled_stream or timeout; Other beyond 32.
	Failed map[string]int64
	// History is the last 24 hours, oldest first; the last cell is the running
	// one.
	History [HistoryCells]Cell
}

// CellState is the colour of a cell of the history.
type CellState uint8

// The states of a cell. What answers came decides; only a cell without any is
// frozen or idle.
const (
	CellIdle    CellState = iota // nothing happened
	CellOK                       // only successes
	CellMixed                    // successes, and failures or empty answers
	CellFailing                  // only failures or empty answers
	CellFrozen                   // nothing happened because it was frozen
)

// String names the state: idle, ok, mixed, failing, frozen.
func (s CellState) String() string {
	switch s {
	case CellOK:
		return "ok"
	case CellMixed:
		return "mixed"
	case CellFailing:
		return "failing"
	case CellFrozen:
		return "frozen"
	}
	return "idle"
}

// MarshalText gives the same word as String, so that JSON shows words.
func (s CellState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Cell is ten minutes of the history.
type Cell struct {
	// Start is in UTC; cells begin at whole ten minutes.
	Start                      time.Time
	State                      CellState
	Successes, Failures, Empty int64
	// Frozen says that it was frozen for at least a part of them, whatever else
	// happened.
	Frozen bool
}

// Totals gives the process's counters.
func (l *Ledger) Totals() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals
}

// Candidate gives the books of an identity as of now; empty ones if it was never
// heard of.
func (l *Ledger) Candidate(id string, now time.Time) Series {
	return l.find(&l.candidates, id).snapshot(now)
}

// Model gives the books of a virtual model, "*" for the pool, as of now; empty
// ones if it was never heard of.
func (l *Ledger) Model(name string, now time.Time) Series {
	s := l.find(&l.models, name).snapshot(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.InFlight = l.running[name]
	return s
}

// CandidateWindow gives one window of an identity, of any length up to 24 hours;
// longer ones are cut to that. It is made of whole buckets of 10 s, 1 min or
// 10 min, the finest that are kept for so long and at least one of them, and does
// not reach back further than asked.
func (l *Ledger) CandidateWindow(id string, length time.Duration, now time.Time) Window {
	return l.find(&l.candidates, id).windowed(length, now)
}

// ModelWindow is CandidateWindow for a virtual model.
func (l *Ledger) ModelWindow(name string, length time.Duration, now time.Time) Window {
	return l.find(&l.models, name).windowed(length, now)
}

func (l *Ledger) find(s *shelf, name string) *series {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := s.books[name]; found != nil {
		return found
	}
	return newSeries(s.model)
}

func (s *series) snapshot(now time.Time) Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Series{Freezes: s.freezes, Hedges: s.hedges, LastError: s.lastError, LastErrorAt: s.lastErrorAt}
	if s.model {
		out.Streak = s.streak
	}
	var sum summary
	sum.add(&s.all)
	out.Window = sum.window(s.model)
	out.Windows[All] = out.Window
	for span := SixHours; span < Spans; span++ {
		out.Windows[span] = s.window(span.Length(), now)
	}
	last := s.minute.sum(now.Unix())
	out.RPM = last.successes
	if last.reported > 0 || last.answered == 0 {
		out.TPM = new(last.tokens)
	}
	out.TPMIncomplete = last.reported < last.answered
	out.Latencies, out.FirstContents = distribution(s.all.latencyCells, s.all.latency), distribution(s.all.firstCells, s.all.first)
	out.Failed = maps.Clone(s.failed)
	s.history(&out.History, now)
	return out
}

func (s *series) windowed(length time.Duration, now time.Time) Window {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window(length, now)
}

// window adds up a window from the finest ring that reaches back far enough.
func (s *series) window(length time.Duration, now time.Time) Window {
	seconds := int64(length / time.Second)
	for _, r := range s.rings() {
		buckets := int64(len(r.slots))
		if seconds > r.width*buckets && r != &s.long {
			continue
		}
		var sum summary
		r.each(now.Unix(), int(max(1, min(seconds/r.width, buckets))), func(_ int64, b *bucket) {
			if b != nil {
				sum.add(b)
			}
		})
		return sum.window(s.model)
	}
	panic("unreachable: the long ring takes every length")
}

func (s *series) history(out *[HistoryCells]Cell, now time.Time) {
	i := 0
	s.long.each(now.Unix(), HistoryCells, func(index int64, b *bucket) {
		c := &out[i]
		i++
		c.Start = time.Unix(index*longWidth, 0).UTC()
		c.Frozen = s.frozen.holds(index)
		if b != nil {
			c.Successes, c.Failures, c.Empty = b.classes[succeeded], b.classes[failed], b.classes[empty]
		}
		switch bad := c.Failures + c.Empty; {
		case c.Successes > 0 && bad > 0:
			c.State = CellMixed
		case c.Successes > 0:
			c.State = CellOK
		case bad > 0:
			c.State = CellFailing
		case c.Frozen:
			c.State = CellFrozen
		}
	})
}

// A summary is buckets added up, to be read as a window.
type summary struct {
	counts
	latencies, contents spread
}

func (s *summary) add(b *bucket) {
	s.counts.add(&b.counts)
	s.latencies.add(b.latencyCells)
	s.contents.add(b.firstCells)
}

func (s *summary) window(model bool) Window {
	w := Window{
		Successes: s.classes[succeeded],
		Failures:  s.classes[failed],
		Empty:     s.classes[empty],
		Abandoned: s.classes[abandoned],
	}
	w.Requests = plus(w.Successes, plus(w.Failures, w.Empty))
	w.SuccessRate = ratio(w.Successes, w.Requests)
	if model {
		w.Requests = plus(w.Requests, w.Abandoned)
	}
	w.Tokens = s.tokens()
	w.Latency = times(s.latency, s.latencies.total(), &s.latencies)
	w.FirstContent = times(s.first, s.firsts, &s.contents)
	w.CacheHit = ratio(s.cacheHits, s.cacheInput)
	return w
}

func (c *counts) tokens() Tokens {
	known := func(figure int) *int64 {
		if c.reported[figure] == 0 {
			return nil
		}
		return new(c.sums[figure])
	}
	return Tokens{
		Input: known(input), Output: known(output), Cached: known(cached),
		CacheWrite: known(cacheWrite), Reasoning: known(reasoning), Total: known(total),
		Incomplete:       min(c.reported[input], c.reported[output], c.reported[total]) < c.answered,
		CachedIncomplete: c.reported[cached] < c.answered,
	}
}

func times(sum, n int64, s *spread) Times {
	p50, p95, p99, ok := s.percentiles()
	if !ok || n == 0 {
		return Times{}
	}
	// A sum from a state file may be anything, so the product is kept in range.
	avg := time.Duration(min(sum/n, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
	return Times{Avg: &avg, P50: &p50, P95: &p95, P99: &p99}
}

func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}
