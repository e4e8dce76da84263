//go:build !unix

package main

import "os"

// upgradeSignals ask for an upgrade: where a process cannot pass its listeners on,
// there are none.
var upgradeSignals []os.Signal

// lostReader: there is no such signal here.
var lostReader []os.Signal
