// Package curve holds how something grows: what the scaling measurements write down
// and what the pictures are drawn from.
package curve

import (
	"math"
	"slices"
)

// A Curve is some series over the same quantity.
type Curve struct {
	Name   string    `json:"name"`  // the picture's file name, without its ending
	Title  string    `json:"title"` // what is shown
	X      string    `json:"x"`     // what it grows with
	YUnit  string    `json:"y_unit"`
	LogX   bool      `json:"log_x,omitempty"`
	LogY   bool      `json:"log_y,omitempty"`
	Series []*Series `json:"series"`
}

// A Series is one line of a curve.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"` // by growing X, once settled
	taken  map[float64][]float64
}

// A Point is one measurement.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Add begins another series.
func (c *Curve) Add(name string) *Series {
	s := &Series{Name: name, taken: map[float64][]float64{}}
	c.Series = append(c.Series, s)
	return s
}

// Take notes one measurement at x.
func (s *Series) Take(x, y float64) { s.taken[x] = append(s.taken[x], y) }

// Settle makes points of the medians of what was taken.
func (s *Series) Settle() {
	s.Points = nil
	for x, ys := range s.taken {
		slices.Sort(ys)
		s.Points = append(s.Points, Point{x, (ys[(len(ys)-1)/2] + ys[len(ys)/2]) / 2})
	}
	slices.SortFunc(s.Points, func(a, b Point) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
}

// Steepest is the largest exponent of growth between two neighbouring points: 0 is
// flat, 1 linear. It is 0 where there are fewer than two.
func (s *Series) Steepest() float64 {
	steepest := 0.0
	for i := 1; i < len(s.Points); i++ {
		a, b := s.Points[i-1], s.Points[i]
		if a.X > 0 && a.Y > 0 && b.Y > 0 {
			steepest = max(steepest, math.Log(b.Y/a.Y)/math.Log(b.X/a.X))
		}
	}
	return steepest
}
