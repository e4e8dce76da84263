package proxy

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/config"
	"understudy/internal/drill"
)

var update = flag.Bool("update", false, "write the measured figures into the guides anew")

// guide reads one of the guides for users.
func guide(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// figures compares a table of measured figures with the one that stands in a guide
// between its marks; with -update it is written there.
func figures(t *testing.T, name, mark, table string) {
	t.Helper()
	text := guide(t, name)
	begin := "<!-- figures of " + mark + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	old, after, end := strings.Cut(rest, "<!-- end -->\n")
	switch {
	case !ok || !end:
		t.Errorf("docs/%s has no place for the figures of %s", name, mark)
	case old == table:
	case *update:
		if err := os.WriteFile("../../docs/"+name, []byte(before+begin+table+"<!-- end -->\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/%s says\n%s\nmeasured (write it with -update):\n%s", name, old, table)
	}
}

// setup is the n-th configuration that a guide shows, in a fence of its own, over
// plain HTTP, since a test's network has no certificates.
func setup(t *testing.T, name string, n int) string {
	t.Helper()
	parts := strings.Split(guide(t, name), "```yaml\n")
	if len(parts) <= n {
		t.Fatalf("docs/%s shows fewer than %d configurations", name, n)
	}
	text, _, _ := strings.Cut(parts[n], "```")
	cfg, problems := config.Parse(config.Source{Path: name, Format: config.YAML, Bytes: []byte(text)})
	for _, p := range problems {
		if p.Severity == config.Error || !strings.Contains(p.What, "is not set") {
			t.Errorf("docs/%s, configuration %d: %s", name, n, p)
		}
	}
	if cfg == nil {
		t.FailNow()
	}
	return strings.ReplaceAll(text, "https://", "http://")
}

// lottery is the time to the first token of every request of a run, at the chain's
// first and second candidate, the same for every policy.
type lottery struct{ arrivals, first, second []time.Duration }

// lots draws for n requests, four a second on average: half a second to the
// first token, more or less (a log-normal spread of 0.4), and at the first candidate
// twenty seconds for one in twenty.
func lots(n int) lottery {
	rnd := rand.New(rand.NewPCG(1, 2))
	usual := func() time.Duration {
		return time.Duration(0.5 * math.Exp(0.4*rnd.NormFloat64()) * float64(time.Second))
	}
	var l lottery
	at := time.Duration(0)
	for range n {
		at += time.Duration(rnd.ExpFloat64() * float64(time.Second) / 4)
		first := usual()
		if rnd.Float64() < 0.05 {
			first = 20 * time.Second
		}
		l.arrivals, l.first, l.second = append(l.arrivals, at), append(l.first, first), append(l.second, usual())
	}
	return l
}

// run has a proxy serve the requests, and returns how long each client waited for its
// first byte, sorted, and the share of requests that had an extra attempt.
func (l lottery) run(t *testing.T, cfg string) (waits []time.Duration, extra float64) {
	b := newBed(t, cfg)
	serve := func(times []time.Duration) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, _ int) {
			var n int
			fmt.Sscan(r.Header.Get("X-Number"), &n)
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(times[n]):
				sse(w, whole)
			case <-r.Context().Done():
			}
		}
	}
	b.upstream("primary.example", serve(l.first))
	b.upstream("backup.example", serve(l.second))
	begun := time.Now()
	waits = make([]time.Duration, len(l.arrivals))
	var wg sync.WaitGroup
	for i, at := range l.arrivals {
		<-time.After(at - time.Since(begun))
		wg.Go(func() {
			got := b.chat("auto", "X-Number", fmt.Sprint(i))
			if got.status != 200 || got.body != whole {
				t.Errorf("request %d got %d %q, %v", i, got.status, brief(got.body), got.err)
				return
			}
			waits[i] = got.at[0]
		})
	}
	wg.Wait()
	slices.Sort(waits)
	return waits, float64(len(b.seen("backup.example"))) / float64(len(l.arrivals))
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// With a first upstream whose first token takes 20 s in 5 % of requests, hedging
// brings the 99th percentile of the time to first content from 20 s to under 9 s at
// no more than 5 % extra requests. The figures are those of docs/hedging.md.
func TestHedgingFigures(t *testing.T) {
	t.Setenv("PRIMARY_KEY", "sk-1")
	t.Setenv("BACKUP_KEY", "sk-2")
	guided := setup(t, "hedging.md", 1)
	line := "    hedge: {after: 8s, max: 1, budget: 5%}\n"
	if !strings.Contains(guided, line) {
		t.Fatalf("the guide's configuration has no line %q", line)
	}
	// The figures are of the hedge alone, so nobody is frozen.
	guided = "server: {auto_hedge_threshold: 0}\n" + guided
	l := lots(3000)
	table := "| hedge | p50 | p95 | p99 | longest | extra requests |\n| --- | --- | --- | --- | --- | --- |\n"
	for _, c := range []struct {
		name, line string
		p99        time.Duration // at most
	}{
		{"none", "", 20*time.Second + time.Millisecond},
		{"`after: 8s`", line, 9*time.Second - 1},
		{"`after: p95`", strings.Replace(line, "8s", "p95", 1), 5 * time.Second},
	} {
		var waits []time.Duration
		var extra float64
		inBubble(t, c.name, func(t *testing.T) { waits, extra = l.run(t, strings.Replace(guided, line, c.line, 1)) })
		p99 := percentile(waits, 0.99)
		if c.line == "" && p99 != 20*time.Second || p99 > c.p99 || extra > 0.05 {
			t.Errorf("%s: p99 %v, %.2f %% extra requests", c.name, p99, 100*extra)
		}
		seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %.1f %% |\n", c.name, seconds(percentile(waits, 0.5)), seconds(percentile(waits, 0.95)), seconds(p99), seconds(waits[len(waits)-1]), 100*extra)
	}
	figures(t, "hedging.md", "hedging", table)
}

// What the guide's configurations promise.
func TestHedgingGuide(t *testing.T) {
	t.Setenv("PRIMARY_KEY", "sk-1")
	t.Setenv("BACKUP_KEY", "sk-2")
	first, second := setup(t, "hedging.md", 1), setup(t, "hedging.md", 2)
	inBubble(t, "silence", func(t *testing.T) {
		s := newScene(t, first)
		s.play("primary.example", silent)
		s.play("backup.example", sayPong)
		got := s.chat("auto")
		s.from(got, "backup")
		equal(t, "took", got.took, 8*time.Second)
	})
	inBubble(t, "a trickle", func(t *testing.T) {
		s := newScene(t, second)
		s.play("primary.example", trickle(time.Second, time.Second, 600))
		s.play("backup.example", sayPong)
		got := s.chat("auto")
		s.from(got, "backup")
		equal(t, "took", got.took, 3*time.Second) // two of them after the first character
	})
	inBubble(t, "a winner that breaks", func(t *testing.T) {
		s := newScene(t, second)
		s.play("primary.example", drill.Sequence(silent, sayPong))
		s.play("backup.example", telling(false, pong, time.Second))
		s.from(s.chat("auto"), "primary")
	})
}
