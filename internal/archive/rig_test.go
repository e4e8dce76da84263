package archive

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"understudy/internal/stats"
)

// A rig is an archive that is written turn by turn, as the test says.
type rig struct {
	*Archive
	t      *testing.T
	ledger *stats.Ledger
	log    *lines
	n      int
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// plenty keeps everything that tests write.
var plenty = Limits{Keep: 1_000_000}

// newRig is a process that has just begun, with the file at path.
func newRig(t *testing.T, path string, l Limits) *rig {
	t.Helper()
	r := &rig{t: t, ledger: stats.NewLedger(0), log: new(lines)}
	r.Archive = New(Options{Path: path, Ledger: r.ledger, Limits: l, Log: slog.New(slog.NewTextHandler(r.log, nil))})
	r.ledger.Tap(r.Offer)
	r.Open(t.Context())
	t.Cleanup(r.die)
	return r
}

func at(t *testing.T) string { return filepath.Join(t.TempDir(), "archive.db") }

// die ends the process as a kill does: nothing is written.
func (r *rig) die() {
	r.shut()
	r.reader.Close()
}

// book adds requests that ended just now; every third one needed a second attempt.
func (r *rig) book(n int) {
	for range n {
		r.add(sample(r.n))
		r.n++
	}
}

func (r *rig) add(record stats.Record) {
	r.ledger.Enter(record.Model)
	r.ledger.Add(record)
}

// write has what was booked written, which must go well.
func (r *rig) write() {
	r.t.Helper()
	r.turn(context.Background())
	if s := r.Status(); s.State != Ready {
		r.t.Fatalf("%+v", s)
	}
}

// save is write, with the ledger.
func (r *rig) save() {
	r.t.Helper()
	r.saved = time.Time{}
	r.write()
}

// ids are the ids that the file gives, the newest first.
func (r *rig) ids(s Selection) (ids []string) {
	r.t.Helper()
	if err := r.Reader().Walk(r.t.Context(), s, func(q *stats.Record) bool {
		ids = append(ids, q.ID)
		return true
	}); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

func id(i int) string { return fmt.Sprintf("req_%024x", i) }

// sample is a request that ended just now.
func sample(i int) stats.Record {
	now := time.Now().Round(0)
	start := now.Add(-2 * time.Second)
	good := stats.Try{Candidate: "bbbbbbbbbbbbbbbb", Name: "second", Model: "m-2", Start: start.Add(time.Second), Connected: time.Millisecond, Header: 2 * time.Millisecond,
		FirstByte: 3 * time.Millisecond, FirstContent: 4 * time.Millisecond, Released: 5 * time.Millisecond, End: time.Second, Verdict: stats.OK, Status: 200,
		Usage: stats.Usage{Input: int64(i), Output: 7, Cached: -1, CacheWrite: -1, Reasoning: -1, Total: int64(i) + 7}, Bytes: 900}
	r := stats.Record{ID: id(i), Model: "auto", Client: "ci", Method: "POST", Path: "/v1/chat/completions", Dialect: "openai", Stream: true, Start: start,
		Released: time.Second, FirstContent: time.Second, End: 2 * time.Second, Status: 200, Strategy: "order", Plan: plan,
		Tries: []stats.Try{good}, Ending: stats.Success, Usage: good.Usage, Bytes: 900}
	if i%3 != 2 {
		return r
	}
	bad := stats.Try{Candidate: "aaaaaaaaaaaaaaaa", Name: "first", Model: "m-1", Start: start, End: 5 * time.Millisecond, Verdict: stats.Failed, Status: 429,
		Class: "429", Fault: "rate", Rule: "rule 1", Action: "freeze", Text: "429 (rate): slow down", Froze: time.Minute, Usage: stats.NoUsage(),
		Failure: &stats.Failure{Kind: "status", Phase: "header", Message: "slow down", Account: "429 Too Many Requests", Body: `{"error":{"message":"slow down"}}`,
			RetryAfter: time.Second, HasRetryAfter: true, Number: 1, Next: "following", Freeze: time.Minute}}
	r.Tries, r.Winner = []stats.Try{bad, good}, 1
	r.Skips = []stats.Skip{{Candidate: "cccccccccccccccc", Name: "third", Reason: "frozen, 7 s left: 401", Left: 7 * time.Second}}
	if i%6 == 5 {
		r.Tries, r.Winner, r.Ending, r.Status, r.Usage, r.Bytes = []stats.Try{bad}, -1, stats.Exhausted, 502, stats.NoUsage(), 0
	}
	return r
}

var plan = []stats.Planned{
	{Candidate: "aaaaaaaaaaaaaaaa", Name: "first", Model: "m-1", Tier: 1},
	{Candidate: "bbbbbbbbbbbbbbbb", Name: "second", Model: "m-2", Tier: 2},
	{Candidate: "cccccccccccccccc", Name: "third", Model: "m-3", Tier: 3},
}
