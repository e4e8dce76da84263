#!/bin/sh
# Looks for new inputs with the native fuzz targets: the four that guard what comes
# from outside for the given time, the others for a moment. Their seeds run with the
# other tests.
set -eu
time=${1:-20s}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for dir in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do
	for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		case $target in
		FuzzScan | FuzzFrames | FuzzParse | FuzzSet) for=$time ;;
		FuzzLiteLLM | FuzzCLIProxyAPI | FuzzClaudeCodeRouter) for=1s ;;
		*) for=3s ;;
		esac
		echo "fuzz $dir $target $for"
		if go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$for" -parallel 2 >"$out" 2>&1; then
			tail -n 1 "$out"
			continue
		fi
		cat "$out"
		# Go's fuzzer fails now and then because its own time is over, on a busy
		# machine above all: then it says just this, and has found nothing.
		if grep -q 'context deadline exceeded' "$out" && ! grep -q -e 'Failing input' -e 'panic' "$out"; then
			echo "fuzz $dir $target: the time was over, nothing was found"
			continue
		fi
		exit 1
	done
done
