#!/bin/sh
# The vendors' SDKs need node and npm. Where they cannot be had the suite is named
# as not run; in CI that is a failure.
set -eu
sh tools/needs.sh node npm
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1 || ! (cd e2e && npm ci --no-audit --no-fund --silent); then
	echo 'NOT RUN: e2e (the SDK suite needs node, npm and the npm registry)'
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
go test -tags e2e -timeout 10m ./e2e
