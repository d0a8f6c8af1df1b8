#!/bin/sh
# down.sh DIR stops the pawld that runs on the data directory DIR, and waits
# until it has stopped. Members' processes stay, and the next pawld adopts them.
set -eu

dir=$1
if ! pid=$(cat "$dir/lock" 2>/dev/null) || ! [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = pawld ]; then
	echo "down: no pawld runs on $dir"
	exit 0
fi
kill -TERM "$pid"
while kill -0 "$pid" 2>/dev/null; do
	sleep 0.1
done
echo "down: pawld on $dir has stopped; its members go on (to end them, delete their pools before)"
