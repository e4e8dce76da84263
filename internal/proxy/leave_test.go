package proxy

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// A stage of an answer at which clients leave.
type leaving struct {
	name   string
	model  string
	script drill.Script
	// ready says that so many clients stand where they are to leave from.
	ready func(u *drill.Upstream, clients int) bool
	// lost is how many of its peers an upstream sees leave, per client.
	lost int
}

// flooding sends without end; sent counts its bytes.
func flooding(sent *atomic.Int64) drill.Script {
	piece := []byte(said(strings.Repeat("x", 16<<10)))
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for w.Err() == nil {
			w.Chunk(piece)
			sent.Add(int64(len(piece)))
		}
	}
}

func leavings() []leaving {
	var sent atomic.Int64
	asked := func(u *drill.Upstream, clients int) bool { return u.Count() >= clients }
	return []leaving{
		{"before the head", "silent", silent, asked, 1},
		{"in the probe", "probe", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(role))
			w.Silence()
		}, asked, 1},
		{"mid-stream, not reading", "flood", flooding(&sent), func() func(*drill.Upstream, int) bool {
			last := int64(-1)
			return func(u *drill.Upstream, clients int) bool {
				now := sent.Load() // nobody takes anything any more
				still := u.Count() >= clients && now == last && now > 0
				last = now
				return still
			}
		}(), 1},
		{"in the wait for a retry", "retry", refusal(500, `{}`), asked, 0},
		{"while the answer is held", "held", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Silence()
		}, asked, 1},
		{"within a window", "window", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Silence()
		}, asked, 1},
	}
}

// leavingModels is a model per stage, over the upstreams in the same order.
func leavingModels(stages []leaving, urls []string, second string) string {
	cfg := "rules: [{match: {status: 500}, action: retry, backoff_base: 25}]\nserver: {auto_hedge_threshold: 0}\nvirtual_models:\n"
	for i, s := range stages {
		settings := map[string]string{"held": "delivery: complete", "window": "delivery: window\n    hold_ms: 600000"}[s.model]
		cfg += fmt.Sprintf("  %s:\n    %s\n    candidates:\n      - {name: u%d, base_url: %q, api_key: sk-%d, model: m}\n      - {name: s%d, base_url: %q, api_key: sk-s, model: s}\n", s.model, settings, i+1, urls[i], i, i+1, second)
	}
	return cfg
}

// eventually waits until a condition holds, looking now and then.
func eventually(t *testing.T, what string, within time.Duration, cond func() bool) bool {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(within)
	defer end.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Errorf("after %v still not: %s", within, what)
			return false
		}
	}
	return true
}

// leavePatience bounds how long a condition is waited for: long, since the machine may be
// busy with other tests.
const leavePatience = 2 * time.Minute

// files is how many files this process has open, 0 where the system does not show it.
func files() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// goroutines is how many there are, and their stacks.
func goroutines() (n int, stacks string) {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // a Builder takes everything
	return runtime.NumGoroutine(), b.String()
}

// Case 49: no goroutine, no connection and no file is left of a thousand clients that
// left: before the head, in the probe, mid-stream while they took nothing, in the
// wait for a retry, while their answer was held. Every upstream sees it, and no
// further attempt starts.
func TestNothingIsLeftOfClientsThatLeave(t *testing.T) {
	const clients = 168 // of each kind, six of which are more than a thousand
	stages := leavings()
	stand := play(t, sayPong)
	var ups []*drill.Upstream
	var urls []string
	for _, s := range stages {
		u := play(t, s.script)
		ups, urls = append(ups, u), append(urls, u.URL())
	}
	r := newRig(t, leavingModels(stages, urls, stand.URL()))

	// One of each goes before, for what is made once and kept.
	leaveAll(t, r, stages, ups, 1)
	quiet := func() bool { return r.handler.Ledger().Totals().InFlight == 0 && allClosed(ups) }
	eventually(t, "the first clients are gone", leavePatience, quiet)
	r.handler.transports.CloseIdle()
	before, _ := goroutines()
	filesBefore := files()

	leaveAll(t, r, stages, ups, clients)
	eventually(t, "every client is gone", leavePatience, quiet)
	r.handler.transports.CloseIdle()
	eventually(t, "goroutines as before", leavePatience, func() bool {
		n, _ := goroutines()
		return n <= before
	})
	if n, stacks := goroutines(); n > before {
		t.Errorf("%d goroutines, before %d:\n%s", n, before, stacks)
	}
	eventually(t, "open files as before", leavePatience, func() bool { return files() <= filesBefore })
	for i, u := range ups {
		if n := u.Count(); n != clients+1 {
			t.Errorf("%s: %d calls for %d clients", stages[i].name, n, clients+1)
		}
		if n := u.Gone(); n != stages[i].lost*(clients+1) {
			t.Errorf("%s: the upstream saw %d of %d clients leave", stages[i].name, n, stages[i].lost*(clients+1))
		}
	}
	if n := stand.Count(); n != 0 {
		t.Errorf("the stand-in was called %d times after clients had left", n)
	}
	for _, rec := range r.settle() {
		if rec.Ending != stats.Cancelled || len(rec.Tries) != 1 || rec.Tries[0].Verdict == stats.OK {
			t.Fatalf("booked %v: %+v", rec.Ending, rec.Tries)
		}
	}
}

func allClosed(ups []*drill.Upstream) bool {
	for _, u := range ups {
		// A connection whose answer was whole may be kept.
		if u.Open() > u.Count() {
			return false
		}
	}
	return true
}

// leaveAll has clients leave from every stage, half of them with a reset.
func leaveAll(t *testing.T, r *rig, stages []leaving, ups []*drill.Upstream, clients int) {
	t.Helper()
	for i, s := range stages {
		ctx, leave := context.WithCancel(t.Context())
		before, gone := ups[i].Count(), ups[i].Gone()
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				q := drill.Query{Path: chatPath, Body: []byte(chatBody(s.model, true)), Leave: drill.FIN}
				if c%2 == 1 {
					q.Leave = drill.RST
				}
				q.Watch = func(drill.Reply) bool { <-ctx.Done(); return false }
				drill.Ask(ctx, r.addr, q)
			})
		}
		if !eventually(t, s.name, leavePatience, func() bool { return s.ready(ups[i], before+clients) }) {
			t.Logf("%d of %d clients stand there", ups[i].Count()-before, clients)
		}
		leave()
		wg.Wait()
		eventually(t, s.name+": the upstream sees every client leave", time.Minute, func() bool { return ups[i].Gone() == gone+s.lost*clients })
	}
}

// Case 49, one by one and to the moment: the upstream sees the client leave when it
// does, and no attempt starts after that, not even when the wait would be over.
func TestClientLeavesAtAnyStage(t *testing.T) {
	for i, stage := range leavings() {
		inBubble(t, stage.name, func(t *testing.T) {
			stages := leavings()
			s := newScene(t, leavingModels(stages, []string{"http://u1", "http://u2", "http://u3", "http://u4", "http://u5", "http://u6"}, "http://second"))
			name := fmt.Sprintf("u%d", i+1)
			u := s.play(name, stages[i].script)
			s.play("second", sayPong)
			at := s.leftAt(name)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				c := s.dialClient()
				defer c.Close()
				c.Ask(ctx, drill.Query{Path: chatPath, Body: []byte(chatBody(stage.model, true)), Watch: func(drill.Reply) bool { <-ctx.Done(); return false }})
			}()
			s.till(7 * second)
			leave()
			<-left
			if stage.lost > 0 {
				equal(t, "the upstream sees it", <-at, 7*second)
			}
			synctest.Wait()
			s.idle()
			s.till(time.Hour)
			equal(t, "calls", []int{u.Count(), s.cast["second"].Count()}, []int{1, 0})
			r := s.records()
			if len(r) != 1 || r[0].Ending != stats.Cancelled || r[0].End != 7*second {
				t.Errorf("booked %+v", r)
			}
			equal(t, "streak", s.counters(name).Streak, int64(1-stage.lost)) // what failed before is all
		})
	}
}
