package stats

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mixed is the i-th of many different requests, one every seven seconds up to noon.
func mixed(i int) Record {
	at := noon.Add(time.Duration(i-2000) * 7 * time.Second)
	good := ok(fmt.Sprint("b", i%3), at, time.Duration(i%17)*time.Millisecond, used(int64(i), 2, 1))
	quota := bad("a", at, "quota exceeded")
	quota.Froze, quota.Hedged = 90*time.Second, i%2 == 0
	var r Record
	switch i % 5 {
	case 0:
		r = request("m", good)
	case 1:
		r = request("n", quota, good)
	case 2:
		r = request("n", bad("c", at, "down"))
	case 3:
		left := good
		left.Verdict = Abandoned
		r = request("m", left)
	default:
		r = Record{Start: at, Winner: -1, Usage: NoUsage()}
	}
	r.ID = fmt.Sprint(i)
	return r
}

// mark marks what a record froze, as the proxy does.
func mark(l *Ledger, r Record) {
	for _, tr := range r.Tries {
		if tr.Froze > 0 {
			at := tr.Start.Add(tr.End)
			l.MarkFrozen(tr.Candidate, at, at.Add(tr.Froze))
		}
	}
}

// same fails where two ledgers' books differ, the last minute's rates and what is
// in flight apart.
func same(t *testing.T, want, got *Ledger, now time.Time) {
	t.Helper()
	totals := want.Totals()
	totals.InFlight = 0
	wantEqual(t, "totals", got.Totals(), totals)
	for _, name := range []string{"a", "b0", "b1", "b2", "c"} {
		if d := cmp.Diff(want.Candidate(name, now), got.Candidate(name, now)); d != "" {
			t.Errorf("candidate %s:\n%s", name, d)
		}
	}
	for _, name := range []string{"m", "n"} {
		want, got := want.Model(name, now), got.Model(name, now)
		want.InFlight = 0
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("model %s:\n%s", name, d)
		}
	}
}

func TestACheckpointAndTheRecordsAfterItAreTheLedger(t *testing.T) {
	whole, part := NewLedger(0), NewLedger(0)
	now := noon.Add(10 * time.Minute)
	for i := range 2000 {
		mark(whole, mixed(i))
		book(whole, mixed(i))
		if i < 1234 {
			mark(part, mixed(i))
			book(part, mixed(i))
		}
	}
	state, seq := part.Checkpoint(noon)
	wantEqual(t, "number", seq, 1234)
	after := NewLedger(0)
	if err := after.Import(state, now); err != nil {
		t.Fatal(err)
	}
	for i := seq; i < 2000; i++ {
		after.Replay(mixed(int(i)), now)
	}
	same(t, whole, after, now)
	if n := after.Seq(); n != 0 {
		t.Errorf("%d replayed records are in the journal", n)
	}
}

// A restore may come late, when requests are already served.
func TestReplayIntoALedgerThatIsInUse(t *testing.T) {
	whole, late := NewLedger(0), NewLedger(0)
	now := noon.Add(10 * time.Minute)
	for i := range 2000 {
		mark(whole, mixed(i))
		book(whole, mixed(i))
	}
	for i := 1000; i < 2000; i++ {
		mark(late, mixed(i))
		book(late, mixed(i))
	}
	late.Enter("m")
	for i := range 1000 {
		late.Replay(mixed(i), now)
	}
	wantEqual(t, "in flight", late.Model("m", now).InFlight, 1)
	late.Add(mixed(0))
	book(whole, mixed(0))
	for _, m := range []string{"m", "n"} {
		want, got := whole.Model(m, now), late.Model(m, now)
		want.Streak, got.Streak = 0, 0 // nobody can tell what came first
		if d := cmp.Diff(want.Windows, got.Windows); d != "" {
			t.Errorf("%s:\n%s", m, d)
		}
		if d := cmp.Diff(want.History, got.History); d != "" {
			t.Errorf("%s:\n%s", m, d)
		}
	}
}

func TestReplayLeavesTheFutureOutOfTheWindows(t *testing.T) {
	l := NewLedger(0)
	r := request("m", bad("a", noon, "down"))
	l.Replay(r, noon.Add(-time.Hour))
	s := l.Candidate("a", noon)
	wantEqual(t, "all", s.Failures, 1)
	wantEqual(t, "10m", s.Windows[TenMinutes].Failures, 0)
	wantEqual(t, "the record", r.Tries[0].Start, noon)
}

// Every checkpoint holds exactly the records up to its number, however many add at
// once.
func TestCheckpointsUnderLoad(t *testing.T) {
	l := NewLedger(5000)
	var adding sync.WaitGroup
	for w := range 4 {
		adding.Go(func() {
			for i := range 1000 {
				book(l, mixed(4*i+w))
			}
		})
	}
	for range 20 {
		state, seq := l.Checkpoint(noon)
		text, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		var back State
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		fresh := NewLedger(0)
		if err := fresh.Import(back, noon); err != nil {
			t.Fatal(err)
		}
		totals := fresh.Totals()
		wantEqual(t, "totals", uint64(totals.Requests+totals.Refused), seq)
		requests := fresh.Model("m", noon).Requests + fresh.Model("n", noon).Requests
		wantEqual(t, "requests", requests, totals.Requests)
	}
	adding.Wait()
}

func TestTheTapHearsOfEveryRecordOnce(t *testing.T) {
	l := NewLedger(0)
	var mu sync.Mutex
	heard := map[uint64]string{}
	var bodies int
	l.Tap(func(s *Sequenced, b *Bodies) {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := heard[s.Seq]; twice {
			t.Errorf("%d came twice", s.Seq)
		}
		heard[s.Seq] = s.ID
		if s.Bodies != nil {
			t.Error("the bodies are in the journal's record")
		}
		if b != nil {
			bodies++
		}
	})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				r := mixed(4*i + w)
				if i == 0 {
					r.Bodies = &Bodies{Request: Body{Text: []byte("hello")}}
				}
				book(l, r)
			}
		})
	}
	wg.Wait()
	wantEqual(t, "records", len(heard), 400)
	wantEqual(t, "bodies", bodies, 4)
	for _, r := range l.Latest(400, nil) {
		wantEqual(t, "id", heard[r.Seq], r.ID)
		if r.Bodies != nil {
			t.Error("the journal keeps bodies")
		}
	}
}

func TestTheJournalBoundsWhatFailuresQuote(t *testing.T) {
	l := NewLedger(0)
	var tries []Try
	for range 20 {
		failed := bad("a", noon, "down")
		failed.Failure = &Failure{Kind: "status", Body: strings.Repeat("x", 2000), Message: "m"}
		tries = append(tries, failed)
	}
	tries[7].Failure = nil
	r := request("m", tries...)
	r.Plan = make([]Planned, 100)
	book(l, r)
	kept := l.Latest(1, nil)[0]
	size, cut := 0, 0
	for i, tr := range kept.Tries {
		if tr.Failure == nil {
			wantEqual(t, "index", i, 7)
			continue
		}
		wantEqual(t, "message", tr.Failure.Message, "m")
		size += len(tr.Failure.Body)
		if tr.Failure.Cut {
			cut++
		}
	}
	wantEqual(t, "bytes", size, 16000)
	wantEqual(t, "cut", cut, 11)
	wantEqual(t, "planned", len(kept.Plan), maxPlanned)
	wantEqual(t, "the caller's", len(tries[19].Failure.Body), 2000)
}
