#!/bin/sh
# up.sh PAWLD DIR [FLAG…] starts pawld on the data directory DIR, leaves it
# running, and prints where its kubeconfig is. One that runs already is good,
# too.
set -eu

pawld=$1 dir=$2
shift 2
words=$(mktemp)
trap 'rm -f "$words"' EXIT

# A session of its own: whatever ends this terminal does not end pawld.
setsid "$pawld" --data-dir "$dir" "$@" >"$words" 2>&1 </dev/null &
pid=$!
while ! grep -q '^pawld is serving' "$words"; do
	if ! kill -0 $pid 2>/dev/null; then
		if grep -q 'in use by another pawld' "$words" && [ -s "$dir/kubeconfig" ]; then
			echo "up: pawld runs already; kubeconfig: $dir/kubeconfig"
			exit 0
		fi
		cat "$words" >&2
		exit 1
	fi
	sleep 0.1
done
cat "$words"
echo "up: pawld runs as process $pid, until make down; try: kubectl --kubeconfig $dir/kubeconfig get pools"
