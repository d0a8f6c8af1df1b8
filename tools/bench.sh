#!/bin/sh
# bench.sh runs the benchmarks of the engine and of revisions, and compares plans
# for pools of every shape with the plan for one whose members are all stale: of
# each the least time of several runs counts, since a busy machine only adds to it.
# It fails if a shape takes more times as long as the design allows.
set -eu

runs=${RUNS:-6}
mkdir -p bin
go test -run '^$' -bench . -benchmem -benchtime 200ms -count "$runs" ./rollout ./revision >bin/bench.txt || {
	cat bin/bench.txt
	exit 1
}
awk '
	/^Benchmark/ {
		name = $1
		sub(/-[0-9]+$/, "", name)
		if (!(name in least)) order[++n] = name
		if (!(name in least) || $3 < least[name]) least[name] = $3
		allocs[name] = $7
	}
	END {
		for (i = 1; i <= n; i++) {
			name = order[i]
			ratio = ""
			if (match(name, /^BenchmarkNew\/[0-9]+_members,_/)) {
				base = least[substr(name, 1, RLENGTH) "all_stale"]
				shape = substr(name, RLENGTH + 1)
				allowed = shape == "scale_to_0" || shape == "first_fill" ? 10 : 4
				ratio = sprintf("%5.1f × all stale, %d allowed", least[name] / base, allowed)
				if (least[name] > allowed * base) { ratio = ratio ": too much"; missed++ }
			}
			printf "%-60s %9.3f ms %7d allocations  %s\n", name, least[name] / 1e6, allocs[name], ratio
		}
		printf "bench: %d benchmarks, each the least of %d runs, %d take longer than allowed\n", n, runs, missed
		exit missed > 0
	}' runs="$runs" bin/bench.txt
