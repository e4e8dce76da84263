#!/bin/sh
# The Go benchmarks of the parts and of whole requests over a network in memory, as
# often as COUNT says, into dist/micro-COMMIT.txt. With an argument, a commit, the same
# is measured there, in turn with this one, and benchstat compares the two: packages'
# benchmarks that the old commit lacks are taken from here where they compile.
set -eu
cd "$(dirname "$0")/.."
count=${COUNT:-6}
mkdir -p dist
here=$PWD
packages='wire route health rule stats owner proxy'
new=$here/dist/micro-$(git describe --tags --always --dirty).txt
: >"$new"
run() { # directory, output
	for p in $packages; do
		(cd "$1" && go test "./internal/$p" -run '^$' -bench "${BENCH:-.}" -benchtime "${BENCHTIME:-200ms}" -count 1) >>"$2" || echo "NOT RUN: $p at $1"
	done
}
if [ $# = 0 ]; then
	for _ in $(seq "$count"); do run "$here" "$new"; done
	exec go tool -modfile=tools/go.mod benchstat "$new"
fi
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "$1" | tar -x -C "$tree"
old=$here/dist/micro-$(git describe --tags --always "$1").txt
: >"$old"
for p in $packages; do
	for f in internal/$p/*bench_test.go; do
		[ ! -f "$f" ] || [ -f "$tree/$f" ] || cp "$f" "$tree/$f"
	done
done
for _ in $(seq "$count"); do
	run "$tree" "$old"
	run "$here" "$new"
done
go tool -modfile=tools/go.mod benchstat "before=$old" "now=$new"
