#!/bin/sh
# The dashboard in a real browser: chromium, driven by Go, and node for what needs no
# page. Where they cannot be had the suite is named as not run; in CI that is a
# failure. Arguments go to go test.
set -eu
missing() {
	! command -v chromium >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1 || ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1
}
sh tools/needs.sh chromium node npm
if missing || ! (cd internal/web/browser && npm ci --no-audit --no-fund --silent); then
	echo 'NOT RUN: web (the dashboard suite needs chromium, node, npm and the npm registry)'
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
node --test internal/web/browser/unit/
if command -v hugo >/dev/null 2>&1; then # the site of docs/ is looked at as well
	sh tools/site.sh -build
	SITE=$(pwd)/dist/site
	export SITE
	set -- -tags site "$@"
else
	echo 'NOT RUN: the site in a browser (it needs hugo)'
	[ "${CI:-}" != true ] || exit 1
fi
cd internal/web/browser
go vet -tags site ./...
go test -timeout 20m "$@" ./...
