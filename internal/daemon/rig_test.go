package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/route"
)

// A rig is a daemon over a configuration file that a test writes.
type rig struct {
	*Daemon
	t     *testing.T
	path  string
	state string // the state directory
	log   *lockedLog
	drain context.CancelFunc // SIGTERM
	stop  context.CancelFunc // the second one
	ended chan error
}

type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// count is how many lines of the log hold a text.
func (l *lockedLog) count(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// newRig opens a daemon over a file with this text; STATE in it is a fresh directory.
func newRig(t *testing.T, text string, options ...func(*Options)) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, path: filepath.Join(dir, "understudy.yaml"), state: filepath.Join(dir, "state")}
	r.write(text)
	r.open(options...)
	return r
}

// write replaces the configuration file, as an editor does.
func (r *rig) write(text string) {
	r.t.Helper()
	temp := r.path + ".new"
	if err := os.WriteFile(temp, []byte(strings.ReplaceAll(text, "STATE", r.state)), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(temp, r.path); err != nil {
		r.t.Fatal(err)
	}
}

// open opens a daemon over the file as it is.
func (r *rig) open(options ...func(*Options)) {
	r.t.Helper()
	if r.Daemon != nil {
		r.Daemon.Close() // it may never have served
	}
	r.log = new(lockedLog)
	o := Options{ConfigPath: r.path, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	for _, set := range options {
		set(&o)
	}
	d, err := Open(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Daemon, r.ended = d, make(chan error, 1)
	r.t.Cleanup(d.Close)
	<-d.Restored()
}

// serve starts serving; the test ends it, or its cleanup does.
func (r *rig) serve() *rig {
	ctx, drain := context.WithCancel(context.Background())
	now, stop := context.WithCancel(context.Background())
	r.drain, r.stop = drain, stop
	d, ended := r.Daemon, r.ended
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- d.Serve(ctx, now)
	}()
	r.t.Cleanup(func() { stop(); <-done; drain() })
	return r
}

// quits waits until Serve has returned, and asserts that it did so well.
func (r *rig) quits(within time.Duration) {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("Serve returned %v\n%s", err, r.log)
		}
	case <-time.After(within):
		r.t.Fatalf("Serve has not returned after %v\n%s", within, r.log)
	}
}

// eventually waits until a condition holds, looking now and then.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// ask sends a chat request for a model and reads the answer.
func (r *rig) ask(model string, stream bool) drill.Reply {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	return drill.Ask(ctx, r.Addr(), drill.Query{Path: "/v1/chat/completions", Body: fmt.Appendf(nil, `{"model":%q,"stream":%v,"messages":[]}`, model, stream)})
}

// answers asserts that a model is served, by a candidate of that name.
func (r *rig) answers(model, name string) {
	r.t.Helper()
	if got := r.ask(model, false); got.Status != 200 || got.Get("X-Understudy-Candidate") != name {
		r.t.Errorf("%s: %d by %q, want 200 by %q: %s\n%s", model, got.Status, got.Get("X-Understudy-Candidate"), name, got.Body, r.log)
	}
}

// candidate is the candidate of that name in what is served.
func (r *rig) candidate(name string) *route.Candidate {
	r.t.Helper()
	for _, chain := range r.Handler().Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				if tier[i].Name == name {
					return &tier[i]
				}
			}
		}
	}
	r.t.Fatalf("no candidate %q", name)
	return nil
}

// freeze freezes a candidate.
func (r *rig) freeze(name string, d time.Duration, by health.By) {
	r.t.Helper()
	r.board.Freeze(proxy.Key(r.candidate(name).ID), health.Freeze{Length: d, By: by, Reason: "by the test"}, time.Now())
}

// left is how long a candidate is frozen still.
func (r *rig) left(name string) time.Duration {
	r.t.Helper()
	now := time.Now()
	if standing, f := r.board.Standing(proxy.Key(r.candidate(name).ID), now); standing == health.Frozen {
		return f.Until.Sub(now)
	}
	return 0
}

// upstream plays a script on a real socket.
func upstream(t *testing.T, script drill.Script) *drill.Upstream {
	t.Helper()
	u := drill.Start(script)
	t.Cleanup(u.Close)
	return u
}

func well(t *testing.T) *drill.Upstream { return upstream(t, drill.Healthy(drill.Answer{})) }

// vm is a configuration with one virtual model over these candidates, each "name url
// model".
func vm(server string, candidates ...string) string {
	cfg := "server: {port: 0, admin: off, state_dir: \"STATE\"" + server + "}\nvirtual_models:\n  vm:\n"
	for _, c := range candidates {
		f := strings.Fields(c)
		cfg += fmt.Sprintf("    - {name: %s, base_url: %q, api_key: sk-%s-secret-key, model: %s}\n", f[0], f[1], f[2], f[2])
	}
	return cfg
}

func ping(d *Daemon) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "admin") })
}
