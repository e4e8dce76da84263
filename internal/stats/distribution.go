package stats

import (
	"math"
	"time"
)

// Bounds are those of a Distribution, ascending: from an answer out of a cache to
// one that thought for ten minutes.
var Bounds = [...]time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 20 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// Distribution is how durations since the beginning were spread.
type Distribution struct {
	Count int64
	Sum   time.Duration
	// Under is how many were no longer than each of Bounds; a duration within 1/32
	// of a bound may be counted on either side of it.
	Under [len(Bounds)]int64
}

// distribution spreads the durations of a histogram; sum is theirs, in microseconds.
func distribution(h histogram, sum int64) Distribution {
	d := Distribution{Sum: time.Duration(min(sum, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond}
	for _, c := range h {
		d.Count = plus(d.Count, int64(c.n))
		for i, bound := range Bounds {
			if middle(int(c.cell)) <= bound {
				d.Under[i] = plus(d.Under[i], int64(c.n))
			}
		}
	}
	return d
}

// maxClasses is how many failure classes a candidate counts apart; what is beyond is
// counted as Other. There are four words, and statuses.
const maxClasses = 32

// fail counts failures of some class.
func (s *series) fail(class string, n int64) {
	if s.failed == nil {
		s.failed = map[string]int64{}
	}
	if _, known := s.failed[class]; !known && len(s.failed) >= maxClasses {
		class = Other
	}
	s.failed[class] = plus(s.failed[class], n)
}
