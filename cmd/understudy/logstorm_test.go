package main

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A storm of one message is told by so many lines a second and a count of the rest;
// other messages, and what becomes of requests, are written all the same.
func TestAStormOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, flush := newLog(&out, false, "text", "info")
		count := func(text string) int { flush(); return strings.Count(out.String(), text) }
		for range 5000 {
			log.Warn("attempt failed", slog.String("why", "503"))
			log.Info("request", slog.String("ending", "success"))
		}
		log.Warn("something else")
		if n := count("attempt failed"); n != stormLines {
			t.Errorf("%d lines", n)
		}
		if n := count("request"); n != 5000 {
			t.Errorf("%d requests", n)
		}
		if count("something else") != 1 {
			t.Error("another message is left out")
		}
		<-time.After(time.Second)
		synctest.Wait()
		if count("lines left out") != 1 || count("lines=4900") != 1 {
			t.Errorf("%s", out.String()[out.Len()-300:])
		}
		log.With(slog.String("a", "b")).Warn("attempt failed")
		if n := count("why=503"); n != stormLines {
			t.Errorf("%d", n)
		}
		if count("a=b") != 1 {
			t.Error("the next second's line is missing")
		}
		<-time.After(10 * time.Second)
		if n := count("lines left out"); n != 1 {
			t.Errorf("%d accounts", n)
		}
	})
}

// stuck is somebody who does not read the log, until told.
type stuck struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// Nobody waits for who reads the log: what it does not take is left out beyond a
// bound, and told when it reads on.
func TestALogThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stuck{free: make(chan struct{})}
		log, flush := newLog(to, false, "json", "info")
		start := time.Now()
		line := strings.Repeat("x", 1000)
		for range 5000 {
			log.Info("request", slog.String("path", line))
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("requests waited for %v", d)
		}
		flush()
		if d := time.Since(start); d != lazyEnd {
			t.Errorf("the end waited for %v", d)
		}
		close(to.free)
		flush()
		got := to.buf.String()
		lines := strings.Count(got, `"msg":"request"`)
		if lines < 900 || lines > 1500 || !strings.Contains(got, `"msg":"lines left out"`) || !strings.HasSuffix(got, "}\n") {
			t.Errorf("%d lines, … %q", lines, got[len(got)-200:])
		}
	})
}
