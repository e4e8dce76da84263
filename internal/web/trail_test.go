package web

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"understudy/internal/control"
	"understudy/internal/stats"
)

// withArchive puts a request log behind a rig.
func withArchive(r *rig, a control.Archive) {
	r.Handler = New(control.New(control.Deps{Handler: r.proxy, Started: time.Now(), Log: slog.New(slog.DiscardHandler), Archive: a,
		Status: func() control.Status { return control.Status{Path: "understudy.yaml", Hash: "abc"} }}), slog.New(slog.DiscardHandler))
	r.t.Cleanup(r.Close)
}

func TestTrailsFromDisk(t *testing.T) {
	r := newRig(t, models)
	old := success("old")
	old.Tries = append([]stats.Try{{Name: "x", Verdict: stats.Failed, Usage: stats.NoUsage(), Failure: &stats.Failure{Kind: "status", Body: "\u202e<b>"}}}, old.Tries...)
	var failing error
	withArchive(r, control.Archive{
		Status: func() control.ArchiveStatus {
			return control.ArchiveStatus{State: "waiting", Problem: "full", Entries: 7, Dropped: 3, BodiesDropped: 2}
		},
		Find: func(_ context.Context, id string) (stats.Record, bool, error) { return old, id == "old", failing },
		Walk: func(_ context.Context, s control.Selection, visit func(*stats.Record) bool) (bool, error) {
			if s.Before != "nobody" {
				visit(&old)
			}
			return true, failing
		},
		Bodies: func(_ context.Context, id string) ([]control.KeptBody, error) {
			if id != "old" {
				return nil, failing
			}
			return []control.KeptBody{{Size: 5, Text: []byte("hello")}, {Attempt: 2, Size: 99, Cut: true, Text: []byte{0xff, 0xfe}}}, failing
		},
	})
	r.book(success("fresh"))
	type list struct {
		Requests []struct {
			ID       string
			Attempts []any
		}
		Problem string
	}
	for target, want := range map[string]string{
		"":                           "fresh old",
		"?limit=1":                   "fresh",
		"?before=fresh":              "old",
		"?before=nobody":             "",
		"?troubled=true":             "old",
		"?troubled=true&trail=true":  "old!",
		"?troubled=false&trail=true": "fresh! old!",
		"?after=0&trail=0":           "fresh old",
	} {
		got := decode[list](t, r.ask("GET", "/api/requests"+target, ""))
		var ids []string
		for _, q := range got.Requests {
			if q.Attempts != nil {
				q.ID += "!"
			}
			ids = append(ids, q.ID)
		}
		if text := strings.Join(ids, " "); text != want || got.Problem != "" {
			t.Errorf("%s gives %s, want %s", target, text, want)
		}
	}
	for _, target := range []string{"?troubled=x", "?trail=perhaps"} {
		if a := r.ask("GET", "/api/requests"+target, ""); a.StatusCode != 400 {
			t.Errorf("%s: %d", target, a.StatusCode)
		}
	}
	if a := r.ask("GET", "/api/requests/old", ""); a.StatusCode != 200 || !strings.Contains(text(t, a), `"evidence":{"kind":"status"`) {
		t.Errorf("%d", a.StatusCode)
	}
	bodies := r.ask("GET", "/api/requests/old/bodies", "")
	if got := text(t, bodies); got != `{"bodies":[{"attempt":0,"size":5,"cut":false,"text":"hello"},{"attempt":2,"size":99,"cut":true,"base64":"//4="}]}`+"\n" || bodies.StatusCode != 200 {
		t.Errorf("%d %s", bodies.StatusCode, got)
	}
	if a := r.ask("GET", "/api/requests/other/bodies", ""); a.StatusCode != 404 || !strings.Contains(text(t, a), "request_log.bodies") {
		t.Errorf("%d", a.StatusCode)
	}
	metrics := text(t, r.ask("GET", "/metrics", ""))
	for _, want := range []string{"understudy_archive_ready 0\n", "understudy_archive_entries 7\n", `understudy_archive_dropped_total{kind="requests"} 3` + "\n", `understudy_archive_dropped_total{kind="bodies"} 2` + "\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	failing = errors.New("the disk is gone")
	if got := decode[list](t, r.ask("GET", "/api/requests", "")); got.Problem != "the disk is gone" || len(got.Requests) == 0 {
		t.Errorf("%+v", got)
	}
	if a := r.ask("GET", "/api/requests/old/bodies", ""); a.StatusCode != 500 {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestRoutes(t *testing.T) {
	r := newRig(t, models)
	r.ask("POST", "/api/command", `{"line":"freeze add auto 1 600"}`, jsonType)
	got := decode[control.Preview](t, r.ask("GET", "/api/route?model=auto&session_id=k", ""))
	if !got.Live || got.SessionID != "k" || len(got.Candidates) != 2 || got.Candidates[0].State != "frozen" || got.UpstreamID != "<script>alert(1)</script>" {
		t.Errorf("%+v", got)
	}
	if a := r.ask("GET", "/api/route?model=nobody", ""); a.StatusCode != 404 || !strings.Contains(text(t, a), "no such virtual model") {
		t.Errorf("%d", a.StatusCode)
	}
	guardedRig := newRig(t, guarded)
	for _, path := range []string{"/api/route?model=auto", "/api/requests/x/bodies"} {
		if a := guardedRig.ask("GET", path, ""); a.StatusCode != 401 {
			t.Errorf("%s without a token: %d", path, a.StatusCode)
		}
	}
}
