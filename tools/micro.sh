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
packages=${PACKAGES:-wire h1 route health rule stats owner proxy}
new=$here/dist/micro-$(git describe --tags --always --dirty).txt
bin=$(mktemp -d)
tree=$bin/tree
trap 'rm -rf "$bin"' EXIT

# build compiles the benchmarks of a directory once; run then costs only its time.
build() { # directory, name
	for p in $packages; do
		(cd "$1" && go test -c -trimpath -o "$bin/$2-$p.test" "./internal/$p") || echo "NOT RUN: $p of $2"
	done
}
run() { # directory, name, output
	for p in $packages; do
		[ -f "$bin/$2-$p.test" ] || continue
		(cd "$1/internal/$p" && "$bin/$2-$p.test" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchtime "${BENCHTIME:-200ms}") >>"$3" || echo "NOT RUN: $p of $2"
	done
}
build "$here" now
: >"$new"
if [ $# = 0 ]; then
	for _ in $(seq "$count"); do run "$here" now "$new"; done
	go tool -modfile=tools/go.mod benchstat "$new"
	exit
fi
mkdir "$tree"
git archive "$1" | tar -x -C "$tree"
for p in $packages; do
	for f in internal/$p/*bench_test.go; do
		[ ! -f "$f" ] || [ -f "$tree/$f" ] || cp "$f" "$tree/$f"
	done
done
build "$tree" before
old=$here/dist/micro-$(git describe --tags --always "$1").txt
: >"$old"
for _ in $(seq "$count"); do
	run "$tree" before "$old"
	run "$here" now "$new"
done
go tool -modfile=tools/go.mod benchstat "before=$old" "now=$new"
