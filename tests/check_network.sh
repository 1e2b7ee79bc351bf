#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that over a slow, lossy and interrupted network (tests/lab) jobs on several hosts give the
# results of one process, and survive an interruption and connections that it breaks. When a host is
# cut off or its ranks are killed, the job ends on all hosts, with one line that names the host;
# with --survive it goes on. Ranks listen where KDDS_ADDRESS and KDDS_PORTS say and nowhere else;
# where they cannot reach each other, the job ends with a line that says so. IPv4 is not required.
# Prints its seed. NETWORK_SEED=n repeats a run with that seed, within the limits of timing.
# NETWORK_SECONDS=n repeats the tests for n seconds.
set -eu
run=$PWD/kddsrun tests=$PWD/tests examples=$PWD/examples
[ -x "$run" ] && [ -x "$tests/oracle" ] && [ -x "$tests/ranks" ] && [ -x "$tests/lab/tundelay" ] ||
	exit 77
[ -c /dev/net/tun ] || exit 77
seed=${NETWORK_SEED:-$(date +%s)}
echo "seed $seed"
hosts='a b c'
. "${srcdir:-.}/tests/lab/hosts.sh"
job_seconds=120
hosts_make
hosts_join far bridge
hosts_ssh far
export KDDS_BIND=none

# --- Results

# The part of a program's output that does not depend on scheduling.
results()
{
	grep -E '^(fib|nqueens|stencil)\(|^unique|^the same bits' || :
	awk '$1 == "residual" { print ($3 < 1e-12 ? "right" : "wrong") }' "$1"
}

# programs WHAT HOSTS PROGRAM...: each of these examples must give the same result as in one
# process.
programs()
{
	where=$1 on=$2
	shift 2
	for program; do
		[ -x "$examples/${program%% *}" ] || continue
		KDDS_WORKERS=1 "$examples/"$program > "$dir/alone"
		job "$where: $program" 0 --hosts $on "$examples/"$program
		[ "$(results "$dir/out" < "$dir/out")" = \
			"$(results "$dir/alone" < "$dir/alone")" ] ||
			fail 'not the result of one process'
	done
}

# oracle WHAT HOSTS SECONDS
oracle()
{
	seed=$((seed + 100003))
	job "$1: oracle -n $seed" 0 --hosts $2 "$tests/oracle" -j -s $3 -n $seed
	said out ', all equal to the oracle$'
}

# ranks WHAT HOSTS
ranks()
{
	job "$1: ranks" 0 --hosts $2 "$tests/ranks"
	said out '^all travelled$'
}

# at_work HOSTS RANKS SECONDS OPTION...: starts the oracle. Returns when all of its ranks have
# written their process numbers to $dir/pid.RANK and have had a moment to begin.
at_work()
{
	seed=$((seed + 100003))
	set -- "$@" "$tests/oracle" -j -s $3 -n $seed -p "$dir/pid"
	n=$2 on=$1
	shift 3
	rm -f "$dir"/pid.*
	start --hosts $on "$@"
	for i in $(seq 600); do
		[ "$(cat "$dir"/pid.* 2> /dev/null | wc -l)" != $n ] || break
		sleep 0.1
	done
	[ "$(cat "$dir"/pid.* 2> /dev/null | wc -l)" = $n ] || fail 'the job does not start'
	sleep 2
}

# The job must end with status 0 and the oracle's success message.
went_on()
{
	ended 0
	said out ', all equal to the oracle$'
}

# A job ends within a few seconds after a cut or a kill. A loaded machine gets more time.
soon()
{
	took=$(($(date +%s) - since))
	[ $took -lt 30 ] || fail "took $took s to end"
}

# --- Cases

plain()
{
	programs plain a:2,b:2,c:2 'fib 32 12' 'nqueens 12' 'cholesky 600 100' 'stencil 300 20 60'
	ranks plain a:2,b:2,c:2
	oracle plain a:2,b:2,c:2 $1
}

delay()
{
	far delay 1000
	programs delay a:2,b:2 'fib 32 12' 'cholesky 600 100' 'stencil 300 20 60'
	ranks delay a:2,b:2
	oracle delay a:2,b:2,c:2 $1
	far delay 0
}

loss()
{
	far loss 1
	programs loss a:2,b:2,c:2 'nqueens 12' 'stencil 300 20 60'
	ranks loss a:2,b:2
	oracle loss a:2,b:2,c:2 $1
	far loss 0
}

delay_and_loss()
{
	far delay 1000
	far loss 1
	programs both a:2,b:2 'fib 32 12' 'cholesky 600 100'
	ranks both a:2,b:2,c:2
	oracle both a:2,b:2 $1
	far delay 0
	far loss 0
}

# TCP retransmits at doubling intervals, so a host may be reachable again only after twice the time
# it was cut off.
interruption()
{
	what='3 s of no network'
	at_work a:2,b:2,c:2 6 7 --heartbeat 15
	far cut 2
	sleep 3
	far heal 2
	went_on
}

# gave_up HOST...: the number of connections that TCP has aborted after all retransmissions without
# an answer.
gave_up()
{
	for host; do
		on $host awk '$1 == "TcpExt:" && !n { n = split($0, name) }
			$1 == "TcpExt:" {
				for (i = 2; i <= n; i++)
					if (name[i] == "TCPAbortOnTimeout")
						x = $i
			}
			END { print x }' /proc/net/netstat
	done | awk '{ n += $1 } END { print n }'
}

# patience REPETITIONS HOST...: sets the number of TCP retransmissions.
patience()
{
	repetitions=$1
	shift
	for host; do
		on $host sh -c "echo $repetitions > /proc/sys/net/ipv4/tcp_retries2"
	done
}

# dead_connections CUT HOST...: cuts off host number CUT. On each HOST, TCP gives up after some
# seconds. ssh uses another network, so that kddsrun notices nothing.
dead_connections()
{
	number=$1
	shift
	what="host $number is cut off, connections die on $*"
	hosts_ssh bridge
	patience 3 $*
	before=$(gave_up $*)
	at_work a:2,b:2,c:2 6 18
	far cut $number
	for i in $(seq 24); do # 3 retransmissions take 3 to 7 s
		[ $i -lt 5 ] || [ "$(gave_up $*)" = $before ] || break
		sleep 1
	done
	[ "$(gave_up $*)" != $before ] || fail 'no connection died'
	sleep 2 # others may follow
	far heal $number
	went_on
	patience 15 $*
	hosts_ssh far
}

# The only message that some ranks still have to receive is that the job is over, and the
# connections of its sender break. These ranks have nothing to send to that sender, and so cannot
# notice that their side of the connection is broken as well.
told_at_last()
{
	what='ranks cut off while there is nothing to say'
	hosts_ssh bridge
	patience 3 a b
	before=$(gave_up a b)
	start --hosts a:2,b:2,c:2 "$tests/lab/quiet" 3
	up 1
	sleep 1
	far cut 3
	for i in $(seq 30); do # 3 retransmissions take 3 to 7 s
		[ $i -lt 8 ] || [ "$(gave_up a b)" = $before ] || break
		sleep 1
	done
	[ "$(gave_up a b)" != $before ] || fail 'no connection died'
	far heal 3
	ended 0
	said out '^20000 tasks$'
	patience 15 a b
	hosts_ssh far
}

cut_off()
{
	what='a host cut off for good'
	at_work a:2,b:2,c:2 6 100 --heartbeat 3
	far cut 2
	since=$(date +%s)
	ended 1
	soon
	far heal 2
	said err '^kddsrun: host b: no sign of life for 3 s'
	said err . 1
}

killed()
{
	what="a host's ranks killed"
	at_work a:2,b:2,c:2 6 100
	since=$(date +%s)
	# the death of the first may have ended the job, and the second with it
	on b kill -9 $(cat "$dir/pid.2") $(cat "$dir/pid.3") || :
	ended 137
	soon
	one_line
	said err 'rank [23] \(host b, process [0-9]+\) was killed by signal 9'
}

# ended_there HOST PROCESS...: waits until these processes of the host have ended.
ended_there()
{
	host=$1
	shift
	for i in $(seq 100); do
		on $host kill -0 "$@" 2> /dev/null || return 0
		sleep 0.1
	done
	fail "ranks on host $host still run"
}

# With --survive, ranks of a host that is cut off are given up after the heartbeat, and the job goes
# on. The agent there ends them: it does not hear of kddsrun any more either.
lost_host()
{
	what='a host cut off for good, --survive'
	at_work a:2,b:2,c:2 6 8 --survive --heartbeat 3
	far cut 2
	went_on
	said err '^kddsrun: host b: no sign of life for 3 s'
	ended_there b $(cat "$dir/pid.2") $(cat "$dir/pid.3")
	far heal 2
}

joined_again()
{
	what='ranks of a host killed, --survive --respawn'
	at_work a:2,b:2,c:2 6 6 --survive --respawn 2
	on b kill -9 $(cat "$dir/pid.2") $(cat "$dir/pid.3")
	went_on
	said err 'rank [23] .*joined' 2
}

interruption_survived()
{
	what='30 s of no network, --survive'
	at_work a:2,b:2,c:2 6 36 --survive --heartbeat 60
	far cut 2
	sleep 30
	far heal 2
	went_on
	said err . 0
}

# Only the ranks notice that the host is cut off: kddsrun's connection uses another network.
lost_data_network()
{
	what='the ranks of a host cut off for good, kddsrun not, --survive'
	hosts_ssh bridge
	patience 3 a b c
	at_work a:2,b:3,c:2 7 60 --survive
	far cut 2
	went_on
	said err 'cannot reach rank .*: killing rank [234]$' 3
	said err 'rank [234] .* was killed by signal 9 .*; the job goes on' 3
	far heal 2
	patience 15 a b c
	hosts_ssh far
}

# When a stopped host goes on, its ranks have been given up. They end, and do no harm.
stopped_host()
{
	what='a host stopped and continued, --survive'
	at_work a:2,b:2,c:2 6 14 --survive --heartbeat 3
	stopped="$(on b ps -e -o pid=,args= | awk '/kddsrun --agent/ { print $1 }')"
	stopped="$stopped $(cat "$dir/pid.2") $(cat "$dir/pid.3")"
	on b kill -STOP $stopped
	for i in $(seq 200); do
		! grep -q 'host b: no sign of life' "$dir/err" || break
		sleep 0.1
	done
	sleep 1
	on b kill -CONT $stopped || : # the ranks may have ended with ssh's connection
	went_on
	said err '^kddsrun: host b: no sign of life for 3 s.*: the job goes on without the 2 ranks'
	ended_there b $(cat "$dir/pid.2") $(cat "$dir/pid.3")
}

# lost_link WHAT HOST PATTERN: kills a process between kddsrun and the ranks of host b.
lost_link()
{
	what="$1 killed, --survive"
	at_work a:2,b:2,c:2 6 8 --survive
	on $2 kill -9 $(pid_on $2 "$3")
	went_on
	said err '^kddsrun: host b: its agent is lost'
	ended_there b $(cat "$dir/pid.2") $(cat "$dir/pid.3")
}

lost_agent()
{
	lost_link 'an agent' b 'kddsrun --agent'
	lost_link ssh a ' b exec /bin/sh'
}

# listening HOST: addresses and ports of all listening sockets except sshd's, as in /proc/net/tcp.
listening()
{
	on $1 cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" && $2 !~ /:0016$/ { print $2 }'
}

# connected HOST: the remote addresses of its connections, except ssh's.
connected()
{
	on $1 cat /proc/net/tcp /proc/net/tcp6 |
		awk '$4 == "01" && $2 !~ /:0016$/ && $3 !~ /:0016$/ { print $3 }'
}

# only_at NET: all addresses must be in 10.0.NET.0, those of listening sockets the host's own.
only_at()
{
	number=0
	for host in $hosts; do
		number=$((number + 1))
		bad=$(listening $host | grep -v "^$(printf %02X $number)0${1}000A:" || :)
		[ -z "$bad" ] || fail "host $host listens at $bad, not only at 10.0.$1.$number"
		[ "$(listening $host | wc -l)" = 2 ] ||
			fail "host $host listens at $(listening $host | wc -l) ports for 2 ranks"
		bad=$(connected $host | grep -v "^0[123]0${1}000A:" || :)
		[ -z "$bad" ] || fail "host $host is connected to $bad, not in 10.0.$1.0"
	done
}

addresses()
{
	for net in 0 1; do
		for number in 1 2 3; do
			echo "10.0.$net.$number net$net"
		done
	done > "$dir/hosts"
	for host in $hosts; do
		on $host mount --bind "$dir/hosts" /etc/hosts
	done
	for net in 0 1; do
		what="KDDS_ADDRESS of 10.0.$net"
		export KDDS_ADDRESS=net$net
		at_work a:2,b:2,c:2 6 12
		only_at $net
		went_on
	done
	export KDDS_ADDRESS=10.0.1.1
	job "another host's KDDS_ADDRESS" 1 --hosts a:2,b:1 "$tests/ranks"
	said err '^kdds: KDDS_ADDRESS=10.0.1.1: no address of this host'
	said err '^kddsrun: rank 2 \(host b, process [0-9]+\) exited with status 1'
	said err . 2
	unset KDDS_ADDRESS
}

# Data and ssh use different networks. That of the data is cut.
out_of_reach()
{
	what='ranks that cannot reach each other'
	hosts_ssh bridge
	far cut 2
	start --hosts a:1,b:1 "$tests/oracle" -j -s 100 -n $seed
	ended 1
	grep -qE \
		'^kdds: rank [01] has not reached rank [01] at 10\.0\.1\.[12]:[0-9]+ for 30 s:'\
' Connection timed out; ' "$dir/err" ||
		fail 'no line says which ranks cannot reach each other'
	far heal 2
	hosts_ssh far
}

ports()
{
	what='a range of ports'
	export KDDS_PORTS=40000-40002
	at_work a:2,b:2,c:2 6 12
	for host in $hosts; do
		bad=$(listening $host | grep -v ':9C4[012]$' || :)
		[ -z "$bad" ] || fail "host $host listens at $bad"
	done
	went_on
	job 'too few ports' 1 --hosts a:4,b:1 "$tests/ranks"
	# A rank of the job before may still have one of the ports: then two ranks have none.
	grep -q '^kdds: no port of KDDS_PORTS=40000-40002 is free at 10\.0\.1\.1: ' "$dir/err" ||
		fail "$what: stderr does not say that no port is free"
	unset KDDS_PORTS
}

# Networks that have IPv6 only.
ipv6()
{
	what='a host without IPv4' checked=$((checked + 1))
	unshare -n sh -c \
		'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec timeout 60 "$@"' sh \
		"$run" -n 2 "$tests/ranks" > "$dir/out" 2> "$dir/err" || fail "status $?"
	said out '^all travelled$'
	what='a network without IPv4' checked=$((checked + 1))
	unshare -n sh -c 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo &&
		ip link add one type veth peer name two &&
		ip link set one up && ip link set two up &&
		ip addr add fd00::1/64 dev one nodad &&
		CHECK_COMM_PROVIDER=tcp CHECK_COMM_ADDRESS=fd00::1 exec timeout 60 "$@"' sh \
		"$tests/check_comm" messages gets > "$dir/out" 2> "$dir/err" || fail "status $?"
	what='a host whose loopback is down' checked=$((checked + 1)) status=0
	unshare -n timeout 20 "$run" -n 2 "$tests/ranks" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] || fail "status $status"
	# one rank or both
	grep -q '^kdds: this host cannot reach itself at 127\.0\.0\.1: ' "$dir/err" ||
		fail 'no line says so'
}

# Sanitizers, which make these jobs several times slower, see all code that they run.
some()
{
	plain $1
	delay_and_loss $1
	interruption
	killed
	lost_host
	joined_again
	told_at_last
	ports
}

all()
{
	some $1
	delay $1
	loss $1
	cut_off
	addresses
	out_of_reach
	ipv6
}

if [ $# -gt 0 ]; then # run one of them
	"$@"
elif [ -n "${SANITIZE-}" ]; then
	some 2
else
	all 2
fi
end=$(($(date +%s) + ${NETWORK_SECONDS:-0}))
while [ $failed = 0 ] && [ "$(date +%s)" -lt $end ]; do
	all 20
	interruption_survived
	lost_agent
	lost_data_network
	stopped_host
	export KDDS_PROVIDER='tcp;ofi_rxm'
	lost_host
	joined_again
	unset KDDS_PROVIDER
	dead_connections 2 a b c
	dead_connections 2 a
	dead_connections 3 a
	dead_connections 3 c
done
echo "$checked jobs on 3 hosts"
[ $failed = 0 ]
