package web

import (
	"strconv"

	"understudy/internal/control"
)

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (e *exposition) model(m *control.Model) {
	for result, n := range map[string]int64{"success": m.Successes, "failure": m.Failures, "empty": m.Empty, "abandoned": m.Abandoned} {
		e.counter(modelRequestsFamily, float64(n), m.Name, result)
	}
	e.gauge(modelFlightFamily, float64(m.InFlight), m.Name)
	e.tokens(modelTokensFamily, &m.Tokens, m.Name)
	e.distribution(modelLatencyFamily, &m.Latencies, m.Name)
	e.distribution(modelFirstFamily, &m.FirstContents, m.Name)
}

// distribution gives how long requests took.
func (e *exposition) distribution(f *family, of *control.Distribution, labels ...string) {
	bounds := make([]bound, len(of.Under))
	for i, b := range of.Under {
		bounds[i] = bound{b.Seconds, b.Count}
	}
	e.histogram(f, bounds, of.Sum, of.Count, labels...)
}

// tokens gives what was reported; what is unknown is absent, which is not 0.
func (e *exposition) tokens(f *family, t *control.Tokens, labels ...string) {
	for kind, n := range map[string]*int64{"input": t.Input, "output": t.Output, "cached": t.Cached, "total": t.Total} {
		if n != nil {
			e.counter(f, float64(*n), append(labels[:len(labels):len(labels)], kind)...)
		}
	}
}

func (e *exposition) info(m *control.Model, k *control.Candidate) {
	e.gauge(infoFamily, 1, m.Name, strconv.Itoa(k.Index), k.Name, k.Identity)
}

// candidate gives the figures of an identity, once, under the name it has where it
// stands first: they are of all its places together.
func (e *exposition) candidate(k *control.Candidate) {
	labels := []string{k.Identity, k.Name, k.Model}
	with := func(last string) []string { return append(labels[:3:3], last) }
	for verdict, n := range map[string]int64{"ok": k.Successes, "failed": k.Failures, "empty": k.Empty, "abandoned": k.Abandoned} {
		e.counter(attemptsFamily, float64(n), with(verdict)...)
	}
	for _, c := range k.FailureClasses {
		e.counter(failuresFamily, float64(c.Failures), with(c.Class)...)
	}
	e.gauge(candidateFlightFamily, float64(k.InFlight), labels...)
	e.gauge(waitingFamily, float64(k.Waiting), labels...)
	for _, state := range []string{control.StateReady, control.StateFrozen, control.StateProbation, control.StateDisabled} {
		e.gauge(stateFamily, flag(k.State == state), with(state)...)
	}
	e.gauge(leftFamily, float64(k.SecondsLeft), labels...)
	e.counter(freezesFamily, float64(k.Freezes), labels...)
	e.counter(hedgesFamily, float64(k.Hedged), labels...)
	e.gauge(streakFamily, float64(k.ConsecutiveFailures), labels...)
	e.tokens(tokensFamily, &k.Tokens, labels...)
}
