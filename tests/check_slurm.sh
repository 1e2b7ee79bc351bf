#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that kddsrun works in a Slurm allocation (tests/lab/slurm.sh) whose node it must not take
# for its own host: srun starts the agent, a job runs, and a job that is cancelled ends with a line
# that says so. With --survive a job does not notice that a slurmd is killed, and goes on when a
# node is lost.
set -eu
run=$PWD/kddsrun probe=$PWD/tests/boot_probe oracle=$PWD/tests/oracle
[ -x "$run" ] && [ -x "$probe" ] && [ -x "$oracle" ] || exit 77
if [ "${1-}" != inside ]; then
	unshare --uts true 2> /dev/null || exit 77
	exec sh "${srcdir:-.}/tests/lab/slurm.sh" -N 2 sh "$0" inside
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
unset KDDS_WORKERS KDDS_BIND KDDS_RSH
failed=0

fail()
{
	echo "FAILED: $what: $*"
	sed 's/^/  out: /' "$dir/out" | tail -n 5
	sed 's/^/  err: /' "$dir/err" | tail -n 5
	failed=$((failed + 1))
}

# said FILE PATTERN COUNT: that many lines of out or err must match.
said()
{
	n=$(grep -cE "$2" "$dir/$1" || :)
	[ "$n" = "$3" ] || fail "$n lines of std$1 match '$2', not $3"
}

# allocate NODES STATUS ARGUMENTS...: runs kddsrun on a host of another name, in an allocation.
allocate()
{
	nodes=$1 expected=$2 status=0
	shift 2
	timeout -k 5 100 salloc -Q --no-kill -N $nodes -n 4 --job-name kddsrun \
		unshare --uts sh -c 'hostname elsewhere && exec "$@"' sh "$run" "$@" \
		> "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	echo $status | grep -qxE "$expected" || fail "status $status, not $expected"
}

what='a job'
allocate 1 0 -n 3 "$probe"
said out ', ok$' 3

what='a job that is cancelled'
: > "$dir/out"
(
	for i in $(seq 300); do
		[ "$(grep -c '^up' "$dir/out")" != 3 ] || break
		sleep 0.1
	done
	scancel --name kddsrun
) &
# 143 if a rank has ended before the agent is notified.
allocate 1 '1|143' -n 3 sh -c 'echo up; exec sleep 60'
wait
said err '^kddsrun: .* slurmstepd.* CANCELLED AT ' 1
said err '^kddsrun: ' 1

# agent_of NODE, when all ranks have joined the job: the process of the agent there.
agent_of()
{
	for i in $(seq 300); do
		! grep -q 'all ranks have joined' "$dir/err" || break
		sleep 0.1
	done
	sed -n "s/^kddsrun: host $1 answers: agent \\([0-9]*\\) .*/\\1/p" "$dir/err"
}

# parent PROCESS
parent()
{
	ps -o ppid= -p "$1" | tr -d ' '
}

# while_working SECONDS OPTION...: runs the oracle on both nodes, and $cut AGENT, that of the second
# node, meanwhile.
second=$(hostname -s)-2
while_working()
{
	seconds=$1
	shift
	: > "$dir/err"
	(
		agent=$(agent_of "$second")
		$cut "$agent"
	) &
	allocate 2 0 --verbose --survive -n 4 "$@" "$oracle" -j -s $seconds -n 1
	wait
	said out ', all equal to the oracle$' 1
}

kill_slurmd()
{
	kill -9 $(pgrep -f "slurmd -D -N $second\$")
}

# srun is not told that the agent has ended.
kill_slurmstepd()
{
	kill -9 "$(parent "$(parent "$1")")"
}

what='a slurmstepd killed'
cut=kill_slurmstepd
while_working 10 --heartbeat 3
said err "^kddsrun: host $second: .*: the job goes on without the 2 ranks there" 1
what='a slurmd killed'
cut=kill_slurmd
while_working 4
said err 'the job goes on' 0
[ $failed = 0 ]
