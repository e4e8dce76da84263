// Package redistest runs a real Redis server for tests, and takes it away in every
// way in which servers go away: killed, paused, restarted, flushed, or behind a
// network that swallows what is sent. It needs redis-server (Debian: redis-server).
//
// It knows processes and connections. It never knows what is stored.
package redistest
