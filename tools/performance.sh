#!/bin/sh
# performance.sh writes docs/performance.md: runs the benchmarks whose figures
# the design promises, on this machine, and says what is allowed. Figures of one
# table are of one run; on a busy machine all of them are worse.
set -eu

out=docs/performance.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go test -run '^$' -bench 'BenchmarkNew' -benchmem ./rollout >"$dir/engine"
go test -run '^$' -bench 'BenchmarkPass' -benchmem ./internal/controller/pool >"$dir/pass"
go test -run '^$' -bench 'BenchmarkRolloutLength' ./simulate >"$dir/simulated"
go test -run '^$' -bench 'BenchmarkPreview' ./preview >"$dir/preview"
PAWLD=${PAWLD:-$PWD/bin/pawld} go test -tags integration -run '^$' -bench 'BenchmarkRolloutLength' -benchtime 1x \
	./internal/e2e >"$dir/live"

# metric FILE BENCHMARK UNIT prints one figure.
metric() {
	awk -v name="$2" -v unit="$3" '
		{ sub(/-[0-9]+$/, "", $1) }
		$1 == name { for (i = 3; i < NF; i += 2) if ($(i + 1) == unit) { print $i; exit } }' "$dir/$1"
}

# ms FILE BENCHMARK prints the time of one operation in milliseconds.
ms() { metric "$1" "$2" ns/op | awk '{ printf "%.2f", $1 / 1e6 }'; }

# slowest FILE BENCHMARK prints the same of the slowest of its cases.
slowest() {
	awk -v name="$2/" '
		index($1, name) == 1 && $3 > most { most = $3 }
		END { if (most) printf "%.2f", most / 1e6 }' "$dir/$1"
}

# row WHAT FIGURE UNIT ALLOWED prints a row of the table. No figure is an error.
row() {
	if [ -z "$2" ]; then
		echo "performance: no figure for: $1" >&2
		exit 1
	fi
	echo "| $1 | $2 $3 | $4 |"
}

{
	echo "# Performance"
	echo
	echo "Made by \`make performance\`: $(go version | cut -d' ' -f3), $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)."
	echo "Times depend on the machine and on what else it does; ratios much less."
	echo
	echo "| what | measured | allowed |"
	echo "|---|---|---|"
	for members in 10000 100000; do
		if [ $members -eq 10000 ]; then allowed="1 ms"; else allowed="12 ms"; fi
		for stale in 10 all; do
			row "engine: a plan for $members members, $stale stale" "$(ms engine "BenchmarkNew/${members}_members,_${stale}_stale")" ms "$allowed"
		done
	done
	row "engine: allocations of that plan" "$(metric engine "BenchmarkNew/100000_members,_all_stale" allocs/op)" allocations "bounded by actions"
	row "a whole pass over 10000 members, cache, snapshot and report included" "$(ms pass "BenchmarkPass/10000_members")" ms "10 ms"
	row "simulated rollout, 200 members, 20 at a time, against ⌈n/b⌉ replacements" "$(metric simulated BenchmarkRolloutLength x-ideal)" × "1.05 ×"
	row "live rollout, 200 members, 20 at a time, against ⌈n/b⌉ replacements" "$(metric live BenchmarkRolloutLength x-ideal)" × "1.15 ×"
	row "preview of 100000 members, under the slowest of six policies" "$(slowest preview BenchmarkPreview100k)" ms "2000 ms"
} >"$dir/performance.md"
mv "$dir/performance.md" "$out"
cat "$out"
echo "performance: $(grep -c '^| [^w]' "$out") figures in $out"
