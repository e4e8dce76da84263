//go:build unix

package main

import (
	"log/slog"
	"syscall"
)

const (
	// perStream is how many descriptors an open stream takes over HTTP/1.1: the
	// client's and the upstream's.
	perStream = 2
	// ownDescriptors are for what is no stream: listeners, state, the archive, the admin.
	ownDescriptors = 64
	// fewStreams is how many one should be able to carry without a word.
	fewStreams = 400
)

// sayDescriptors logs how many files the process may open, which bounds the streams
// that it can carry. Go's runtime has raised the limit to what the system allows by
// then (package os, since Go 1.19).
func sayDescriptors(log *slog.Logger) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit of open files is unknown", slog.String("problem", err.Error()))
		return
	}
	streams := (max(int64(limit.Cur), ownDescriptors) - ownDescriptors) / perStream
	if streams < fewStreams {
		log.Warn("few open files are allowed: raise the hard limit (ulimit -Hn, LimitNOFILE)", slog.Uint64("limit", uint64(limit.Cur)), slog.Int64("streams", streams))
		return
	}
	log.Info("open files", slog.Uint64("limit", uint64(limit.Cur)), slog.Int64("streams", streams))
}
