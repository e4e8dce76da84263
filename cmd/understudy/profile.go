//go:build profile && unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// A program built with -tags profile writes its profiles into the directory that
// UNDERSTUDY_PROFILE names: SIGUSR1 begins, the next SIGUSR1 writes cpu.pprof of the
// span between the two, allocs.pprof of all since the start, and the file done. What
// is shipped has nothing of this.
func init() {
	dir := os.Getenv("UNDERSTUDY_PROFILE")
	if dir == "" {
		return
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for {
			<-signals
			if err := profileUntil(signals, dir); err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
			}
		}
	}()
}

// profileUntil profiles until the next signal.
func profileUntil(signals <-chan os.Signal, dir string) error {
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	<-signals
	pprof.StopCPUProfile()
	allocs, err := os.Create(filepath.Join(dir, "allocs.pprof"))
	if err != nil {
		return err
	}
	defer allocs.Close()
	runtime.GC()
	if err := pprof.Lookup("allocs").WriteTo(allocs, 0); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "done"), nil, 0o600)
}
