package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
)

// TestServiceStops: what the manager asks reaches serve, whichever of them is there
// first, and the code comes back.
func TestServiceStops(t *testing.T) {
	s := &service{std: streams{in: emptyInput{}, out: new(bytes.Buffer), err: new(bytes.Buffer)}}
	s.stop()
	signals := make(chan os.Signal, 4)
	s.to(signals)
	s.stop()
	for range 2 {
		if got := <-signals; got != os.Interrupt {
			t.Errorf("got %v", got)
		}
	}
}

// TestServiceRuns: a service that cannot run reports the program's exit code.
func TestServiceRuns(t *testing.T) {
	old := os.Args
	defer func() { os.Args = old }()
	os.Args = []string{"understudy", "serve", "-c", filepath.Join(t.TempDir(), "none.yaml"), "--no-repl"}
	requests, status := make(chan svc.ChangeRequest), make(chan svc.Status, 8)
	var said bytes.Buffer
	s := &service{std: streams{in: emptyInput{}, out: &said, err: &said}}
	if specific, code := s.Execute(nil, requests, status); !specific || code != exitUsage {
		t.Errorf("%v %d: %s", specific, code, said.String())
	}
	if first := <-status; first.State != svc.Running {
		t.Errorf("began with %v", first.State)
	}
}

func TestServiceLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "service.log")
	l, err := openServiceLog(path)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 1<<20)
	for range 25 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".old"} {
		if info, err := os.Stat(name); err != nil || info.Size() > maxServiceLog+2<<20 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestGrace(t *testing.T) {
	if got := graceOf(syscall.SIGTERM); got <= 0 || got >= 5*time.Second {
		t.Errorf("a closed console leaves %s", got)
	}
	if got := graceOf(os.Interrupt); got != 0 {
		t.Errorf("Ctrl-C leaves %s", got)
	}
}
