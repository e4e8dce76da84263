package health

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What happens at a board after its state was passed on happens at the other one too,
// and once.
func TestDifferencesArriveOnce(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	former := NewBoard()
	fail := func(b *Board, k Key) {
		l, _, _ := b.Acquire(k, now, true)
		l.Settle(Failed, now, Strike{Counts: true, Error: "no " + string(k)})
	}
	fail(former, "u:streak")
	former.Freeze("u:long", Freeze{Length: time.Hour, By: Rule, Reason: "as it was"}, now)
	former.Freeze("u:lifted", Freeze{Length: time.Hour, By: Rule}, now)
	former.Freeze("u:again", Freeze{Length: time.Hour, By: Rule}, now)
	fail(former, "u:well")
	last := former.Export(now)
	heir := NewBoard()
	heir.Import(last, now)

	pass := func() {
		t.Helper()
		next := former.Export(now)
		text, err := json.Marshal(next.Since(last))
		if err != nil {
			t.Fatal(err)
		}
		var changes []Difference
		if err := json.Unmarshal(text, &changes); err != nil {
			t.Fatal(err)
		}
		last = next
		heir.Apply(changes, now)
	}
	now = now.Add(time.Second)
	fail(former, "u:streak")
	fail(former, "u:new")
	former.Freeze("u:new", Freeze{Length: time.Minute, By: Streak, Reason: "so many"}, now)
	former.Thaw("u:lifted", now)
	former.Thaw("u:again", now)
	former.Freeze("u:again", Freeze{Length: 2 * time.Hour, By: Rule}, now)
	l, _, _ := former.Acquire("u:well", now, true)
	l.Settle(OK, now, Strike{})
	pass()
	pass() // nothing new
	if diff := cmp.Diff(former.Export(now), heir.Export(now)); diff != "" {
		t.Errorf("the heir's board differs (-former +heir):\n%s", diff)
	}

	// What the heir has done itself is newer than what comes after.
	heir.Thaw("u:long", now)
	heir.Freeze("u:long", Freeze{Length: 3 * time.Hour, By: Person, Reason: "by hand"}, now)
	fail(heir, "u:streak")
	former.Thaw("u:long", now)
	fail(former, "u:streak")
	pass()
	if _, f := heir.Standing("u:long", now); f.Reason != "by hand" {
		t.Errorf("the heir's own freeze became %+v", f)
	}
	if n := heir.Counters("u:streak").Streak; n != 4 {
		t.Errorf("two failures, one more here and one there: a streak of %d", n)
	}
}

func TestApplyPassesNonsenseOver(t *testing.T) {
	b, now := NewBoard(), time.Now()
	b.Apply([]Difference{{}, {Key: "u:a", Freezes: -5, Streak: -3, Hedges: -1}, {Key: "u:b", Freeze: &Freeze{Until: now.Add(-time.Hour)}}}, now)
	if s := b.Export(now); len(s.Entries) != 0 {
		t.Errorf("%+v", s)
	}
}
