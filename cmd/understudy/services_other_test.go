//go:build !linux && !windows

package main

// systemCommands are the commands of this test binary that only one system can have.
var systemCommands map[string]func()
