package daemon_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/archive"
	"understudy/internal/daemon"
	"understudy/internal/drill"
	"understudy/internal/stats"
)

// A life is one process over a configuration file.
type life struct {
	*daemon.Daemon
	t   *testing.T
	end func()
}

func begin(t *testing.T, path string) *life { return beginWith(t, daemon.Options{ConfigPath: path}) }

func beginWith(t *testing.T, o daemon.Options) *life {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	d, err := daemon.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ctx) }()
	l := &life{d, t, func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}}
	return l
}

// ask sends requests, one after another.
func (l *life) ask(n int) {
	l.t.Helper()
	for range n {
		got := drill.Ask(l.t.Context(), l.Addr(), drill.Query{Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`)})
		if got.Status != 200 {
			l.t.Fatalf("%d %s %v", got.Status, got.Body, got.Err)
		}
	}
}

func configuration(t *testing.T, more string) (path, dir string) {
	t.Helper()
	u := drill.Start(drill.Healthy(drill.Answer{Text: "hello"}))
	t.Cleanup(u.Close)
	dir = t.TempDir()
	path = filepath.Join(dir, "understudy.yaml")
	text := fmt.Sprintf("server: {port: 0, admin: off, state_dir: %q, reload_poll_interval: 0}\n%s\nvirtual_models:\n  vm:\n    - {name: a, base_url: %q, model: m, api_key: sk-a-key-of-the-test}\n", filepath.Join(dir, "state"), more, u.URL())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(dir, "state")
}

// read gives the ids in a configuration's archive.
func read(t *testing.T, path, state string) (ids []string) {
	t.Helper()
	r := archive.NewReader(daemon.ArchivePath(state, path), 1000)
	defer r.Close()
	if err := r.Walk(t.Context(), archive.Selection{}, func(q *stats.Record) bool { ids = append(ids, q.ID); return true }); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestTheArchiveOutlivesTheProcess(t *testing.T) {
	path, state := configuration(t, "")
	for i := range 3 {
		l := begin(t, path)
		<-l.Restored()
		if got := l.Handler().Ledger().Totals(); got.Requests != int64(3*i) || got.InFlight != 0 {
			t.Errorf("life %d begins with %+v", i, got)
		}
		id := string(l.Handler().Snapshot().Routes.Chains()[0].Tiers[0][0].ID)
		if got := l.Handler().Ledger().Candidate(id, time.Now()); got.Requests != int64(3*i) || got.Windows[stats.TenMinutes].Requests != int64(3*i) {
			t.Errorf("life %d begins with %+v", i, got.Window)
		}
		l.ask(3)
		l.end()
		if ids := read(t, path, state); len(ids) != 3*(i+1) {
			t.Errorf("life %d leaves %v", i, ids)
		}
	}
	files, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s %v", f.Name(), info.Mode())
		}
	}
	// Another configuration has an archive of its own.
	if other := daemon.ArchivePath(state, path+"x"); other == daemon.ArchivePath(state, path) {
		t.Error(other)
	}
}

// What is asked while the archive is opened is added to what it holds.
func TestRequestsAtTheStartAreAddedToTheArchive(t *testing.T) {
	path, state := configuration(t, "")
	for i := range 5 {
		l := begin(t, path)
		l.ask(2)
		<-l.Restored()
		if got := l.Handler().Ledger().Totals(); got.Requests != int64(2*(i+1)) || got.Successes != got.Requests {
			t.Errorf("life %d ends with %+v", i, got)
		}
		l.end()
		if ids := read(t, path, state); len(ids) != 2*(i+1) {
			t.Errorf("life %d leaves %v", i, ids)
		}
	}
}

// Statistics that are not there yet are shown to nobody: who asks while the archive is
// opened, which another process holds up here, waits.
func TestTheAdminListenerWaitsForTheArchive(t *testing.T) {
	path, state := configuration(t, "")
	l := begin(t, path)
	l.ask(2)
	l.end()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(daemon.ArchivePath(state, path))+"?_pragma=locking_mode(exclusive)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	l = beginWith(t, daemon.Options{ConfigPath: path, Admin: new("127.0.0.1:0"), AdminHandler: func(*daemon.Daemon) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}})
	l.ask(1) // whoever wants an answer does not wait
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	select {
	case <-l.Restored():
	default:
		t.Error("the admin listener answers before the archive is there")
	}
	l.end()
}

func TestAReloadChangesHowMuchIsKept(t *testing.T) {
	path, state := configuration(t, "request_log: {keep: 4}")
	l := begin(t, path)
	l.ask(6)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "keep: 4", "keep: 0", 1)), 0o600)
	}
	if err == nil {
		err = l.Reload(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	l.ask(1)
	l.end()
	if ids := read(t, path, state); len(ids) != 0 {
		t.Errorf("%v are kept", ids)
	}
	l = begin(t, path)
	<-l.Restored()
	if got := l.Handler().Ledger().Totals().Requests; got != 7 {
		t.Errorf("%d requests", got)
	}
	l.end()
}

// A state directory that cannot be used costs the archive, not the service.
func TestNoArchiveIsNoReasonNotToServe(t *testing.T) {
	path, state := configuration(t, "")
	if err := os.WriteFile(state, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := begin(t, path)
	l.ask(3)
	l.end()
}
