#!/bin/sh
# Prints what CHANGELOG.md says of a version: what a release tells. A version that it
# does not know is an error.
set -eu
version=${1:?usage: notes.sh 1.2.3 [CHANGELOG.md]}
awk -v heading="## $version" '
	$0 == heading || index($0, heading " ") == 1 { inside = 1; next }
	inside && /^## / { exit }
	inside { text = text $0 "\n" }
	END {
		gsub(/^\n+|\n+$/, "", text)
		if (text == "") { print "notes.sh: CHANGELOG.md says nothing of " substr(heading, 4) > "/dev/stderr"; exit 1 }
		print text
	}' "${2:-CHANGELOG.md}"
