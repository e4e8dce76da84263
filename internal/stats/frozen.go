package stats

import (
	"slices"
	"time"
)

// frozen is in which cells of the history a candidate was, is or will be frozen:
// ranges of cells, both ends included, in order and apart. It is kept beside the
// ring because a freeze reaches into the future, where the ring has no room.
type frozen []cellRange

type cellRange struct{ from, to int64 }

// maxRanges bounds the list: a day's cells hold at most half as many ranges that
// neither touch nor overlap.
const maxRanges = HistoryCells

// mark adds the cells from one time until another, the latter not included.
func (f *frozen) mark(from, until time.Time) {
	if !until.After(from) {
		return
	}
	f.add(cellRange{cellAt(from), cellAt(until.Add(-1))})
}

func (f *frozen) add(r cellRange) {
	list := *f
	// The ranges that r touches are the ones from first up to last.
	first := 0
	for first < len(list) && list[first].to < r.from-1 {
		first++
	}
	last := first
	for last < len(list) && list[last].from <= r.to+1 {
		r.from, r.to = min(r.from, list[last].from), max(r.to, list[last].to)
		last++
	}
	list = slices.Replace(list, first, last, r)
	if excess := len(list) - maxRanges; excess > 0 {
		list = slices.Delete(list, 0, excess)
	}
	*f = list
}

// thaw ends every freeze at a time; the cell it falls in stays marked.
func (f *frozen) thaw(at time.Time) {
	cell := cellAt(at)
	*f = slices.DeleteFunc(*f, func(r cellRange) bool { return r.from > cell })
	for i := range *f {
		(*f)[i].to = min((*f)[i].to, cell)
	}
}

func (f frozen) holds(cell int64) bool {
	for _, r := range f {
		if r.from <= cell && cell <= r.to {
			return true
		}
	}
	return false
}

func cellAt(t time.Time) int64 { return floorDiv(t.Unix(), longWidth) }
