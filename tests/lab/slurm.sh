#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh [-N NODES] COMMAND...: starts a Slurm with nodes of its own, one by default, all of them
# this host, and runs the command in it: srun needs no options there. Slurm ends with the command.
# The status is the command's; 77 when Slurm is not installed or the user is not root; 99 when Slurm
# does not start. Needs no systemd, and touches no existing Slurm, munge or files. TMPDIR is a
# directory of its own.
set -eu
nodes=1
if [ "$1" = -N ]; then
	nodes=$2
	shift 2
fi

munged=$(command -v munged || ls /usr/sbin/munged 2> /dev/null) || munged=
slurmctld=$(command -v slurmctld || ls /usr/sbin/slurmctld 2> /dev/null) || slurmctld=
slurmd=$(command -v slurmd || ls /usr/sbin/slurmd 2> /dev/null) || slurmd=
if [ -z "$munged" ] || [ -z "$slurmctld" ] || [ -z "$slurmd" ] ||
	! command -v srun > /dev/null; then
	echo 'slurm.sh: Slurm or munge is not installed' >&2
	exit 77
fi
[ "$(id -u)" = 0 ] && getent passwd munge > /dev/null || {
	echo 'slurm.sh: only root can start Slurm, and munged as user munge' >&2
	exit 77
}

# These belong to a job that this may run in.
unset $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p') NO_SLURM

dir=$(mktemp -d)
pids= command=
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# gone PID...: waits until the processes have ended, 20 s at most.
gone()
{
	for pid; do
		left=200
		while [ $left -gt 0 ] && kill -0 "$pid" 2> /dev/null; do
			sleep 0.1
			left=$((left - 1))
		done
		[ $left -gt 0 ]
	done
}

# The processes that run with our configuration, except this one: slurmstepd is not a descendant of
# slurmd.
ours()
{
	grep -lszFx "SLURM_CONF=$dir/slurm.conf" /proc/[0-9]*/environ | tr -cd '0-9\n' |
		grep -vx $$ || :
}

stop()
{
	status=$?
	trap - EXIT HUP INT TERM
	if [ -n "$command" ]; then
		kill "$command" 2> /dev/null || :
		wait "$command" 2> /dev/null || :
	fi
	if [ -e "$dir/up" ]; then
		timeout 20 scancel --quiet --signal KILL --full --user "$(id -un)" \
			> /dev/null 2>&1 || :
		left=100
		while [ $left -gt 0 ] && [ -n "$(timeout 20 squeue --noheader 2> /dev/null)" ]; do
			sleep 0.1
			left=$((left - 1))
		done
	fi
	# The latest first: munged serves the others.
	for pid in $pids; do
		kill "$pid" 2> /dev/null || :
		gone "$pid" || kill -KILL "$pid" 2> /dev/null || :
	done
	for pid in $(ours); do
		kill -KILL "$pid" 2> /dev/null || :
	done
	gone $(ours) || :
	rm -rf "$dir"
	exit $status
}

fail()
{
	echo "slurm.sh: $1" >&2
	tail -n 30 "$dir"/*.log >&2 2> /dev/null || :
	exit 99
}

# until_true WHAT COMMAND...: repeats the command until it succeeds, 60 s at most.
until_true()
{
	what=$1 left=300
	shift
	until "$@" > "$dir/until.log" 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || fail "$what: not in 60 s"
		sleep 0.2
	done
}

host=$(hostname -s)
# Finds two ports that nobody listens on. If another process takes one of them meanwhile, slurmctld
# or slurmd reports an error.
free_port()
{
	port=$1
	while grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$port") [0-9A-F:]* 0A" \
		/proc/net/tcp /proc/net/tcp6 2> /dev/null; do
		port=$((port + 1))
	done
	echo "$port"
}
ctld_port=$(free_port $((20000 + $$ % 10000)))
# The nodes are named after the host: node, node-2 and so on.
names=
port=$ctld_port
for i in $(seq "$nodes"); do
	name=$host
	[ "$i" = 1 ] || name=$host-$i
	port=$(free_port $((port + 1)))
	names="$names $name"
	lines="${lines-}NodeName=$name NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=16 \
RealMemory=1024 State=UNKNOWN
"
done

chmod 755 "$dir"
mkdir "$dir/munge" "$dir/state" "$dir/tmp"
chmod 1777 "$dir/tmp"
dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 2> /dev/null
chmod 600 "$dir/munge/key"
chown -R munge: "$dir/munge"
chmod 755 "$dir/munge"

export SLURM_CONF="$dir/slurm.conf" TMPDIR="$dir/tmp"
cat > "$SLURM_CONF" <<CONF
ClusterName=kdds
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ctld_port
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=10000
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
$lines
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:16
CONF
cat > "$dir/mpi.conf" <<CONF
PMIxCliTmpDirBase=$dir/tmp
CONF

cd "$dir"
setpriv --reuid munge --regid munge --clear-groups "$munged" --foreground \
	--key-file "$dir/munge/key" --socket "$dir/munge/socket" --pid-file "$dir/munge/pid" \
	--seed-file "$dir/munge/seed" --log-file "$dir/munge/log" \
	< /dev/null > "$dir/munged.log" 2>&1 &
pids=$!
until_true munged munge --socket "$dir/munge/socket" --no-input
"$slurmctld" -D -c < /dev/null > "$dir/slurmctld.out.log" 2>&1 &
pids="$! $pids"
until_true slurmctld scontrol ping
for name in $names; do
	"$slurmd" -D -N "$name" < /dev/null > "$dir/slurmd.$name.out.log" 2>&1 &
	pids="$! $pids"
done
cd - > /dev/null
: > "$dir/up"
until_true 'a job' timeout 20 srun --quiet --immediate=10 -N "$nodes" true

# In the background, so that a signal to this script is handled at once.
exec 3<&0
"$@" <&3 3<&- &
command=$!
status=0
wait $command || status=$?
command=
exit $status
