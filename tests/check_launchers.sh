#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that ranks run under the launchers of others.
#
# check_launchers.sh [-l LAUNCHERS] [PROGRAM ARGUMENTS...]
#
# Runs with 1, 2 and 5 ranks under each launcher that is installed: mpirun of Open MPI,
# mpiexec.hydra of MPICH, and srun of a Slurm of our own, with PMIx and with PMI-1. LAUNCHERS is a
# list of mpirun, hydra, srun-pmix and srun-pmi2; the status is 77 if none of them is installed.
#
# With PROGRAM: it must end with status 0, and its first line of output must be the same as without
# a launcher. Without PROGRAM, pmi_probe runs: every rank must get what each rank has published.
# When a rank is killed, exits with status 3, or leaves with status 0, at work or while the others
# are in a fence, the job must end, with a status other than 0. When the launcher is killed the
# ranks must end. Nothing may be left behind.
set -eu
srcdir=${srcdir:-.}
self=$0
ranks='1 2 5'
limit=100 # seconds for a job

launchers='mpirun hydra srun-pmix srun-pmi2'
if [ "${1-}" = -l ]; then
	launchers=$2
	shift 2
fi

dir=$(mktemp -d)
job=
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$dir/tmp"
failed=0 ran=0

fail()
{
	echo "FAILED: $*"
	sed 's/^/    /' "$dir/out" "$dir/err" 2> /dev/null | head -n 40
	failed=$((failed + 1))
}

# Cleans up, however this script ends. Jobs run in the background, so that a signal is handled at
# once.
stop()
{
	result=$?
	trap - EXIT HUP INT TERM
	if [ -n "$job" ]; then
		kill "$job" 2> /dev/null || :
		wait "$job" 2> /dev/null || :
	fi
	for pid in $(left_over); do
		kill -KILL "$pid" 2> /dev/null || :
	done
	rm -rf "$dir"
	exit $result
}

# launch LAUNCHER N COMMAND...: runs in the background, with our mark in the environment of all its
# processes. Writes the pid of the launcher to a file, and its status when it has ended by itself.
# -k: mpirun has been seen to ignore TERM.
launch()
{
	launcher=$1 n=$2
	shift 2
	case $launcher in
	mpirun) set -- mpirun.openmpi --oversubscribe -n "$n" "$@" ;;
	hydra) set -- mpiexec.hydra -n "$n" "$@" ;;
	srun-*) set -- srun --quiet --mpi="${launcher#srun-}" -n "$n" "$@" ;;
	esac
	rm -f "$dir/pid" "$dir/status"
	env KDDS_MARK="$dir" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		TMPDIR="$dir/tmp" timeout -k 10 $limit \
		sh -c '"$@" & echo $! > "$0/pid"; wait $!; echo $? > "$0/status"' "$dir" "$@" \
		< /dev/null > "$dir/out" 2> "$dir/err" &
	job=$!
}

# finish: sets status to the launcher's, or to "none" if it did not end in time.
finish()
{
	wait "$job" || :
	job=
	status=none
	[ ! -e "$dir/status" ] || status=$(cat "$dir/status")
}

# The processes of jobs that still exist. A zombie's environment is empty.
left_over()
{
	grep -lszFx "KDDS_MARK=$dir" /proc/[0-9]*/environ | tr -cd '0-9\n' || :
}

# Daemons may take a moment longer than the launcher. What remains after that is killed here.
nothing_left()
{
	tries=200
	while [ $tries -gt 0 ] && [ -n "$(left_over)" ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	pids=$(left_over)
	[ -n "$pids" ] || return 0
	fail "$1: left behind: $(for pid in $pids; do tr '\0' ' ' < "/proc/$pid/cmdline"; done)"
	for pid in $pids; do
		kill -KILL "$pid" 2> /dev/null || :
	done
}

installed()
{
	case $1 in
	mpirun) command -v mpirun.openmpi ;;
	hydra) command -v mpiexec.hydra ;;
	srun-*) [ -n "${SLURM_CONF-}" ] && srun --mpi=list 2>&1 | tr -s ' :\t' '\n' |
		grep -qx "${1#srun-}" ;;
	*)
		echo "check_launchers.sh: no such launcher: $1" >&2
		exit 2
		;;
	esac > /dev/null
}

# well EXPECTED LAUNCHER N COMMAND...: the job must succeed, and print EXPECTED first.
well()
{
	expected=$1
	shift
	what="$1, $2 ranks: $(shift 2 && echo "${*##*/}")"
	launch "$@"
	finish
	if [ "$status" != 0 ] || [ "$(head -n 1 "$dir/out")" != "$expected" ]; then
		fail "$what: status $status, expected 0 and '$expected'"
	fi
	nothing_left "$what"
}

# ill LAUNCHER N COMMAND...: a rank fails, and so must the job, without a wrong value (4) or a rank
# that was not ended (5).
ill()
{
	what="$1, $2 ranks: $(shift 2 && echo "${*##*/}")"
	launch "$@"
	finish
	case $status in
	none) fail "$what: not ended after $limit s" ;;
	0)
		# If the first rank to end had status 0, Hydra forgets that it has killed the
		# others.
		case $launcher-$* in
		hydra-*' leave'*) ;;
		*) fail "$what: status 0" ;;
		esac
		;;
	esac
	! grep -q 'Sanitizer:' "$dir/err" || fail "$what: a sanitizer complains"
	! grep -q ' ranks$' "$dir/out" || fail "$what: ended as if it had succeeded"
	! grep -Eq '^pmi_probe: rank [0-9]*: nobody' "$dir/err" ||
		fail "$what: some ranks were not notified"
	nothing_left "$what"
}

# killed LAUNCHER: the launcher is killed while three ranks are at work.
killed()
{
	what="$1 is killed"
	launch "$1" 3 "$probe" wait
	tries=600
	while [ $tries -gt 0 ] && kill -0 "$job" 2> /dev/null &&
		[ "$(cat "$dir/out")" != waiting ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	if [ "$(cat "$dir/out")" = waiting ]; then
		kill -KILL "$(cat "$dir/pid")"
	else
		fail "$what: the ranks did not start"
		kill "$job" 2> /dev/null || :
	fi
	finish
	nothing_left "$what"
}

probe=$(pwd)/tests/pmi_probe
expected=
if [ $# -gt 0 ]; then
	program=$1
	shift
	case $program in
	*/*) program=$(cd "$(dirname "$program")" && pwd)/${program##*/} ;;
	esac
	expected=$("$program" "$@" | head -n 1)
elif [ ! -x "$probe" ]; then
	echo 'not built: tests/pmi_probe'
	exit 77
fi

check()
{
	launcher=$1
	shift
	for n in $ranks; do
		if [ -n "${program-}" ]; then
			well "$expected" "$launcher" "$n" "$program" "$@"
			continue
		fi
		well "$n ranks" "$launcher" "$n" "$probe"
	done
	if [ -z "${program-}" ]; then
		ill "$launcher" 2 "$probe" kill 1
		ill "$launcher" 5 "$probe" kill 0
		for how in kill exit leave kill-fence exit-fence leave-fence; do
			ill "$launcher" 5 "$probe" $how 3
		done
		killed "$launcher"
	fi
	ran=$((ran + 1))
	echo "ran: $launcher"
}

slurm=
for launcher in $launchers; do
	case $launcher in
	srun-*) if [ -z "${KDDS_SLURM-}" ]; then
		slurm="$slurm $launcher"
		continue
	fi ;;
	esac
	if installed "$launcher"; then
		check "$launcher" "$@"
	else
		echo "not installed: $launcher"
	fi
done
if [ -n "$slurm" ]; then
	status=0
	KDDS_SLURM=1 sh "$srcdir/tests/lab/slurm.sh" sh "$self" -l "${slurm# }" \
		${program+"$program"} "$@" < /dev/null &
	job=$!
	wait "$job" || status=$?
	job=
	case $status in
	0) ran=$((ran + 1)) ;;
	77) ;;
	*) failed=$((failed + 1)) ;;
	esac
fi
[ $failed = 0 ] || exit 1
[ $ran != 0 ] || exit 77
