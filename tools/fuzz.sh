#!/bin/sh
# fuzz.sh SECONDS runs every fuzz test of the module, for that long in all.
# A failure leaves its input in the package's testdata/fuzz.
set -eu

seconds=$1
tests=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' --exclude-dir=standalone --exclude-dir=tools . |
	sed -E 's|/[^/]*:func |:|' | sort)
total=$(echo "$tests" | wc -l)
each=$((seconds / total > 0 ? seconds / total : 1))
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run PACKAGE TEST TIME shows what is said only if it fails.
run() {
	if ! go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "$1" >"$log" 2>&1; then
		cat "$log"
		echo "fuzz: $2 in $1 failed" >&2
		exit 1
	fi
}

# The first round only builds, so that the time is spent on inputs.
for test in $tests; do
	run "${test%%:*}" "${test#*:}" 1x
done
for test in $tests; do
	run "${test%%:*}" "${test#*:}" "${each}s"
	echo "fuzz: ${test#*:} in ${test%%:*}, $each s"
done
echo "fuzz: $total fuzz tests, $((each * total)) s in all, nothing found"
