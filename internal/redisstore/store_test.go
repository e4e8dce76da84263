package redisstore

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
)

// opened gives stores on a server, a prefix of its own for each test.
func opened(t *testing.T, url, name string) health.Store {
	t.Helper()
	s, err := New(Options{URL: url, Prefix: "test:" + t.Name() + ":", Name: name, Rescan: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestMiniredisKeepsTheContract(t *testing.T) {
	server := miniredis.RunT(t)
	healthtest.Suite(t, func(t *testing.T, name string) health.Store {
		return opened(t, "redis://"+server.Addr(), name)
	})
}
