#!/bin/sh
# Installs the programs named that are not here, by apt-get as root or by brew; without
# names all that `make test` needs. What cannot be had is no failure yet: the suite that
# needs it says that it did not run, and fails in CI.
set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin
[ $# -gt 0 ] || set -- gcc node npm tmux zsh fish mandoc redis-server chromium nginx haproxy hugo
debian='' brew=''
for program; do
	! command -v "$program" >/dev/null 2>&1 || continue
	case $program in
	gcc) debian="$debian gcc libc6-dev" brew="$brew gcc" ;; # the race detector needs cgo
	node) debian="$debian nodejs" brew="$brew node" ;;
	npm) debian="$debian npm" brew="$brew node" ;;
	redis-server) debian="$debian redis-server" brew="$brew redis" ;;
	nginx) debian="$debian nginx-light" brew="$brew nginx" ;;
	chromium)
		! command -v google-chrome >/dev/null 2>&1 || continue
		debian="$debian chromium" brew="$brew chromium"
		;;
	*) debian="$debian $program" brew="$brew $program" ;;
	esac
done
[ -n "$debian" ] || exit 0
if command -v apt-get >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ]; then
		echo "not here, and only root can install it: apt-get install$debian"
		exit 0
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >/dev/null || true # what is installed below may be known already
	# One by one, so that one that cannot be had keeps no other away.
	for package in $debian; do
		echo "installing $package"
		case $package in
		zsh | fish | mandoc | hugo) apt-get install -y -q --no-install-recommends "$package" >/dev/null || echo "$package cannot be had" ;;
		*) apt-get install -y -q "$package" >/dev/null || echo "$package cannot be had" ;;
		esac
	done
elif command -v brew >/dev/null 2>&1; then
	for package in $brew; do
		brew install --quiet "$package" >/dev/null || echo "$package cannot be had"
	done
else
	echo "not here, and neither is apt-get nor brew to install it:$debian"
fi
