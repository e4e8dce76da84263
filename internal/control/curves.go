package control

import (
	"time"

	"understudy/internal/stats"
)

// Curves are what happened over time, for charts: lists of equal length, one item
// per stretch, oldest first; the last one is the running stretch. nil is "unknown".
type Curves struct {
	// Model is a virtual model, "*" for the pool; "" is all of them together.
	Model       string    `json:"virtual_model"`
	Start       time.Time `json:"start"`
	StepSeconds int       `json:"step_seconds"`
	// What became of the requests that ended in a stretch. Failures are passed on
	// errors, exhausted chains and broken answers.
	Successes []int64 `json:"successes"`
	Failures  []int64 `json:"failures"`
	Empty     []int64 `json:"empty"`
	Abandoned []int64 `json:"abandoned"`
	// Tokens that were reported.
	Input  []*int64 `json:"input_tokens"`
	Output []*int64 `json:"output_tokens"`
	Cached []*int64 `json:"cached_tokens"`
	// Milliseconds over whole successes.
	Latency      Percentiles `json:"latency_ms"`
	FirstContent Percentiles `json:"first_content_ms"`
}

// Percentiles are lists of milliseconds.
type Percentiles struct {
	P50 []*float64 `json:"p50"`
	P95 []*float64 `json:"p95"`
}

// Curves gives the last so long of a virtual model, "" for all; false where there is
// none of that name. At most 24 hours are kept; the shorter, the finer.
func (c *Control) Curves(model string, length time.Duration) (Curves, bool) {
	var names []string
	for _, chain := range c.deps.Handler.Snapshot().Routes.Chains() {
		if model == "" || chain.Model == model {
			names = append(names, chain.Model)
		}
	}
	if model != "" && names == nil {
		return Curves{}, false
	}
	step, points := c.deps.Handler.Ledger().Points(names, length, time.Now())
	out := Curves{Model: model, StepSeconds: int(step / time.Second)}
	for i := range points {
		out.add(&points[i])
	}
	if len(points) > 0 {
		out.Start = points[0].Start
	}
	return out, true
}

func (c *Curves) add(p *stats.Point) {
	c.Successes = append(c.Successes, p.Successes)
	c.Failures = append(c.Failures, p.Failures)
	c.Empty = append(c.Empty, p.Empty)
	c.Abandoned = append(c.Abandoned, p.Abandoned)
	c.Input = append(c.Input, p.Input)
	c.Output = append(c.Output, p.Output)
	c.Cached = append(c.Cached, p.Cached)
	c.Latency.add(&p.Latency)
	c.FirstContent.add(&p.FirstContent)
}

func (p *Percentiles) add(t *stats.Times) {
	p.P50 = append(p.P50, milliseconds(t.P50))
	p.P95 = append(p.P95, milliseconds(t.P95))
}
