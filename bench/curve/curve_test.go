package curve

import (
	"math"
	"testing"
)

func TestSeriesAreMediansInOrder(t *testing.T) {
	s := (&Curve{}).Add("x")
	for _, p := range []Point{{100, 7}, {1, 2}, {100, 5}, {1, 4}, {100, 90}} {
		s.Take(p.X, p.Y)
	}
	s.Settle()
	if len(s.Points) != 2 || s.Points[0] != (Point{1, 3}) || s.Points[1] != (Point{100, 7}) {
		t.Errorf("points = %v", s.Points)
	}
}

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		y    func(x float64) float64
		want float64
	}{
		"flat":                 {func(float64) float64 { return 5 }, 0},
		"linear":               {func(x float64) float64 { return 3 * x }, 1},
		"square":               {func(x float64) float64 { return x * x }, 2},
		"linear over a ground": {func(x float64) float64 { return 1000 + x }, .3}, // its last piece
	} {
		s := (&Curve{}).Add(name)
		for _, x := range []float64{1, 10, 100, 1000} {
			s.Take(x, c.y(x))
		}
		s.Settle()
		if got := s.Steepest(); math.Abs(got-c.want) > .05 {
			t.Errorf("%s: exponent %.2f, want %.2f", name, got, c.want)
		}
	}
}

// TestTrend: what grows by 2 does so whatever one point says.
func TestTrend(t *testing.T) {
	points := []Point{{0, 10}, {1, 12}, {2, 900}, {3, 16}, {4, 18}, {5, 20}}
	if got := Trend(points); got != 2 {
		t.Errorf("trend = %v", got)
	}
	if got := Middle(points); got != 17 {
		t.Errorf("middle = %v", got)
	}
	if Trend(points[:1]) != 0 || Middle(nil) != 0 {
		t.Error("a trend of nothing")
	}
}
