#!/bin/sh
# worlds.sh WORLDS SEED draws so many random worlds, an equal share on each
# processor, and checks every promise in each. The same numbers on a machine of
# as many processors draw the same worlds: what fails once fails again. Another
# seed draws others.
set -eu

worlds=$1
seed=$2
processors=$(getconf _NPROCESSORS_ONLN)
start=$(date +%s)
mkdir -p bin
go test -c -o bin/worlds.test ./simulate

i=0
while [ $i -lt "$processors" ]; do
	(cd simulate && GOMAXPROCS=1 ../bin/worlds.test -test.run '^TestRandomWorlds$' -test.timeout 30m -test.v \
		-worlds $((worlds / processors)) -rapid.seed $((seed + i)) -rapid.nofailfile) >"bin/worlds-$i.txt" 2>&1 &
	i=$((i + 1))
done
i=0
drawn=0
while [ $i -lt "$processors" ]; do
	wait || true
	n=$(sed -n 's/^.*random_test.go:[0-9]*: \([0-9]*\) random worlds, every promise kept.*/\1/p' "bin/worlds-$i.txt")
	if [ -z "$n" ]; then
		grep -v 'rapid\] draw' "bin/worlds-$i.txt"
		exit 1
	fi
	drawn=$((drawn + n))
	i=$((i + 1))
done
echo "worlds: $drawn random worlds from seed $seed on, every promise kept, in $(($(date +%s) - start)) s"
