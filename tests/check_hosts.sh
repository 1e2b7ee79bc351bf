#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves, with kddsrun over real ssh on three hosts of tests/lab/hosts.sh, that jobs run, and that
# however a rank, an agent, a host or the network is lost, the job ends with one clear line and
# leaves no process on any host.
set -eu
[ "${SANITIZE-}" != thread ] || exit 77 # kddsrun has one thread
run=$PWD/kddsrun probe=$PWD/tests/boot_probe fib=$PWD/examples/fib
[ -x "$run" ] && [ -x "$probe" ] || exit 77
hosts='a b c'
. "${srcdir:-.}/tests/lab/hosts.sh"
hosts_make
hosts_join bridge
hosts_ssh bridge

# --- Jobs

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

# Without IPv4, and finally without even the loopback address.
number=0
for host in a b; do
	number=$((number + 1))
	eval "first=\$first_$host"
	nsenter -t "$first" -n ip -6 addr add fd00::$number/64 dev eth0 nodad
	nsenter -t "$first" -n ip -4 addr flush dev eth0
	sed -i "s/HostName 10.0.0.$number\$/HostName fd00::$number/" "$dir/ssh_config"
done
job 'hosts without IPv4' 0 --hosts a:1,b:2 "$probe"
said out ', ok$' 3
if "$run" -n 2 "$fib" 10 > "$dir/out" 2> "$dir/err"; then # a provider is available
	job 'messages by IPv6' 0 --hosts 'fd00::1,[fd00::2]:2' -n 3 "$fib" 20
	for host in a b; do
		eval "first=\$first_$host"
		nsenter -t "$first" -n ip -4 addr flush dev lo
	done
	job 'messages on a host without IPv4' 0 -n 3 "$fib" 20
fi

echo "$checked jobs on 3 hosts"
[ $failed = 0 ]
