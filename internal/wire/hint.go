package wire

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait that is believed.
const maxWait = 35 * 24 * time.Hour

// wait is one statement of when to come back: after a duration, or at a time.
type wait struct {
	seconds float64 // from now, or since 1970 where absolute
	at      bool
	ok      bool
}

// from turns w into a duration from now: 0 for the past, false for what cannot be
// meant.
func (w wait) from(now time.Time) (time.Duration, bool) {
	s := w.seconds
	if w.at {
		s = max(s-float64(now.UnixNano())/1e9, 0)
	}
	if !w.ok || math.IsNaN(s) || s < 0 || s > maxWait.Seconds() {
		return 0, false
	}
	// To the microsecond: sums of floats are no more exact, and durations then
	// read as they were written.
	return time.Duration(math.Round(s*1e6)) * time.Microsecond, true
}

// longest is the longest of those waits that can be meant.
func longest(waits []wait, now time.Time) (d time.Duration, ok bool) {
	for _, w := range waits {
		if one, fits := w.from(now); fits {
			d, ok = max(d, one), true
		}
	}
	return d, ok
}

// wait is what the answer says about coming back. Of several statements the most
// certain counts, not the longest: a long window that a machine says is exhausted,
// retry-after-ms, Retry-After, the resets of exhausted buckets, the text.
func (c *complaint) wait(now time.Time) (time.Duration, bool) {
	h := c.header
	stated := append(c.waits, h.codexWindows()...)
	stated = append(stated, h.unifiedWindows()...)
	for _, s := range c.delays {
		stated = append(stated, waitDuration(s))
	}
	if c.perDay && len(c.delays) > 0 {
		// A daily quota's retryDelay is a few seconds and useless.
		stated = append(stated, wait{seconds: float64(pacificMidnight(now).Unix()), at: true, ok: true})
	}
	for _, waits := range [...][]wait{
		stated,
		{h.milliseconds("retry-after-ms")},
		{h.retryAfter()},
		h.buckets(),
	} {
		if d, ok := longest(waits, now); ok {
			return d, true
		}
	}
	for _, text := range c.texts {
		if d, ok := ParseWait(text); ok {
			return d, true
		}
	}
	return 0, false
}

// pacificMidnight is when Google's daily quotas begin anew: the next midnight in
// California, worked out without a time zone database, which a machine may lack.
func pacificMidnight(now time.Time) time.Time {
	y, m, d := now.UTC().Add(pacificOffset(now)).Date()
	midnight := time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
	return midnight.Add(-pacificOffset(midnight.Add(8 * time.Hour)))
}

// pacificOffset is California's distance from UTC: summer time lasts from the second
// Sunday of March to the first of November, 2:00 local time each.
func pacificOffset(t time.Time) time.Duration {
	year := t.UTC().Year()
	if t.Before(sunday(year, time.March, 2).Add(10*time.Hour)) || !t.Before(sunday(year, time.November, 1).Add(9*time.Hour)) {
		return -8 * time.Hour
	}
	return -7 * time.Hour
}

// sunday is the nth Sunday of a month.
func sunday(year int, month time.Month, n int) time.Time {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 0, (7-int(first.Weekday()))%7+7*(n-1))
}

// waitNumber reads a JSON number, or a string of one, of seconds.
func waitNumber(raw []byte) wait {
	f, err := strconv.ParseFloat(scalar(raw), 64)
	return wait{seconds: f, ok: err == nil}
}

// waitDuration reads a duration as Go and protobuf write it: 34s, 6m0s, 539.47ms,
// 3h12m5s. A bare number is seconds.
func waitDuration(s string) wait {
	s = strings.TrimSpace(s)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return wait{seconds: f, ok: true}
	}
	d, err := time.ParseDuration(s)
	return wait{seconds: d.Seconds(), ok: err == nil}
}

// waitTime reads a moment: an epoch in seconds or milliseconds, or RFC 3339. Numbers
// below a million are seconds from now.
func waitTime(s string) wait {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return wait{seconds: float64(t.UnixNano()) / 1e9, at: true, ok: true}
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return wait{}
	case f > 1e11:
		return wait{seconds: f / 1000, at: true, ok: true}
	}
	return wait{seconds: f, at: f >= 1e6, ok: true}
}

// waitCue is what a stated wait follows in the vendors' texts: "Please try again in
// 11.054s", "retry after 37 seconds", "quota will reset after 3h12m5s", "wait 20s".
var waitCue = lazily(`(?i)\b(?:(?:try again|retry|retrying)(?: your request)? (?:in|after)|resets? (?:in|after)|wait(?: for)?) (?:about |approximately |another )?`)

// ParseWait finds in free text how long it says to wait, as in "try again in
// 7m12.5s" or "retry after 37 seconds". It is false where the text says nothing, or
// nothing that can be meant: more than 35 days.
func ParseWait(text string) (time.Duration, bool) {
	for _, at := range waitCue().FindAllStringIndex(text, 8) {
		cue := text[at[0]:at[1]]
		seconds, named, ok := spokenSeconds(text[at[1]:])
		if !ok || !named && strings.HasPrefix(strings.ToLower(cue), "wait") {
			continue
		}
		if d, ok := (wait{seconds: seconds, ok: true}).from(time.Time{}); ok {
			return d, true
		}
	}
	return 0, false
}

// spokenSeconds reads the durations that text begins with, as people and programs
// write them. named says that they had units; a bare number is seconds.
func spokenSeconds(text string) (sum float64, named, ok bool) {
	for {
		n := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
		if n < 0 {
			n = len(text)
		}
		f, err := strconv.ParseFloat(strings.TrimSuffix(text[:n], "."), 64)
		if err != nil {
			return sum, named, ok
		}
		rest := strings.TrimLeft(text[n:], " ")
		if strings.HasSuffix(text[:n], ".") {
			rest = "" // the sentence ends here
		}
		n = strings.IndexFunc(rest, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') })
		if n < 0 {
			n = len(rest)
		}
		unit, known := waitUnits[strings.ToLower(rest[:n])]
		if !known || rest[:n] == "" && ok {
			return sum, named, ok
		}
		sum, named, ok = sum+f*unit.Seconds(), named || rest[:n] != "", true
		text = strings.TrimPrefix(strings.TrimLeft(rest[n:], " ,"), "and ")
	}
}

var waitUnits = map[string]time.Duration{
	"": time.Second, "s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "msec": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}
