package drill

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Chain is what a scenario is put to: candidates behind a proxy.
type Chain struct {
	// Model is what clients ask for.
	Model string
	// Candidates are those that may be called, each once, in no particular order.
	Candidates []Candidate
	Dialect    Dialect
	// Factor is what the proxy's clocks, and the scenarios', are divided by; at
	// least 1.
	Factor float64
	// Patience is how long a client waits at most where a scenario does not say.
	Patience time.Duration
	// Open starts a proxy whose candidates are at these base URLs, in the order of
	// Candidates, with its clocks divided by factor.
	Open func(urls []string, factor float64) (*Proxy, error)
}

// Candidate is somebody a proxy may call.
type Candidate struct {
	Name string
	// Model is the model it is asked for; "" is the client's.
	Model string
}

// Proxy is a running proxy.
type Proxy struct {
	Addr string // "host:port"
	// Booked returns what the proxy has in its books of the request it finished
	// last. It waits until none is running.
	Booked func(context.Context) Booking
	Close  func()
}

// Booking is what a proxy says of one request.
type Booking struct {
	Ending string `json:"ending"`
	// Winner is the name of the candidate whose answer went out, "" for none.
	Winner string `json:"winner,omitempty"`
	// Input and Output are the request's tokens, -1 where they are unknown.
	Input  int64  `json:"input_tokens"`
	Output int64  `json:"output_tokens"`
	Steps  []Step `json:"attempts"`
	// Skipped are the candidates that were passed over, with the reasons.
	Skipped []string `json:"skipped,omitempty"`
}

// Step is one attempt as the proxy saw it.
type Step struct {
	Candidate string  `json:"candidate"`
	Status    int     `json:"status,omitempty"`
	Class     string  `json:"class,omitempty"`
	Fault     string  `json:"fault,omitempty"`
	Rule      string  `json:"rule,omitempty"`
	Action    string  `json:"action,omitempty"`
	Text      string  `json:"text,omitempty"`
	Seconds   float64 `json:"seconds"`
	Waited    float64 `json:"waited_seconds,omitempty"`
	Frozen    float64 `json:"frozen_seconds,omitempty"`
}

// take is one scenario, played to one chain.
type take struct {
	Scenario
	chain  Chain
	factor float64
	ctx    context.Context
	ups    []*Upstream
	proxy  *Proxy

	mu      sync.Mutex
	called  []int // candidates in the order in which they were called first
	start   time.Time
	healed  bool
	prefill bool
	back    time.Duration // when the flapping upstream answered again; negative for never
}

// Play puts a scenario to a chain. An error says that it could not be played.
func (sc Scenario) Play(ctx context.Context, chain Chain) (Result, error) {
	t := &take{Scenario: sc, chain: chain, factor: max(chain.Factor, 1), ctx: ctx, back: -1}
	switch {
	case sc.Real:
		t.factor = 1
	case sc.finest > 0:
		t.factor = min(t.factor, sc.finest)
	}
	urls := make([]string, len(chain.Candidates))
	for i := range chain.Candidates {
		u := Start(t.perform(i))
		defer u.Close()
		t.ups, urls[i] = append(t.ups, u), u.URL()
	}
	proxy, err := chain.Open(urls, t.factor)
	if err != nil {
		return Result{}, err
	}
	defer proxy.Close()
	t.proxy = proxy
	play := sc.play
	if play == nil {
		play = (*take).once
	}
	s := play(t)
	if cause := context.Cause(ctx); cause != nil {
		return Result{}, cause // what was seen says nothing about the proxy
	}
	s.factor, s.others, s.prefilled = t.factor, len(t.ups)-1, t.prefill
	s.booked = proxy.Booked(ctx)
	if slices.ContainsFunc(sc.checks, func(c check) bool { return c.name == alive.name }) {
		s.alive = t.survives()
	}
	return sc.result(&s), nil
}

// perform is what a candidate does, given the order in which they are called.
func (t *take) perform(candidate int) Script {
	return func(w *Wire, r Request, n int) {
		rank, healed := t.enter(candidate)
		a := t.says(candidate)
		script := Healthy(a)
		if t.script != nil && !healed {
			if own := t.script(t, rank, a); own != nil {
				script = own
			}
		}
		script(w, r, n)
	}
}

// says is what a candidate has to say here.
func (t *take) says(candidate int) Answer {
	return says(candidate, t.ask, t.scale(15*time.Millisecond))
}

// enter notes that a candidate is called, and returns its rank and whether
// everybody is well again.
func (t *take) enter(candidate int) (rank int, healed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rank = slices.Index(t.called, candidate); rank < 0 {
		rank = len(t.called)
		t.called = append(t.called, candidate)
	}
	return rank, t.healed
}

// scale divides a time as all clocks are divided.
func (t *take) scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) / t.factor)
}

// patience is how long a client waits at most.
func (t *take) patience() time.Duration {
	if t.Scenario.patience > 0 {
		return t.scale(t.Scenario.patience) + grace
	}
	return t.chain.Patience
}

// once makes one request and looks at what comes of it.
func (t *take) once() sight { return t.onceIn(t.ctx) }

func (t *take) onceIn(ctx context.Context) sight {
	t.begin()
	return t.request(ctx, t.patience())
}

// begin sets the moment that attempts are counted from.
func (t *take) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = time.Now()
}

// since is how long ago that moment was.
func (t *take) since() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.start)
}

// request asks, waiting no longer than patience.
func (t *take) request(ctx context.Context, patience time.Duration) sight {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply := Ask(ctx, t.proxy.Addr, t.chain.Dialect.query(t.chain.Model, t.ask))
	s := sight{heard: Hear(reply), elapsed: reply.Elapsed, speaker: -1, rank: -1, back: -1}
	s.hung = errors.Is(reply.Err, context.DeadlineExceeded)
	s.released = s.heard.Error != "" && reply.Status == http.StatusOK && s.heard.Text+s.heard.Tool != ""
	for i, c := range t.chain.Candidates {
		a := t.says(i)
		if s.heard.Error != "" || !s.heard.Ended || s.heard.Text != a.Text || s.heard.Tool != argumentsOf(a) {
			continue
		}
		s.whole, s.speaker, s.named, s.model = true, i, c.Name, cmp.Or(c.Model, t.chain.Model)
		t.mu.Lock()
		s.rank = slices.Index(t.called, i)
		t.mu.Unlock()
	}
	s.attempts = t.attempts()
	return s
}

func argumentsOf(a Answer) string {
	if a.Tool == nil {
		return ""
	}
	return a.Tool.arguments()
}

// attempts are the requests that reached upstreams since it began.
func (t *take) attempts() []Attempt {
	t.mu.Lock()
	start, called := t.start, slices.Clone(t.called)
	t.mu.Unlock()
	var all []Attempt
	for rank, candidate := range called {
		for _, r := range t.ups[candidate].Requests() {
			if !r.At.Before(start) {
				all = append(all, Attempt{Rank: rank, At: r.At.Sub(start)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Attempt) int { return cmp.Compare(a.At, b.At) })
	return all
}

func (t *take) count() int { return len(t.attempts()) }

// lead is the candidate called first. There has been one.
func (t *take) lead() *Upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ups[t.called[0]]
}

// await waits until cond is true, and reports whether it became so before ctx
// ended. It looks at a hundred times a second, since no one upstream sees all.
func (t *take) await(ctx context.Context, cond func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cond()
		}
	}
	return true
}

// survives asks once more, with everybody well. An orderly refusal is an answer
// too: whoever failed may be frozen, and there may be nobody else.
func (t *take) survives() bool {
	t.mu.Lock()
	t.healed = true
	t.mu.Unlock()
	s := t.request(t.ctx, 10*time.Second)
	return s.whole || s.heard.Refusal
}

func (t *take) refusedPrefill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefill = true
}

// wellAgain notes the first answer of an upstream that had been down.
func (t *take) wellAgain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.back < 0 {
		t.back = time.Since(t.start) - t.scale(outage)
	}
}

// The sequence of the flapping scenario.
const (
	sequenceCount    = 20
	sequenceInterval = 4 * time.Second
	sequencePatience = 30 * time.Second
)

// sequence asks again and again while the first upstream is down, and after that.
func sequence(t *take) sight {
	t.begin()
	var all sight
	tick := time.NewTimer(0)
	defer tick.Stop()
	for i := range sequenceCount {
		tick.Reset(time.Duration(i)*t.scale(sequenceInterval) - t.since())
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			return all
		}
		down := t.since() < t.scale(outage)
		s := t.request(t.ctx, t.scale(sequencePatience)+grace)
		s.asked, s.errors, s.during, s.served = all.asked+1, all.errors, all.during, all.served
		if s.heard.Error != "" {
			s.errors++
		}
		if down {
			s.during++
			if s.whole {
				s.served++
			}
		}
		// The worst of them stands for all.
		if all.asked > 0 {
			s.hung = s.hung || all.hung
			s.released = s.released || all.released
			if all.heard.Error == "" && !all.whole || all.heard.Error != "" && s.heard.Error == "" {
				s.heard, s.whole = all.heard, all.whole
			}
		}
		all = s
	}
	t.mu.Lock()
	all.back = t.back
	t.mu.Unlock()
	all.elapsed, all.attempts = t.since(), t.attempts()
	return all
}
