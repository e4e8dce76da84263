package main

import (
	"testing"
	"time"

	"understudy/bench/load"
)

// TestRecoveryIsWhenAllIsWellForGood: a good window before bad ones is no recovery.
func TestRecoveryIsWhenAllIsWellForGood(t *testing.T) {
	const normal, span = 50 * time.Millisecond, time.Second
	at := func(tenths int, took time.Duration, f load.Fate) load.Landing {
		return load.Landing{Sent: time.Duration(tenths)*window + time.Millisecond, Took: took, Fate: f}
	}
	var well []load.Landing
	for i := range 10 {
		for range 20 {
			well = append(well, at(i, normal, load.Served))
		}
	}
	for name, c := range map[string]struct {
		more []load.Landing
		want time.Duration
	}{
		"at once":            {nil, 0},
		"one of ten is late": {[]load.Landing{at(4, 2*normal, load.Served), at(4, normal, load.Shed)}, 0},
		"late":               {[]load.Landing{at(0, time.Second, load.Served), at(4, time.Second, load.Served), at(4, time.Second, load.Served), at(4, time.Second, load.Served)}, 5 * window},
		"never":              {[]load.Landing{at(9, 0, load.Cut), at(9, 0, load.Cut), at(9, 0, load.Cut)}, -time.Second},
	} {
		if got := recovery(append(c.more, well...), normal, span); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestGoodputIsWhatWasServedMeanwhile(t *testing.T) {
	o := ordeal{Capacity: 10, Fates: map[string]int{}}
	var all []load.Landing
	for i := range 20 {
		all = append(all, load.Landing{Sent: time.Duration(i) * window, Took: window, Fate: load.Served}, load.Landing{Fate: load.Shed, Took: window})
	}
	o.count(all, time.Second)
	if o.Goodput != 1 || o.Fates["served"] != 20 || o.Fates["shed"] != 20 || o.ServedP50 != 100 {
		t.Errorf("%+v", o)
	}
}
