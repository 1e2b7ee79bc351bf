#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves for kddsrun --join: ranks join a running job, on this host and on others, up to its
# capacity, and take the place of those that have left; 2, 8, 3 and 6 ranks during one job. For
# --spare: ranks on other hosts replace those that are killed, leave, or were on a host that is
# lost; not those that kddsrun --leave has told to leave; each spare slot once. A spare host that
# cannot be reached is passed over, and one that does not answer delays nothing when the job is
# over. No rank is started on a host that is to be given back. The program may be a script that runs
# several programs, and a rank may end between two of them. Requests that cannot be granted get a
# line. Nothing is left of any job.
set -eu
run=$PWD/kddsrun program=$PWD/tests/join
[ -x "$run" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
export TMPDIR="$dir/tmp"
export KDDS_TEST_MARK="check_join.$$"
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

# begin WHAT ARGUMENTS...: starts the job $job.
begin()
{
	what=$1
	shift
	: > "$dir/out"
	: > "$dir/err"
	"$run" --survive --timeout 200 "$@" > "$dir/out" 2> "$dir/err" < /dev/null &
	job=$!
}

# reached TEXT: waits for the last line of the job.
reached()
{
	for i in $(seq 1000); do
		[ "$(tail -n 1 "$dir/out")" != "$1" ] || return 0
		kill -0 $job 2> /dev/null || break
		sleep 0.1
	done
	fail "it has not come to $1"
}

# done_after LAST
done_after()
{
	status=0
	wait $job || status=$?
	[ $status = 0 ] || fail "status $status"
	[ "$(tail -n 1 "$dir/out")" = "$1" ] || fail "it has not come to $1"
	nothing_left
}

# job WHAT ARGUMENTS...: the last one is also the last line of the job.
job()
{
	begin "$@"
	shift $(($# - 1))
	done_after "$1"
}

# said PATTERN COUNT
said()
{
	n=$(grep -cE "$1" "$dir/err" || :)
	[ "$n" = "$2" ] || fail "$n lines match '$1', not $2"
}

# refused PATTERN ARGUMENTS...
refused()
{
	pattern=$1 status=0
	shift
	"$run" "$@" > "$dir/answer" 2>&1 || status=$?
	[ $status != 0 ] || fail "kddsrun $*: status 0"
	[ "$(wc -l < "$dir/answer")" = 1 ] && grep -qE "^kddsrun: $pattern" "$dir/answer" ||
		fail "kddsrun $*: $(cat "$dir/answer")"
}

joined="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) has joined the job"
replaced="$joined in place of process [0-9]+$"
gone="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) has left the job; the job goes on"
killed="^kddsrun: rank [0-9]+ \(host .*, process [0-9]+\) was killed by signal 9 .*; the job goes on"
export KDDS_WORKERS=1
begin 'one rank, then two, in a job of this host' -n 2 "$program" 2 'die 1' 1 2
reached 1
refused '--join [0-9]+: the job takes no connections from other hosts such as a: ' \
	--join $job --hosts a
"$run" --join $job || fail 'cannot join'
done_after 2
said "$replaced" 1

for provider in tcp loop; do
	job "spare slots of this host, $provider" --spare localhost:3 --provider $provider -n 3 \
		"$program" 3 'die 1' 3 'die 2' 3 'leave 1' 3
	said "$replaced" 3
	said "$killed" 2
	said "$gone" 1
done

for script in '"$@" 3 "die 1" 3 && "$@" 3 "die 2" 2 && "$@" 2' \
	'"$@" 3 "leave 1" 3; "$@" 3 "die 2" 2; "$@" 2'; do
	begin "several programs, $script" --spare localhost -n 3 sh -c "$script" sh "$program"
	done_after 2
	said "$joined" 1
	said "$gone" "$(echo "$script" | grep -c leave)"
	said '^kddsrun: rank 2 is not replaced: the first program of the job is over$' 1
done
begin 'a program that follows a dead one' -n 3 sh -c '"$@" 3 "die 1" 2; "$@" 2' sh "$program"
done_after 2
said 'runs another program, although the one before has ended without kdds_finalize: killing it$' 1
said "$killed" 1
job 'two programs' -n 3 sh -c '"$0" 20 > /dev/null && exec "$@"' "$PWD/examples/fib" "$program" 3
for end in 'kill -9 $$' 'exit 0'; do
	job "a rank ends between two programs, $end" -n 3 \
		sh -c '"$0" 20 > /dev/null; [ $KDDS_RANK != 1 ] || '"$end"'; exec "$@"' \
		"$PWD/examples/fib" "$program" 2
	said '^kddsrun: rank 1 .* after a program: the job goes on without it$' 1
done
begin 'loop, with room for more' --provider loop --capacity 3 -n 2 "$program" 2 3
reached 2
refused '--join [0-9]+: the job takes no connections from other hosts such as a: ' \
	--join $job --hosts a
"$run" --join $job || fail 'cannot join'
done_after 3

what='usage'
refused '--spare: without --survive ' --spare a true
refused '--capacity 3: without --survive ' --capacity 3 true
refused '--capacity 1: the job begins with 2 ranks ' --survive -n 2 --capacity 1 true
refused '--capacity x: ' --survive --capacity x true
refused '--spare a:x: ' --survive --spare a:x true
refused '--join x: ' --join x
refused '--join 1: the job has its program' --join 1 true
refused '--join 1: --respawn belongs to the command that starts the job' --join 1 --respawn 3
refused '--leave 1:1: -n belongs to the command that starts the job' --leave 1:1 -n 3
refused "--join $job: process $job is not a kddsrun --survive on this host$" --join $job

# For what follows, ranks need an address that other hosts could reach.
if ! ip -o address show scope global 2> /dev/null | grep -q .; then
	[ $failed = 0 ] || exit 1
	echo 'join: ranks join, and are replaced, on this host; there is no network to others'
	exit 0
fi

begin '2, 8, 3 and 6 ranks' --stats -n 2 --capacity 8 --spare localhost:9 "$program" 2 8 3 6
reached 2
refused '--join [0-9]+: the job has room for 6 more ranks, not for 7' --join $job -n 7
"$run" --join $job --hosts "localhost:4" -n 4 || fail 'cannot join'
"$run" --join $job -n 2 || fail 'cannot join'
reached 8
refused '--join [0-9]+: the job has room for 0 more ranks, not for 1' --join $job
for r in 1 2 4 6 7; do
	"$run" --leave $job:$r || fail "rank $r cannot leave"
done
reached 3
"$run" --join $job -n 3 || fail 'cannot join'
done_after 6
said "$joined" 9
said "$replaced" 3
said "$gone" 5
said '^kdds: 9 ranks joined the running job$' 1
said '^kdds: 5 ranks died or left; ' 1

# A remote shell that is none. Host slow never answers, and nobody can be reached on host none.
cat > "$dir/rsh" <<'END'
#!/bin/sh
case $1 in
none*) echo 'no such host' >&2; exit 255 ;;
slow) exec sleep 1000 ;;
esac
shift
exec sh -c "$*"
END
chmod +x "$dir/rsh"
far="--rsh $dir/rsh --env KDDS_TEST_MARK"

job 'spare hosts' $far --hosts localhost,a,b --spare none,c:2,d:2 "$program" \
	3 'die 1' 3 'die 2' 3 'host 1' 3 'die 1' 2
said "$replaced" 4
said '^kddsrun: host none: cannot start the agent: .* 255: no such host$' 1
said '^kddsrun: host c: its agent is lost: .*: the job goes on without the 2 ranks there$' 1
job 'an agent that ends its ranks' $far --hosts localhost,a:2 --spare b:2 "$program" 3 'hangup 1' 3
said '^kddsrun: host a: its agent has ended the ranks there: it got signal 1 .*: the job goes on' 1
said "^kddsrun: rank [12] \(host b, process [0-9]+\) has joined the job in place of" 2
job 'a host that is given back' $far --hosts localhost,a --respawn 9 --spare b:9,c "$program" \
	2 'host 1' 2 'preempt 1' 2
said '\(host b, process [0-9]+\) has left the job' 1
said "^kddsrun: rank 1 \(host c, process [0-9]+\) has joined the job in place of" 1
job 'restarted before it is replaced' $far --hosts localhost,a --respawn 1 --spare b "$program" \
	2 'die 1' 2 'die 1' 2 'die 1' 1
said "rank 1 \(host a, .*$replaced" 0
said "^kddsrun: rank 1 \(host a, process [0-9]+\) has joined the job in place of" 1
said "^kddsrun: rank 1 \(host b, process [0-9]+\) has joined the job in place of" 1
said '^kddsrun: rank 1 is not replaced: no slot of --spare is left$' 1

begin 'other hosts join' $far -n 1 --capacity 4 "$program" 1 4 'host 2' 2 3
reached 1
"$run" --join $job --hosts a,b:2 || fail 'cannot join'
refused "--join [0-9]+: the job has room for 0 more ranks" --join $job --hosts none
reached 2
"$run" --join $job --hosts none,c || fail 'cannot join'
done_after 3
said "$joined" 4
said '^kddsrun: host none: cannot start the agent: ' 1

# more hosts than are started at one time
begin 'many hosts that cannot be reached' $far -n 1 --capacity 99 "$program" 1 2
reached 1
"$run" --join $job --hosts "$(seq -s, -f none%g 70),c" || fail 'cannot join'
done_after 2
said '^kddsrun: host none[0-9]+: cannot start the agent: ' 70

begin 'labels' $far --label --hosts localhost,a --spare b sh -c \
	'[ "$KDDS_RANK" = 0 ] || printf unfinished; exec "$@"' sh "$program" 2 'host 1' 2
status=0
wait $job || status=$?
[ $status = 0 ] || fail "status $status"
nothing_left
[ "$(grep -cx '1: unfinished' "$dir/out")" = 2 ] || fail 'lines of two processes are one'

begin 'kddsrun ends while a request waits' -n 2 "$program" 2 3
reached 2
kill -STOP $job
(
	sleep 1
	kill -KILL $job
) &
refused "--join $job: process $job has ended, and with it the job$" --join $job
wait
nothing_left

start=$(date +%s)
job 'a spare host that does not answer' $far --hosts localhost,a --spare slow "$program" 2 'die 1' 1
[ $(($(date +%s) - start)) -lt 50 ] || fail 'the job has waited for it'
said 'slow' 0

[ $failed = 0 ] || exit 1
echo 'join: ranks join, and are replaced, on any host'
