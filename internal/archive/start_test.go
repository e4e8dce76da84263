package archive

import (
	"testing"
	"time"

	"understudy/internal/stats"
)

// A start with 100,000 entries takes well under a second, with as many of them to
// replay as there can be; and so it does with many blocks of one entry, which came
// in one by one over days.
func TestAStartWithManyEntries(t *testing.T) {
	const entries, alone = 100_000, 20_000
	begin := func(path string, entries int) *rig {
		t.Helper()
		var r *rig
		took := time.Hour
		for range 3 { // the machine may be busy with something else once
			if r != nil {
				r.die()
			}
			began := time.Now()
			r = newRig(t, path, Limits{Keep: entries})
			took = min(took, time.Since(began))
		}
		t.Logf("opened after %v", took)
		if took > time.Second {
			t.Errorf("a start took %v", took)
		}
		equal(t, "state", r.Status().State, Ready)
		equal(t, "entries", r.Status().Entries, int64(entries))
		return r
	}
	fast := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		t.Logf("%s after %v", what, time.Since(began))
	}

	path := at(t)
	r := newRig(t, path, Limits{Keep: entries})
	for range entries / 1000 {
		r.book(1000)
		r.write()
	}
	if r.unsaved < 4000 {
		t.Fatalf("only %d entries are to be replayed", r.unsaved)
	}
	r.die()
	r = begin(path, entries)
	equal(t, "requests", r.ledger.Totals().Requests, entries)
	fast("the oldest was found", func() {
		if _, err := r.Reader().Find(t.Context(), id(1)); err != nil {
			t.Error(err)
		}
	})
	fast("a hundred were listed", func() {
		n := 0
		if err := r.Reader().Walk(t.Context(), Selection{}, func(*stats.Record) bool { n++; return n < 100 }); err != nil {
			t.Error(err)
		}
	})
	r.die()

	path = at(t)
	r = newRig(t, path, plenty)
	r.book(1)
	r.save()
	if _, err := r.db.Exec(`WITH RECURSIVE more(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM more WHERE i < ?)
		INSERT INTO block SELECT i, boot, 1, i, failed, troubled, ended, records FROM more, block WHERE n = 1`, alone); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Exec("UPDATE books SET block = ?", alone); err != nil {
		t.Fatal(err)
	}
	r.die()
	r = begin(path, alone)
	fast("one that is not there was not found", func() {
		if _, err := r.Reader().Find(t.Context(), id(77)); err == nil {
			t.Error("it was found")
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	ledger := stats.NewLedger(0)
	a := New(Options{Path: b.TempDir() + "/archive.db", Ledger: ledger, Limits: Limits{Keep: 10_000}})
	ledger.Tap(a.Offer)
	a.Open(b.Context())
	defer a.close()
	r := sample(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		ledger.Enter("auto")
		ledger.Add(r)
		if n++; n%1000 == 0 {
			a.turn(b.Context())
		}
	}
	if s := a.Status(); s.Dropped > 0 || s.State != Ready {
		b.Errorf("%+v", s)
	}
}
