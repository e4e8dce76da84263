package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
	"understudy/internal/stats"
)

// A drama is a chain, its upstreams' moods and its clients, all drawn from a seed.
type drama struct {
	*scene
	random *rand.Rand
	n      int  // candidates
	target bool // target mode
	seize  bool // when_all_frozen: try_soonest

	mu      sync.Mutex
	answers map[string]bool // every whole answer that some upstream began to give
	wrong   []string
}

// chainTimeout is every drama's.
const chainTimeout = 90 * time.Second

// draw makes a configuration.
func (d *drama) draw() string {
	pick := func(of ...string) string { return of[d.random.IntN(len(of))] }
	d.n = 1 + d.random.IntN(4)
	d.target = d.random.IntN(4) == 0
	server := "server: {chain_timeout: 90, stall_timeout: 8, nonstream_timeout: 20, relay_stall_timeout: 9, target_mode_max_wait_seconds: 40, auto_hedge_threshold: " + pick("0", "2", "5") + ", auto_hedge_minutes: 0.2"
	if d.random.IntN(4) == 0 {
		d.seize = true
		server += ", when_all_frozen: try_soonest"
	}
	server += ", broken_stream: " + pick("abort", "error_event") + "}\n"
	rules := pick("",
		"rules: []\n",
		"rules: [{match: {status: [429, 500, 503]}, action: freeze, freeze_seconds: 6}]\n",
		"rules: [{match: {status: [429, 500, 503, network, bad_stream]}, action: retry, max_attempts: 3, backoff_base: 2, max_wait: 7}]\n",
		"rules: [{match: {fault: client}, action: passthrough}, {match: {status: [network, stalled_stream]}, action: retry, max_attempts: 2}]\n")
	if d.random.IntN(4) == 0 {
		return pooled(d.n, pick("cooldown_seconds: 5", "cooldown_seconds: 0", "max_attempts: 2"), server)
	}
	cfg := server + rules + "virtual_models:\n  vm:\n    " + pick("delivery: stream", "delivery: complete", "delivery: window\n    hold_ms: 2500") + "\n"
	if d.random.IntN(3) == 0 {
		cfg += "    hedge: {after: 3, budget: 100%, max: 2}\n"
	}
	cfg += "    candidates:\n"
	group := d.n > 1 && d.random.IntN(3) == 0
	if group {
		cfg += "      - any_of:\n"
	}
	for i := range d.n {
		indent := "      "
		if group {
			indent = "          "
		}
		cfg += fmt.Sprintf("%s- {name: u%d, base_url: \"http://u%d\", api_key: sk-%d, model: m%d}\n", indent, i+1, i+1, i+1, i+1)
	}
	return cfg
}

// parts is what an upstream says in its k-th answer, as a stream or whole.
func (d *drama) parts(name string, k int, stream bool) []string {
	if !stream {
		return []string{`{"id":"c2","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`,
			fmt.Sprintf(`"content":"%s answer %d"},`, name, k), `"finish_reason":"stop"}]}`}
	}
	out := []string{role}
	for i := range 5 {
		out = append(out, said(fmt.Sprintf("%s answer %d part %d. ", name, k, i)))
	}
	return append(out, finish("stop")+done)
}

// moody answers each request in a mood of its own.
func (d *drama) moody(name string, seed uint64) drill.Script {
	return func(w *drill.Wire, r drill.Request, k int) {
		d.mustNotBeFrozen(name)
		random := rand.New(rand.NewPCG(seed, uint64(k)))
		parts := d.parts(name, k, r.Stream())
		begin := func() { w.Head(200, drill.Chunked, "Content-Type", sseType) }
		if !r.Stream() {
			begin = func() {
				w.Head(200, drill.Length(len(strings.Join(parts, ""))), "Content-Type", "application/json")
			}
		}
		d.mu.Lock()
		d.answers[strings.Join(parts, "")] = true
		d.mu.Unlock()
		w.Pause(time.Duration(random.IntN(3)) * time.Second)
		status := func(n int, header ...string) {
			w.JSON(n, fmt.Appendf(nil, `{"error":{"message":"%s refuses %d","code":%d}}`, name, k, n), header...)
		}
		switch random.IntN(14) {
		case 0:
			status(500)
		case 1:
			status(503)
		case 2:
			status(429, "Retry-After", fmt.Sprint(random.IntN(15)))
		case 3:
			status(400)
		case 4: // behind its first byte: before it the request would be sent once more
			w.Raw([]byte("HTTP/1.1 200"))
			w.Reset()
		case 5:
			w.Silence()
		case 6:
			w.JSON(200, []byte(`{"error":{"message":"not in a mood"}}`))
		case 7:
			page("text/html", "<!DOCTYPE html><html></html>")(w, r, k)
		case 8, 9, 10: // begins, and ends somewhere
			begin()
			for _, p := range parts[:random.IntN(len(parts))] {
				w.Chunk([]byte(p))
				w.Pause(time.Duration(random.IntN(2)) * time.Second)
			}
			w.Stop([]drill.Ending{drill.FIN, drill.RST, drill.Clean, drill.Hang}[random.IntN(4)])
		default: // answers, at some pace
			begin()
			for i, p := range parts {
				if i > 0 {
					w.Pause(time.Duration(random.IntN(4)) * time.Second)
				}
				w.Chunk([]byte(p))
			}
			w.End()
		}
	}
}

// mustNotBeFrozen notes an upstream that is called although it has been frozen for
// longer than this moment.
func (d *drama) mustNotBeFrozen(name string) {
	standing, f := d.standing(name)
	if standing == health.Frozen && f.Since.Before(time.Now()) && !d.seize {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.wrong = append(d.wrong, fmt.Sprintf("at %v %s was called, frozen since %v for %v (%s)", d.now(), name, f.Since.Sub(d.begun), f.Length, f.Reason))
	}
}

// kindOf says what a client got, "" where that must not be.
func (d *drama) kindOf(got drill.Reply) string {
	body := strings.ReplaceAll(string(got.Body), holding, "")
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case got.Status == 200 && got.Clean && d.answers[body]:
		return "whole"
	case got.Status == 0 && !got.Clean:
		return "nothing"
	case got.Status != 200 && got.Clean && strings.HasPrefix(body, `{"error":{`):
		return "error"
	case got.Status != 200 || got.Clean:
		return ""
	}
	before, _, _ := strings.Cut(body, `data: {"error":`) // our own error event
	if before == "" {
		return "broken"
	}
	for answer := range d.answers {
		if strings.HasPrefix(answer, before) || strings.HasPrefix(answer+"\n", before) || strings.HasPrefix(answer+"\n\n", before) {
			return "broken"
		}
	}
	return ""
}

// Whatever a chain is made of and whatever its upstreams do: a client gets one whole
// answer of one upstream, or sees that it did not; what is booked is what it saw;
// nobody who is frozen is called; no attempt is one too many; the time is bounded; and
// in the end nothing is left in flight.
func TestAnyChainKeepsItsPromises(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(1000) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &drama{random: rand.New(rand.NewPCG(seed, 1234)), answers: map[string]bool{}}
			cfg := d.draw()
			d.scene = newScene(t, cfg)
			d.handler.Target().Set(d.target)
			for i := range d.n {
				name := fmt.Sprintf("u%d", i+1)
				d.play(name, d.moody(name, seed*31+uint64(i)))
			}
			type seen struct {
				got  drill.Reply
				kind string
			}
			var mu sync.Mutex
			var all []seen
			var wg sync.WaitGroup
			for range 8 {
				begin := time.Duration(d.random.IntN(60_000)) * time.Millisecond
				patience := time.Hour
				if d.random.IntN(4) == 0 {
					patience = time.Duration(d.random.IntN(20_000)) * time.Millisecond
				}
				stream, session := d.random.IntN(4) > 0, fmt.Sprint("s", d.random.IntN(3))
				wg.Go(func() {
					<-time.After(begin)
					ctx, leave := context.WithTimeout(t.Context(), patience)
					defer leave()
					c := d.dialClient()
					defer c.Close()
					got := c.Ask(ctx, drill.Query{Path: chatPath, Body: []byte(chatBody("vm", stream)), Header: []string{"session_id", session}})
					kind := "left"
					if ctx.Err() == nil {
						kind = d.kindOf(got)
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, seen{got, kind})
				})
			}
			wg.Wait()
			synctest.Wait()
			for _, s := range all {
				kinds[s.kind]++
				if s.kind == "" {
					t.Errorf("a client got %d %q, clean %v, %v", s.got.Status, s.got.Body, s.got.Clean, s.got.Err)
				}
				if s.kind != "left" {
					d.booked(s.got, s.kind)
				}
			}
			d.idle()
			for _, w := range d.wrong {
				t.Error(w)
			}
			for _, r := range d.records() {
				d.check(&r)
			}
			if t.Failed() {
				t.Logf("configuration:\n%s\nlog:\n%s", cfg, d.log)
			}
		})
	}
	t.Logf("clients got %v", kinds)
	for _, kind := range []string{"whole", "broken", "error", "left"} {
		if kinds[kind] < 100 {
			t.Errorf("only %d clients got %s: %v", kinds[kind], kind, kinds)
		}
	}
}

// booked asserts that the record of a request says what its client saw.
func (d *drama) booked(got drill.Reply, kind string) {
	d.t.Helper()
	id := got.Get("X-Understudy-Request-Id")
	for _, r := range d.records() {
		if r.ID != id {
			continue
		}
		ok := map[string][]stats.Ending{
			"whole":  {stats.Success},
			"broken": {stats.Broken, stats.Exhausted},
			"error":  {stats.Exhausted, stats.PassedThrough},
		}[kind]
		for _, e := range ok {
			if r.Ending == e {
				return
			}
		}
		d.t.Errorf("a client saw %s, booked is %v", kind, r.Ending)
		return
	}
	if kind != "nothing" {
		d.t.Errorf("the request %q of a client that got %s is not booked", id, kind)
	}
}

// check holds a record to what no request may exceed.
func (d *drama) check(r *stats.Record) {
	d.t.Helper()
	if !d.target && r.Released > chainTimeout {
		d.t.Errorf("%s was released after %v", r.ID, r.Released)
	}
	bound := chainTimeout
	if d.target {
		bound += 40*time.Second + time.Duration(d.n)*3*30*time.Second // a running round ends first
	}
	if r.Ending == stats.Exhausted && r.End > bound {
		d.t.Errorf("%s took %v to be exhausted", r.ID, r.End)
	}
	tries := map[string]int{}
	won := 0
	for _, try := range r.Tries {
		if try.Verdict != stats.Abandoned { // one that lost a hedge may be asked again
			tries[try.Name]++
		}
		if try.Verdict == stats.OK {
			won++
		}
	}
	for name, n := range tries {
		if n > 3 && !d.target {
			d.t.Errorf("%s: %d attempts at %s", r.ID, n, name)
		}
	}
	if (r.Ending == stats.Success) != (won == 1) || won > 1 {
		d.t.Errorf("%s ended as %v with %d attempts that are well", r.ID, r.Ending, won)
	}
}
