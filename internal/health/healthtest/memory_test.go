package healthtest_test

import (
	"sync"
	"testing"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
)

func TestTheMemoryStoreKeepsTheContract(t *testing.T) {
	var mu sync.Mutex
	hubs := map[*testing.T]*healthtest.Hub{}
	healthtest.Suite(t, func(t *testing.T, name string) health.Store {
		mu.Lock()
		defer mu.Unlock()
		if hubs[t] == nil {
			hubs[t] = new(healthtest.Hub)
		}
		return hubs[t].Store(name)
	})
}
