#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves for kddsrun on one host, and on hosts simulated by a fake remote shell: its exit statuses,
# one clear line for every error, input and output, and signals; and that no process of a job is
# left, however the job ended.
set -eu
[ "${SANITIZE-}" != thread ] || exit 77 # kddsrun has one thread
run=$PWD/kddsrun probe=$PWD/tests/boot_probe
[ -x "$run" ] && [ -x "$probe" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
export TMPDIR="$dir/tmp"
unset KDDS_WORKERS KDDS_BIND KDDS_RSH SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE
# Every process of every job below has this in its environment.
export KDDS_TEST_MARK="check_kddsrun.$$"
failed=0 checked=0

fail()
{
	echo "FAILED: $what: $*"
	sed 's/^/  out: /' "$dir/out" | tail -n 5
	sed 's/^/  err: /' "$dir/err" | tail -n 5
	failed=$((failed + 1))
}

# The processes of the jobs. This shell exported the mark after it started, so it does not count.
marked()
{
	"$probe" --marked "KDDS_TEST_MARK=$KDDS_TEST_MARK"
}

nothing_left()
{
	left=$(marked)
	for i in 1 2 3 4 5 6 7 8 9 10; do
		[ -n "$left" ] || break
		sleep 0.3
		left=$(marked)
	done
	for pid in $left; do
		fail "process $pid is left: $(tr '\0' ' ' < "/proc/$pid/cmdline" || :)"
		kill -9 "$pid" 2> /dev/null || :
	done
	# ThreadSanitizer makes these while a program starts
	left=$(ls -A "$dir/tmp" | grep -v '^tsan\.rodata\.' || :)
	[ -z "$left" ] || fail "files are left: $left"
}

# job WHAT STATUS ARGUMENTS...: runs kddsrun, checks its status and that nothing is left. Standard
# input is the caller's.
job()
{
	what=$1 expected=$2 status=0
	shift 2
	checked=$((checked + 1))
	timeout -k 5 60 "$run" "$@" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = "$expected" ] || fail "status $status, not $expected"
	nothing_left
}

# said FILE PATTERN [COUNT]: that many lines of out or err (by default one) must match.
said()
{
	n=$(grep -cE "$2" "$dir/$1" || :)
	[ "$n" = "${3:-1}" ] || fail "$n lines of std$1 match '$2', not ${3:-1}"
}

# one_line: stderr must be one line from kddsrun.
one_line()
{
	[ "$(wc -l < "$dir/err")" = 1 ] || fail "standard error is not one line"
	said err '^kddsrun: '
}

silent()
{
	[ ! -s "$dir/err" ] || fail 'standard error is not empty'
}

host=$(uname -n)
exec < /dev/null

# --- Bootstrap, and ranks on one host

for n in 1 2 4 64; do
	job "$n ranks" 0 -n $n "$probe"
	silent
	said out ', ok$' $n
	[ "$(sed 's/.*\(secret [^,]*\),.*/\1/' "$dir/out" | sort -u | wc -l)" = 1 ] ||
		fail 'the secret differs'
	[ "$(sort -u "$dir/out" | wc -l)" = $n ] || fail 'two ranks are the same'
	said out "of $n here" $n
done
job 'initialised twice' 0 -n 3 "$probe" '4:*:again'
said out ', ok$' 3
job 'started twice' 0 -n 2 "$probe" '1:*:start'
silent
said out ', ok$' 2
KDDS_TRACE=$dir/no/such/place/trace job 'ranks that cannot start' 1 -n 2 "$PWD/examples/fib" 10
grep -q 'kdds: KDDS_TRACE: cannot write .*No such file' "$dir/err" || fail 'nobody says why'
for bad in KDDS_WORKERS=many KDDS_WINDOW=1 KDDS_STATS=yes; do
	job "$bad" 2 -n 3 --env $bad "$PWD/examples/fib" 10
	said err "^kdds: $bad: expected "
	said err . 1
done
job 'a rank starts a program with libkdds' 0 -n 2 "$probe" "1:1:run:$probe"
said out 'rank 0 of 1, 0 of 1 here' 1
said out ', ok$' 3
job 'a late rank' 0 -n 3 "$probe" 0:1:sleep:1
said out ', ok$' 3
[ "$("$probe" | sed 's/, secret.*,//')" = 'rank 0 of 1, 0 of 1 here ok' ] ||
	fail 'a job of one without kddsrun'
what='tasks of srun without a PMI'
SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0 "$probe" > "$dir/out" 2> "$dir/err"
said out 'rank 0 of 1'
said err '^kdds: Slurm has started 3 tasks and offers no PMI'
SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=1 "$probe" 2>&1 | grep -q Slurm && fail 'each of them says so'
SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 "$probe" 2>&1 | grep -q Slurm &&
	fail 'one task is told that it is alone'

for bad in x 5: 5:6x 1:1 999:1; do
	what="KDDS_CONTROL_FD=$bad" status=0
	KDDS_CONTROL_FD=$bad "$probe" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
	[ $status = 97 ] || fail "status $status, not 97"
	said err '^kdds: KDDS_CONTROL_FD='
	[ "$(wc -l < "$dir/err")" = 1 ] || fail 'standard error is not one line'
done

# --- How ranks end

job 'status 0' 0 -n 3 true
silent
job "rank 0's status" 5 -n 3 sh -c 'exit $((5 - KDDS_RANK))'
job "the first other one's" 1 -n 3 sh -c 'exit $KDDS_RANK'
silent
job 'a status after the end' 6 -n 3 "$probe" 5:2:exit:6
silent
job 'a crash' 139 -n 4 "$probe" '3:2:kill:11' '3:*:wait'
one_line
said err "^kddsrun: rank 2 \(host $host, process [0-9]+\) was killed by signal 11 "\
'\(Segmentation fault\)'
job 'an exit in the midst' 7 -n 4 "$probe" 1:3:exit:7
one_line
said err "rank 3 \(host $host, process [0-9]+\) exited with status 7 before the job had ended"
job 'an exit with status 0 in the midst' 1 -n 4 "$probe" 1:3:exit:0
one_line
said err 'rank 3 .* exited with status 0 before the job had ended: it did not call kdds_finalize'
job 'a rank that never joins' 1 -n 3 sh -c "[ \$KDDS_RANK = 1 ] || exec '$probe'"
one_line
said err 'rank 1 .* it never called kdds_init'
job 'a failure before joining' 9 -n 3 sh -c "[ \$KDDS_RANK = 1 ] && exit 9; exec '$probe'"
one_line
said err 'rank 1 .* exited with status 9'
job 'others run another program' 1 -n 3 \
	sh -c "'$probe'; [ \$KDDS_RANK != 1 ] || exit 0; exec '$probe'"
said err 'rank 1 .* exited with status 0 after a program, and other ranks run another one'
for end in 'exit 3' 'kill -11 $$'; do
	job "others run another program, $end" $([ "$end" = 'exit 3' ] && echo 3 || echo 139) \
		--survive -n 3 sh -c "'$probe'; [ \$KDDS_RANK != 1 ] || $end; exec '$probe'"
	said err 'rank 1 .* after a program, and other ranks run another one'
done
job 'all exit in the midst' 0 -n 4 "$probe" '3:*:exit:0'
silent
job 'a crash after leaving' 139 -n 3 "$probe" '5:1:kill:11' '5:0:sleep:0.3' '5:0:say:done'
said err 'rank 1 .* signal 11 .* after it had left the job'
said out '^done$'
job 'a crash after leaving, with --survive' 139 --survive -n 3 "$probe" '5:1:kill:11'
job 'killed after leaving' 137 -n 3 "$probe" '5:1:kill:9' '5:0:sleep:0.3'
job 'killed after leaving, with --survive' 0 --survive -n 3 "$probe" '5:1:kill:9' \
	'5:0:sleep:0.3' '5:0:say:done'
said err 'rank 1 .* signal 9 .* after it had left the job'
said out '^done$'
job 'rank 0 killed after leaving' 137 --survive -n 3 "$probe" '5:0:kill:9'
job 'a plain program that crashes' 137 -n 3 sh -c '[ $KDDS_RANK = 1 ] && kill -9 $$; exec sleep 60'
one_line
said err 'rank 1 .* signal 9 \(Killed\)'

job 'no such program' 1 -n 3 ./no-such-program
one_line
said err "host $host: .*\./no-such-program: No such file or directory"
echo text > "$dir/text"
job 'not executable' 1 -n 2 "$dir/text"
one_line
said err "$dir/text: Permission denied"
what='no such directory'
mkdir "$dir/gone"
(cd "$dir/gone" && rmdir "$dir/gone" && "$run" -n 2 true > "$dir/out" 2> "$dir/err") ||
	fail 'it fails in a directory that is gone'

job 'builds that differ' 1 -n 4 "$probe" 0:2:build:5 0:3:build:5 '1:*:sleep:1'
one_line
said err "another build of it, at rank 2 \(host $host\), 3 \(host $host\) than at rank 0 "

# --- Noise on the control socket

job 'noise before the first word' 1 -n 3 "$probe" 0:1:noise '0:1:sleep:60'
one_line
said err 'rank 1 .* wrote to .*control socket .* no message'
job 'noise' 1 -n 3 "$probe" 2:1:noise '3:*:sleep:60'
one_line
said err 'rank 1 .* wrote to .*control socket .* no message'
for seed in 1 2 3 4 5 6 7 8; do
	job "false frames, seed $seed" 1 -n 3 "$probe" 2:1:noise:$seed '3:*:sleep:60'
	said err '^kddsrun: rank 1 '
done
job 'a socket that is closed too early' 97 -n 2 "$probe" 0:1:close
said err '^kdds: KDDS_CONTROL_FD=.* is not kddsrun.s socket'
for seed in 1 2 3 4; do
	what="noise to an agent, seed $seed"
	awk -v seed=$seed 'BEGIN {
		srand(seed)
		for (i = 0; i < 3000; i++)
			printf "%c", int(rand() * 256)
	}' > "$dir/noise"
	timeout -k 5 30 "$run" --agent < "$dir/noise" > "$dir/out" 2> "$dir/err" || :
	silent
done
nothing_left

# --- Input and output

seq 300000 > "$dir/numbers"
job 'input' 0 -n 3 --label wc -l < "$dir/numbers"
said out '^0: 300000$'
said out '^[12]: 0$' 2
job 'input that nobody reads' 0 -n 2 true < "$dir/numbers"
job 'input that is closed' 0 -n 2 --label sh -c 'wc -c' <&-
said out '^[01]: 0$' 2
job 'input that cannot be read' 1 -n 2 sleep 60 < "$dir"
one_line
said err 'cannot read standard input: Is a directory'
job 'input that is not there to be read' 0 -n 2 --label wc -c 0> "$dir/unread"
said out '^[01]: 0$' 2
job 'much output' 0 -n 4 sh -c "cat '$dir/numbers'; cat '$dir/numbers' >&2"
lines="$(wc -l < "$dir/out") $(wc -l < "$dir/err")"
[ "$lines" = '1200000 1200000' ] || fail "$lines lines came"
job 'raw output' 0 -n 2 printf 'a\0b'
[ "$(od -An -c "$dir/out" | tr -d ' \n')" = 'a\0ba\0b' ] || fail 'the bytes are others'
job 'labels' 3 -n 3 --label sh -c \
	'for i in 1 2 3 4 5; do printf "line "; sleep 0.05; echo "$i end"; done; printf unfinished
	echo error >&2; [ $KDDS_RANK != 1 ] || exit 3'
said out '^[012]: line [1-5] end$' 15
said out '^[012]: unfinished$' 3
said err '^[012]: error$' 3
job 'long lines, labelled' 0 -n 2 --label sh -c \
	'for n in 65535 65536 65537; do printf "%0${n}d" 0; sleep 0.1; echo; done'
said out '^[01]: 0+$' 8
[ "$(wc -l < "$dir/out")" = 8 ] || fail "$(wc -l < "$dir/out") lines"
what='a reader that has had enough'
mkfifo "$dir/fifo"
head -n 1 < "$dir/fifo" > "$dir/out" &
reader=$!
status=0
timeout -k 5 60 "$run" -n 3 yes > "$dir/fifo" 2> "$dir/err" || status=$?
wait $reader
[ $status = 141 ] || fail "status $status, not 141"
silent
nothing_left
what='a full disk' status=0
timeout -k 5 60 "$run" -n 3 yes > /dev/full 2> "$dir/err" || status=$?
[ $status = 1 ] || fail "status $status, not 1"
one_line
said err 'standard output: No space left on device'
nothing_left
job 'no standard output' 0 -n 2 echo hello >&-

# --- Options

while read -r words; do
	job "kddsrun $words" 2 $words
	one_line
done <<-END
--nonsense
-n
-n 0 true
-n x true
-n -3 true
-n 2
--workers 0 true
--bind socket true
--env =x true
--env KDDS_TEST_NO_SUCH_VARIABLE true
--timeout x true
--timeout 0 true
--restart x true
--restart -1 true
--heartbeat -1 true
--heartbeat 0.001 true
--hosts a:0 true
--hosts a,,b true
--hosts -oProxyCommand=x true
--hosts a:1,b:1 -n 3 true
--hostfile /nonexistent true
--verbose=3 true
--progress --label true
END
job 'a wrong letter among others' 2 -vxq true
said err '^kddsrun: -x is not an option'
job '--version' 0 --version
said out '^kddsrun .*[0-9]+\.[0-9]+\.[0-9]+$'
job '--help' 0 --help
said out '^Usage: kddsrun '
for option in $(grep -oE -e '--[a-z]+' "$dir/out" | sort -u); do
	grep -q -e "\\\\-\\\\-${option#--}\\b" "${srcdir:-.}/doc/kddsrun.1" ||
		fail "kddsrun.1 does not mention $option"
	grep -q -e "$option\\b" "${srcdir:-.}/tools/completion/kddsrun" ||
		fail "the completion does not know $option"
done
VALUE=inherited job 'variables' 0 -n 2 --workers 3 --bind none --provider 'a;b' \
	--env VALUE --env OTHER='x y=z' sh -c \
	'echo "$KDDS_WORKERS $KDDS_BIND $KDDS_PROVIDER $VALUE $OTHER $KDDS_SIZE $KDDS_LOCAL_SIZE"'
said out '^3 none a;b inherited x y=z 2 2$' 2
cpus=$(nproc)
job 'as many ranks as CPUs' 0 -n "$cpus" sh -c 'taskset -pc $$ | sed "s/.*: //"'
[ "$(sort -u "$dir/out" | wc -l)" = "$cpus" ] || fail 'two ranks share a CPU'
job 'more ranks than CPUs' 0 -n $((cpus + 1)) sh -c 'echo "$KDDS_WORKERS $KDDS_BIND $(nproc)"'
said out "^1 none $cpus\$" $((cpus + 1))
# A job starts again when a rank was killed, not when one fails or kddsrun is asked to end. Its
# input is read again.
echo once > "$dir/input"
job 'killed, no restart' 137 -n 2 sh -c 'kill -9 $$'
said err 'starting the job again' 0
job '--restart' 137 --restart 2 -n 2 sh -c 'cat; [ $KDDS_RANK = 0 ] || sleep 5; kill -9 $$' \
	< "$dir/input"
said out '^once$' 3
said err 'starting the job again \([12] of 2\)' 2
rm -f "$dir/tmp/killed"
job '--restart until it ends' 0 --restart 9 -n 2 sh -c \
	'[ $KDDS_RANK = 0 ] || exit 0; echo x >> $TMPDIR/killed
	[ $(wc -l < $TMPDIR/killed) = 3 ] && rm $TMPDIR/killed || kill -11 $$'
said err 'starting the job again' 2
job '--restart, a rank fails' 3 --restart 2 sh -c 'exit 3'
said err 'starting the job again' 0
job '--restart, the time is over' 124 --restart 9999 --timeout 3 sh -c 'sleep 0.2; kill -11 $$'
said err 'the job has run for 3 s \(--timeout\)'
what='--restart, ended by a signal' status=0
timeout -k 5 60 "$run" --restart 9 sh -c \
	'touch "$0"; sleep 20' "$dir/started" > "$dir/out" 2> "$dir/err" &
until [ -e "$dir/started" ]; do sleep 0.1; done
kill -TERM $!
wait $! || status=$?
[ $status = 124 ] || [ $status = 143 ] || fail "status $status"
said err 'starting the job again' 0
rm "$dir/started"
nothing_left
job '--timeout' 124 -n 3 --timeout 0.5 sh -c \
	'trap "" TERM; sleep 60 & setsid sleep 60 & wait; sleep 60'
one_line
said err 'the job has run for 0.5 s \(--timeout\)'
job 'what ranks leave behind' 0 -n 2 sh -c 'sleep 60 & (trap "" TERM; setsid sleep 60) & exit 0'
silent

# --- Descriptors: the soft limit is raised for kddsrun, not for the ranks; the hard limit is
# checked

# limited HARD SOFT COMMAND...
limited()
(
	ulimit -S -n "$2" && ulimit -H -n "$1" && shift 2 && exec "$@"
)
what='many ranks under a low limit' status=0
limited 128 64 timeout -k 5 60 "$run" -n 32 sh -c 'ulimit -n' > "$dir/out" 2> "$dir/err" ||
	status=$?
[ $status = 0 ] || fail "status $status"
said out '^64$' 32
what='more ranks than the limit allows' status=0
limited 128 128 timeout -k 5 60 "$run" -n 60 touch "$dir/started" > "$dir/out" 2> "$dir/err" ||
	status=$?
[ $status = 1 ] || fail "status $status, not 1"
one_line
said err 'cannot start rank 0: the agent of its 60 ranks needs [0-9]+ file .* limit is 128: '
[ ! -e "$dir/started" ] || fail 'some were started'
nothing_left

# --- Signals

# background COMMAND...: starts kddsrun as a background job of this shell, running the command on 3
# ranks, and returns when all ranks have printed "up". $signals are options of env(1) for it.
background()
{
	: > "$dir/out"
	# A shell's background jobs ignore SIGINT.
	env --default-signal=INT,QUIT ${signals-} "$run" -n 3 "$@" > "$dir/out" 2> "$dir/err" &
	job=$!
	for i in $(seq 200); do
		[ "$(grep -c '^up' "$dir/out")" != 3 ] || return 0
		sleep 0.1
	done
	fail 'the job does not start'
}

# ended STATUS
ended()
{
	status=0
	wait $job 2> /dev/null || status=$?
	[ $status = "$1" ] || fail "status $status, not $1"
	nothing_left
}

for pair in INT:130 TERM:143 HUP:129 QUIT:131; do
	what="SIG${pair%:*} to kddsrun"
	background sh -c 'echo up; sleep 60'
	kill -s "${pair%:*}" $job
	ended "${pair#*:}"
	one_line
done
what='SIGINT twice, and ranks that do not care'
background sh -c 'trap "" TERM; echo up; sleep 60; sleep 60'
kill -s INT $job
sleep 0.1
kill -s INT $job
ended 130
one_line
what='ranks are told to end'
background "$probe" '3:*:say:up' '3:*:wait'
kill -s TERM $job
ended 143
what='kill -9 of kddsrun'
background sh -c 'echo up; sleep 60 & setsid sleep 60 & exec sleep 60'
kill -s KILL $job
ended 137
what='names of processes'
background sh -c 'echo up; exec sleep 60'
agent=$(cat "/proc/$job/task/$job/children")
for pid in $job $agent; do
	name=$(cat "/proc/$pid/comm")
	[ "$name" = kddsrun ] || fail "a process of kddsrun is called $name"
done
kill -s TERM $job
ended 143
what='kill -9 of the agent'
background sh -c 'echo up; sleep 60 & setsid sleep 60 & exec sleep 60'
kill -s KILL "$(cat "/proc/$job/task/$job/children")"
ended 1
one_line
said err "host $host: the agent was killed by signal 9"
what='kill -9 of a rank'
background sh -c 'echo up$$; sleep 60 & exec sleep 60'
kill -s KILL "$(sed -n '2s/up//p' "$dir/out")"
ended 137
one_line
what='SIGUSR1 goes to the ranks'
background sh -c 'trap "echo got; exit 0" USR1; echo up; sleep 60 & wait'
kill -s USR1 $job
ended 0
said out '^got$' 3
for signal in HUP INT TERM QUIT TSTP USR1; do
	what="SIG$signal, which kddsrun was started to ignore"
	signals=--ignore-signal=$signal \
		background sh -c 'trap "echo got; exit 0" USR2; echo up; sleep 60 & wait'
	kill -s $signal $job
	kill -s USR2 $job # read after the other one
	ended 0
	said out '^got$' 3
	silent
done
what='a signal that kddsrun was started to block'
signals=--block-signal=TERM background sh -c 'echo up; sleep 60'
kill -s TERM $job
ended 143
one_line
what='signals of the ranks' status=0
env --ignore-signal=HUP --block-signal=USR1 "$run" -n 2 grep -E '^Sig(Blk|Ign)' /proc/self/status \
	> "$dir/out" 2> "$dir/err" || status=$?
[ $status = 0 ] || fail "status $status"
said out '^SigBlk:.0*200$' 2
said out '^SigIgn:.*1$' 2
what='stop and go on'
# state PATTERN: waits until kddsrun and all ranks are in this state.
state()
{
	for i in $(seq 100); do
		reached=1
		for pid in $job $(sed -n 's/^up//p' "$dir/out"); do
			grep -q "^State:.$1" "/proc/$pid/status" || reached=0
		done
		[ $reached = 0 ] || return 0
		sleep 0.1
	done
	fail "not all are in state $1"
}
background sh -c 'echo up$$; exec sleep 60'
kill -s TSTP $job
state T
kill -s CONT $job
state S
kill -s TERM $job
ended 143

# With provider shm each process has a file in /dev/shm, which it removes when it ends in an orderly
# way.
shm=0
! "$run" -n 2 --provider shm examples/fib 10 > "$dir/out" 2> "$dir/err" || shm=1
# shm_background ARGUMENTS...: starts a job and waits until those files exist.
shm_background()
{
	background --provider shm "$@" sh -c 'echo up$$; exec examples/fib 60 45'
	for pid in $(sed -n 's/^up//p' "$dir/out"); do
		for i in $(seq 200); do
			[ ! -e "/dev/shm/$pid:$(id -u):0" ] || break
			sleep 0.1
		done
		[ $i -lt 200 ] || fail "process $pid has no file"
	done
}
shm_ended()
{
	wait $job 2> /dev/null || :
	nothing_left
	for pid in $(sed -n 's/^up//p' "$dir/out"); do
		[ -z "$(ls -d "/dev/shm/$pid:"* 2> /dev/null)" ] ||
			fail "a file of process $pid is left in /dev/shm"
	done
}
if [ $shm = 1 ]; then
	for how in INT KILL; do
		what="SIG$how and the files of the provider shm"
		shm_background
		kill -s $how $job
		shm_ended
	done
	what='kill -9 of the agent and the files of the provider shm'
	shm_background
	kill -s KILL "$(cat "/proc/$job/task/$job/children")"
	shm_ended
fi

# --- Hosts, by a remote shell that runs everything on this host

cat > "$dir/rsh" <<'END'
#!/bin/sh
# Called with a host and a command.
echo "Welcome to $1"
case $1 in
nowhere) echo "no route to $1" >&2; exit 255 ;;
junk) printf '\nkddsrun-agent\n'; exec head -c 2000 /dev/zero ;;
noisy) head -c 100000 /dev/zero; sleep 60 ;;
old) # an agent's first frame: protocol 9, version 1.2.3, process 1, host "h"
	printf '\nkddsrun-agent\n\026\0\0\0\0\0\0\0\040\0\0\0'
	printf 'kdds\011\0\0\0\333\047\0\0\001\0\0\0\002\0\0\0h\0'
	exec sleep 60 ;;
bare) exec /no/such/kddsrun --agent ;;
mute) (setsid sleep 60; exit 1) ;;
childless) exec env --ignore-signal=CHLD "$KDDS_TEST_RUN" --agent ;;
esac
export RSH_HOST="$1"
exec sh -c "$2"
END
chmod +x "$dir/rsh"
export KDDS_RSH="'$dir/rsh'" KDDS_TEST_RUN="$run"

job 'three hosts' 0 --hosts a:2,b,c:3 "$probe"
said out ', ok$' 6
said out 'of 2 here' 2
said out 'of 1 here' 1
said out 'of 3 here' 3
job 'values known without asking' 0 --hosts a:2,b,c:3 "$probe" 3:0:alone 3:2:alone 3:4:alone
said out ', ok$' 6
job 'fewer ranks than slots' 0 -n 3 --hosts a:2,b:2,c:2 sh -c 'echo $KDDS_RANK $RSH_HOST'
[ "$(sort "$dir/out" | tr '\n' ' ')" = '0 a 1 a 2 b ' ] || fail 'the ranks are elsewhere'
job 'ranks dealt evenly' 0 -n 5 --hosts a,b sh -c 'echo $KDDS_RANK $RSH_HOST'
[ "$(sort "$dir/out" | tr '\n' ' ')" = '0 a 1 a 2 a 3 b 4 b ' ] || fail 'the ranks are elsewhere'
printf '# hosts\na slots=2\n\nb:1 # comment\n[::1]:1\n::2\n' > "$dir/hosts"
job 'a host file' 0 --hostfile "$dir/hosts" sh -c 'echo $KDDS_RANK $RSH_HOST'
[ "$(sort "$dir/out" | tr '\n' ' ')" = '0 a 1 a 2 b 3 ::1 4 ::2 ' ] ||
	fail 'the ranks are elsewhere'
echo 'a b c' >> "$dir/hosts"
job 'a wrong host file' 2 --hostfile "$dir/hosts" true
one_line
said err 'hosts, line 7: '
echo 'a:2 slots=3' > "$dir/hosts"
job 'slots given twice' 2 --hostfile "$dir/hosts" true
one_line
said err 'hosts, line 1: '
job 'a host file that is a directory' 2 --hostfile "$dir" true
one_line
said err ': Is a directory'
job 'this host and another' 0 --hosts "$host:1,b:1" sh -c 'echo $KDDS_RANK $RSH_HOST'
[ "$(sort "$dir/out" | tr '\n' ' ')" = '0 1 b ' ] || fail 'the ranks are elsewhere'
job 'input to another host' 0 --hosts a:1,b:1 --label wc -l < "$dir/numbers"
said out '^0: 300000$'
said out '^1: 0$'
job 'much output of other hosts' 0 --hosts a:2,b:2 cat "$dir/numbers"
[ "$(wc -l < "$dir/out")" = 1200000 ] || fail "$(wc -l < "$dir/out") lines came"
KDDS_SPIN_US=77 job 'variables travel' 0 --hosts a:1 --env X=1 sh -c 'echo $KDDS_SPIN_US $X'
said out '^77 1$'
SLURM_JOB_NODELIST='n[08-10,7],m2,r[1-2]x[3,4]' SLURM_TASKS_PER_NODE='2(x3),1,3,1(x4)' \
	job "Slurm's nodes" 0 sh -c 'echo $KDDS_RANK $RSH_HOST'
[ "$(sort -n "$dir/out" | tr '\n' ' ')" = \
	'0 n08 1 n08 2 n09 3 n09 4 n10 5 n10 6 n7 7 m2 8 m2 9 m2 '\
'10 r1x3 11 r1x4 12 r2x3 13 r2x4 ' ] ||
	fail 'the ranks are elsewhere'
for nodes in 'n[1-' 'n[]' 'n[3-1]' 'n[1,]' 'a,,b' 'n[x]' 'n[1-999999999]'; do
	SLURM_JOB_NODELIST=$nodes job "Slurm's nodes $nodes" 2 true
	one_line
done

what='many hosts under a low limit' status=0
limited 64 32 timeout -k 5 60 "$run" --hosts "$(seq -s , -f h%g 20)" true \
	> "$dir/out" 2> "$dir/err" || status=$?
[ $status = 0 ] || fail "status $status"
silent
what='more hosts than the limit allows' status=0
limited 64 64 timeout -k 5 60 "$run" --hosts "$(seq -s , -f h%g 40)" touch "$dir/started" \
	> "$dir/out" 2> "$dir/err" || status=$?
[ $status = 1 ] || fail "status $status, not 1"
one_line
said err 'for 40 hosts kddsrun needs [0-9]+ file descriptors, and its hard limit is 64: '
[ ! -e "$dir/started" ] || fail 'some were started'
nothing_left

job 'a host that is not there' 1 --hosts a:2,nowhere:2 "$probe"
one_line
said err 'host nowhere: cannot start the agent: .* ended with status 255: no route to nowhere$'
job 'a host without kddsrun' 1 --hosts a:2,bare:2 "$probe"
one_line
said err 'host bare: cannot start the agent: .* ended with status 127: .*not found'
job 'a host that talks nonsense' 1 --hosts a:2,junk:2 "$probe"
one_line
said err 'host junk: its agent sends something that is no message'
job 'a host with another kddsrun' 1 --hosts a:2,old:2 "$probe"
one_line
said err 'host old: kddsrun there is version 1\.2\.3 '
job 'a host that talks too much' 1 --hosts a:2,noisy:2 "$probe"
one_line
said err 'host noisy: '
what='--timeout, and a remote shell that is silent and has children' status=0
timeout -s KILL 20 "$run" --hosts a:1,mute:1 --timeout 0.5 sleep 60 > "$dir/out" 2> "$dir/err" ||
	status=$?
[ $status = 124 ] || fail "status $status, not 124"
one_line
nothing_left
what='SIGINT, and a remote shell that is silent and has children' status=0
timeout -s INT -k 20 --preserve-status 2 "$run" --hosts a:1,mute:1 sleep 60 \
	> "$dir/out" 2> "$dir/err" || status=$?
[ $status = 130 ] || fail "status $status, not 130"
one_line
nothing_left
job 'a crash elsewhere' 139 --hosts a:2,b:2 "$probe" 3:3:kill:11 '3:*:wait'
one_line
said err 'rank 3 \(host b, process [0-9]+\) was killed by signal 11'
job 'no such program elsewhere' 1 --hosts a:1,b:1 ./no-such-program
one_line
said err 'host [ab]: .*No such file'
job 'a remote shell that is not there' 1 --hosts a:1 --rsh /no/such/rsh true
one_line
said err 'host a: cannot start the agent: /no/such/rsh ended with status 127: .*not found'
job 'output labelled' 0 --hosts a:2,b:2 --label echo hello
said out '^[0-3]: hello$' 4

what='kill -9 of kddsrun, with hosts'
background --hosts a:2,b:1 sh -c 'echo up; sleep 60 & setsid sleep 60 & exec sleep 60'
kill -s KILL $job
ended 137
cp "$probe" "$dir/slow"
"$probe" --hold "$dir/slow" 8 > "$dir/held" &
holder=$!
for i in $(seq 50); do
	[ ! -s "$dir/held" ] && kill -0 $holder 2> /dev/null || break
	sleep 0.1
done
if [ -s "$dir/held" ]; then
	job 'a program that takes longer to start than hosts may be silent' 0 --hosts a:1,b:2 \
		--heartbeat 3 "$dir/slow"
	silent
	said out ', ok$' 3
fi
wait $holder || :
for signal in CHLD CONT; do
	what="SIG$signal ignored"
	signals=--ignore-signal=$signal \
		background --hosts "$host:1,childless:2" sh -c 'echo up$$; exec sleep 60'
	kill -s TSTP $job
	state T
	kill -s CONT $job
	state S
	for pid in $(marked); do
		! grep -qsz -x -e --agent "/proc/$pid/cmdline" || agent=$pid
	done
	kill -s KILL $agent
	ended 1
	one_line
	said err 'host childless: its agent is lost: .* ended with status 137, as after signal 9'
done
# there HOST [ranks]: the processes on a host: the agents, of which there are two, one that only
# watches the other; or the ranks.
there()
{
	for pid in $(marked); do
		if tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "RSH_HOST=$1"; then
			grep -qsz -x -e --agent "/proc/$pid/cmdline" && kind= || kind=ranks
			[ "$kind" != "${2-}" ] || echo "$pid"
		fi
	done
}
# agents HOST: the two agents there, the older one first. One that starts a process has a copy of
# itself for a moment.
agents()
{
	for i in $(seq 100); do
		found=$(there "$1" | sort -n)
		[ "$(echo "$found" | wc -l)" != 2 ] || break
		sleep 0.1
	done
	echo "$found"
}
if [ $shm = 1 ]; then
	what='kill -9 of an agent elsewhere and the files of the provider shm'
	shm_background --hosts b:3
	kill -s KILL "$(agents b | tail -n 1)" # the other agent watches this one
	shm_ended
fi
what='a host that is silent for 7 s'
background --hosts a:2,b:1 sh -c 'trap "exit 0" USR1; echo up; sleep 60 & wait'
pids=$(agents b)
kill -s STOP $pids
sleep 7
kill -s CONT $pids
kill -s USR1 $job || :
ended 0
silent
what='kddsrun is stopped for longer than --heartbeat'
background --hosts a:2,b:1 --heartbeat 2 sh -c 'echo up$$; exec sleep 60'
kill -s STOP $job
for pid in $(sed -n 's/^up//p' "$dir/out"); do
	for i in $(seq 200); do
		kill -0 "$pid" 2> /dev/null || break
		sleep 0.1
	done
done
kill -s CONT $job
ended 1
one_line
said err 'host [ab]: its agent has ended the ranks there: no word from kddsrun for 2 s'
what='SIGTERM to all processes on a host, as from a batch system'
background --hosts "$host:1,b:2" sh -c 'echo up$$; exec sleep 60'
pids="$(agents b) $(there b ranks)"
kill -s STOP $pids # so that it reaches all at the same moment
kill -s TERM $pids
kill -s CONT $pids || : # the first may have ended the others
ended 1
one_line
said err 'host b: its agent has ended the ranks there: it got signal 15 '
what='SIGTERM to all processes of a job'
background --hosts "$host:3" sh -c 'echo up$$; exec sleep 60'
pids="$(sed -n 's/up//p' "$dir/out") $(cat "/proc/$job/task/$job/children") $job"
kill -s STOP $pids # so that it reaches all at the same moment
kill -s TERM $pids
kill -s CONT $pids || : # the first may have ended the others
ended 143
one_line
said err 'Terminated: ending the job'
what='SIGKILL to all processes on a host'
background --hosts a:1,b:2 sh -c 'echo up$$; exec sleep 60'
pids="$(there b ranks) $(agents b)"
kill -s STOP $pids # so that all are killed at the same moment
kill -s KILL $pids
ended 1
one_line
said err 'host b: its agent is lost: .* signal 9'
what='SIGKILL to what watches over an agent'
background --hosts a:1,b:2 sh -c 'echo up$$; exec sleep 60'
kill -s KILL "$(agents b | head -n 1)"
ended 1
one_line
said err 'host b: its agent '\
'(is lost: .* signal 9|has ended the ranks there: the process that watches over it)'
what='a silent host'
background --hosts a:2,b:1 --heartbeat 3 sh -c 'echo up; exec sleep 60'
kill -s STOP $(agents b)
ended 1
one_line
said err 'host b: no sign of life for 3 s'

echo "$checked jobs and more"
[ $failed = 0 ]
