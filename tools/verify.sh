#!/bin/sh
# verify.sh makes every generated file anew and fails if one in the repository
# differs.
set -eu

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tools/generate.sh "$tmp"
differ=0 files=0
for file in $(cd "$tmp" && find . -type f | sort); do
	diff -u "$file" "$tmp/$file" || differ=1
	files=$((files + 1))
done
for file in config/crd/*.yaml; do
	if ! [ -e "$tmp/$file" ]; then
		echo "$file is generated from nothing"
		differ=1
	fi
done
if [ $differ -ne 0 ]; then
	echo "verify: generated files differ from their source; run: make generate" >&2
	exit 1
fi
echo "verify: $files generated files are what their source says"
