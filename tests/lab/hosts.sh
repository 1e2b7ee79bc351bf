# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests: creates hosts that ssh can reach. Each host is a set of namespaces (network,
# host name, processes, mounts) whose first process is an sshd; when that ends, every process on the
# host ends. Their home directory is empty: a login would otherwise run the startup files of whoever
# runs the tests, and those may wait for a lock whose holder ended with a host.
#
# The hosts are joined by a bridge in a network namespace of its own (eth0, 10.0.0.N on host N), or
# by tests/lab/tundelay (far, 10.0.1.N), which delays, loses and cuts off traffic on command, or by
# both.
#
#   hosts='a b c'        their names; kddsrun ($run) is started on a
#   hosts_make
#   hosts_join far bridge
#   hosts_ssh bridge
#   job WHAT STATUS KDDSRUN'S ARGUMENTS...
#
# Exits with 77 where such hosts cannot be created. Needs root, iproute2, util-linux, procps and
# openssh-server.

[ "$(id -u)" = 0 ] || exit 77
PATH=$PATH:/usr/sbin:/sbin
for tool in ip unshare nsenter sshd ssh ssh-keygen ps; do
	command -v $tool > /dev/null || exit 77
done
unshare --net --uts --pid --fork --mount-proc true 2> /dev/null || exit 77
dir=$(mktemp -d)
started= far= made_run_sshd=
hosts_cleanup()
{
	# All processes of a host end with its first process.
	for pid in $started; do
		kill -9 "$pid" 2> /dev/null || :
	done
	wait
	[ -z "$made_run_sshd" ] || rmdir /run/sshd 2> /dev/null || :
	rm -rf "$dir"
}
trap hosts_cleanup EXIT
trap 'exit 1' INT TERM HUP
unset KDDS_WORKERS KDDS_BIND KDDS_RSH KDDS_ADDRESS KDDS_PROVIDER SLURM_JOB_NODELIST \
	SLURM_TASKS_PER_NODE SSH_AUTH_SOCK
failed=0 checked=0 what= job_seconds=60

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

hosts_make()
{
	[ -d /run/sshd ] || { mkdir /run/sshd && made_run_sshd=1; }
	mkdir "$dir/home"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
	cat > "$dir/sshd_config" <<-END
		Port 22
		HostKey $dir/host_key
		AuthorizedKeysFile $dir/key.pub
		PidFile none
		StrictModes no
		PermitRootLogin yes
		UsePAM no
		MaxStartups 100
		SetEnv HOME=$dir/home${LSAN_OPTIONS:+ LSAN_OPTIONS=$LSAN_OPTIONS}
	END
	for host in $hosts; do
		unshare --net --uts --pid --fork --kill-child --mount-proc \
			sh -c "hostname $host; ip link set lo up
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
	done
}

join_bridge()
{
	unshare --net sleep 100000 &
	started="$started $!"
	bridge=$!
	# Waits until it is in a network namespace of its own.
	for i in $(seq 100); do
		[ "$(readlink /proc/$bridge/ns/net)" = "$(readlink /proc/$$/ns/net)" ] || break
		sleep 0.05
	done
	nsenter -t $bridge -n ip link add bridge type bridge 2> "$dir/err" ||
		give_up "$(cat "$dir/err")"
	nsenter -t $bridge -n ip link set bridge up
	number=0
	for host in $hosts; do
		number=$((number + 1))
		eval "first=\$first_$host"
		nsenter -t $bridge -n ip link add "port_$host" type veth \
			peer name eth0 netns "$first"
		nsenter -t $bridge -n ip link set "port_$host" master bridge up
		nsenter -t "$first" -n ip addr add "10.0.0.$number/24" dev eth0
		nsenter -t "$first" -n ip link set eth0 up
	done
}

join_far()
{
	namespaces=
	for host in $hosts; do
		eval "first=\$first_$host"
		namespaces="$namespaces /proc/$first/ns/net"
	done
	# Opened for reading and writing, so that neither side waits for the other to open it.
	# tundelay ends when its input does, that is, with this script.
	mkfifo "$dir/far"
	exec 3<> "$dir/far"
	"$PWD/tests/lab/tundelay" -s "$seed" $namespaces \
		< "$dir/far" > "$dir/far.out" 2> "$dir/far.err" 3>&- &
	far=$!
	started="$started $far"
	for i in $(seq 100); do
		! grep -qs . "$dir/far.out" "$dir/far.err" || break
		sleep 0.05
	done
	grep -qx up "$dir/far.out" || give_up "tundelay: $(cat "$dir/far.err")"
	number=0
	for host in $hosts; do
		number=$((number + 1))
		eval "first=\$first_$host"
		nsenter -t "$first" -n ip addr add "10.0.1.$number/24" dev far
		nsenter -t "$first" -n ip link set far up
	done
}

# hosts_join [bridge] [far]: with both, a job uses the first one unless KDDS_ADDRESS says otherwise.
hosts_join()
{
	for network; do
		join_$network
	done
}

# far delay US | loss PERCENT | cut HOST | heal HOST: hosts are numbered from 1. Returns when the
# command is in effect.
far()
{
	lines=$(wc -l < "$dir/far.out")
	echo "$*" >&3
	for i in $(seq 200); do
		[ "$(wc -l < "$dir/far.out")" = "$lines" ] || return 0
		sleep 0.02
	done
	echo "tundelay does not answer: $(cat "$dir/far.err")"
	exit 1
}

# hosts_ssh bridge|far: the network that ssh uses from now on.
hosts_ssh()
{
	cat > "$dir/ssh_config" <<-END
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
	case $1 in
	bridge) net=10.0.0 ;;
	far) net=10.0.1 ;;
	esac
	number=0
	for host in $hosts; do
		number=$((number + 1))
		printf 'Host %s\n  HostName %s.%s\n' "$host" $net $number >> "$dir/ssh_config"
	done
}

# on HOST COMMAND...: runs the command on a host.
on()
{
	eval "first=\$first_$1"
	shift
	nsenter -t "$first" -n -u -p -m "$@"
}

# What runs on a host other than sshd, its children for connections that are about to end, and this
# ps.
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

# start ARGUMENTS...: starts kddsrun on host a.
start()
{
	checked=$((checked + 1))
	: > "$dir/out"
	# A shell's background jobs ignore SIGINT.
	env --default-signal=INT nsenter -t "$first_a" -n -u -p -m \
		env KDDS_RSH="ssh -F '$dir/ssh_config'" \
		timeout --foreground -k 5 $job_seconds "$run" "$@" \
		> "$dir/out" 2> "$dir/err" < /dev/null 3>&- &
	job=$!
}

# up N [PATTERN]: waits until that many lines of the ranks' output match.
up()
{
	for i in $(seq 300); do
		[ "$(grep -c "${2-^up}" "$dir/out")" -lt "$1" ] || return 0
		sleep 0.1
	done
	fail 'the job does not start'
}

# ended STATUS: waits for the job, which must end with this status and leave nothing.
ended()
{
	status=0
	wait $job || status=$?
	[ $status = "$1" ] || fail "status $status, not $1"
	nothing_left
}

# job WHAT STATUS ARGUMENTS...: starts a job, which must end with this status.
job()
{
	what=$1 expected=$2
	shift 2
	start "$@"
	ended "$expected"
}

# said FILE PATTERN [COUNT]: that many lines of out or err (by default one) must match.
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

# pid_on HOST PATTERN: the last process on the host that matches.
pid_on()
{
	on "$1" ps -e -o pid=,args= | grep -v -e grep -e sshd -e ' ps -e' | grep "$2" |
		awk '{ print $1 }' | tail -n 1
}
