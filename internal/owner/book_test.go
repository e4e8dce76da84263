package owner

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestTheLeastRecentlyUsedIsForgotten(t *testing.T) {
	b, now := NewBook(3), time.Unix(1_800_000_000, 0)
	for i := range 3 {
		b.Learn("", fmt.Sprint("id", i), Owner{Identity: fmt.Sprintf("%016x", i), Model: "vm", At: now})
	}
	b.Owner("", "id0", now)
	b.Learn("", "id3", Owner{Identity: fmt.Sprintf("%016x", 3), Model: "vm", At: now})
	for id, known := range map[string]bool{"id0": true, "id1": false, "id2": true, "id3": true} {
		if o, ok := b.Owner("", id, now); ok != known {
			t.Errorf("%s: %v %v, want %v", id, o, ok, known)
		}
	}
	if b.Len() != 3 {
		t.Errorf("remembers %d, want 3", b.Len())
	}
}

func TestClientsDoNotSeeEachOthersIdentifiers(t *testing.T) {
	b, now := NewBook(0), time.Now()
	b.Learn("alice", "resp_1", Owner{Identity: "00000000000000aa", Model: "vm", At: now})
	if _, ok := b.Owner("bob", "resp_1", now); ok {
		t.Error("bob sees alice's")
	}
	if _, ok := b.Owner("", "", now); ok {
		t.Error("an empty identifier has an owner")
	}
}

func TestExportSurvivesImport(t *testing.T) {
	b, now := NewBook(10), time.Unix(1_800_000_000, 0)
	for i := range 12 {
		b.Learn("c", fmt.Sprint("id", i), Owner{Identity: fmt.Sprintf("%016x", i), Model: fmt.Sprint("vm-", i), At: now})
	}
	data := b.Export()
	c := NewBook(5)
	if err := c.Import(data); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		o, ok := c.Owner("c", fmt.Sprint("id", i), now)
		if want := i >= 7; ok != want || ok && (o.Identity != fmt.Sprintf("%016x", i) || o.Model != fmt.Sprint("vm-", i)) {
			t.Errorf("id%d: %+v %v, want known %v", i, o, ok, want)
		}
	}
}

func TestDamagedBytesChangeNothing(t *testing.T) {
	b := NewBook(0)
	b.Learn("", "x", Owner{Identity: "00000000000000aa", Model: "vm", At: time.Now()})
	data := b.Export()
	c := NewBook(0)
	for n := range data {
		bad := append([]byte(nil), data...)
		bad[n] ^= 1
		if err := c.Import(bad); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
		if err := c.Import(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if c.Len() != 0 {
		t.Error("something was taken over")
	}
}

func BenchmarkOwner(b *testing.B) {
	book, now := NewBook(0), time.Now()
	for i := range 1000 {
		book.Learn("", fmt.Sprint("resp_", i), Owner{Identity: "00000000000000aa", Model: "vm", At: now})
	}
	b.ReportAllocs()
	for b.Loop() {
		book.Owner("", "resp_500", now)
	}
}

// What is learned after a count of changes goes to another book, and wakes who waits.
func TestSinceGivesWhatIsNew(t *testing.T) {
	b, now := NewBook(10), time.Unix(1_800_000_000, 0)
	learn := func(id string) { b.Learn("c", id, Owner{Identity: "00000000000000aa", Model: "vm", At: now}) }
	learn("old")
	_, upTo := b.Since(0)
	changed := b.Changed()
	learn("new")
	select {
	case <-changed:
	default:
		t.Error("nobody is told")
	}
	data, next := b.Since(upTo)
	c := NewBook(10)
	if err := c.Learned(data); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Owner("c", "new", now); !ok || c.Len() != 1 || c.Changes() != 1 {
		t.Errorf("%d entries, %d changes, new known: %v", c.Len(), c.Changes(), ok)
	}
	if data, _ := b.Since(next); len(data) != len(NewBook(1).Export()) {
		t.Error("something is new that is not")
	}
}
