#!/bin/sh
# mutants.sh SEEDS SCENARIOS breaks each of the engine's twelve rules, one at a
# time, and sees to it that at least one scenario and one property notice. What
# is broken is in rollout/mutant.go, which only the build tag mutant lets in.
set -eu

seeds=$1
scenarios=$2
rules=12
tests='TestNew_(promises|skips|takesBack|removesDown)|TestBudget_rounds'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# played RULE prints the scenarios that fail while the rule is broken. A run
# that ends in another way than the tests do is no failure that counts.
played() {
	status=0
	PAWL_MUTANT=$1 "$dir/pawl" simulate --allow-waiting --seeds "$seeds" "$scenarios" >"$dir/out" 2>&1 || status=$?
	if [ $status -gt 1 ]; then
		cat "$dir/out" >&2
		exit 1
	fi
	sed -n 's/^FAIL  \([a-z0-9-]*\).*/\1/p' "$dir/out" | tr '\n' ' '
}

# tested RULE prints the properties that fail while the rule is broken. The seed
# is fixed: a mutant is noticed each time or never.
tested() {
	(cd rollout && PAWL_MUTANT=$1 "$dir/rollout.test" -test.run "$tests" -rapid.seed 1 -rapid.checks 20000 \
		-rapid.nofailfile -rapid.shrinktime 0s) >"$dir/out" 2>&1 || true
	sed -n 's/^--- FAIL: \([A-Za-z_]*\).*/\1/p' "$dir/out" | tr '\n' ' '
}

go build -tags mutant -o "$dir/pawl" ./cmd/pawl
go test -tags mutant -c -o "$dir/rollout.test" ./rollout

if [ -n "$(played 0)$(tested 0)" ]; then
	echo "mutants: tests fail although nothing is broken" >&2
	exit 1
fi
missed=0
rule=1
while [ $rule -le $rules ]; do
	s=$(played $rule)
	p=$(tested $rule)
	echo "rule $rule broken: scenarios ${s:-none }/ properties ${p:-none}"
	if [ -z "$s" ] || [ -z "$p" ]; then missed=$((missed + 1)); fi
	rule=$((rule + 1))
done
echo "mutants: $((rules - missed)) of $rules broken rules noticed by a scenario and by a property"
[ $missed -eq 0 ]
