// Package probe reads an upstream's answer until it has proved good or bad.
//
// It knows the phases of an answer, the clocks that bound them, how much of an
// answer is held before it is released, and what a failure is. It never knows
// which upstream it reads, what follows a failure, or the client's writer.
package probe
