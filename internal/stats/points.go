package stats

import "time"

// Point is one stretch of a curve.
type Point struct {
	// Start is in UTC; stretches begin at whole multiples of their length.
	Start time.Time
	Window
}

// Points gives the last so long of some virtual models, added up, in stretches of
// equal length, oldest first; the last is the running one. The step is 10 s for at
// most 10 minutes, 1 minute for at most an hour, else 10 minutes; longer ones than 24
// hours are cut to that.
func (l *Ledger) Points(models []string, length time.Duration, now time.Time) (step time.Duration, points []Point) {
	nobody := newSeries(true)
	width, n := nobody.ringFor(length)
	books := make([]*series, len(models))
	for i, name := range models {
		books[i] = l.find(&l.models, name)
	}
	points = make([]Point, n)
	first := floorDiv(now.Unix(), width) - int64(n) + 1
	// One sum for all of them: its percentiles take more room than a curve should.
	sum := new(summary)
	for i := range points {
		*sum = summary{}
		for _, s := range books {
			s.add(sum, width, first+int64(i))
		}
		points[i] = Point{Start: time.Unix((first+int64(i))*width, 0).UTC(), Window: sum.window(true)}
	}
	return time.Duration(width) * time.Second, points
}

// add adds one bucket of the ring with buckets of a width to a sum.
func (s *series) add(sum *summary, width, index int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings() {
		if r.width == width {
			if b := r.slots[floorMod(index, int64(len(r.slots)))]; b != nil && b.index == index {
				sum.add(b)
			}
		}
	}
}

// ringFor is the width of the finest ring that reaches back so far, and how many of
// its buckets that are.
func (s *series) ringFor(length time.Duration) (width int64, n int) {
	seconds := int64(length / time.Second)
	for _, r := range s.rings() {
		if most := int64(len(r.slots)); seconds <= r.width*most || r == &s.long {
			return r.width, int(max(1, min((seconds+r.width-1)/r.width, most)))
		}
	}
	panic("unreachable: the long ring takes every length")
}
