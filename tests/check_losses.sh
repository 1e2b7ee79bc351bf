#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a job of kddsrun --survive gives the same values when its ranks other than 0 are killed
# by SIGKILL at random moments, some at once, some one after the other, up to all of them, and that
# nothing is left behind. In half of the jobs ranks are started again (--respawn, --spare, --join),
# and killed again.
# usage: check_losses.sh KILLS [SEED]: jobs of 2 to 8 ranks until so many have been killed. Prints
# how long it took until what they ran was queued again (kddsrun -v), and ends with a line: KILLS
# kills, JOINED joined again, JOBS jobs, WRONG wrong.
set -eu

most=${1-8}
seed=${2-$(date +%s)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
: > "$dir/queued"
echo "seed $seed"
ls /dev/shm /tmp > "$dir/before" # names of others may contain the number of one of our processes
# each a second or more on two CPUs
n=28 points=2000000 size=3072
[ -z "${SANITIZE-}" ] || n=24 points=100000 size=1024
programs="tests/oracle -j -s 2 -n SEED
examples/knary $n 4
examples/kmeans $points 10 50"
[ ! -x examples/cholesky ] || programs="$programs
examples/cholesky $size 128"
kills=0
joined=0
jobs=0
wrong=0
pids=

# values FILE: what does not depend on time.
values()
{
	sed -n 's/^.*\(all equal to the oracle\)$/\1/p; /^knary(/p; /^kmeans(/p; /^mean /p; /^residual/p' \
		"$1"
}

# bad WHAT: the job has failed.
bad()
{
	wrong=$((wrong + 1))
	echo "check_losses: seed $seed, $ranks ranks, $provider, $starts starts: $program: $1" >&2
	cat "$dir/err" "$dir/out" >&2
}

# due NUMBER: the values of the program without a loss, in $dir/due.NUMBER.
due()
{
	[ ! -e "$dir/due.$1" ] || return 0
	case $program in
	tests/oracle*) echo 'all equal to the oracle' > "$dir/due.$1" ;;
	*) $program > "$dir/all"; values "$dir/all" > "$dir/due.$1" ;;
	esac
	[ -s "$dir/due.$1" ]
}

# Waits until ranks may be killed: before, a death ends the job.
await_start()
{
	tries=0
	until grep -q 'all ranks have joined' "$dir/err"; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] || return 1
		sleep 0.05
	done
}

# kill_ranks VICTIM SECONDS...: kills each after the time since the one before. One that has been
# started again may not run yet, or not any more. The victim join: a rank is added, if there is room
# for one.
kill_ranks()
{
	while [ $# -gt 1 ]; do
		sleep "$2"
		if [ "$1" = join ]; then
			./kddsrun --join $job 2> "$dir/refused" || # the job may be over
				grep -qE 'has room for 0|is ending|is not a kddsrun|has ended' \
					"$dir/refused" ||
				bad "a rank cannot join: $(cat "$dir/refused")"
			shift 2
			continue
		fi
		pid=$(sed -n "s/.*rank $1 runs on host .* as process //p" "$dir/err" | tail -n 1)
		# its number may be another process's by now
		name=$(cat "/proc/$pid/comm" 2> /dev/null || :)
		case ${program%% *} in
		*/$name) ;;
		*) pid=none ;;
		esac
		if kill -9 "$pid" 2> /dev/null; then
			kills=$((kills + 1))
		elif [ "$starts" = 0 ]; then
			break
		fi
		shift 2
	done
}

# left: prints what the job has left behind.
left()
{
	for pid in $pids; do
		! kill -0 "$pid" 2> /dev/null || echo "process $pid"
		ls /dev/shm /tmp | grep -vxF -f "$dir/before" | grep -v '^tsan\.rodata\.' |
			grep "\(^\|[^0-9]\)$pid\([^0-9]\|$\)" || :
	done
	ls "$dir/tmp"
}

# job NUMBER RANKS PROVIDER STARTS (VICTIM SECONDS)...
job()
{
	number=$1 ranks=$2 provider=$3 starts=$4
	shift 4
	program=$(echo "$programs" | sed -n "${number}s/SEED/$seed/; ${number}p")
	due "$number"
	jobs=$((jobs + 1))
	: > "$dir/err" # of the job before
	spare=
	[ "$starts" = 0 ] || spare="--spare localhost:$((starts - starts / 2))"
	TMPDIR=$dir/tmp KDDS_WORKERS=1 KDDS_DIRECT=$((jobs % 2)) ./kddsrun --timeout 240 -v \
		-n "$ranks" --survive $spare --respawn $((starts / 2)) --provider "$provider" \
		$program > "$dir/out" 2> "$dir/err" < /dev/null &
	job=$!
	await_start && kill_ranks "$@"
	status=0
	wait $job || status=$?
	sed -n 's/.* is queued again, \(.*\) ms after its end/\1/p' "$dir/err" >> "$dir/queued"
	values "$dir/out" > "$dir/is"
	joined=$((joined + $(grep -c 'has joined the job in place of' "$dir/err" || :)))
	pids=$(sed -n 's/.* runs on host .* as process //p' "$dir/err")
	if [ $status != 0 ]; then
		bad "status $status"
	elif ! cmp -s "$dir/is" "$dir/due.$number"; then
		bad 'wrong values'
	elif [ -n "$(left)" ]; then
		bad "left behind: $(left)"
	fi
}

while [ $kills -lt "$most" ]; do
	seed=$((seed + 1))
	# half of the jobs lose ranks fast
	job $(awk -v s=$seed -v programs=$(echo "$programs" | wc -l) 'BEGIN {
		srand(s)
		ranks = 2 + int(rand() * 7)
		slow = rand() < .5 ? .1 : .8
		starts = rand() < .5 ? 0 : 1 + int(rand() * 8)
		split("loop tcp tcp;ofi_rxm", provider)
		printf "%d %d %s %d", 1 + int(rand() * programs), ranks,
			provider[1 + int(rand() * 3)], starts
		for (i = 1; i < ranks; i++)
			at[i] = i
		for (n = ranks - 1; n; n--) {
			i = 1 + int(rand() * n)
			printf " %d %.3f", at[i], rand() < .2 ? 0 : rand() * slow
			at[i] = at[n]
		}
		for (i = 0; i < starts; i++)
			printf " %d %.3f join %.3f", 1 + int(rand() * (ranks - 1)), rand() * slow,
				rand() * slow
	}')
done
sort -n "$dir/queued" | awk '{ ms[NR] = $1 } END {
	if (NR)
		print "queued again within " ms[int((NR + 1) / 2)] " ms (median of " NR "), " ms[NR] \
			" ms at most"
}'
echo "$kills kills, $joined joined again, $jobs jobs, $wrong wrong"
[ $wrong = 0 ]
