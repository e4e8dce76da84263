#!/bin/sh
# understudy measured beside Go's bare ReverseProxy, nginx and HAProxy. Arguments go
# to the driver; with -smoke its own tests run before it. Where nginx and HAProxy cannot
# be had the measurement is named as not run; in CI that is a failure.
set -eu
cd "$(dirname "$0")/../bench"
missing() {
	PATH=$PATH:/usr/sbin
	! command -v nginx >/dev/null 2>&1 || ! command -v haproxy >/dev/null 2>&1
}
sh ../tools/needs.sh nginx haproxy
if missing || [ "$(uname)" != Linux ]; then
	echo 'NOT RUN: bench (it needs Linux, nginx and haproxy)'
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
if [ "${1:-}" = -smoke ]; then
	go vet ./...
	go tool -modfile=../tools/go.mod staticcheck $(go list ./... | grep -v /curves) # the plotting library is large
	go test ./...
fi
exec go run . "$@"
