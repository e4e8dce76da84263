package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notify sends the signals that serve knows: an interrupt (Ctrl-C, on Windows
// Ctrl-Break too), SIGTERM (on Windows a console that is closed, a log-off or a
// shutdown), SIGHUP, and where there are upgrades SIGUSR2. What it returns ends that.
func notify(signals chan<- os.Signal) (end func()) {
	if len(lostReader) > 0 { // none would stand for all
		signal.Ignore(lostReader...)
	}
	signal.Notify(signals, append(upgradeSignals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	if underManager != nil {
		underManager.to(signals)
	}
	return func() { signal.Stop(signals) }
}

// underManager passes on what a service manager asks for; nil where none has
// started the process, or where it asks by signals.
var underManager interface {
	to(signals chan<- os.Signal)
}
