#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# kddsrun over real ssh: three hosts, each of them namespaces (network, host name, processes, mounts) with an sshd as its
# first process, joined by a bridge in a fourth. Jobs run, and every way to lose a rank, an agent, a host or the network
# ends them with one clear line and leaves no process on any host. Needs root, iproute2, util-linux and openssh-server.
set -eu
run=$PWD/kddsrun probe=$PWD/tests/boot_probe
[ -x "$run" ] && [ -x "$probe" ] && [ "$(id -u)" = 0 ] || exit 77
PATH=$PATH:/usr/sbin:/sbin
for tool in ip unshare nsenter sshd ssh ssh-keygen ps; do
	command -v $tool > /dev/null || exit 77
done
unshare --net --uts --pid --fork --mount-proc true 2> /dev/null || exit 77
dir=$(mktemp -d)
started=
made_run_sshd=
cleanup()
{
	# A host ends with its first process.
	for pid in $started; do
		kill -9 "$pid" 2> /dev/null || :
	done
	wait
	[ -z "$made_run_sshd" ] || rmdir /run/sshd 2> /dev/null || :
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
unset KDDS_WORKERS KDDS_BIND KDDS_RSH SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE SSH_AUTH_SOCK
failed=0 checked=0 what=

fail()
{
	echo "FAILED: $what: $*"
	sed 's/^/  out: /' "$dir/out" | tail -n 5
	sed 's/^/  err: /' "$dir/err" | tail -n 5
	failed=$((failed + 1))
}

give_up()
{
	echo "cannot make hosts: $*"
	exit 77
}

# --- The hosts.

[ -d /run/sshd ] || { mkdir /run/sshd && made_run_sshd=1; }
ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
cat > "$dir/sshd_config" <<END
Port 22
HostKey $dir/host_key
AuthorizedKeysFile $dir/key.pub
PidFile none
StrictModes no
PermitRootLogin yes
UsePAM no
MaxStartups 100
END
cat > "$dir/ssh_config" <<END
Host *
  User root
  IdentityFile $dir/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  ConnectTimeout 10
  BatchMode yes
END
hosts='a b c'

unshare --net sleep 100000 &
started="$started $!"
bridge=$!
# Until it is in a network of its own.
for i in $(seq 100); do
	[ "$(readlink /proc/$bridge/ns/net)" = "$(readlink /proc/$$/ns/net)" ] || break
	sleep 0.05
done
nsenter -t $bridge -n ip link add bridge type bridge 2> "$dir/err" || give_up "$(cat "$dir/err")"
nsenter -t $bridge -n ip link set bridge up
number=0
for host in $hosts; do
	number=$((number + 1))
	unshare --net --uts --pid --fork --kill-child --mount-proc sh -c "hostname $host; ip link set lo up
		exec $(command -v sshd) -D -e -f '$dir/sshd_config'" 2> "$dir/sshd.$host" &
	started="$started $!"
	first=
	for i in $(seq 100); do
		first=$(cat "/proc/$!/task/$!/children" 2> /dev/null || :)
		first=${first% }
		[ -z "$first" ] || ! grep -qs listening "$dir/sshd.$host" || break
		sleep 0.05
	done
	grep -q listening "$dir/sshd.$host" || give_up "sshd: $(cat "$dir/sshd.$host")"
	eval "first_$host=$first"
	nsenter -t $bridge -n ip link add "port_$host" type veth peer name eth0 netns "$first"
	nsenter -t $bridge -n ip link set "port_$host" master bridge up
	nsenter -t "$first" -n ip addr add "10.0.0.$number/24" dev eth0
	nsenter -t "$first" -n ip link set eth0 up
	printf 'Host %s\n  HostName 10.0.0.%s\n' $host $number >> "$dir/ssh_config"
done

# on HOST COMMAND...
on()
{
	eval "first=\$first_$1"
	shift
	nsenter -t "$first" -n -u -p -m "$@"
}

# What runs on a host beside sshd, its children for connections that are about to end, and us who look.
processes()
{
	on "$1" ps -e -o pid=,args= | grep -v -e ' sshd: ' -e '/sshd -D' -e ' ps -e -o' || :
}

nothing_left()
{
	for host in $hosts; do
		for i in $(seq 50); do
			left=$(processes $host)
			[ -n "$left" ] || break
			sleep 0.2
		done
		[ -z "$left" ] || fail "left on host $host: $left"
	done
}

# start ARGUMENTS...: kddsrun on host a.
start()
{
	checked=$((checked + 1))
	: > "$dir/out"
	# A shell's background jobs ignore SIGINT.
	env --default-signal=INT nsenter -t "$first_a" -n -u -p -m env KDDS_RSH="ssh -F '$dir/ssh_config'" \
		timeout --foreground -k 5 60 "$run" "$@" > "$dir/out" 2> "$dir/err" < /dev/null &
	job=$!
}

# up N: until so many ranks have said so.
up()
{
	for i in $(seq 300); do
		[ "$(grep -c '^up' "$dir/out")" != "$1" ] || return 0
		sleep 0.1
	done
	fail 'the job does not start'
}

# ended STATUS
ended()
{
	status=0
	wait $job || status=$?
	[ $status = "$1" ] || fail "status $status, not $1"
	nothing_left
}

# job WHAT STATUS ARGUMENTS...
job()
{
	what=$1 expected=$2
	shift 2
	start "$@"
	ended "$expected"
}

# said FILE PATTERN [COUNT]: so many lines of out or err match it.
said()
{
	n=$(grep -cE "$2" "$dir/$1" || :)
	[ "$n" = "${3:-1}" ] || fail "$n lines of std$1 match '$2', not ${3:-1}"
}

one_line()
{
	[ "$(wc -l < "$dir/err")" = 1 ] || fail 'standard error is not one line'
	said err '^kddsrun: '
}

# pid_on HOST PATTERN: the last process there that matches.
pid_on()
{
	on "$1" ps -e -o pid=,args= | grep -v -e grep -e sshd -e ' ps -e' | grep "$2" | awk '{ print $1 }' | tail -n 1
}

# --- Jobs.

cd /
job 'two hosts' 0 --hosts a:2,b:2 "$probe"
said out 'rank [0-3] of 4, [01] of 2 here, .* ok$' 4
job 'three hosts' 0 --hosts a:1,b:2,c:3 "$probe"
said out ', ok$' 6
said out 'of 3 here' 3
job 'other hosts only' 0 --hosts b:8,c:8 "$probe"
said out ', ok$' 16
job 'hosts by their names' 0 --hosts a,b,c --label uname -n
[ "$(sort "$dir/out" | tr '\n' ' ')" = '0: a 1: b 2: c ' ] || fail 'the ranks are elsewhere'
job 'much output' 0 --hosts b:2,c:2 seq 100000
[ "$(wc -l < "$dir/out")" = 400000 ] || fail "$(wc -l < "$dir/out") lines came"

job 'a wrong host name' 1 --hosts a:2,nosuchhost:2 "$probe"
one_line
said err 'host nosuchhost: cannot start the agent: .* status 255: .*resolve'
mkdir "$dir/bin"
cp "$probe" "$dir/bin/probe" 2> /dev/null
on b mount -t tmpfs none "$dir/bin"
job 'a program that one host lacks' 1 --hosts a:2,b:2,c:2 "$dir/bin/probe"
one_line
said err "host b: .*$dir/bin/probe: No such file or directory"
on b umount "$dir/bin"

job 'a crash elsewhere' 139 --hosts a:2,b:2 "$probe" 3:3:kill:11 '3:*:wait'
one_line
said err 'rank 3 \(host b, process [0-9]+\) was killed by signal 11'
job 'builds that differ' 1 --hosts a:2,b:2,c:1 "$probe" 0:2:build:5 0:3:build:5 '1:*:sleep:1'
one_line
said err 'at rank 2 \(host b\), 3 \(host b\) than at rank 0 \(host a\)'

ranks='echo up; sleep 1000 & setsid sleep 1000 & trap "" TERM; wait; sleep 1000'
what='Ctrl-C'
start --hosts a:2,b:2 sh -c "$ranks"
up 4
on a kill -s INT "$(pid_on a 'kddsrun --hosts')"
ended 130
one_line

what='kill -9 of an agent'
start --hosts a:2,b:2,c:1 sh -c "$ranks"
up 5
on b kill -9 "$(pid_on b 'kddsrun --agent')"
ended 1
one_line
said err 'host b: its agent is lost'

what='kill -9 of kddsrun'
start --hosts a:2,b:2,c:1 sh -c "$ranks"
up 5
on a kill -9 "$(pid_on a 'kddsrun --hosts')"
ended 137

what='kill -9 of an ssh'
start --hosts a:2,b:2,c:1 sh -c "$ranks"
up 5
on a kill -9 "$(pid_on a 'ssh -F.* b ')"
ended 1
one_line
said err 'host b: its agent is lost: .* signal 9'

what='a host cut off'
start --hosts a:2,b:2,c:1 --heartbeat 4 sh -c "$ranks"
up 5
nsenter -t $bridge -n ip link set port_b down
ended 1
one_line
said err 'host b: no sign of life for 4 s'
nsenter -t $bridge -n ip link set port_b up

what='a host that is silent from the start'
nsenter -t $bridge -n ip link set port_c down
start --hosts a:2,b:1,c:1 --rsh "ssh -F '$dir/ssh_config' -o ConnectTimeout=2" sh -c "$ranks"
ended 1
one_line
said err 'host c: cannot start the agent: .* ended with status 255: .*(timed out|No route)'
nsenter -t $bridge -n ip link set port_c up

what='a host that dies'
start --hosts a:2,b:2,c:1 --heartbeat 4 sh -c "$ranks"
up 5
eval "kill -9 \$first_c"
hosts='a b'
ended 1
one_line
said err 'host c: '

echo "$checked jobs on 3 hosts"
[ $failed = 0 ]
