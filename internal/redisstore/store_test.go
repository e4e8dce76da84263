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
	return openedWith(t, Options{URL: url, Name: name})
}

func openedWith(t *testing.T, o Options) health.Store {
	t.Helper()
	o.Prefix, o.Rescan = "test:"+t.Name()+":", 100*time.Millisecond
	s, err := New(o)
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
