package stats

import (
	"testing"
	"time"
)

func TestPointsAreTheWindowsOfEveryStretch(t *testing.T) {
	now := noon.Add(9*time.Minute + 55*time.Second)
	l := NewLedger(0)
	for _, minutes := range []int{300, 61, 45, 9, 5, 0} {
		at := now.Add(-time.Duration(minutes) * time.Minute)
		book(l, request("m", ok("c", at.Add(-2*time.Second), 2*time.Second, used(10, 2, 5))))
	}
	book(l, request("n", bad("c", now.Add(-time.Second), "no")), request("n", ok("d", now.Add(-4*time.Second), 4*time.Second, NoUsage())))
	for _, test := range []struct {
		length, step time.Duration
		n            int
		requests     int64 // of m alone
	}{
		{10 * time.Minute, 10 * time.Second, 60, 3}, {time.Hour, time.Minute, 60, 4}, {6 * time.Hour, 10 * time.Minute, 36, 6},
		{24 * time.Hour, 10 * time.Minute, 144, 6}, {99 * time.Hour, 10 * time.Minute, 144, 6}, {0, 10 * time.Second, 1, 1}, {11 * time.Minute, time.Minute, 11, 3},
	} {
		step, points := l.Points([]string{"m"}, test.length, now)
		wantEqual(t, test.length.String(), step, test.step)
		wantEqual(t, test.length.String(), len(points), test.n)
		sum := int64(0)
		for i, p := range points {
			sum += p.Requests
			wantEqual(t, "start", p.Start, points[0].Start.Add(time.Duration(i)*step))
		}
		wantEqual(t, test.length.String(), sum, test.requests)
		last := points[len(points)-1]
		if last.Start.After(now) || !last.Start.Add(step).After(now) {
			t.Errorf("%v: the last begins at %v", test.length, last.Start)
		}
		wantNumber(t, "input", last.Input, 10*last.Successes)
	}
	_, both := l.Points([]string{"m", "n", "nobody"}, time.Hour, now)
	last := both[59].Window
	wantEqual(t, "requests", last.Requests, 3)
	wantEqual(t, "failures", last.Failures, 1)
	wantNumber(t, "average", last.Latency.Avg, 3*time.Second)
	if p := last.Latency.P99; p == nil || *p < 3800*time.Millisecond || *p > 4200*time.Millisecond {
		t.Errorf("p99 %v", show(p))
	}
	wantUnknown(t, "tokens of an idle stretch", both[58].Input)
	if step, none := l.Points(nil, time.Minute, now); step != 10*time.Second || len(none) != 6 || none[0].Requests != 0 {
		t.Errorf("%v %v", step, none)
	}
}
