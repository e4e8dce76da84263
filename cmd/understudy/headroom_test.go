package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/drill"
)

// A process lets a small heap grow fivefold between two collections and a large one by
// as much as it holds, and GOGC goes before both.
func TestTheHeapsHeadroomIsFixed(t *testing.T) {
	asked, answer := make(chan struct{}, 64), make(chan struct{})
	upstream := drill.Start(func(w *drill.Wire, r drill.Request, n int) {
		asked <- struct{}{}
		<-answer
		drill.Healthy(drill.Answer{Text: "well"})(w, r, n)
	})
	t.Cleanup(upstream.Close)
	path := filepath.Join(t.TempDir(), "understudy.yaml")
	if err := os.WriteFile(path, []byte(cast("server: {port: 0, admin: 127.0.0.1:0, max_held_bytes: 1GiB}", upstream, upstream)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOGC", "")
	p := launch(t, "serve", "-c", path, "--no-repl")
	if got := p.metric(t, "go_gc_gogc_percent"); got != 400 {
		t.Errorf("%g %% while idle", got)
	}
	const clients, each = 24, 4 << 20
	body := fmt.Appendf(nil, `{"model":"auto","messages":[{"role":"user","content":"%s"}]}`, bytes.Repeat([]byte("x"), each))
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			a, err := http.Post("http://"+p.proxy+"/v1/chat/completions", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			a.Body.Close()
			if a.StatusCode != http.StatusOK {
				t.Errorf("answered with %d", a.StatusCode)
			}
		})
	}
	for range clients {
		<-asked
	}
	// Adjusting comes after the collection; scrapes let time go by.
	for end := time.Now().Add(20 * time.Second); p.metric(t, "go_gc_gogc_percent") > 150; {
		if time.Now().After(end) {
			t.Errorf("%g %% with %d bodies of %d bytes in memory", p.metric(t, "go_gc_gogc_percent"), clients, each)
			break
		}
	}
	close(answer)
	all.Wait()

	t.Setenv("GOGC", "250")
	if got := launch(t, "serve", "-c", path, "--no-repl").metric(t, "go_gc_gogc_percent"); got != 250 {
		t.Errorf("%g %% where GOGC is 250", got)
	}
}

// metric reads one value of a process' /metrics.
func (p *process) metric(t *testing.T, name string) float64 {
	t.Helper()
	a, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s among its metrics", name)
	return 0
}
