//go:build !verify

package main

// underTest are the systems that are built for the tests: one of each kind.
// `make dist-verify` takes all.
var underTest = []Target{native(), {"darwin", "arm64"}, {"windows", "amd64"}}

// fromScratch has the second build begin with an empty cache.
const fromScratch = false
