//go:build !unix

package h1

// Alive says that kept connections cannot be checked here before they are used
// again.
const Alive = false

type liveness struct{}

func (k *conn) alive() bool { return false }
