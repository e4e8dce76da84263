package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy/bench/load"
)

var someColumns = []column{
	{key: "request", head: "CPU/request", unit: "µs", digits: 1, relative: true, goal: .75, stretch: .55},
	{key: "stream", head: "per stream", unit: "KiB", digits: 1, goal: 48},
}

func someRows() []*row {
	rows := []*row{
		{Name: bare, perRep: []map[string]float64{{"request": 100, "stream": 56}, {"request": 200, "stream": 56}, {"request": 120, "stream": 50}}},
		{Name: "understudy, chain", Judged: true, perRep: []map[string]float64{{"request": 60, "stream": 47.96}, {"request": 150, "stream": 60}, {"request": 90.4, "stream": 48.04}}},
	}
	for _, r := range rows {
		r.settle(rows[0])
	}
	return rows
}

const wantTable = `                   CPU/request  per stream
                      µs ratio         KiB
bare ReverseProxy  120.0  1.00        56.0
understudy, chain   90.4  0.75        48.0

goal                    ≤ 0.75        ≤ 48
beyond it               ≤ 0.55
understudy, chain          met         met

ratios are to the bare ReverseProxy, each within its repetition
`

func TestTheTableLinesUp(t *testing.T) {
	var got strings.Builder
	render(&got, someRows(), someColumns, false)
	if strings.TrimSpace(got.String()) != strings.TrimSpace(wantTable) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), wantTable)
	}
}

// TestRatiosAreOfTheSameRepetition: the second repetition was slow for both, and
// does not count against either.
func TestRatiosAreOfTheSameRepetition(t *testing.T) {
	r := someRows()[1]
	if got := r.Ratios["request"]; got != .75 {
		t.Errorf("ratio = %v, want the median of .6, .75 and .753", got)
	}
}

func TestMissingFiguresAreNamed(t *testing.T) {
	rows := someRows()
	if err := complete(rows, someColumns, true); err != nil {
		t.Error(err)
	}
	delete(rows[1].Medians, "stream")
	rows[1].Bad, rows[1].Why = 2, "status 502"
	err := complete(rows, someColumns, true)
	for _, want := range []string{"understudy, chain has no figure for per stream", "2 answers were wrong, the last: status 502"} {
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := missed(rows, false); err != nil {
		t.Errorf("a goal counts although nobody asked: %v", err)
	}
	if err := missed(rows, true); err == nil {
		t.Error("a wrong answer meets every goal")
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("of three: %v", got)
	}
	if got := median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("of four: %v", got)
	}
}

func TestOutcomesKeepTheReason(t *testing.T) {
	var o outcome
	o.count(load.Tally{Good: 3, Bad: 1, Err: load.StatusError(502)})
	o.count(load.Tally{Good: 3})
	if o.Bad != 1 || o.Why != "status 502" {
		t.Errorf("%+v", o)
	}
	if !errors.Is(load.StatusError(502), load.StatusError(502)) {
		t.Error("a status is not itself")
	}
}
