#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves for kddsrun --respawn: a rank that has been killed is started again and takes part in the
# job as before, on this host and on another one, several times; at most as often as allowed; also
# if it is killed again before it has joined. It runs the tasks that were placed on its predecessor;
# another rank may run those that it had stolen. A rank that cannot be started again, or has not
# joined when the job is over, delays nothing. Nothing is left of any job.
set -eu
run=$PWD/kddsrun program=$PWD/tests/respawn
[ -x "$run" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
export TMPDIR="$dir/tmp"
export KDDS_TEST_MARK="check_respawn.$$"
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

# job WHAT STATUS ARGUMENTS...
job()
{
	what=$1 expected=$2 status=0
	shift 2
	timeout -k 5 200 "$run" --survive "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	[ $status = "$expected" ] || fail "status $status, not $expected"
	[ $expected != 0 ] || [ "$(cat "$dir/out")" = done ] || fail 'it has not ended as it should'
	nothing_left
}

# said PATTERN COUNT
said()
{
	n=$(grep -cE "$1" "$dir/err" || :)
	echo "$n" | grep -qx "$2" || fail "$n lines match '$1', not $2"
}

host=$(uname -n)
joined="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) has joined the job in place of process "
lost="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) was killed by signal 9 .*; the job goes on"
export KDDS_WORKERS=1

for provider in tcp loop; do
	job "two ranks, $provider" 0 --respawn 2 --provider $provider -n 2 "$program" 2
	said "$joined" 2
	said "$lost" 2
done
job 'four ranks' 0 --stats --respawn 10 -n 4 "$program" 2
said "$joined" 6
said "$lost" 6
said '^kdds: [0-9]+ ranks joined the running job' 1

for provider in tcp loop; do
	rm -f "$dir/file"
	job "placed tasks, $provider" 0 --respawn 1 --provider $provider -n 2 "$program" \
		placed "$dir/file"
	said "$joined" 1
	rm -f "$dir/file"
	job "stolen tasks, $provider" 0 --provider $provider -n 3 "$program" stolen "$dir/file"
	said "$lost" 1
done

# A remote shell that is none.
cat > "$dir/rsh" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$dir/rsh"
# The ranks need an address that other hosts could reach.
if ip -o address show scope global 2> /dev/null | grep -q .; then
	job 'each rank on a host of its own' 0 --respawn 4 --rsh "$dir/rsh" \
		--hosts localhost,a,b --env KDDS_TEST_MARK "$program" 2
	said "$joined" 4
fi

job 'no more than allowed' 0 --respawn 1 -n 3 "$program" 1 1
said "$joined" 1
said "$lost" 2
said '^kddsrun: rank 2 is not restarted: --respawn 1 allows no more$' 1
job 'not at all' 0 --respawn 0 -n 3 "$program" 1 0
said "$joined" 0
said "$lost" 2

# The n-th start of rank 1 is special.
cat > "$dir/start" <<'END'
#!/bin/sh
# start DIRECTORY N COMMAND PROGRAM ARGUMENT...
dir=$1 special=$2 command=$3
shift 3
if [ "$KDDS_RANK" = 1 ]; then
	echo >> "$dir/starts"
	[ "$(wc -l < "$dir/starts")" != "$special" ] || eval "$command"
fi
exec "$@"
END
chmod +x "$dir/start"

rm -f "$dir/starts"
job 'killed before it joins' 0 --respawn 3 -n 3 "$dir/start" "$dir" 2 'kill -9 $$' "$program" 1
said "$joined" 2
said 'rank 1 .* was killed by signal 9 .* before it could join the job$' 1

rm -f "$dir/starts"
job 'killed behind a shell before it joins' 0 --respawn 3 -n 3 \
	"$dir/start" "$dir" 2 'exit 137' "$program" 1
said "$joined" 2
said 'rank 1 .* exited with status 137 before it could join the job$' 1

rm -f "$dir/starts"
job 'not a rank of this version' 0 --respawn 1 -n 2 "$dir/start" "$dir" 2 \
	'bash -c "echo in another protocol >&${KDDS_CONTROL_FD%%:*}"; exec sleep 100' \
	"$program" 1 0
said "$joined" 0
said 'rank 1 .*: the job goes on without it$' '[01]' # or the job is over before

rm -f "$dir/starts"
job 'exits before it joins' 0 --respawn 3 -n 2 "$dir/start" "$dir" 2 'exit 3' "$program" 1 0
said "$joined" 0
[ -s "$dir/starts" ] || fail 'it was not started again'
# or the job is over before
said 'rank 1 .* exited with status 3 before it could join the job$' '[01]'

cp "$program" "$dir/program" 2> /dev/null
rm -f "$dir/starts"
begin=$(date +%s)
job 'not there when the job is over' 0 --respawn 1 -n 2 \
	"$dir/start" "$dir" 2 'exec sleep 100' "$program" 1 0
said "$joined" 0
said "$lost" 1
[ $(($(date +%s) - begin)) -lt 90 ] || fail 'the job has waited for it'

rm -f "$dir/starts"
job 'another program' 0 --respawn 1 -n 2 \
	"$dir/start" "$dir" 2 "exec '$PWD/tests/ranks'" "$program" 1 0

what='usage'
for bad in '--respawn 2' '--survive --respawn x' '--survive --respawn -1' \
	'--survive --respawn 4096'; do
	status=0
	"$run" $bad -n 2 true > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "$bad: status $status"
	[ "$(wc -l < "$dir/err")" = 1 ] || fail "$bad: not one line"
	said '^kddsrun: --respawn .*see kddsrun --help' 1
done

[ $failed = 0 ] || exit 1
echo 'respawn: ranks come back'
