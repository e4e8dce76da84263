#!/bin/sh
# A release, looked at from all sides: every system built twice, the second time from
# another directory with an empty cache; the Debian package installed, upgraded, removed
# and purged in a copy of this system; the container's files run alone in a root; the
# Windows program under Wine. It needs Debian or Ubuntu, root (or sudo that does not ask),
# the better part of half an hour, and installs what is missing (Wine, 110 MB to fetch, and
# Ruby: 720 MB on the disk).
set -eu
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n -- "$@"; fi; }
missing=
for pair in wine:wine wine64:wine64 ruby:ruby systemd-analyze:systemd perl:perl setpriv:util-linux; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || [ -e "/usr/lib/wine/${pair%%:*}" ] || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
	as_root apt-get update -q
	# shellcheck disable=SC2086 # a list of words
	as_root apt-get install -y -q --no-install-recommends $missing
fi
cd tools/dist
go test -tags verify -count=1 -timeout 90m -v "$@" .
