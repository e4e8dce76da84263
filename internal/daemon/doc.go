// Package daemon holds everything that outlives a reload: the listeners, the board
// of health, the ledger, the connections to upstreams, the state file; and the
// reload itself, which one goroutine owns.
//
// It knows lifetimes and the order of starting and stopping. It never knows how a
// request is served.
package daemon
