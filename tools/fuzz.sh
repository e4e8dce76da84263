#!/bin/sh
# Looks for new inputs with the native fuzz targets: the four that guard what comes
# from outside for the given time, the others for a moment. Their seeds run with the
# other tests.
set -eu
time=${1:-20s}
for dir in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do
	for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		case $target in
		FuzzScan | FuzzFrames | FuzzParse | FuzzSet) for=$time ;;
		*) for=3s ;;
		esac
		echo "fuzz $dir $target $for"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$for" -parallel 2
	done
done
