//go:build !windows

package main

// asService runs a process that Windows' service manager has started; elsewhere
// there is no such thing.
func asService() (code int, is bool) { return 0, false }
