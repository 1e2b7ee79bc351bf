#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a job ends when a rank is killed, and with --survive goes on. usage: check_kill.sh
# TIMES [SEED]: kills a rank of a
# working job at a random moment, TIMES times. Each time the job must end with the signal's status
# and one line that names rank, host, process and signal, and leave nothing behind. The longest time
# to the end is printed. More than 10 seconds is a failure here; the documentation promises 2, on a
# machine that is not overloaded.
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

# survive SEED: a job of the oracle's programs or of a tree of tasks, whose ranks other than 0 are
# killed, one after the other; the values must be right, and a line must name each.
survive()
{
	draw=$(awk -v s="$1" 'BEGIN {
		srand(s)
		print 2 + int(rand() * 4), rand() < 0.5 ? "loop" : "tcp", rand() < 0.3, rand(), rand(), rand()
	}')
	set -- "$1" $draw
	ranks=$2
	if [ "$4" = 1 ]; then
		set -- "$1" "$5" "$6" "$7" examples/knary 29 4
	else
		set -- "$1" "$5" "$6" "$7" tests/oracle -j -s 2 -p "$dir/pids" -n "$1"
	fi
	provider=$(echo "$draw" | cut -d' ' -f2)
	seed_=$1 t1=$2 t2=$3 t3=$4
	shift 4
	: > "$dir/err" # of the job before
	KDDS_WORKERS=1 timeout -k 5 120 ./kddsrun -v -n "$ranks" --survive --provider "$provider" \
		"$@" > "$dir/out" 2> "$dir/err" &
	job=$!
	killed=0
	# Before all ranks have joined, a death ends the job.
	tries=0
	until grep -q 'all ranks have joined' "$dir/err"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "the job did not start"
		sleep 0.1
	done
	for t in $t1 $t2 $t3; do
		sleep "$t"
		victim=$((killed + 1))
		[ $victim -lt "$ranks" ] || break
		pid=$(sed -n "s/.*rank $victim runs on host .* as process //p" "$dir/err")
		kill -9 "$pid" 2> /dev/null || break # the job is over
		killed=$victim
	done
	status=0
	wait $job || status=$?
	rm -f "$dir"/pids.*
	[ $status = 0 ] || fail "seed $seed_, $* with $provider: status $status"
	grep -q 'all equal to the oracle\|^knary(29, 4) = 449819905$' "$dir/out" ||
		fail "seed $seed_, $* with $provider: wrong values: $(cat "$dir/out")"
	survived=$((survived + $(grep -c 'the job goes on' "$dir/err" || :)))
}

survived=0
i=0
while [ $i -lt "$times" ]; do
	i=$((i + 1))
	survive $((seed + i))
done
# A rank that is killed before or after the job is no loss.
[ $survived -ge $((times / 2)) ] || fail "only $survived ranks were killed in $times jobs"
echo "$times jobs survived the loss of $survived ranks"

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
