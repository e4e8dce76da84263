package drill

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Result is one scenario's line on the scorecard.
type Result struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Fault   string  `json:"fault"`
	Right   string  `json:"right"`
	Verdict Verdict `json:"verdict"`
	// Before is the verdict that came of it beside all others, where it was played
	// again by itself; "" where it was not, or nothing changed.
	Before Verdict `json:"verdict_before,omitempty"`
	// Why says in one line what is short of a pass.
	Why string `json:"why,omitempty"`
	// First and Others are the attempts at the candidate called first, and at the
	// rest.
	First  int `json:"attempts_first"`
	Others int `json:"attempts_others"`
	// Seconds is how long the client waited for the end, Factor what the clocks were
	// divided by.
	Seconds float64 `json:"seconds"`
	Factor  float64 `json:"clocks_divided_by"`
	// Client is what the client saw.
	Client string `json:"client"`
	// Released says that words of an answer had reached the client when it failed.
	Released bool    `json:"released,omitempty"`
	Checks   []Note  `json:"checks,omitempty"`
	Booked   Booking `json:"booked"`
}

// Benchmark reports whether the line is one of FailoverBench's scenarios.
func (r Result) Benchmark() bool { return Scenario{ID: r.ID}.Benchmark() }

func (sc Scenario) result(s *sight) Result {
	verdict, why, notes := sc.judge(s)
	return Result{
		ID: sc.ID, Name: sc.Name, Title: sc.Title, Fault: sc.Fault, Right: sc.Right,
		Verdict: verdict, Why: why, First: s.lead(), Others: s.rest(),
		Seconds: s.elapsed.Seconds(), Factor: s.factor,
		Client: s.saw(sc), Released: s.released, Checks: notes, Booked: s.booked,
	}
}

// Counts says how many results have each verdict.
type Counts struct {
	Pass    int `json:"pass"`
	Partial int `json:"partial"`
	Safe    int `json:"safe"`
	Fail    int `json:"fail"`
}

// Of returns the number of results with that verdict.
func (c Counts) Of(v Verdict) int {
	switch v {
	case Pass:
		return c.Pass
	case Partial:
		return c.Partial
	case Safe:
		return c.Safe
	}
	return c.Fail
}

// All is how many there are.
func (c Counts) All() int { return c.Pass + c.Partial + c.Safe + c.Fail }

// String lists the numbers: "16 pass, 0 partial, 0 safe, 0 fail".
func (c Counts) String() string {
	return fmt.Sprintf("%d pass, %d partial, %d safe, %d fail", c.Pass, c.Partial, c.Safe, c.Fail)
}

func count(results []Result, which func(Result) bool) (c Counts) {
	for _, r := range results {
		if !which(r) {
			continue
		}
		switch r.Verdict {
		case Pass:
			c.Pass++
		case Partial:
			c.Partial++
		case Safe:
			c.Safe++
		default:
			c.Fail++
		}
	}
	return c
}

// Card is the scorecard of one chain.
type Card struct {
	Model      string   `json:"model"` // the virtual model, "*" for the pool
	Delivery   string   `json:"delivery"`
	Dialect    Dialect  `json:"dialect"`
	Candidates []string `json:"candidates"`
	// Factor is what clocks were divided by, but for scenarios that keep them.
	Factor float64 `json:"clocks_divided_by"`
	// Skipped says why nothing was played; "" = it was.
	Skipped string   `json:"skipped,omitempty"`
	Results []Result `json:"results"`
	// Benchmark counts FailoverBench's sixteen, Own counts ours.
	Benchmark Counts `json:"failoverbench"`
	Own       Counts `json:"own"`
}

// Scorecard is what a drill came to.
type Scorecard struct {
	Config  string  `json:"config"`
	Version string  `json:"version"`
	Fast    bool    `json:"fast"`
	Seconds float64 `json:"seconds"`
	Cards   []Card  `json:"chains"`
	Total   Counts  `json:"total"`
}

// Failed reports whether anything failed.
func (s *Scorecard) Failed() bool { return s.Total.Fail > 0 }

// Part is a card to fill and the chain to fill it from.
type Part struct {
	Card  Card
	Chain Chain
}

// again is how many scenarios are played again at the same time: few, so that what
// they measure is the proxy's time and not the machine's.
const again = 4

// Run plays the scenarios to all chains, at most atOnce at the same time, and fills
// in the scorecard. What did not pass, and may owe that to a machine that was busy
// with all the others, is played again with few beside it, and the second result
// counts. progress is told of every result, one at a time; nil is nobody. An error
// says that something could not be played to its end.
func (s *Scorecard) Run(ctx context.Context, parts []Part, scenarios []Scenario, atOnce int, progress func(Card, Result)) error {
	start := time.Now()
	s.Cards = make([]Card, len(parts))
	var all, doubtful []*turn
	for i, part := range parts {
		s.Cards[i] = part.Card
		s.Cards[i].Results = []Result{}
		if part.Card.Skipped == "" {
			s.Cards[i].Results = make([]Result, len(scenarios))
			for j, sc := range scenarios {
				all = append(all, &turn{sc, part, &s.Cards[i].Results[j]})
			}
		}
	}
	if err := playTurns(ctx, all, atOnce, progress); err != nil {
		return err
	}
	for _, t := range all {
		if t.doubtful() {
			t.result.Before = t.result.Verdict
			doubtful = append(doubtful, t)
		}
	}
	if err := playTurns(ctx, doubtful, again, progress); err != nil {
		return err
	}
	for i := range s.Cards {
		c := &s.Cards[i]
		c.Benchmark = count(c.Results, Result.Benchmark)
		c.Own = count(c.Results, func(r Result) bool { return !r.Benchmark() })
		s.Total.Pass += c.Benchmark.Pass + c.Own.Pass
		s.Total.Partial += c.Benchmark.Partial + c.Own.Partial
		s.Total.Safe += c.Benchmark.Safe + c.Own.Safe
		s.Total.Fail += c.Benchmark.Fail + c.Own.Fail
	}
	s.Seconds = time.Since(start).Seconds()
	return nil
}

// turn is one scenario to be played to one chain, and where its result goes.
type turn struct {
	scenario Scenario
	part     Part
	result   *Result
}

// doubtful reports whether another try may end better: not where words had gone out,
// nor where there is nobody else to ask.
func (t *turn) doubtful() bool {
	switch t.result.Verdict {
	case Pass:
		return false
	case Safe:
		return !t.result.Released && len(t.part.Chain.Candidates) > 1
	}
	return true
}

// playTurns plays them, at most atOnce at the same time.
func playTurns(ctx context.Context, turns []*turn, atOnce int, progress func(Card, Result)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seats := make(chan struct{}, max(atOnce, 1))
	var wg sync.WaitGroup
	var mu sync.Mutex // of progress
	for _, t := range turns {
		wg.Go(func() {
			select {
			case seats <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-seats }()
			r, err := t.scenario.Play(ctx, t.part.Chain)
			if err != nil {
				stop(fmt.Errorf("play %s to %s: %w", t.scenario.ID, t.part.Card.Model, err))
				return
			}
			if before := t.result.Before; before != r.Verdict {
				r.Before = before
			}
			*t.result = r
			if progress != nil {
				mu.Lock()
				defer mu.Unlock()
				progress(t.part.Card, r)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
