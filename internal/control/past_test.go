package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/stats"
)

// A shelf is a request log that stands in memory, the newest first.
type shelf struct {
	records []stats.Record
	bodies  map[string][]KeptBody
	err     error
	status  ArchiveStatus
}

func (s *shelf) archive() Archive {
	return Archive{
		Status: func() ArchiveStatus { return s.status },
		Find: func(_ context.Context, id string) (stats.Record, bool, error) {
			i := slices.IndexFunc(s.records, func(r stats.Record) bool { return r.ID == id })
			if i < 0 || s.err != nil {
				return stats.Record{}, false, s.err
			}
			return s.records[i], true, nil
		},
		Walk: func(_ context.Context, q Selection, visit func(*stats.Record) bool) (bool, error) {
			from := 0
			if q.Before != "" {
				i := slices.IndexFunc(s.records, func(r stats.Record) bool { return r.ID == q.Before })
				if i < 0 {
					return false, s.err
				}
				from = i + 1
			}
			for i := from; i < len(s.records); i++ {
				r := &s.records[i]
				if (q.Failed == nil || r.Failed() == *q.Failed) && (!q.Troubled || r.Troubled()) && !visit(r) {
					break
				}
			}
			return true, s.err
		},
		Bodies: func(_ context.Context, id string) ([]KeptBody, error) { return s.bodies[id], s.err },
	}
}

// withShelf is a rig whose request log holds old-9 … old-0, and whose journal has
// happened since, some of which the log has too.
func withShelf(t *testing.T) (*rig, *shelf) {
	r := newRig(t, "understudy.yaml", full)
	s := &shelf{status: ArchiveStatus{State: "ready", Entries: 12}}
	for i := range 10 {
		old := stats.Record{ID: fmt.Sprint("old-", 9-i), Model: "held", Start: time.Now().Add(-time.Hour), Ending: stats.Success, Winner: -1, Usage: stats.NoUsage()}
		if i%2 == 0 {
			old.Ending = stats.Exhausted
			old.Tries = []stats.Try{{Verdict: stats.Failed, Failure: &stats.Failure{Kind: "status"}, Usage: stats.NoUsage()}}
		}
		s.records = append(s.records, old)
	}
	r.Control = New(Deps{Handler: r.handler, Started: time.Now(), Status: r.deps.Status, Archive: s.archive(), Log: r.deps.Log})
	r.happen()
	for _, fresh := range r.handler.Ledger().Latest(2, nil) {
		s.records = slices.Insert(s.records, 0, fresh.Record)
	}
	return r, s
}

func ids(list []Request) string {
	var out []string
	for _, q := range list {
		out = append(out, q.ID)
	}
	return strings.Join(out, " ")
}

func TestOlderRequestsComeFromDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := withShelf(t)
		for _, test := range []struct {
			q    Query
			want string
		}{
			{Query{Limit: 6}, "req-4 req-3 req-2 req-1 old-9 old-8"},
			{Query{Limit: 3}, "req-4 req-3 req-2"},
			{Query{Model: "held", Limit: 2}, "old-9 old-8"},
			{Query{Failed: new(true)}, "req-4 req-2 old-9 old-7 old-5 old-3 old-1"},
			{Query{Failed: new(false), Limit: 4}, "req-3 req-1 old-8 old-6"},
			{Query{Troubled: true, Limit: 2}, "old-9 old-7"},
			{Query{Before: "req-2", Limit: 2}, "req-1 old-9"},
			{Query{Before: "req-1", Limit: 2}, "old-9 old-8"},
			{Query{Before: "old-2"}, "old-1 old-0"},
			{Query{Before: "old-2", Model: "auto-strong"}, ""},
			{Query{Before: "nobody"}, ""},
			{Query{After: 2}, "req-4 req-3"},
		} {
			got := r.Requests(test.q)
			if text := ids(got.Requests); text != test.want || got.Problem != "" {
				t.Errorf("%+v gives %s %s, want %s", test.q, text, got.Problem, test.want)
			}
		}
		for _, q := range r.Requests(Query{Trail: true}).Requests {
			if q.Attempts == nil || strings.HasPrefix(q.ID, "old") && q.Sequence != 0 {
				t.Errorf("%+v", q)
			}
		}
		if got, ok := r.Request("old-3"); !ok || len(got.Attempts) != 1 || got.Attempts[0].Evidence == nil {
			t.Errorf("%v %+v", ok, got)
		}
		if _, ok := r.Request("nobody"); ok {
			t.Error("nobody was found")
		}
		s.err = errors.New("the disk is gone, says sk-proj-abcdefghijklmnop1234")
		got := r.Requests(Query{Model: "auto-strong"})
		if ids(got.Requests) != "req-2 req-1" || got.Problem != "the disk is gone, says sk-pro***1234" {
			t.Errorf("%s %s", ids(got.Requests), got.Problem)
		}
		if out := r.run("explain old-3"); out != "error: the disk is gone, says sk-pro***1234" {
			t.Errorf("%s", out)
		}
		if got := r.Requests(Query{Limit: 4}); len(got.Requests) != 4 || got.Problem != "" {
			t.Errorf("%+v", got)
		}
	})
}

func TestTheArchiveIsInTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := withShelf(t)
		s.status = ArchiveStatus{State: "waiting", Problem: "full, sk-proj-abcdefghijklmnop1234 \x1b[31m", Since: new(time.Now()), SetAside: "/x", Entries: 3, Dropped: 2}
		want := s.status
		want.Problem = `full, sk-pro***1234 \u001b[31m`
		if got := r.View().Archive; got != want {
			t.Errorf("%+v", got)
		}
		if got := newRig(t, "understudy.yaml", full).View().Archive; got != (ArchiveStatus{}) {
			t.Errorf("without an archive: %+v", got)
		}
	})
}

func TestKeptBodiesAreHiddenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := withShelf(t)
		s.bodies = map[string][]KeptBody{"old-1": {{Attempt: 0, Size: 30, Text: []byte("a key: sk-proj-abcdefghijklmnop1234")}, {Attempt: 1, Size: 9, Cut: true, Text: []byte{0xff, 0}}}}
		got, err := r.Bodies("old-1")
		if err != nil || len(got) != 2 || string(got[0].Text) != "a key: sk-pro***1234" || !got[1].Cut || string(got[1].Text) != "\xff\x00" {
			t.Errorf("%+v %v", got, err)
		}
		if got, err := newRig(t, "understudy.yaml", full).Bodies("old-1"); got != nil || err != nil {
			t.Errorf("%+v %v", got, err)
		}
	})
}
