package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// busy is a ledger in which everything that is saved has happened.
func busy() *Ledger {
	l := NewLedger(0)
	for i := range 200 {
		at := noon.Add(time.Duration(i-199) * 90 * time.Second)
		quota := bad("a", at, "quota exceeded")
		quota.Froze, quota.Hedged = time.Minute, true
		book(l, request("m", quota, ok("b", at, time.Duration(i)*time.Second, used(int64(i), 2, 1))))
	}
	book(l, request("n", ok("b", noon, time.Second, NoUsage())))
	book(l, request("n", bad("a", noon, "down")))
	left := ok("b", noon, time.Second, NoUsage())
	left.Verdict = Abandoned
	hollow := left
	hollow.Verdict = Empty
	book(l, request("n", left), request("n", hollow))
	book(l, Record{Start: noon, Winner: -1, Usage: NoUsage()}, Record{Model: "m", Start: noon, Ignored: true, Winner: -1})
	l.MarkFrozen("a", noon.Add(-time.Hour), noon.Add(time.Hour))
	return l
}

// restart encodes a ledger's state and decodes it into a new one.
func restart(t *testing.T, l *Ledger, now time.Time) *Ledger {
	t.Helper()
	text, err := json.Marshal(l.Export(now))
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	fresh := NewLedger(0)
	if err := fresh.Import(state, now); err != nil {
		t.Fatal(err)
	}
	return fresh
}

func TestStateSurvivesARestart(t *testing.T) {
	before := busy()
	before.Enter("m")
	now := noon.Add(5 * time.Minute) // after the last minute's rates, which do not
	after := restart(t, before, now)

	totals := before.Totals()
	totals.InFlight = 0
	wantEqual(t, "totals", after.Totals(), totals)
	if totals.Requests == 0 || totals.Ignored == 0 || totals.Refused == 0 || totals.ClientCancelled == 0 || totals.Exhausted == 0 || totals.Empty == 0 {
		t.Errorf("totals %+v leave something untested", totals)
	}
	for _, at := range []time.Time{now, now.Add(20 * time.Minute), now.Add(23 * time.Hour)} {
		for _, name := range []string{"a", "b", "nobody"} {
			if d := cmp.Diff(before.Candidate(name, at), after.Candidate(name, at)); d != "" {
				t.Errorf("candidate %s at %v: before -, after +:\n%s", name, at, d)
			}
		}
		for _, name := range []string{"m", "n", "nobody"} {
			want := before.Model(name, at)
			want.InFlight = 0
			if d := cmp.Diff(want, after.Model(name, at)); d != "" {
				t.Errorf("model %s at %v: before -, after +:\n%s", name, at, d)
			}
		}
	}
	// And it goes on from there.
	book(after, request("m", ok("b", now, time.Second, used(5, 5, 5))))
	wantEqual(t, "requests", after.Model("m", now).Requests, before.Model("m", now).Requests+1)
}

func TestStateSharesNothingWithTheLedger(t *testing.T) {
	l := busy()
	state := l.Export(noon)
	first, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		book(l, request("m", ok("b", noon, time.Duration(i)*time.Millisecond, used(1, 1, 1))))
	}
	second, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the state", string(second), string(first))
}

func TestImportLeavesOutWhatNoWindowHolds(t *testing.T) {
	state := busy().Export(noon)
	for what, now := range map[string]time.Time{"a week later": noon.AddDate(0, 0, 7), "a week before": noon.AddDate(0, 0, -7)} {
		l := NewLedger(0)
		if err := l.Import(state, now); err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{now, noon} {
			s := l.Candidate("b", at)
			wantEqual(t, what+", 6h", s.Windows[SixHours].Requests, 0)
			wantEqual(t, what+", all", s.Requests, 202)
		}
	}
	l := NewLedger(0)
	if err := l.Import(state, noon.AddDate(0, 0, -7)); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "an error of the future", l.Candidate("a", noon).LastError, "")
}

func TestImportAddsToWhatIsThere(t *testing.T) {
	l := busy()
	state := l.Export(noon)
	if err := l.Import(state, noon); err != nil {
		t.Fatal(err)
	}
	once, twice := busy().Candidate("b", noon), l.Candidate("b", noon)
	wantEqual(t, "all", twice.Requests, 2*once.Requests)
	wantEqual(t, "6h", twice.Windows[SixHours].Requests, 2*once.Windows[SixHours].Requests)
	wantEqual(t, "average", *twice.Latency.Avg, *once.Latency.Avg)
	wantEqual(t, "p95", *twice.Latency.P95, *once.Latency.P95)
}

func TestImportTakesFieldsOfALaterVersion(t *testing.T) {
	var state State
	text := `{"version":1,"comment":"new","totals":{"requests":3,"retried":9},"candidates":{"c":{"all":{"n":[0,3,0,0],"dollars":1},"mood":"good"}}}`
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatal(err)
	}
	l := NewLedger(0)
	if err := l.Import(state, noon); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "requests", l.Totals().Requests, 3)
	wantEqual(t, "candidate's", l.Candidate("c", noon).Successes, 3)
}

func TestDamagedStateIsRefusedWhole(t *testing.T) {
	for _, damaged := range []string{
		`{}`,
		`{"version":0}`,
		`{"version":2}`,
		`{"version":1,"totals":{"requests":-1}}`,
		`{"version":1,"totals":{"refused":-1}}`,
		`{"version":1,"models":{"m":{"streak":-1}}}`,
		`{"version":1,"models":{"m":{"all":{"n":[0,-1,0,0]}}}}`,
		`{"version":1,"candidates":{"m":{"all":{"tokens":[0,0,-5,0,0,0]}}}}`,
		`{"version":1,"candidates":{"m":{"all":{"reported":[0,0,0,0,0,-5]}}}}`,
		`{"version":1,"candidates":{"m":{"all":{"cache":[0,-1]}}}}`,
		`{"version":1,"candidates":{"m":{"10m":[{"i":5,"us":-1}]}}}`,
		`{"version":1,"candidates":{"m":{"10m":[{"i":5,"us_cells":"wAQB"}]}}}`,
		`{"version":1,"candidates":{"m":{"1m":[{"i":5,"us_cells":"BQEAAQ=="}]}}}`,
		`{"version":1,"candidates":{"m":{"10s":[{"i":5,"first_cells":"BQ=="}]}}}`,
		`{"version":1,"candidates":{"m":{"10s":[{"i":5,"first_cells":"Bf////////////8B"}]}}}`,
		`{"version":1,"candidates":{"m":{"10s":[{"i":5,"first_cells":"gP//////////////////AQE="}]}}}`,
		`{"version":1,"candidates":{"m":{"frozen":[[5,4]]}}}`,
		`{"version":1,"candidates":{"m":{"frozen":[[5,9223372036854775807]]}}}`,
	} {
		// A good part beside the bad one must not get in either.
		good := `"totals":{"requests":7},"candidates":{"good":{"all":{"n":[0,7,0,0]}}},`
		var state State
		if err := json.Unmarshal([]byte(strings.Replace(damaged, `1,`, `1,`+good, 1)), &state); err != nil {
			t.Fatal(err)
		}
		l := NewLedger(0)
		if err := l.Import(state, noon); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", damaged, err)
		}
		wantEqual(t, damaged, l.Totals().Requests, 0)
		wantEqual(t, damaged, l.Candidate("good", noon).Requests, 0)
	}
}

func TestHistogramsSurvivePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		for range rapid.IntRange(0, 50).Draw(t, "cells") {
			h.add(uint16(rapid.IntRange(0, cells-1).Draw(t, "cell")), rapid.Uint32().Draw(t, "n"))
		}
		got, ok := pack(h).histogram()
		if !ok || !slices.Equal(got, h) {
			t.Fatalf("%v became %v, %v", h, got, ok)
		}
	})
}

func TestUnpackingTakesAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, ok := packed(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")).histogram()
		if !ok {
			return
		}
		for i, c := range h {
			if c.cell >= cells || i > 0 && c.cell <= h[i-1].cell {
				t.Fatalf("unpacked %v", h)
			}
		}
	})
}

func TestLargestNumbersOverflowNothing(t *testing.T) {
	largest := fmt.Sprint(math.MaxInt64)
	bucket := strings.NewReplacer("N", largest, "I", fmt.Sprint(noon.Unix()/600)).Replace(
		`{"i":I,"n":[N,N,N,N],"answered":N,"tokens":[N,N,N,N,N,N],"reported":[N,N,N,N,N,N],"cache":[N,N],"us":N,"first_us":N,"firsts":N,"us_cells":"Cf////8P","first_cells":"Cf////8P"}`)
	text := fmt.Sprintf(`{"version":1,"totals":{"requests":%s},"candidates":{"c":{"all":%s,"10m":[%s,%s],"freezes":%s}}}`, largest, bucket, bucket, bucket, largest)
	var state State
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatal(err)
	}
	l := NewLedger(0)
	if err := l.Import(state, noon); err != nil {
		t.Fatal(err)
	}
	book(l, request("m", ok("c", noon, time.Second, used(1, 1, 1))))
	s := l.Candidate("c", noon)
	wantNumber(t, "tokens", s.Total, math.MaxInt64)
	for _, w := range s.Windows {
		for what, d := range map[string]*time.Duration{"average": w.Latency.Avg, "first": w.FirstContent.Avg} {
			if d != nil && *d < 0 {
				t.Errorf("%s is %v", what, *d)
			}
		}
		if w.Requests < 0 || w.SuccessRate != nil && (*w.SuccessRate < 0 || *w.SuccessRate > 1) {
			t.Errorf("requests %d, rate %s", w.Requests, show(w.SuccessRate))
		}
	}
}
