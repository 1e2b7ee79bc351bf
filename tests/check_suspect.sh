#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves for kddsrun --survive: of two ranks that cannot reach each other, one is killed, never rank
# 0, nor one on its host if the other is elsewhere; one that leaves rather than one that stays; and
# otherwise the one whose host more hosts cannot reach. Nothing is restarted on such a host. If the
# agent does not kill the rank, the host is given up. A suspicion concerns processes, not those that
# follow them. A rank that suspects what does not exist is killed, and the job goes on.
set -eu
run=$PWD/kddsrun probe=$PWD/tests/boot_probe
[ -x "$run" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
export TMPDIR="$dir/tmp" KDDS_TEST_MARK="check_suspect.$$"
unset KDDS_WORKERS KDDS_BIND KDDS_RSH SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE
# A remote shell that is none.
cat > "$dir/rsh" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$dir/rsh"
failed=0

fail()
{
	echo "FAILED: $what: $*"
	sed 's/^/  err: /' "$dir/err" | tail -n 20
	failed=$((failed + 1))
}

begin()
{
	what=$*
	"$run" --survive --verbose --timeout 100 --rsh "$dir/rsh" --env KDDS_TEST_MARK "$@" \
		> "$dir/out" 2> "$dir/err" < /dev/null &
	job=$!
}

# end STATUS RANKS: kddsrun must have killed these ranks.
end()
{
	status=0
	wait $job || status=$?
	[ $status = "$1" ] || fail "status $status, not $1"
	killed=$(sed -n 's/^kddsrun: rank .* cannot reach rank .*: a test: killing rank //p' \
		"$dir/err" | sort | tr '\n' ' ')
	[ "$killed" = "${2:+$2 }" ] || fail "killed: $killed"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		left=$("$probe" --marked "KDDS_TEST_MARK=$KDDS_TEST_MARK")
		[ -n "$left" ] || break
		sleep 0.3
	done
	for pid in $left; do
		fail "process $pid is left"
		kill -9 "$pid" 2> /dev/null || :
	done
}

# job STATUS RANKS ARGUMENTS...
job()
{
	status=$1 ranks=$2
	shift 2
	begin "$@"
	end "$status" "$ranks"
}

# said PATTERN COUNT
said()
{
	n=$(grep -cE "$1" "$dir/err" || :)
	[ "$n" = "$2" ] || fail "$n lines match '$1', not $2"
}

# Ranks that are to be killed wait for that, and the others in a fence until they are lost.
job 0 2 -n 3 "$probe" '3:0:suspect:2.0' '3:2:wait' '3:*:fence'
said 'rank 2 .* was killed by signal 9 .*; the job goes on' 1
job 0 2 -n 3 "$probe" '3:2:suspect:0.0' '3:2:wait' '3:*:fence'
job 0 '' -n 3 "$probe" '3:0:suspect:2.1' '3:*:sleep:2' # it has not been restarted
job 0 2 -n 3 "$probe" '3:1:suspect:2.0' '3:2:wait' '3:*:fence'

job 0 '3 4' --respawn 4 --hosts a:3,b:3 "$probe" '3:1:suspect:3.0' '3:4:suspect:2.0' \
	'3:3:wait' '3:4:wait' '3:*:fence'
said 'rank [34] is not restarted: ranks on host b cannot be reached$' 2
job 0 '1 2' --hosts a:1,b:2,c:1,d:1 "$probe" '3:1:suspect:3.0' '3:4:suspect:2.0' '3:1:wait' \
	'3:2:wait' '3:*:fence'
job 0 2 --spare b,c -n 3 --hosts a:2,b "$probe" '3:0:suspect:2.0' '3:*:sleep:10'
said 'rank 2 .host c.*has joined the job' 1

begin --grace 50 -n 4 "$probe" '3:1:sleep:5' '3:1:suspect:2.0' '3:1:wait' '3:*:fence'
for i in $(seq 100); do
	"$run" --leave $job:1 2> "$dir/leave" && break
	sleep 0.1
done
end 0 1

begin --heartbeat 0 --hosts a:2,b:2 "$probe" '3:3:run:kill -STOP $(ps -o ppid= -p $PPID)' \
	'3:0:sleep:3' '3:0:suspect:2.0' '3:2:wait' '3:3:wait' '3:*:fence'
end 0 2
said 'host b: rank 2 was to be killed, and has not ended .* without the 2 ranks there$' 1

job 0 '' -n 4 sh -c '"$0" 3:1:suspect:2.0 && exec "$0" "3:*:sleep:12"' "$probe"
for bad in 99.0 3.0; do
	job 0 '' --hosts a:2,b:3 "$probe" "3:3:suspect:$bad" '3:3:wait' '3:*:fence'
	said 'rank 3 .* something that is no message: killing it$' 1
	said 'rank 3 .* was killed by signal 9 .*; the job goes on' 1
done
[ $failed = 0 ]
