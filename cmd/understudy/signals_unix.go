//go:build unix

package main

import (
	"os"
	"syscall"
)

// upgradeSignals ask for an upgrade.
var upgradeSignals = []os.Signal{syscall.SIGUSR2}

// lostReader comes where whoever reads the log has gone: that ends other commands, but
// no service.
var lostReader = []os.Signal{syscall.SIGPIPE}
