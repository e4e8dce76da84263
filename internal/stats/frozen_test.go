package stats

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFrozenAgreesWithASetOfCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f frozen
		naive := map[int64]bool{}
		moment := func(what string) time.Time {
			return noon.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, what)) * time.Second)
		}
		t.Repeat(map[string]func(*rapid.T){
			"mark": func(*rapid.T) {
				from, until := moment("from"), moment("until")
				f.mark(from, until)
				for at := from; at.Before(until); at = at.Add(time.Second) {
					naive[cellAt(at)] = true
				}
			},
			"thaw": func(*rapid.T) {
				at := moment("at")
				f.thaw(at)
				for cell := range naive {
					if cell > cellAt(at) {
						delete(naive, cell)
					}
				}
			},
			"": func(t *rapid.T) {
				for cell := cellAt(noon) - 2; cell < cellAt(noon)+200; cell++ {
					if f.holds(cell) != naive[cell] {
						t.Fatalf("cell %d: %v, want %v in %v", cell, f.holds(cell), naive[cell], f)
					}
				}
				for i := 1; i < len(f); i++ {
					if f[i].from <= f[i-1].to+1 || f[i].to < f[i].from {
						t.Fatalf("ranges touch or are out of order: %v", f)
					}
				}
			},
		})
	})
}
