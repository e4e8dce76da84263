package stats

// A ring is the last so many buckets of one width. A bucket knows which stretch
// of time it holds, so nothing ever has to expire: reading compares, writing
// reuses.
type ring struct {
	width int64 // seconds
	// slots have their buckets when first written: a candidate that is never used
	// costs little, and one that is seldom used no more buckets than it needs.
	slots []*bucket
}

func newRing(width int64, n int) ring { return ring{width, make([]*bucket, n)} }

// slot gives the bucket to write a second into; nil where the ring has gone on
// to a later stretch.
func (r *ring) slot(second int64) *bucket {
	index := floorDiv(second, r.width)
	slot := &r.slots[floorMod(index, int64(len(r.slots)))]
	switch {
	case *slot == nil:
		if *slot = r.over(index); *slot == nil {
			*slot = new(bucket)
		}
		(*slot).reset(index)
	case (*slot).index < index:
		(*slot).reset(index)
	case (*slot).index > index:
		return nil
	}
	return *slot
}

// fewBuckets are how many a ring keeps that it has left behind: where the clock is ahead
// for a moment, they are not behind at all.
const fewBuckets = 4

// over takes the oldest bucket whose stretch the ring has left behind, nil if there are
// but a few.
func (r *ring) over(index int64) (oldest *bucket) {
	all, at := 0, 0
	for i, b := range r.slots {
		if b == nil {
			continue
		}
		all++
		if b.index <= index-int64(len(r.slots)) && (oldest == nil || b.index < oldest.index) {
			oldest, at = b, i
		}
	}
	if oldest == nil || all <= fewBuckets {
		return nil
	}
	r.slots[at] = nil
	return oldest
}

// each calls f with the n latest buckets as of now, the running one included,
// oldest first; with nil for those in which nothing happened.
func (r *ring) each(now int64, n int, f func(index int64, b *bucket)) {
	current := floorDiv(now, r.width)
	for index := current - int64(min(n, len(r.slots))) + 1; index <= current; index++ {
		b := r.slots[floorMod(index, int64(len(r.slots)))]
		if b != nil && b.index != index {
			b = nil
		}
		f(index, b)
	}
}

// copied gives a ring of its own with the same buckets, made in two pieces.
func (r *ring) copied() ring {
	used, cells := 0, 0
	for _, b := range r.slots {
		if b != nil {
			used++
			cells += len(b.latencyCells) + len(b.firstCells)
		}
	}
	c := newRing(r.width, len(r.slots))
	buckets, room := make([]bucket, 0, used), make(histogram, 0, cells)
	for i, b := range r.slots {
		if b == nil {
			continue
		}
		buckets = append(buckets, *b)
		own := &buckets[len(buckets)-1]
		for _, h := range []*histogram{&own.latencyCells, &own.firstCells} {
			from := len(room)
			room = append(room, *h...)
			*h = room[from:len(room):len(room)]
		}
		c.slots[i] = own
	}
	return c
}

// forget drops the buckets that begin after a second: they were written while
// the clock was wrong, and would come back when it gets there.
func (r *ring) forget(after int64) {
	current := floorDiv(after, r.width)
	for i, b := range r.slots {
		if b != nil && b.index > current {
			r.slots[i] = nil
		}
	}
}

// floorDiv divides downwards, so that times before 1970 have buckets too.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
