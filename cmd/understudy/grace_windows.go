package main

import (
	"os"
	"syscall"
	"time"
)

// graceOf is how long the system lets the process live after a signal; 0 is as long
// as it likes. When a console is closed, a user logs off or the machine goes down,
// Windows ends the process five seconds later, whatever it is doing: running
// requests are broken off before that, and the state is written.
func graceOf(s os.Signal) time.Duration {
	if s == syscall.SIGTERM {
		return 3500 * time.Millisecond
	}
	return 0
}
