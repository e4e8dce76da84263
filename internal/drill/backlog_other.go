//go:build !unix

package drill

import "net"

// shrinkBacklog does nothing where listening twice is no way to do it.
func shrinkBacklog(*net.TCPListener) {}
