//go:build unix

package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground says whether the process is the one that its terminal listens to.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
