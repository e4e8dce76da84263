package main

import (
	"fmt"
	"math"
	"slices"
)

// A column is one figure of the table.
type column struct {
	key, head, unit string
	digits          int
	relative        bool    // it is judged by its ratio to the bare proxy's
	goal, stretch   float64 // at most so much; 0: none
}

// columns are the table's, with the goals that understudy's shipped configuration has.
func columns() []column {
	return []column{
		{key: "request", head: "CPU/request", unit: "µs", digits: 1, relative: true, goal: .75, stretch: .55},
		{key: "delta", head: "CPU/SSE chunk", unit: "µs", digits: 1, relative: true, goal: 1, stretch: .8},
		{key: "delay", head: "added p50", unit: "µs", relative: true, goal: 1},
		{key: "stream", head: "per stream", unit: "KiB", digits: 1, goal: 48, stretch: 36},
		{key: "large", head: "8 MiB, CPU", unit: "ms", digits: 1, relative: true, goal: 1.6},
		{key: "peak", head: "8 MiB, peak", unit: "× size", digits: 1, goal: 2.2},
		{key: "start", head: "first 200", unit: "ms", goal: 40},
		{key: "idle", head: "idle", unit: "MiB", digits: 1, goal: 24},
		{key: "size", head: "binary", unit: "MiB", digits: 1, goal: 32},
	}
}

// A row is what a contender came to.
type row struct {
	Name    string             `json:"name"`
	Judged  bool               `json:"judged"`
	Medians map[string]float64 `json:"medians"`
	Ratios  map[string]float64 `json:"ratios"` // medians of the ratios to the bare proxy's of the same repetition
	Bad     int                `json:"bad"`
	Why     string             `json:"why,omitempty"`
	Noisy   int                `json:"noisy"` // steps with others at work even when done again
	Reps    []outcome          `json:"outcomes"`
	perRep  []map[string]float64
}

// settle works the medians out of all repetitions, and the ratios to the divisor's.
func (r *row) settle(divisor *row) {
	r.Medians, r.Ratios = map[string]float64{}, map[string]float64{}
	for _, c := range columns() {
		var values, ratios []float64
		for i, figures := range r.perRep {
			v, ok := figures[c.key]
			if !ok {
				continue
			}
			values = append(values, v)
			if i < len(divisor.perRep) {
				if d := divisor.perRep[i][c.key]; d > 0 {
					ratios = append(ratios, v/d)
				}
			}
		}
		if len(values) > 0 {
			r.Medians[c.key] = median(values)
		}
		if len(ratios) > 0 {
			r.Ratios[c.key] = median(ratios)
		}
	}
}

// judged is the figure that a column is judged by, and how it is written.
func (c column) judged(r *row) (value float64, text string, ok bool) {
	if c.relative {
		value, ok = r.Ratios[c.key]
		return value, fmt.Sprintf("%.2f", value), ok
	}
	value, ok = r.Medians[c.key]
	return value, fmt.Sprintf("%.*f", c.digits, value), ok
}

// met says whether a row's figure, as it is written, keeps to the goal.
func (c column) met(r *row) bool {
	v, _, ok := c.judged(r)
	digits := c.digits
	if c.relative {
		digits = 2
	}
	unit := math.Pow10(digits)
	return ok && math.Round(v*unit)/unit <= c.goal
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
