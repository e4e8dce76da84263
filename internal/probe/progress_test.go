package probe

import (
	"testing"
	"time"

	"understudy/internal/wire"
)

// A trickle is content that comes more slowly than it should, once it has come for
// long enough to tell.
func TestTrickles(t *testing.T) {
	const event = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"0123456789"}}]}` + "\n\n"
	const call = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f"}}]}}]}` + "\n\n"
	start := time.Now()
	for name, c := range map[string]struct {
		said  string
		rate  float64
		after time.Duration
		want  bool
	}{
		"nothing yet":            {": ping\n\n", 5, time.Hour, false},
		"ten characters in 2 s":  {event, 5, 2 * time.Second, false},
		"in a little more":       {event, 5, 2*time.Second + time.Millisecond, true},
		"too early to tell":      {event, 50, TrickleTime - time.Millisecond, false},
		"just not too early":     {event, 50, TrickleTime, true},
		"twenty characters":      {event + event, 5, 4 * time.Second, false},
		"nobody measures":        {event, 0, time.Hour, false},
		"a tool call has none":   {call, 5, time.Hour, false},
		"text beside a call too": {event + call, 5, time.Hour, false},
	} {
		r := wire.NewReader(wire.Want{Kind: wire.Chat, Stream: true, Judged: true, MinChars: 10})
		r.Feed([]byte(c.said))
		var p Progress
		p.note(r, start)
		p.note(r, start.Add(time.Second)) // only the first time counts
		if got := p.Trickles(c.rate, start.Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
