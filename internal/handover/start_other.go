//go:build !unix

package handover

import "net"

// Start starts an heir.
func Start(Command) (*Heir, error) { return nil, ErrUnsupported }

func closeOnExec(int) {}

func linkOf(int) (*Link, error) { return nil, ErrUnsupported }

// Of gives a listener's descriptor.
func Of(net.Listener) (int, error) { return 0, ErrUnsupported }

// CloseFD closes a descriptor that Of gave.
func CloseFD(int) {}
