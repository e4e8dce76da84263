#!/bin/sh
# Looks for new inputs with the native fuzz targets.
#
#   fuzz.sh [TIME]        the four that guard what comes from outside for the given time,
#                         the others for a moment
#   fuzz.sh -keep [TIME]  each for the given time, with one worker; then what it found goes
#                         into testdata/fuzz, where it runs with the other tests
#   fuzz.sh -keep 0       only that: what former runs have found
#
# Kept are, smallest first, the inputs that reach code which no seed and no kept one
# reaches: at most 50 for a target, each smaller than 4 KiB. Nothing that is there goes.
set -eu
export LC_ALL=C
keep=
if [ "${1:-}" = -keep ]; then
	keep=yes
	shift
fi
time=${1:-20s}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# look fuzzes a target: directory, target, time, workers.
look() {
	echo "fuzz $1 $2 $3"
	if go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 1s -parallel "$4" >"$tmp/out" 2>&1; then
		tail -n 1 "$tmp/out"
		return
	fi
	cat "$tmp/out"
	# Go's fuzzer fails now and then because its own time is over, on a busy
	# machine above all: then it says just this, and has found nothing.
	if grep -q 'context deadline exceeded' "$tmp/out" && ! grep -q -e 'Failing input' -e 'panic' "$tmp/out"; then
		echo "fuzz $1 $2: the time was over, nothing was found"
		return
	fi
	exit 1
}

# reach prints the blocks of code that a target reaches with the inputs of a name.
reach() {
	(cd "$1" && "$tmp/test" -test.run "^$2\$/$3" -test.coverprofile "$tmp/profile" >"$tmp/out" 2>&1) || { cat "$tmp/out"; exit 1; }
	sed -n 's/ [0-9]* [1-9][0-9]*$//p' "$tmp/profile" | sort
}

# store keeps what a target has found: directory, target.
store() {
	found=$(go env GOCACHE)/fuzz/$(go list "./$1")/$2
	kept=$1/testdata/fuzz/$2
	[ -d "$found" ] || return 0
	mkdir -p "$kept"
	go test -c -covermode=set -coverpkg="./$1" -o "$tmp/test" "./$1"
	reach "$1" "$2" . >"$tmp/known"
	there=$(find "$kept" -type f | wc -l)
	added=0
	find "$found" -type f -size -4096c -printf '%s %f\n' | sort -n | head -n 1000 | while read -r _ name; do
		[ "$there" -lt 50 ] || break
		[ ! -e "$kept/$name" ] || continue
		cp "$found/$name" "$kept/$name"
		reach "$1" "$2" "^$name\$" | comm -13 "$tmp/known" - >"$tmp/new"
		if [ -s "$tmp/new" ]; then
			sort -m "$tmp/known" "$tmp/new" >"$tmp/both" && mv "$tmp/both" "$tmp/known"
			there=$((there + 1)) added=$((added + 1))
			echo "$added" >"$tmp/added"
		else
			rm "$kept/$name"
		fi
	done
	rmdir "$kept" 2>/dev/null || true # it holds nothing
	echo "keep $1 $2: $(cat "$tmp/added" 2>/dev/null || echo 0) more"
	rm -f "$tmp/added"
}

for dir in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n1 dirname | sort -u); do
	for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
		if [ -n "$keep" ]; then
			[ "$time" = 0 ] || look "$dir" "$target" "$time" 1
			store "$dir" "$target"
			continue
		fi
		case $target in
		FuzzScan | FuzzFrames | FuzzParse | FuzzSet) for=$time ;;
		FuzzLiteLLM | FuzzCLIProxyAPI | FuzzClaudeCodeRouter) for=1s ;;
		*) for=3s ;;
		esac
		look "$dir" "$target" "$for" 2
	done
done
