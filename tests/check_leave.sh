#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves: in a job of kddsrun --survive a rank that gets SIGUSR1 or SIGTERM leaves with status 0, on
# this host and on another one. What it has begun is complete, no task is run twice, and it is not
# restarted. Rank 0 refuses. A rank that is still there after --grace is killed, and what it ran is
# run again. Nothing is left of any job.
set -eu
run=$PWD/kddsrun program=$PWD/tests/leave
[ -x "$run" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
export TMPDIR="$dir/tmp"
export KDDS_TEST_MARK="check_leave.$$"
failed=0
: > "$dir/out"
: > "$dir/err"

fail()
{
	echo "FAILED: $what: $*"
	sed 's/^/  out: /' "$dir/out" | tail -n 5
	sed 's/^/  err: /' "$dir/err" | tail -n 20
	failed=$((failed + 1))
}

nothing_left()
{
	for i in 1 2 3 4 5 6 7 8 9 10; do
		left=$(tests/boot_probe --marked "KDDS_TEST_MARK=$KDDS_TEST_MARK")
		[ -n "$left" ] || break
		sleep 0.3
	done
	for pid in $left; do
		fail "process $pid is left"
		kill -9 "$pid" 2> /dev/null || :
	done
	left=$(ls -A "$dir/tmp" | grep -v '^tsan\.rodata\.' || :)
	[ -z "$left" ] || fail "files are left: $left"
}

# job WHAT ARGUMENTS...
job()
{
	what=$1 status=0
	shift
	rm -f "$dir/bodies"
	timeout -k 5 200 "$run" --survive "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	[ $status = 0 ] || fail "status $status"
	[ "$(cat "$dir/out")" = done ] || fail 'it has not ended as it should'
	nothing_left
}

# said PATTERN COUNT
said()
{
	n=$(grep -cE "$1" "$dir/err" || :)
	[ "$n" = "$2" ] || fail "$n lines match '$1', not $2"
}

gone="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) has left the job; the job goes on"
export KDDS_WORKERS=1

for provider in tcp loop; do
	job "two ranks, $provider" --provider $provider -n 2 "$program" "$dir/bodies" 10 1
	said "$gone" 1
done
for workers in 1 3; do
	job "four ranks, $workers workers" --workers $workers --stats -n 4 \
		"$program" "$dir/bodies" 10 2 1 3
	said "$gone" 3
	said '^kdds: [23] ranks died or left; ' 1
done
job 'SIGTERM' -n 3 "$program" "$dir/bodies" 15 2 1
said "$gone" 2
job 'not restarted' --respawn 5 -n 3 "$program" "$dir/bodies" 10 1 2
said "$gone" 2
said 'has joined the job' 0
job 'rank 0' -n 2 "$program" "$dir/bodies" 10 0
said "$gone" 0
said '^kdds: rank 0 cannot leave the job, and goes on' 1

export KDDS_TRACE="$dir/trace"
job 'traces' -n 3 "$program" "$dir/bodies" 10 1
said "$gone" 1
unset KDDS_TRACE
./kdds-trace "$dir"/trace.? > "$dir/summary" 2>&1 || fail "$(cat "$dir/summary")"
grep -q '^3 of 3 ranks' "$dir/summary" || fail "$(cat "$dir/summary")"

job 'grace' --stats --grace 0.3 -n 3 "$program" stuck 10 1
said "$gone" 0
said '^kddsrun: rank 1 .* has not left the job within 0.3 s \(--grace\): killing it$' 1
said '^kddsrun: rank 1 .* was killed by signal 9 .*; the job goes on' 1
said '^kdds: 1 rank died or left; [1-9][0-9]* of the tasks that they had were run again' 1

what='a stopped rank' status=0 pid=
"$run" --survive --verbose --grace 0.3 --timeout 200 -n 3 "$program" stuck 0 1 > "$dir/out" \
	2> "$dir/err" < /dev/null &
job=$!
for i in $(seq 300); do
	pid=$(sed -n 's/^kddsrun: rank 1 runs on host .* as process \([0-9]*\)$/\1/p' "$dir/err")
	[ -z "$pid" ] || ! grep -q 'all ranks have joined' "$dir/err" || break
	sleep 0.1
done
kill -STOP "$pid"
"$run" --leave $job:1 || fail 'the rank cannot be told to leave'
wait $job || status=$?
[ $status = 0 ] || fail "status $status"
said '^kddsrun: rank 1 .* has not left the job within 0.3 s \(--grace\): killing it$' 1
nothing_left

# A remote shell that is none.
cat > "$dir/rsh" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$dir/rsh"
# The ranks need an address that other hosts could reach.
if ip -o address show scope global 2> /dev/null | grep -q .; then
	job 'each rank on a host of its own' --rsh "$dir/rsh" --hosts localhost,a,b \
		--env KDDS_TEST_MARK "$program" "$dir/bodies" 10 2 1
	said "$gone" 2
	job 'SIGTERM to an agent' --rsh "$dir/rsh" --hosts localhost,a,b \
		--env KDDS_TEST_MARK "$program" "$dir/bodies" -15 2 1
	said "$gone" 2
fi

# kddsrun --leave: as soon as the ranks have joined, rank 1 is told to leave.
what='--leave' status=0
rm -f "$dir/bodies"
"$run" --survive --timeout 100 -n 3 "$program" "$dir/bodies" 0 1 \
	> "$dir/out" 2> "$dir/err" < /dev/null &
job=$!
tries=0
for bad in 0 3; do
	until "$run" --leave $job:$bad 2> "$dir/leave" ||
		grep -q "^kddsrun: --leave $job:$bad: " "$dir/leave"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || break
		sleep 0.1
	done
	[ -s "$dir/leave" ] || fail "rank $bad may leave"
done
until "$run" --leave $job:1 2> "$dir/leave"; do
	tries=$((tries + 1))
	[ $tries -lt 400 ] || break
	sleep 0.1
done
wait $job || status=$?
[ $status = 0 ] || fail "status $status"
[ "$(cat "$dir/out")" = done ] || fail 'it has not ended as it should'
said "$gone" 1
nothing_left
"$run" --leave $job:1 2> "$dir/err" && fail 'a job that is over may be told'
said "^kddsrun: --leave $job:1: process $job is not a kddsrun --survive on this host$" 1
what='--leave by another user' status=0
# by_other ARGUMENTS...: runs kddsrun as a user who may not be able to reach it.
by_other()
{
	(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups "$run" "$@")
}
if [ "$(id -u)" = 0 ] && by_other --version > /dev/null 2>&1; then
	"$run" --survive -n 2 sleep 60 &
	job=$!
	until grep -q "@kddsrun.$job\$" /proc/net/unix; do
		sleep 0.1
		tries=$((tries + 1))
		[ $tries -lt 800 ] || break
	done
	! by_other --leave $job:1 2> "$dir/err" || fail 'another user may tell a rank to leave'
	said "^kddsrun: --leave $job:1: only its user and root may request that$" 1
	kill $job
	wait $job || :
	nothing_left
fi
for bad in x 1 1:x 1:2:3; do
	status=0
	"$run" --leave "$bad" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "--leave $bad: status $status"
	said '^kddsrun: --leave .*see kddsrun --help' 1
done

what='usage'
for bad in '--grace 2' '--survive --grace x' '--survive --grace 0'; do
	status=0
	"$run" $bad -n 2 true > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "$bad: status $status"
	[ "$(wc -l < "$dir/err")" = 1 ] || fail "$bad: not one line"
	said '^kddsrun: --grace .*see kddsrun --help' 1
done

[ $failed = 0 ] || exit 1
echo 'leave: ranks leave, and nothing is lost'
