package redisstore

import (
	"testing"
	"time"

	"understudy/internal/health"
)

// FuzzMessage: whatever somebody publishes, it is taken or left, and what is told has
// a known kind and no time before or behind all measure.
func FuzzMessage(f *testing.F) {
	f.Add(`{"n":"froze","k":"u:00","from":"x","by":"person","left":5,"length":7,"age":1,"why":"w","rev":"3"}`)
	f.Add(`{"n":"thawed","k":"u:00","from":"x","by":"rule","rev":"9223372036854775807"}`)
	f.Add(`{"n":"trying","k":"u:00","from":"x","rev":"-1"}`)
	f.Add(`{"n":"froze","k":"u:00","left":9223372036854775807,"age":-9223372036854775808,"rev":"1"}`)
	f.Add(`{"n":"gone","from":"x"}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		l := &listener{Store: &Store{name: "me"}, heard: map[string]heard{}}
		l.told = func(c health.Change) {
			if c.News > health.Gone || c.From == "me" {
				t.Errorf("told %+v", c)
			}
			if c.News == health.Froze && (time.Until(c.Freeze.Until) > longest || c.Freeze.Length < 0 || c.Freeze.Length > longest) {
				t.Errorf("told %+v", c)
			}
		}
		l.message(text)
		l.message(text)
	})
}
