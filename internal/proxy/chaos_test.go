package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// ownAnswer is the answer of one upstream to one request: nobody else says the same.
func ownAnswer(upstream, id string) string {
	var b strings.Builder
	b.WriteString(role)
	for i := range 12 {
		b.WriteString(said(fmt.Sprintf("%s tells %s part %d. ", upstream, id, i)))
	}
	b.WriteString(finish("stop") + done)
	return b.String()
}

// idOf finds the request's own word in its body.
func idOf(r drill.Request) string {
	_, rest, _ := strings.Cut(string(r.Body), `"content":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// erratic fails at a random byte of its answer, in a random way, or not at all; what
// it does to a request depends on the seed and the request alone.
func erratic(name string, seed uint64) drill.Script {
	return func(w *drill.Wire, r drill.Request, _ int) {
		id := idOf(r)
		h := seed
		for _, c := range []byte(id) {
			h = h*1099511628211 + uint64(c)
		}
		random := rand.New(rand.NewPCG(seed, h))
		answer := ownAnswer(name, id)
		if random.IntN(10) == 0 {
			w.JSON(429, []byte(`{"error":{"message":"not now"}}`))
			return
		}
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		end, how := random.IntN(len(answer)), []drill.Ending{drill.FIN, drill.RST, drill.Clean, drill.Hang}[random.IntN(4)]
		if random.IntN(10) < 3 {
			end, how = len(answer), drill.Clean
		}
		for at := 0; at < end; {
			n := min(1+random.IntN(400), end-at)
			w.Chunk([]byte(answer[at : at+n]))
			at += n
		}
		w.Stop(how)
	}
}

// Five hundred streams at once through a chain whose first candidate fails at random
// bytes, by FIN, RST, a clean end or silence: every client gets exactly one whole
// answer of exactly one upstream. Where answers go out as they come, one that breaks
// after release is broken for its client too, and never mixed with another.
func TestFiveHundredStreamsAtOnce(t *testing.T) {
	for _, delivery := range []string{"complete", "stream"} {
		t.Run(delivery, func(t *testing.T) {
			const clients, seed = 500, 20261129
			u1 := play(t, erratic("u1", seed))
			u2 := play(t, func(w *drill.Wire, r drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				answer := ownAnswer("u2", idOf(r))
				w.Chunk([]byte(answer[:700]))
				w.Chunk([]byte(answer[700:]))
				w.End()
			})
			r := newRig(t, fmt.Sprintf("rules: []\nserver: {relay_stall_timeout: 3, auto_hedge_threshold: 0}\nvirtual_models:\n  vm:\n    delivery: %s\n    candidates:\n"+
				"      - {name: u1, base_url: %q, api_key: sk-1, model: m1, stall_timeout: 1}\n      - {name: u2, base_url: %q, api_key: sk-2, model: m2}\n", delivery, u1.URL(), u2.URL()))
			var mu sync.Mutex
			kinds := map[string]int{}
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					id := fmt.Sprintf("client-%03d", i)
					got := r.post(chatPath, fmt.Sprintf(`{"model":"vm","stream":true,"messages":[{"role":"user","content":"%s"}]}`, id))
					kind := verdictOn(got, id)
					mu.Lock()
					defer mu.Unlock()
					if kinds[kind]++; kind == "mixed" || kind == "failed" || kind == "broken u2" || kind == "broken u1" && delivery == "complete" {
						t.Errorf("%s: %s: %d, clean %v, %v, %q", id, kind, got.Status, got.Clean, got.Err, brief(string(got.Body)))
					}
				})
			}
			wg.Wait()
			t.Logf("%v", kinds)
			if kinds["u1"] < 50 || kinds["u2"] < 50 || delivery == "stream" && kinds["broken u1"] < 50 {
				t.Errorf("the seed plays too few of some: %v", kinds)
			}
			if n := u2.Count(); n != kinds["u2"] {
				t.Errorf("u2 was asked %d times for %d answers", n, kinds["u2"])
			}
			endings := map[stats.Ending]int{}
			for _, rec := range r.settle() {
				endings[rec.Ending]++
			}
			if endings[stats.Success] != kinds["u1"]+kinds["u2"] || endings[stats.Broken] != kinds["broken u1"] {
				t.Errorf("booked %v for %v", endings, kinds)
			}
			equal(t, "in flight", r.handler.Ledger().Totals().InFlight, 0)
			eventually(t, "connections are given back", time.Minute, func() bool {
				r.handler.transports.CloseIdle()
				return u1.Open() == 0 && u2.Open() == 0
			})
		})
	}
}

// verdictOn says whose answer a client got.
func verdictOn(got drill.Reply, id string) string {
	body := string(got.Body)
	if got.Status != 200 {
		return "failed"
	}
	for _, name := range []string{"u1", "u2"} {
		switch answer := ownAnswer(name, id); {
		case got.Clean && strings.HasPrefix(answer, body) && strings.Contains(body, finish("stop")):
			return name // what breaks behind the terminal event takes nothing away
		case !got.Clean && len(body) > 0 && strings.HasPrefix(answer, body) && strings.Contains(body, name+" tells"):
			return "broken " + name
		}
	}
	return "mixed"
}
