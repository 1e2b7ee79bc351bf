#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a job ends when a rank is killed. usage: check_kill.sh TIMES [SEED]: kills a rank of a
# working job at a random moment, TIMES times. Each time the job must end with the signal's status
# and one line that names rank, host, process and signal, and leave nothing behind. The longest time
# to the end is printed. More than 10 seconds is a failure here; the documentation promises 2, on a
# machine that is not overloaded. With --survive the job goes on: check_losses.sh.
set -eu

times=${1-5}
seed=${2-$(date +%s)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo "seed $seed"
all=
slowest=0
# names of others may contain the number of one of our processes by chance
ls /dev/shm /tmp > "$dir/before"

fail()
{
	echo "check_kill: kill $i: $*" >&2
	cat "$dir/err" >&2
	exit 1
}

i=0
while [ $i -lt "$times" ]; do
	i=$((i + 1))
	draw=$(awk -v s=$((seed + i)) 'BEGIN {
		srand(s)
		print int(rand() * 4), int(1 + rand() * 4), 0.2 + rand() * 1.5, rand() < 0.5
	}')
	set -- $draw
	ranks=$(($1 + 2))
	victim=$(($2 % ranks))
	provider=loop
	[ "$4" = 1 ] || provider=tcp
	: > "$dir/out"
	KDDS_WORKERS=1 timeout -k 5 120 ./kddsrun -n $ranks --provider "$provider" \
		tests/oracle -j -s 100 -p "$dir/pids" -n $((seed + i)) \
		> "$dir/out" 2> "$dir/err" &
	job=$!
	tries=0
	until [ "$(cat "$dir"/pids.* 2> /dev/null | wc -l)" = $ranks ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "the job did not start"
		sleep 0.1
	done
	sleep "$3"
	pid=$(cat "$dir/pids.$victim")
	pids=$(cat "$dir"/pids.*)
	rm -f "$dir"/pids.*
	begin=$(date +%s%N)
	kill -9 "$pid"
	status=0
	wait $job || status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	[ $took -le $slowest ] || slowest=$took
	[ $took -lt 10000 ] || fail "the job took $took ms to end"
	[ $status = 137 ] || fail "status $status"
	grep -q "rank $victim .*$pid.*\(Killed\|signal 9\|SIGKILL\)" "$dir/err" ||
		fail "no line names rank $victim, process $pid, and the signal"
	all="$all $pids"
	for pid in $pids; do
		! kill -0 "$pid" 2> /dev/null || fail "process $pid lives on"
	done
done
for pid in $all; do
	left=$(ls /dev/shm /tmp | grep -vxF -f "$dir/before" | grep -v '^tsan\.rodata\.' |
		grep "\(^\|[^0-9]\)$pid\([^0-9]\|$\)" || :)
	[ -z "$left" ] || {
		echo "check_kill: left behind: $left" >&2
		exit 1
	}
done
echo "$times jobs ended, the slowest after $slowest ms"
