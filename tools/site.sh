#!/bin/sh
# The pages as a site, into dist/site, by Debian's hugo; its links, its search and its
# reference are checked. Where it cannot be had the site is named as not built; in CI that
# is a failure. -build only builds it.
set -eu
sh tools/needs.sh hugo
if ! command -v hugo >/dev/null 2>&1; then
	echo 'NOT RUN: site (it needs hugo)'
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
rm -rf dist/site
hugo --quiet --source site --destination ../dist/site
echo 'the site: dist/site/index.html'
[ "${1:-}" != -build ] || exit 0
go test -tags site -count=1 ./site
