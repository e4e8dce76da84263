#!/bin/sh
# Runs every native fuzz target of the tree for the given time. The seeds run with
# the other tests; this looks for new inputs.
set -eu
time=${1:-20s}
for dir in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do
	for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		echo "fuzz $dir $target"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2
	done
done
