#!/bin/sh
# All Go tests, with the race detector, but for those that measure time (make drill), and
# without it those that move hundreds of MiB or count thousands of requests one after
# another: it makes them ten times as long and sees nothing in them that it has not seen
# in others.
# Where a program that some of them need cannot be had, they are named as not run; in CI
# that is a failure.
set -eu
race=-race
long='TestSchemaAndParseAgree|TestCompleteHasALimit|TestAffinityFigures|TestHedgingFigures|TestVeryLong.*|TestBombsInRequests|TestEveryRecordingCoded'
long="$long|TestFailoverSendsABigBodyAgain|TestBodyOverTheLimitIsAnsweredNotReset|TestLargeRefusalsPassWhole|TestDefaultLimitTakesBigBodies"
skip="$long|TestDrillScripts|TestTenUpgrades.*"
lacking=

# lacks looks for a program that the test files with these words need.
lacks() { # program, words, directories
	! command -v "$1" >/dev/null 2>&1 || return 0
	program=$1 words=$2
	shift 2
	lacking="$lacking $program"
	for file in $(grep -rl --include='*_test.go' -e "$words" "$@"); do
		for test in $(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t \*testing\.T).*/\1/p' "$file"); do
			echo "NOT RUN: $test (it needs $program)"
			skip="$skip|$test"
		done
	done
}

if ! command -v "$(go env CC)" >/dev/null 2>&1; then
	echo 'NOT RUN: the race detector (it needs a C compiler)'
	race='' lacking="$lacking $(go env CC)"
fi
lacks tmux 'newScreen(' cmd/understudy
lacks zsh '"zsh", ' cmd/understudy
lacks fish '"fish", ' cmd/understudy
lacks mandoc 'exec.LookPath("mandoc")' cmd/understudy
lacks redis-server 'redistest\.' internal
if [ -n "$lacking" ] && [ "${CI:-}" = true ]; then
	echo "in CI all tests run:$lacking"
	exit 1
fi
# shellcheck disable=SC2046,SC2086 # lists of words
go test $race -timeout 20m -skip "^($skip)\$" $(go list ./... | grep -v /cmd/)
go test -timeout 20m -run "^($long)\$" ./internal/config ./internal/proxy
# shellcheck disable=SC2086
go test $race -timeout 20m -skip "^($skip)\$" ./cmd/understudy
