package stats

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// numbered books records with the ids 1, 2, …
func numbered(l *Ledger, from, to int) {
	for i := from; i <= to; i++ {
		r := request("m", ok("c", noon, time.Second, NoUsage()))
		r.ID = fmt.Sprint(i)
		book(l, r)
	}
}

func TestSince(t *testing.T) {
	l := NewLedger(5)
	if records, dropped := l.Since(0, 10); len(records) != 0 || dropped != 0 {
		t.Errorf("an empty journal gives %v, %d", records, dropped)
	}
	wantEqual(t, "seq", l.Seq(), 0)
	numbered(l, 1, 8) // keeps 4 to 8
	wantEqual(t, "seq", l.Seq(), 8)
	for _, tt := range []struct {
		seq     uint64
		limit   int
		want    string
		dropped uint64
	}{
		{0, 10, "[4 5 6 7 8]", 3},
		{1, 10, "[4 5 6 7 8]", 2},
		{3, 10, "[4 5 6 7 8]", 0},
		{3, 2, "[4 5]", 0},
		{5, 2, "[6 7]", 0},
		{7, 2, "[8]", 0},
		{8, 2, "[]", 0},
		{0, 0, "[]", 3},
		{0, -1, "[]", 3},
		{1000, 2, "[4 5]", 3}, // a number from before a restart
	} {
		records, dropped := l.Since(tt.seq, tt.limit)
		ids := []uint64{}
		for _, r := range records {
			ids = append(ids, r.Seq)
			wantEqual(t, "id", r.ID, fmt.Sprint(r.Seq))
		}
		wantEqual(t, fmt.Sprintf("since %d, at most %d", tt.seq, tt.limit), fmt.Sprint(ids), tt.want)
		wantEqual(t, fmt.Sprintf("dropped since %d", tt.seq), dropped, tt.dropped)
	}
}

func TestLatestAndFind(t *testing.T) {
	l := NewLedger(5)
	numbered(l, 1, 3)
	r := request("other model", bad("c", noon, "down"))
	r.ID = "4"
	book(l, r)
	numbered(l, 5, 7) // keeps 3 to 7
	ids := func(records []Sequenced) string {
		out := []string{}
		for _, r := range records {
			out = append(out, r.ID)
		}
		return fmt.Sprint(out)
	}
	wantEqual(t, "latest", ids(l.Latest(3, nil)), "[7 6 5]")
	wantEqual(t, "all", ids(l.Latest(100, nil)), "[7 6 5 4 3]")
	wantEqual(t, "failed", ids(l.Latest(3, func(r *Record) bool { return r.Ending == Exhausted })), "[4]")
	wantEqual(t, "none", ids(l.Latest(0, nil)), "[]")
	if r, found := l.Find("4"); !found || r.Model != "other model" {
		t.Errorf("found %v, %v", r, found)
	}
	if _, found := l.Find("2"); found {
		t.Error("a record that fell out is found")
	}
}

func TestJournalBoundsOneRequest(t *testing.T) {
	for _, tt := range []struct{ winner, want int }{{-1, -1}, {0, 0}, {31, 31}, {32, -1}, {967, -1}, {968, 32}, {999, 63}} {
		l := NewLedger(0)
		tries := make([]Try, 1000)
		for i := range tries {
			tries[i] = bad("c", noon, fmt.Sprint(i))
		}
		r := request("m", tries...)
		r.ID, r.Winner = "x", tt.winner
		for i := range 100 {
			r.Skips = append(r.Skips, Skip{Candidate: fmt.Sprint(i)})
		}
		book(l, r)
		got := must(l.Find("x"))
		wantEqual(t, "tries", len(got.Tries), maxTries)
		wantEqual(t, "omitted", got.Omitted, 1000-maxTries)
		wantEqual(t, "first", got.Tries[31].Text, "31")
		wantEqual(t, "last", got.Tries[63].Text, "999")
		wantEqual(t, "winner", got.Winner, tt.want)
		wantEqual(t, "skips", len(got.Skips), maxSkips)
		wantEqual(t, "last skip", got.Skips[63].Candidate, "99")
		wantEqual(t, "booked", l.Candidate("c", noon.Add(time.Second)).Failures, 1000)
	}
}

func TestWordsSurviveJSON(t *testing.T) {
	for e := Refused; e <= Cancelled; e++ {
		for v := Abandoned; v <= Failed; v++ {
			want := Record{ID: "x", Ending: e, Tries: []Try{{Verdict: v}}}
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var got Record
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if got.Ending != e || got.Tries[0].Verdict != v {
				t.Errorf("%s became %v, %v", text, got.Ending, got.Tries[0].Verdict)
			}
		}
	}
	if err := new(Verdict).UnmarshalText([]byte("fine")); err == nil {
		t.Error("an unknown verdict is taken")
	}
	if err := new(Ending).UnmarshalText([]byte("fine")); err == nil {
		t.Error("an unknown ending is taken")
	}
}
