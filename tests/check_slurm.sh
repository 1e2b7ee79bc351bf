#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that kddsrun works in a Slurm allocation (tests/lab/slurm.sh) whose node it must not take
# for its own host: srun starts the agent, a job runs, and a job that is cancelled ends with a line
# that says so.
set -eu
run=$PWD/kddsrun probe=$PWD/tests/boot_probe
[ -x "$run" ] && [ -x "$probe" ] || exit 77
if [ "${1-}" != inside ]; then
	unshare --uts true 2> /dev/null || exit 77
	exec sh "${srcdir:-.}/tests/lab/slurm.sh" sh "$0" inside
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

# allocate STATUS ARGUMENTS...: runs kddsrun on a host of another name, in an allocation.
allocate()
{
	expected=$1 status=0
	shift
	timeout -k 5 100 salloc -Q -N 1 -n 4 --job-name kddsrun \
		unshare --uts sh -c 'hostname elsewhere && exec "$@"' sh "$run" "$@" \
		> "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	echo $status | grep -qxE "$expected" || fail "status $status, not $expected"
}

what='a job'
allocate 0 -n 3 "$probe"
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
allocate '1|143' -n 3 sh -c 'echo up; exec sleep 60'
wait
said err '^kddsrun: .* slurmstepd.* CANCELLED AT ' 1
said err '^kddsrun: ' 1
[ $failed = 0 ]
