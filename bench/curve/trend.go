package curve

import "slices"

// Trend is by how much y grows for each 1 of x: the median of the slopes between all
// pairs of points (Theil and Sen), so that single ones that stand out do not turn it.
// It is 0 where there are fewer than two.
func Trend(points []Point) float64 {
	var slopes []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if b.X != a.X {
				slopes = append(slopes, (b.Y-a.Y)/(b.X-a.X))
			}
		}
	}
	return middle(slopes)
}

// Middle is the median of y; 0 where there are no points.
func Middle(points []Point) float64 {
	ys := make([]float64, len(points))
	for i, p := range points {
		ys[i] = p.Y
	}
	return middle(ys)
}

// middle is the median of values, which it sorts.
func middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
