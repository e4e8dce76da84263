package proc

import "time"

// A Meter tells what a process used in a span of time, and whether others disturbed it.
type Meter struct {
	pid     int
	helpers []int
	cpu     time.Duration
	rest    time.Duration // this process and the helpers
	busy    time.Duration
	at      time.Time
}

// Start begins a span for pid. helpers are the processes that take part in the
// measurement: what they and this process use is nobody's disturbance.
func Start(pid int, helpers ...int) *Meter {
	m := &Meter{pid: pid, helpers: helpers}
	m.cpu, m.rest, m.busy, m.at = m.read()
	return m
}

// A Reading is what a span came to.
type Reading struct {
	CPU    time.Duration // of the process and its descendants
	Span   time.Duration
	Others float64 // cores that neither it nor the measurement used
}

// Stop ends the span.
func (m *Meter) Stop() Reading {
	cpu, rest, busy, at := m.read()
	r := Reading{CPU: cpu - m.cpu, Span: at.Sub(m.at)}
	if r.Span > 0 {
		r.Others = max(0, (busy-m.busy)-(rest-m.rest)-r.CPU).Seconds() / r.Span.Seconds()
	}
	return r
}

func (m *Meter) read() (cpu, rest, busy time.Duration, at time.Time) {
	cpu, rest = CPU(m.pid), Own()
	for _, h := range m.helpers {
		rest += CPU(h)
	}
	return cpu, rest, Busy(), time.Now()
}
