#!/bin/sh
# The coding agents come from npm, 1.1 GB of them. Where they cannot be had the suite is
# named as not run; in CI that is a failure.
set -eu
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1 || ! (cd e2e/agents && npm ci --no-audit --no-fund --silent); then
	echo 'NOT RUN: e2e/agents (the agents need node, npm and the npm registry)'
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
go test -tags e2e -count=1 -timeout 60m ./e2e/agents
