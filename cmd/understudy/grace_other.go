//go:build !windows

package main

import (
	"os"
	"time"
)

// graceOf is how long the system lets the process live after a signal; 0 is as long
// as it likes.
func graceOf(os.Signal) time.Duration { return 0 }
