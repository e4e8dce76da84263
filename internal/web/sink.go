package web

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"understudy/internal/control"
)

// A sink takes metrics.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, n int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (s sink) model(m *control.Model) {
	for result, n := range map[string]int64{"success": m.Successes, "failure": m.Failures, "empty": m.Empty, "abandoned": m.Abandoned} {
		s.counter(modelRequestsDesc, n, m.Name, result)
	}
	s.gauge(modelFlightDesc, float64(m.InFlight), m.Name)
	s.tokens(modelTokensDesc, &m.Tokens, m.Name)
	s.histogram(modelLatencyDesc, &m.Latencies, m.Name)
	s.histogram(modelFirstDesc, &m.FirstContents, m.Name)
}

func (s sink) histogram(d *prometheus.Desc, of *control.Distribution, labels ...string) {
	buckets := make(map[float64]uint64, len(of.Under))
	for _, b := range of.Under {
		buckets[b.Seconds] = b.Count
	}
	s <- prometheus.MustNewConstHistogram(d, of.Count, of.Sum, buckets, labels...)
}

// tokens gives what was reported; what is unknown is absent, which is not 0.
func (s sink) tokens(d *prometheus.Desc, t *control.Tokens, labels ...string) {
	for kind, n := range map[string]*int64{"input": t.Input, "output": t.Output, "cached": t.Cached, "total": t.Total} {
		if n != nil {
			s.counter(d, *n, append(labels[:len(labels):len(labels)], kind)...)
		}
	}
}

func (s sink) info(m *control.Model, k *control.Candidate) {
	s.gauge(infoDesc, 1, m.Name, strconv.Itoa(k.Index), k.Name, k.Identity)
}

// candidate gives the figures of an identity, once, under the name it has where it
// stands first: they are of all its places together.
func (s sink) candidate(k *control.Candidate) {
	labels := []string{k.Identity, k.Name, k.Model}
	with := func(last string) []string { return append(labels[:3:3], last) }
	for verdict, n := range map[string]int64{"ok": k.Successes, "failed": k.Failures, "empty": k.Empty, "abandoned": k.Abandoned} {
		s.counter(attemptsDesc, n, with(verdict)...)
	}
	for _, c := range k.FailureClasses {
		s.counter(failuresDesc, c.Failures, with(c.Class)...)
	}
	s.gauge(candidateFlightDesc, float64(k.InFlight), labels...)
	s.gauge(waitingDesc, float64(k.Waiting), labels...)
	for _, state := range []string{control.StateReady, control.StateFrozen, control.StateProbation, control.StateDisabled} {
		s.gauge(stateDesc, flag(k.State == state), with(state)...)
	}
	s.gauge(leftDesc, float64(k.SecondsLeft), labels...)
	s.counter(freezesDesc, k.Freezes, labels...)
	s.counter(hedgesDesc, k.Hedged, labels...)
	s.gauge(streakDesc, float64(k.ConsecutiveFailures), labels...)
	s.tokens(tokensDesc, &k.Tokens, labels...)
}
