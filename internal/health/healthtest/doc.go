// Package healthtest holds every implementation of health.Store to one contract, and
// has the simplest one, in memory. It is for tests.
//
// It knows health. It never knows what the others are implemented with.
package healthtest
