#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a program which saves checkpoints ends with the same bits, however often it is killed.
# usage: check_restart.sh TIMES [SEED]: runs the stencil TIMES times. Each run is killed several
# times at random moments: rank 0, another rank, kddsrun, or all of these; and started again, on 1
# to 8 ranks, each time another number, by kddsrun --restart or by hand, at once or when the
# processes of the job before have ended. In the end nothing may be left: no file, no process. If no
# start has continued from a checkpoint, there are more runs, killed when there is one.
set -eu

times=${1-3}
seed=${2-$(date +%s)}
kills_most=5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo "seed $seed"
mkdir "$dir/run"
all= kills=0 continued=0 starts=0

fail()
{
	echo "check_restart: run $run, start $starts: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

# draw A B: sets $draw to a random number from A to B.
draws=0
draw()
{
	draws=$((draws + 1))
	draw=$(awk -v s=$((seed * 1000 + draws)) -v a="$1" -v b="$2" 'BEGIN {
		srand(s % 2147483647)
		rand()
		print a + int(rand() * (b - a + 1))
	}')
}

# pid_of RANK: the last process that ran it.
pid_of()
{
	sed -n "s/^kddsrun: rank $1 runs on host .* as process \([0-9]*\)$/\1/p" "$dir/err" |
		tail -n 1
}

# start: starts a job; it ends within its --timeout.
start()
{
	starts=$((starts + 1))
	draw 1 8
	ranks=$draw
	draw 1 2
	workers=$draw
	draw 0 1
	restart=$((draw * 2))
	: > "$dir/out"
	./kddsrun -v --timeout 200 --restart $restart -n "$ranks" --workers "$workers" \
		examples/stencil --checkpoint "$dir/run/state" --every 10 200 8000 50 \
		> "$dir/out" 2> "$dir/err" &
	job=$!
}

# kill_some: kills a random part of the job at a random moment. Waits for the end of kddsrun.
kill_some()
{
	draw 5 150
	if [ $run -le "$times" ]; then
		sleep "$(awk -v d="$draw" 'BEGIN { print d / 100 }')"
	else
		wait_for_checkpoint
	fi
	draw 0 3
	what=$draw
	draw 0 $((ranks - 1))
	pids="$(pid_of 0) $(pid_of "$draw")"
	case $what in
	0) victims=${pids% *} ;;
	1) victims=${pids#* } ;;
	2) victims=$job ;;
	3) victims="$job $pids" ;;
	esac
	# shellcheck disable=SC2086
	[ -z "${victims# }" ] || kill -9 $victims 2> /dev/null || : # it may have ended
	kills=$((kills + 1))
	status=0
	wait $job 2> /dev/null || status=$?
	all="$all $pids"
	draw 0 1
	# Sometimes the next job begins while processes of the one before are still ending.
	[ "$draw" = 0 ] || wait_for_end "$pids"
}

# Or for the end of the job, or for 10 s.
wait_for_checkpoint()
{
	tries=0
	while [ ! -e "$dir/run/state.kdds1" ] && [ $tries -lt 1000 ] &&
		kill -0 $job 2> /dev/null; do
		tries=$((tries + 1))
		sleep 0.01
	done
}

wait_for_end()
{
	for pid in $1; do
		tries=0
		while kill -0 "$pid" 2> /dev/null; do
			tries=$((tries + 1))
			[ $tries -lt 600 ] || fail "process $pid lives on"
			sleep 0.1
		done
	done
}

run=0
while [ $run -lt "$times" ] || { [ $continued = 0 ] && [ $run -lt $((times + 20)) ]; }; do
	run=$((run + 1))
	killed=0
	while :; do
		start
		if [ $killed -lt $kills_most ]; then
			kill_some
		else
			status=0
			wait $job 2> /dev/null || status=$?
		fi
		killed=$((killed + 1))
		! grep -q '^continued from step' "$dir/out" || continued=$((continued + 1))
		[ $status != 0 ] || break
		[ $killed -le $kills_most ] || fail "status $status, but nobody has killed it"
		! grep -v '^kddsrun: ' "$dir/err" | grep -v 'KDDS\|^kdds: rank\|^kdds: .*lost' |
			grep -q . || fail "it complains"
	done
	grep -q '^the same bits as sequentially$' "$dir/out" || fail "not the same bits"
	[ -z "$(ls -A "$dir/run")" ] || fail "left behind: $(ls -A "$dir/run")"
done
wait_for_end "$all"
# A start that is killed before it has found its checkpoint does not say so.
[ $continued -gt 0 ] || fail "only $continued of $starts starts found a checkpoint"
echo "$run runs of $run ended with the same bits after $kills kills; $continued of $starts" \
	"starts continued from a checkpoint"
