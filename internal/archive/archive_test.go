package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"understudy/internal/stats"
)

func count(from, to int) (ids []string) {
	for i := to - 1; i >= from; i-- {
		ids = append(ids, id(i))
	}
	return ids
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	r := newRig(t, at(t), plenty)
	if _, err := r.Reader().Find(t.Context(), id(0)); !errors.Is(err, ErrUnknown) {
		t.Errorf("in a file that is not there: %v", err)
	}
	want := sample(5)
	r.add(want)
	r.write()
	got, err := r.Reader().Find(t.Context(), id(5))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	odd := sample(0)
	odd.ID = "an id of somebody else's"
	r.add(odd)
	r.book(600) // several blocks
	r.write()
	for _, id := range []string{odd.ID, id(0), id(599), id(256)} {
		if got, err := r.Reader().Find(t.Context(), id); err != nil || got.ID != id {
			t.Errorf("%s: %s, %v", id, got.ID, err)
		}
	}
	for _, unknown := range []string{id(600), "", "req_", odd.ID[:5], "%"} {
		if got, err := r.Reader().Find(t.Context(), unknown); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q gives %s, %v", unknown, got.ID, err)
		}
	}
	equal(t, "entries", r.Status().Entries, 602)
}

func TestSelections(t *testing.T) {
	r := newRig(t, at(t), plenty)
	for range 5 {
		r.book(100)
		r.write()
	}
	yes, no := true, false
	failed, troubled := func(i int) bool { return i%6 == 5 }, func(i int) bool { return i%3 == 2 }
	for _, test := range []struct {
		s    Selection
		want func(i int) bool
	}{
		{Selection{}, func(int) bool { return true }},
		{Selection{Failed: &yes}, failed},
		{Selection{Failed: &no}, func(i int) bool { return !failed(i) }},
		{Selection{Troubled: true}, troubled},
		{Selection{Troubled: true, Failed: &yes}, failed},
		{Selection{Troubled: true, Failed: &no}, func(i int) bool { return troubled(i) && !failed(i) }},
		{Selection{Before: id(250)}, func(i int) bool { return i < 250 }},
		{Selection{Before: id(200), Failed: &yes}, func(i int) bool { return i < 200 && failed(i) }},
		{Selection{Before: id(0)}, func(int) bool { return false }},
	} {
		want := slices.DeleteFunc(count(0, 500), func(s string) bool {
			var i int
			_, _ = fmt.Sscanf(s, "req_%x", &i)
			return !test.want(i)
		})
		if d := cmp.Diff(want, r.ids(test.s), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%+v: %s", test.s, d)
		}
	}
	if err := r.Reader().Walk(t.Context(), Selection{Before: id(500)}, func(*stats.Record) bool { return true }); !errors.Is(err, ErrUnknown) {
		t.Errorf("before one that is not there: %v", err)
	}
}

// Whatever a process had written before it was killed is in the next one's ledger,
// once.
func TestTheLedgerComesBack(t *testing.T) {
	path := at(t)
	total := stats.NewLedger(0)
	n := 0
	for life := range 4 {
		r := newRig(t, path, plenty)
		r.n = n
		totals := total.Totals()
		totals.InFlight = 0
		equal(t, fmt.Sprint("life ", life), r.ledger.Totals(), totals)
		for _, name := range []string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"} {
			want, got := total.Candidate(name, time.Now()), r.ledger.Candidate(name, time.Now())
			if d := cmp.Diff(want.Window, got.Window); d != "" {
				t.Errorf("life %d, %s: %s", life, name, d)
			}
			equal(t, "freezes", got.Freezes, want.Freezes)
		}
		for turn := range 5 {
			for range 7 {
				total.Enter("auto")
				total.Add(sample(n))
				r.book(1)
				n++
			}
			if turn == 3 && life%2 == 0 {
				r.saved = time.Now().Add(-checkpointEvery)
			}
			r.write()
		}
		if life == 1 {
			r.close() // an end in good order
		} else {
			r.die()
		}
	}
	equal(t, "requests", total.Totals().Requests, 4*35)
}

func TestCheckpointsAreBoundedByEntries(t *testing.T) {
	path := at(t)
	r := newRig(t, path, Limits{Keep: 100})
	for range 5 {
		r.book(2000)
		r.write()
	}
	if r.unsaved >= checkpointAfter {
		t.Errorf("%d entries stand for the ledger", r.unsaved)
	}
	r.die()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 10_000)
}

// kept is how many records the file gives.
func (r *rig) kept() int { return len(r.ids(Selection{})) }

func TestTheNewestAreKept(t *testing.T) {
	r := newRig(t, at(t), Limits{Keep: 1000})
	for range 20 {
		r.book(300)
		r.write()
	}
	if d := cmp.Diff(count(5000, 6000), r.ids(Selection{})); d != "" {
		t.Errorf("%s", d)
	}
	if n := r.Status().Entries; n < 1000 || n >= 1000+maxBlock {
		t.Errorf("%d are in the file", n)
	}
	r.SetLimits(Limits{Keep: 10})
	equal(t, "at once", r.kept(), 10)
	r.book(1)
	r.save()
	if n := r.Status().Entries; n > maxBlock {
		t.Errorf("%d are in the file", n)
	}
	if d := cmp.Diff(count(5991, 6001), r.ids(Selection{})); d != "" {
		t.Errorf("%s", d)
	}
}

func TestOldOnesAreDeleted(t *testing.T) {
	r := newRig(t, at(t), Limits{Keep: 1_000_000, Age: 47 * time.Hour})
	for day := range 10 {
		for range 100 {
			old := sample(r.n)
			r.n++
			old.Start = old.Start.AddDate(0, 0, day-9)
			r.add(old)
		}
		r.save()
	}
	if d := cmp.Diff(count(800, 1000), r.ids(Selection{})); d != "" {
		t.Errorf("%s", d)
	}
	r.SetLimits(Limits{Keep: 1_000_000, Age: time.Minute})
	r.tidied = time.Time{}
	r.save()
	if d := cmp.Diff(count(900, 1000), r.ids(Selection{})); d != "" {
		t.Errorf("%s", d)
	}
}

func TestNothingIsKeptButTheBooks(t *testing.T) {
	path := at(t)
	r := newRig(t, path, Limits{})
	r.book(10)
	r.write()
	equal(t, "read", r.kept(), 0)
	r.book(10) // these stand for the ledger until it is saved
	r.write()
	equal(t, "read", r.kept(), 0)
	r.die()
	r = newRig(t, path, Limits{})
	equal(t, "requests", r.ledger.Totals().Requests, 20)
	r.book(1)
	r.write()
	equal(t, "in the file", r.Status().Entries, 0)
}

func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b ?#%41", "archive.db")
	r := newRig(t, path, plenty)
	r.book(1)
	r.write()
	equal(t, "kept", r.kept(), 1)
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", dir.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", f.Name(), info.Mode())
		}
	}
	r.close()
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("after the end there are %v", files)
	}
}

func TestNoFileBeforeTheFirstRequest(t *testing.T) {
	path := at(t)
	r := newRig(t, path, plenty)
	r.write()
	r.close()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAFullQueueDropsAndCounts(t *testing.T) {
	r := newRig(t, at(t), plenty)
	r.book(maxQueued + 100)
	equal(t, "dropped", r.Status().Dropped, 100)
	r.write()
	equal(t, "read", r.kept(), maxQueued)
	equal(t, "the first", r.ids(Selection{})[maxQueued-1], id(0))
	// The books have them all the same.
	r.die()
	equal(t, "requests", newRig(t, r.path, plenty).ledger.Totals().Requests, maxQueued+100)
}

// Run writes by itself, at the latest a moment after a request ended, and what is
// left at the end.
func TestRun(t *testing.T) {
	r := newRig(t, at(t), plenty)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	other := NewReader(r.path, plenty.Keep)
	defer other.Close()
	began := time.Now()
	r.book(3)
	for {
		if _, err := other.Find(t.Context(), id(2)); err == nil {
			break
		} else if !errors.Is(err, ErrUnknown) || time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < writeAfter {
		t.Errorf("written after %v, without waiting for others", took)
	}
	r.book(maxQueued / 2) // written at once, in a batch of its own
	r.book(3)
	cancel()
	running.Wait()
	var n int
	if err := NewReader(r.path, plenty.Keep).Walk(t.Context(), Selection{}, func(*stats.Record) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	equal(t, "read", n, maxQueued/2+6)
	equal(t, "dropped", r.Status().Dropped, 0)
}

func TestOffersFromEverywhere(t *testing.T) {
	r := newRig(t, at(t), plenty)
	ctx, cancel := context.WithCancel(t.Context())
	var running, offering sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	for w := range 4 {
		offering.Go(func() {
			for i := range 500 {
				r.add(sample(500*w + i))
				if i%100 == 0 {
					r.Status()
					r.SetLimits(Limits{Keep: 1_000_000 + i})
					if _, err := r.Reader().Find(t.Context(), id(500*w)); err != nil && !errors.Is(err, ErrUnknown) {
						t.Error(err)
					}
				}
			}
		})
	}
	offering.Wait()
	cancel()
	running.Wait()
	s := r.Status()
	equal(t, "written and dropped", s.Written+s.Dropped, 2000)
	r.die()
	equal(t, "requests", newRig(t, r.path, plenty).ledger.Totals().Requests, 2000)
}

func body(text string) stats.Body { return stats.Body{Text: []byte(text), Size: int64(len(text))} }

func TestBodiesAreKeptWithoutSecrets(t *testing.T) {
	r := newRig(t, at(t), Limits{Keep: 300})
	hide := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "sk-secret", "***")) }
	long := strings.Repeat("x", maxKept-4) + "sk-secret" + strings.Repeat("y", 100)
	one := sample(2)
	one.Bodies = &stats.Bodies{Request: body(`{"key":"sk-secret"}`), Hide: hide, Answers: []stats.Answer{{Try: 0, Body: body(long)}, {Try: 1, Body: stats.Body{Text: []byte("sk-secret"), Size: 7_000_000}}}}
	r.add(one)
	two := sample(3)
	two.Bodies = &stats.Bodies{Request: body("plain"), Hide: hide}
	r.add(two)
	r.n = 4
	r.book(1)
	r.write()
	want := []Body{{Try: -1, Size: 19, Text: []byte(`{"key":"***"}`)}, {Try: 0, Size: int64(len(long)), Cut: true, Text: []byte(long[:maxKept-4] + "***y")}, {Try: 1, Size: 7_000_000, Cut: true, Text: []byte("***")}}
	got, err := r.Reader().Bodies(t.Context(), id(2))
	if !slices.EqualFunc(got, want, func(a, b Body) bool {
		return a.Try == b.Try && a.Size == b.Size && a.Cut == b.Cut && bytes.Equal(a.Text, b.Text)
	}) {
		t.Errorf("%d bodies, %v", len(got), err)
	}
	if got, err := r.Reader().Bodies(t.Context(), id(4)); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, %v", got, err)
	}
	// They go with their requests.
	for range 4 {
		r.book(300)
		r.write()
	}
	if got, err := r.Reader().Bodies(t.Context(), id(2)); !errors.Is(err, ErrUnknown) {
		t.Errorf("%d, %v", len(got), err)
	}
	equal(t, "bytes", r.tail.bodies, 0)
}

func TestTooManyBodiesWaiting(t *testing.T) {
	r := newRig(t, at(t), plenty)
	large := strings.Repeat("z", 1<<20)
	for i := range 40 {
		record := sample(i)
		record.Bodies = &stats.Bodies{Request: body(large)}
		r.add(record)
	}
	equal(t, "without", r.Status().BodiesDropped, 8)
	r.write()
	equal(t, "requests", r.kept(), 40)
	if _, err := r.Reader().Bodies(t.Context(), id(31)); err != nil {
		t.Error(err)
	}
	if _, err := r.Reader().Bodies(t.Context(), id(32)); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func TestASecondProcessTakesOver(t *testing.T) {
	path := at(t)
	first := newRig(t, path, plenty)
	first.book(10)
	first.write()
	second := newRig(t, path, plenty)
	equal(t, "requests", second.ledger.Totals().Requests, 10)
	second.n = 100
	second.book(1)
	second.write()
	first.book(5)
	first.turn(t.Context())
	if s := first.Status(); s.State != Ended || s.Dropped != 5 || !strings.Contains(first.log.String(), "another process") {
		t.Errorf("%+v\n%s", s, first.log)
	}
	first.book(5)
	first.turn(t.Context())
	first.close()
	equal(t, "dropped", first.Status().Dropped, 10)
	second.book(1)
	second.write()
	equal(t, "read", second.kept(), 12)
	second.close()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 12)
}
