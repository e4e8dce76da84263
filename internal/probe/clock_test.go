package probe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// However often bytes came, and whenever nobody listened, silence is as long as it is
// allowed to be when the attempt ends, to the moment.
func TestSilenceIsMeasuredFromTheLastBytes(t *testing.T) {
	const stall = 10 * time.Second
	for name, c := range map[string]struct {
		play func(c *Clock)
		at   time.Duration // 0 = never
	}{
		"nothing comes":                {func(c *Clock) { c.Heard() }, stall},
		"bytes come once":              {func(c *Clock) { c.Heard(); time.Sleep(7 * time.Second); c.Heard() }, 17 * time.Second},
		"bytes come all the time":      {func(c *Clock) { beat(c, 100, time.Second) }, 109 * time.Second},
		"just in time":                 {func(c *Clock) { beat(c, 5, stall-1) }, 4*(stall-1) + stall},
		"nobody listens":               {func(c *Clock) { c.Heard(); c.Rest() }, 0},
		"nobody listens for long":      {func(c *Clock) { c.Heard(); c.Rest(); time.Sleep(time.Hour); c.Heard() }, time.Hour + stall},
		"somebody listens soon":        {func(c *Clock) { c.Heard(); c.Rest(); time.Sleep(time.Second); c.Heard() }, 11 * time.Second},
		"listened to as the time ends": {func(c *Clock) { c.Heard(); c.Rest(); time.Sleep(stall + 1); c.Heard() }, 2*stall + 1},
		"stirred while nobody listens": {func(c *Clock) { c.Heard(); c.Rest(); c.Stirred() }, 0},
		"released":                     {func(c *Clock) { c.Heard(); time.Sleep(time.Second); c.Release(stall / 2); c.Heard() }, 6 * time.Second},
		"released with more time":      {func(c *Clock) { c.Heard(); time.Sleep(time.Second); c.Release(2 * stall); c.Heard() }, 21 * time.Second},
		"released, and nobody listens": {func(c *Clock) { c.Heard(); c.Release(stall) }, 0},
		"released without a bound":     {func(c *Clock) { c.Heard(); c.Release(0); c.Heard() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, clock := time.Now(), NewClock(t.Context(), &Budget{Stall: stall})
				defer clock.Cancel(ErrClientGone)
				c.play(clock)
				select {
				case <-clock.Context().Done():
					if took := time.Since(began); took != c.at || !errors.Is(context.Cause(clock.Context()), ErrStalled) {
						t.Errorf("after %v and not %v: %v", took, c.at, context.Cause(clock.Context()))
					}
				case <-time.After(24 * time.Hour):
					if c.at > 0 {
						t.Errorf("it does not end after %v", c.at)
					}
				}
			})
		})
	}
}

// beat has bytes come so many times.
func beat(c *Clock, times int, apart time.Duration) {
	for n := range times {
		if n > 0 {
			time.Sleep(apart)
		}
		c.Heard()
	}
}
