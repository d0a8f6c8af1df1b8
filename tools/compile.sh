#!/bin/sh
# compile.sh NAME DIR OUTPUT [FLAG…] builds the Go program in DIR, and says how
# far it is where that takes long: with what is compiled already left out, one
# line every ten seconds, on a terminal or not.
set -eu

name=$1 dir=$2 output=$3
shift 3
tmp=$(mktemp -d)
watch='' build=''
cleanup() {
	# shellcheck disable=SC2086 # empty, or one number each
	kill $watch $build 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start=$(date +%s)
elapsed() {
	s=$(($(date +%s) - start))
	echo "$((s / 60)) min $((s % 60)) s"
}

# every prints what its argument says every ten seconds. Nothing that it starts
# keeps our output open.
every() {
	while sleep 10 >/dev/null 2>&1; do
		echo "$name: $("$1"), $(elapsed)"
	done
}

downloads() { echo "$(grep -c '^go: downloading' "$tmp/list") modules downloaded"; }
packages() { echo "$(grep -cxFf "$tmp/stale" "$tmp/log") of $total packages compiled"; }

cd "$dir"
: >"$tmp/list"
every downloads &
watch=$!
# Quiet while it works; what it says is worth showing when it fails.
if ! go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' . >"$tmp/stale" 2>"$tmp/list"; then
	grep -v '^go: downloading' "$tmp/list" >&2
	exit 1
fi
kill $watch
watch=''

total=$(wc -l <"$tmp/stale")
if [ "$total" -gt 200 ]; then
	echo "$name: compiling $total packages, once; with Kubernetes that takes five to six minutes on two cores"
fi
: >"$tmp/log"
if [ "$total" -gt 1 ]; then
	every packages &
	watch=$!
fi
go build -v -o "$output" "$@" . 2>"$tmp/log" &
build=$!
code=0
wait $build || code=$?
build=''
if [ $code -ne 0 ]; then
	grep -vxFf "$tmp/stale" "$tmp/log" >&2
	echo "$name: not built" >&2
	exit $code
fi
if [ "$total" -gt 200 ]; then
	echo "$name: $total packages compiled in $(elapsed)"
fi
