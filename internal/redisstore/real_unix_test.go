//go:build unix

package redisstore

import (
	"testing"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
	"understudy/internal/redisstore/redistest"
)

func TestRedisKeepsTheContract(t *testing.T) {
	server := redistest.Start(t)
	healthtest.Suite(t, func(t *testing.T, name string) health.Store {
		return opened(t, "redis://"+server.Addr()+"/3", name)
	})
}
