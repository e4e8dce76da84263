package campaign

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/drill"
)

// A probation is a virtual model with two candidates that are well, the first of
// which is frozen again and again: while a trial runs, everybody else goes to the
// second.
type probation struct {
	w      *world
	conf   map[string]any
	a, b   *drill.Upstream
	calls  atomic.Int64 // at the first
	mu     sync.Mutex
	letOut chan struct{} // the first answers when this is closed
}

func newProbation(w *world) *probation {
	p := &probation{w: w, letOut: make(chan struct{})}
	p.a = drill.Start(func(wire *drill.Wire, r drill.Request, n int) {
		p.calls.Add(1)
		p.mu.Lock()
		out := p.letOut
		p.mu.Unlock()
		if wire.Wait(out) {
			drill.Healthy(drill.Answer{Text: "The first one says so."})(wire, r, n)
		}
	})
	p.b = drill.Start(drill.Healthy(drill.Answer{Text: "The second one says so."}))
	entry := func(name string, u *drill.Upstream) map[string]any {
		return map[string]any{"name": name, "base_url": u.URL(), "api_key": w.secret("pr"), "model": "real-" + name, "nonstream_timeout": 120}
	}
	p.conf = map[string]any{"candidates": []any{entry("first", p.a), entry("second", p.b)}, "rules": []any{map[string]any{"match": map[string]any{"status": "network"}, "action": "next"}}}
	return p
}

func (p *probation) name() string { return "probation" }

func (p *probation) close() {
	p.hold(false)
	p.a.Close()
	p.b.Close()
}

// hold has the first one wait with its answers, or not.
func (p *probation) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.letOut = make(chan struct{})
		return
	}
	select {
	case <-p.letOut:
	default:
		close(p.letOut)
	}
}

// ask returns who answered, "" for nobody, and after how many attempts.
func (p *probation) ask(ctx context.Context, addr string) (who string, attempts string) {
	key := p.w.own
	if p.w.clients != nil {
		key = p.w.clients[0].key
	}
	r := drill.Ask(ctx, addr, drill.Query{Path: "/v1/chat/completions", Body: []byte(`{"model":"probation","messages":[]}`), Header: []string{"Authorization", "Bearer " + key}})
	if r.Status != 200 || !r.Clean {
		return "", ""
	}
	return r.Get("X-Understudy-Candidate"), r.Get("X-Understudy-Attempts")
}

// round freezes the first candidate for a moment, and looks who is called when the
// freeze is over. It is void, and false, where the trial did not last until all others
// were somewhere.
func (p *probation) round(ctx context.Context, run *run) bool {
	p.hold(true)
	defer p.hold(false)
	if !run.command("freeze add probation real-first 0.02") {
		return false
	}
	for run.candidate("probation", "first").State != "probation" {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	well := run.candidate("probation", "second")
	before := p.calls.Load()
	trial := make(chan string, 1)
	go func() {
		who, _ := p.ask(ctx, run.addr)
		trial <- who
	}()
	for p.calls.Load() == before {
		select {
		case <-time.After(time.Millisecond):
		case <-trial:
			return false
		case <-ctx.Done():
			return false
		}
	}
	const others = 6
	type got struct{ who, attempts string }
	answers := make(chan got, others)
	for range others {
		go func() {
			who, attempts := p.ask(ctx, run.addr)
			answers <- got{who, attempts}
		}()
	}
	// Each of them is answered, or waits at the first one too, before the trial ends.
	lasted := true
	for int64(len(answers))+p.calls.Load()-before-1 < others && lasted {
		select {
		case <-time.After(time.Millisecond):
		case <-trial:
			trial <- ""
			lasted = false
		case <-ctx.Done():
			lasted = false
		}
	}
	p.hold(false)
	lasted = <-trial == "first" && lasted
	second, intruders := 0, 0
	for range others {
		switch a := <-answers; {
		case a.who == "second":
			second++
		case a.who == "first" && a.attempts == "1":
			intruders++
		}
	}
	if now := run.candidate("probation", "second"); well.State != "ready" || now.State != "ready" || now.Failures != well.Failures {
		return false // on a busy machine it may have failed, and then nobody is left
	}
	if lasted && intruders > 0 {
		run.f.violate("probation", "%d requests called a candidate on probation while its trial ran, and not the one that was left", intruders)
	}
	if lasted {
		run.f.trouble(fmt.Sprintf("trials that held, %d of %d others answered elsewhere", second, others))
	}
	return lasted
}
