package control

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

var update = flag.Bool("update", false, "write the files of expected output anew")

// A rig is a Control over the real handler and a real file, with a small stand-in
// for the daemon that reads and writes it.
type rig struct {
	*Control
	t       *testing.T
	path    string
	handler *proxy.Handler
	log     *lines

	mu     sync.Mutex
	status Status
	saved  int
	quit   int
}

// lines is a log that several goroutines may write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, name, text string) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), name), log: new(lines)}
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := r.compile()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.handler = proxy.New(s, health.NewBoard(), stats.NewLedger(100), new(proxy.Transports), log, func() float64 { return 0.5 })
	r.status = Status{Path: r.path, LoadedAt: time.Now()}
	r.Control = New(Deps{
		Handler: r.handler, Started: time.Now(), Version: "1.2.3", Log: log,
		Status: func() Status {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.status
		},
		Reload: func(context.Context) error { return r.reload() },
		Edit:   r.edit,
		Save: func(context.Context) error {
			r.saved++
			return nil
		},
		Quit: func() { r.quit++ },
	})
	return r
}

func (r *rig) compile() (*proxy.Snapshot, error) {
	src, err := config.Read(r.path)
	if err != nil {
		return nil, err
	}
	cfg, problems := config.Parse(src)
	if cfg == nil {
		return nil, mistakes(problems)
	}
	return proxy.Compile(cfg)
}

func mistakes(problems []config.Problem) error {
	var errs []error
	for _, p := range problems {
		if p.Severity == config.Error {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

func (r *rig) reload() error {
	s, err := r.compile()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.status.Error = err.Error()
		return err
	}
	before := r.handler.Swap(s).Config.Server
	r.status = Status{Path: r.path, LoadedAt: time.Now()}
	if before.Port != s.Config.Server.Port {
		r.status.NeedsRestart = []string{"port"}
	}
	return nil
}

func (r *rig) edit(_ context.Context, _ string, edit func(config.Source) (config.Source, error)) ([]string, error) {
	src, err := config.Read(r.path)
	if err != nil {
		return nil, err
	}
	edited, err := edit(src)
	if err != nil {
		return nil, err
	}
	if cfg, problems := config.Parse(edited); cfg == nil {
		return nil, mistakes(problems)
	}
	if err := edited.Write(); err != nil {
		return nil, err
	}
	err = r.reload()
	return r.Control.deps.Status().NeedsRestart, err
}

// write changes the file behind the Control's back.
func (r *rig) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) file() string {
	r.t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// run runs a line and gives its output, or its error after "error: ".
func (r *rig) run(line string) string {
	out, err := r.Run(context.Background(), "test", line)
	text := out.Text
	if err != nil {
		text = "error: " + err.Error()
	}
	return strings.ReplaceAll(text, filepath.Dir(r.path)+string(filepath.Separator), "")
}
